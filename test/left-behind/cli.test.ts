import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { cli, makePlace, type Place } from '../cli/support.ts';
import { HOST } from '../support/tiers.ts';

/** What people see: the built command line, and what git does afterwards. */
describe('the command line says what a command left behind', () => {
  const places: Place[] = [];
  let place: Place;
  let mark = '';
  beforeEach(() => {
    place = makePlace();
    places.push(place);
    mark = join(place.root, 'mark');
    outside('git init -q -b main .; git config user.name me; git config user.email me@localhost');
    outside('git commit -q --allow-empty -m first');
  });
  afterAll(() => {
    for (const one of places) one.dispose();
  });
  const env = () => ({ ...place.env, XDG_STATE_HOME: join(place.root, 'state') });
  const outside = (script: string) =>
    execFileSync('bash', ['-c', script], { cwd: place.workspace, env: env(), stdio: 'pipe' }).toString();
  const run = (...args: readonly string[]) => cli(place, args, { env: env() });
  const evil = () => `printf '#!/bin/sh\\ntouch "${mark}"\\n' > evil; chmod +x evil`;

  it('a key that runs a program is set aside in one line, and can be shown and put back', async () => {
    const answer = await run(
      '-c',
      `${evil()}; git config core.fsmonitor "$PWD/evil"; git config user.name you`,
    );
    expect(answer.exitCode).toBe(0);
    const lines = answer.stderr.split('\n').filter((line) => line.includes('set aside'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/core\.fsmonitor=.*evil in \.git\/config/);
    outside('git status');
    expect(existsSync(mark)).toBe(false);
    expect(outside('git config user.name')).toBe('you\n');

    const [kept] = (await run('kept', 'list', '--json')).stdout.trim().split('\n');
    const { id } = JSON.parse(kept ?? '') as { id: string };
    expect((await run('kept', 'show', id)).stdout).toContain('core.fsmonitor');
    expect((await run('kept', 'restore', id)).exitCode).toBe(0);
    outside('git status');
    expect(existsSync(mark)).toBe(true);
  });

  it('a commit for which git found no hooks, as what makes them was not run', async () => {
    const SAID = /git ran no hooks for a commit: core\.hooksPath in .*\.git\/config names .*not there/;
    const commit = async (...more: readonly string[]) =>
      (await run('-c', ['git commit -q --allow-empty -m x', ...more].join('; '))).stderr;
    // Nothing is said of git's own place, nor of hooks that are there, nor of anything but a commit.
    expect(await commit()).toBe('');
    outside('mkdir -p .husky/_; git config core.hooksPath .husky/_; git commit -q --allow-empty -m there');
    expect(await commit()).toBe('');
    outside('rmdir .husky/_');
    expect((await run('-c', 'git status --short; git log -1 --oneline; git checkout -q -b b')).stderr).toBe(
      '',
    );
    outside('git commit -q --allow-empty -m "by the user"');
    expect((await run('-c', 'git checkout -q -b c')).stderr).toBe('');

    const said = await commit();
    expect(said.split('\n').filter((line) => SAID.test(line))).toHaveLength(1);
    expect(said).toMatch(/\(npx husky\)/);
    const inScript = await run('-c', 'echo "git commit -q --allow-empty -m y" > s.sh; sh s.sh');
    expect(inScript.stderr).toMatch(SAID);
    outside('git config core.hooksPath elsewhere/hooks');
    expect(await commit()).toMatch(
      /names .*\/elsewhere\/hooks, which is not there; make it outside of the sandbox, and/,
    );
    // A command that puts something else where the log is has nothing read by that.
    expect(await commit('rm .git/logs/HEAD; mkfifo .git/logs/HEAD')).not.toMatch(SAID);
  });

  it.runIf(HOST.signalScope)('says which program made it, where somebody looks', async () => {
    const script = `git init -q sub; ${evil()}; mv evil sub/.git/hooks/post-commit; cp sub/.git/hooks/post-commit sub/.git/hooks/pre-push`;
    const madeBy = async (...options: readonly string[]) => {
      const answer = await run(...options, '--json', '-c', script);
      const { leftBehind } = JSON.parse(answer.stdout.trim().split('\n').at(-1) ?? '');
      return leftBehind.map((one: { readonly madeBy?: string }) => one.madeBy);
    };
    expect(await madeBy()).toEqual(['mv', 'cp']);
    outside('rm -rf sub');
    expect(await madeBy('--explain', 'never')).toEqual([undefined, undefined]);
  });

  it('a hook of a repository that was made is named in the result, and a clean end stays clean', async () => {
    const answer = await run(
      '--json',
      '-c',
      `git init -q sub; ${evil()}; mv evil sub/.git/hooks/post-commit`,
    );
    const result = JSON.parse(answer.stdout.trim().split('\n').at(-1) ?? '');
    expect(result).toMatchObject({
      exitCode: 0,
      leftBehind: [
        { path: join(place.workspace, 'sub/.git/hooks/post-commit'), done: 'shut', program: 'git' },
      ],
    });
    outside('cd sub; git -c user.name=a -c user.email=a commit -q --allow-empty -m x');
    expect(existsSync(mark)).toBe(false);
  });

  it('what a person starts is told and left where it is', async () => {
    writeFileSync(join(place.workspace, 'package.json'), '{}\n');
    const answer = await run('-c', `echo '{"scripts": {"test": "evil"}}' > package.json`);
    expect(answer.stderr).toMatch(/look at this before you use it: package\.json/);
    expect(readFileSync(join(place.workspace, 'package.json'), 'utf8')).toContain('evil');
  });

  it('says nothing of work that leaves nothing', async () => {
    const answer = await run('-c', 'echo x > f; git add f; git commit -qm second; git branch topic');
    expect(answer).toMatchObject({ exitCode: 0, stderr: '' });
  });
});
