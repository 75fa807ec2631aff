import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

// Scripts have no types.
const script = (name: string): Promise<Record<string, (...args: unknown[]) => unknown>> =>
  import(/* @vite-ignore */ `${ROOT}/scripts/${name}.mjs`);
const { readSteps } = await script('fresh/readme');
const { isOlder } = await script('fresh/machine');
const { TOOLS } = (await script('build-native')) as unknown as { TOOLS: { packaged: string }[] };

describe('what scripts/fresh-machine reads in the README', () => {
  const steps = readSteps?.(README) as { packages: string[]; commands: string[] };

  it('is two commands, and every package that a build of the addon takes', () => {
    expect(steps.commands).toHaveLength(2);
    expect(steps.packages).toEqual(expect.arrayContaining(TOOLS.map(({ packaged }) => packaged)));
  });

  it('follows the README: another command, another package', () => {
    const changed = README.replace('npx sandbox-run -- git status', 'npx sandbox-run -- git log').replace(
      'cmake make',
      'cmake ninja-build',
    );
    expect(readSteps?.(changed)).toMatchObject({
      commands: ['npm ci', 'npx sandbox-run -- git log'],
      packages: expect.arrayContaining(['ninja-build']),
    });
  });

  it.each([
    ['no packages', /^sudo apt-get install .*$/m, 'sudo dnf install gcc-c++'],
    ['no run', /^npm ci && npx .*$/m, 'npm ci'],
    ['a third command', / -- git status$/m, ' -- git status && make'],
    ['no Node', 'checkout needs Node 20.19', 'checkout needs Node'],
    ['no word on an old Node', 'leave out `nodejs npm` there', ''],
  ])('is refused where the README has %s', (_, what, instead) => {
    expect(README).toMatch(what);
    expect(() => readSteps?.(README.replace(what, instead))).toThrow('README.md');
  });

  it('takes the Node of a release unless it is older than what the README wants', () => {
    expect(isOlder?.([18, 20], [20, 19])).toBe(true);
    expect(isOlder?.([20, 18], [20, 19])).toBe(true);
    expect(isOlder?.([20, 19], [20, 19])).toBe(false);
    expect(isOlder?.([22, 1], [20, 19])).toBe(false);
  });
});

describe('scripts/fresh-machine', () => {
  const places = () => readdirSync(tmpdir()).filter((name) => name.startsWith('sandbox-run-fresh-'));
  const start = (args: readonly string[], path = process.env.PATH) =>
    spawnSync(process.execPath, [join(ROOT, 'scripts/fresh-machine.mjs'), ...args], {
      encoding: 'utf8',
      env: { ...process.env, PATH: path },
      timeout: 20_000,
    });

  it('says with a status of its own that no root can be made here, and leaves nothing', () => {
    const before = places();
    // Without debootstrap, or without root.
    const { status, stderr } = start([], '/nowhere');
    expect({ status, stderr }).toEqual({
      status: 3,
      stderr: expect.stringMatching(
        /^fresh-machine: (debootstrap needs root|debootstrap is missing; [^\n]+)\n$/,
      ),
    });
    expect(places()).toEqual(before);
  });

  it('takes wrong options for wrong usage', () => {
    expect(start(['--suites', '../etc']).status).toBe(2);
    expect(start(['--what']).status).toBe(2);
    expect(start(['--help'])).toMatchObject({ status: 0, stdout: expect.stringContaining('exit status:') });
  });
});
