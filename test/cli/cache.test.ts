import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { cli, makePlace, type Place, startCli } from './support.ts';

describe('sandbox-run cache', () => {
  let place: Place;
  beforeAll(() => {
    place = makePlace();
  });
  afterAll(() => place.dispose());
  const run = (...args: string[]) => cli(place, args);
  const shown = async () =>
    (await run('cache', 'show', '--json')).stdout
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));

  it('shows what is cached, and clears it', async () => {
    expect(await run('cache', 'show')).toMatchObject({ exitCode: 0, stdout: 'nothing is cached\n' });
    await run('-c', 'head -c 3000000 /dev/zero > ~/.cache/x');
    const { stdout } = await run('cache', 'show');
    expect(stdout).toMatch(/^ +2\.\d MiB {2}\S+Z {2}\S+work\n +2\.\d MiB {2}in all\n$/);
    expect(await shown()).toMatchObject([
      { workspace: place.workspace, workspaceExists: true, inUse: false },
    ]);
    expect((await run('cache', 'clear', '--workspace', place.root)).stdout).toMatch(/^nothing is cached for/);
    expect(await shown()).toHaveLength(1);
    expect((await run('cache', 'clear')).stdout).toBe(`${place.workspace}: cleared\n`);
    expect(await shown()).toEqual([]);
  });

  it('says that a command uses it, and clears nothing then', async () => {
    const hold = makeHold(place.workspace);
    const running = startCli(place, ['-c', `echo x > ~/.cache/x; : > begun; ${hold.words}; cat ~/.cache/x`]);
    await eventually(() => expect(existsSync(join(place.workspace, 'begun'))).toBe(true), 60_000);
    expect(await shown()).toMatchObject([{ inUse: true }]);
    for (const which of [[], ['--all']] as const) {
      const { exitCode, stdout, stderr } = await run('cache', 'clear', ...which);
      expect(`${stdout}${stderr}`).toContain('a command uses');
      expect(exitCode).toBe(which.length === 0 ? 125 : 0);
    }
    hold.letGo();
    expect(await running).toMatchObject({ exitCode: 0, stdout: 'x\n' });
    expect((await run('cache', 'clear', '--all')).stdout).toBe(`${place.workspace}: cleared\n`);
  });

  it('wants to know of which', async () => {
    expect(await run('cache', 'clear', '--all', '--workspace', '.')).toMatchObject({ exitCode: 125 });
    expect((await run('--dry-run', '--', 'true')).stdout).toContain('Caches are kept for this workspace');
    const readOnly = await run('--dry-run', '--profile', 'read-only', '--', 'true');
    expect(readOnly.stdout).toContain('Caches are deleted with the command: the workspace cannot be written');
  });
});
