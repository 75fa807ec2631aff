import { execFileSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { cli, makePlace, type Place } from '../cli/support.ts';
import { HOST } from '../support/tiers.ts';

// Settings of git that a command makes are taken over one by one, and some are refused.

describe.skipIf(!HOST.namespaces)('settings of git, with undo (needs namespaces)', () => {
  let place: Place;
  beforeAll(() => {
    place = makePlace();
    appendFileSync(
      join(place.env.XDG_CONFIG_HOME ?? '', 'sandbox-run/policy.toml'),
      '\n[workspace]\nundo = "always"\n',
    );
    execFileSync('git', ['init', '-q', place.workspace]);
  });
  afterAll(() => place.dispose());

  const settings = () =>
    String(execFileSync('git', ['config', '--local', '--list'], { cwd: place.workspace }))
      .split('\n')
      .filter((line) => /^(user|alias)/.test(line));

  it('that are all refused are nothing to take back, and nothing that waits', async () => {
    await cli(place, ['-c', 'echo one > f']);
    const refused = await cli(place, ['-c', 'git config alias.x "!sh"']);
    expect(refused).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('set aside') });
    expect((await cli(place, ['changes', 'list'])).stdout).toMatch(/^\S+ {2}applied {3}1 created: .*\n?$/);
    expect(await cli(place, ['undo'])).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/1 change is/),
    });
    expect(settings()).toEqual([]);
  });

  it('are counted in the list as where they are shown', async () => {
    await cli(place, ['-c', 'git config user.name Me; echo one > g']);
    const history = (await cli(place, ['history'])).stdout.trim().split('\n').at(-1);
    expect(history).toMatch(/^\S+ {2}applied {3}1 created, 1 changed: /);
    const shown = await cli(place, ['changes', 'show', history?.split(' ')[0] ?? '']);
    expect(`${shown.stdout.split('\n')[0]}  [.git/config, g]`).toBe(history);
    await cli(place, ['undo']);
  });

  it('of which some are refused: the others come, and are taken back', async () => {
    await cli(place, ['-c', 'git config alias.x "!sh"; git config user.name Me']);
    expect(settings()).toEqual(['user.name=Me']);
    expect((await cli(place, ['undo'])).exitCode).toBe(0);
    expect(settings()).toEqual([]);
  });
});
