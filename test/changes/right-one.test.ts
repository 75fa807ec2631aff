import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { cli, makePlace, type Place } from '../cli/support.ts';
import { makeArena } from '../support/arena.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';

// Redo brings back what the user took back last, and nothing else; apply takes away only what the command saw.

const arena = makeArena();
useOwnState(arena);
const describe_ = describe.skipIf(!HOST.namespaces);

describe_('sandbox-run redo (needs namespaces)', () => {
  let place: Place;
  beforeEach(() => {
    place = makePlace();
    appendFileSync(
      join(place.env.XDG_CONFIG_HOME ?? '', 'sandbox-run/policy.toml'),
      '\n[workspace]\nundo = "always"\n',
    );
  });
  afterEach(() => place.dispose());

  const run = (...words: readonly string[]) => cli(place, words);
  const has = (name: string) => existsSync(join(place.workspace, name));
  const write = (name: string, text: string) => writeFileSync(join(place.workspace, name), text);
  const read = (name: string) => readFileSync(join(place.workspace, name), 'utf8');
  /** Runs a command in a preview. Returns the id of its changes. */
  const preview = async (command: string) => {
    const { stdout } = await run('--preview', '--json', '-c', command);
    return (JSON.parse(stdout) as { readonly changes: { readonly id: string } }).changes.id;
  };

  it('brings back what a partial undo took, and not an older preview that was rejected', async () => {
    const rejected = await preview('echo bad > rejected');
    await run('changes', 'apply', rejected);
    await run('changes', 'undo', rejected);
    await run('-c', 'echo 1 > a; echo 1 > b');
    write('b', 'mine\n');
    expect((await run('undo')).exitCode).toBe(1);
    expect([has('a'), has('b')]).toEqual([false, true]);
    expect(await run('redo')).toMatchObject({ exitCode: 0 });
    expect([has('a'), read('b'), has('rejected')]).toEqual([true, 'mine\n', false]);
    const again = await run('redo');
    expect([again.exitCode, has('rejected')]).toEqual([125, false]);
    expect(again.stderr).toContain(`sandbox-run redo ${rejected}`);
    expect((await run('redo', rejected)).exitCode).toBe(0);
    expect(has('rejected')).toBe(true);
  });

  it('brings back an older command only by its name once others were made', async () => {
    await run('-c', 'echo > older');
    await run('undo');
    await run('-c', 'echo 1 > a; echo 1 > b');
    write('b', 'mine\n');
    await run('undo');
    await run('redo');
    expect([has('a'), has('older')]).toEqual([true, false]);
    const [older = ''] = (await run('history')).stdout.split(' ');
    expect((await run('redo')).stderr).toContain(`sandbox-run redo ${older}\n`);
    expect(has('older')).toBe(false);
    await run('redo', older);
    expect(has('older')).toBe(true);
  });

  it('removes nothing again after another command, nor after an undo that took nothing back', async () => {
    for (const name of ['ra', 'rb', 'rc']) write(name, 'mine\n');
    await run('-c', 'rm ra');
    await run('undo');
    const removed = (await run('history')).stdout.split(' ')[0] ?? '';
    const isLeft = async () => {
      const { exitCode, stderr } = await run('redo');
      expect([exitCode, has('ra')]).toEqual([125, true]);
      expect(stderr).toMatch(new RegExp(`^[^\n]*sandbox-run redo ${removed}\n$`));
    };
    await run('-c', 'rm rb');
    await isLeft();
    await run('-c', 'echo theirs > rc');
    write('rc', 'mine again\n');
    const [other = ''] = (await run('history')).stdout.trim().split('\n').at(-1)?.split(' ') ?? [];
    expect((await run('undo', other)).exitCode).toBe(1);
    await isLeft();
    expect((await run('redo', removed)).exitCode).toBe(0);
    expect(has('ra')).toBe(false);
  });

  it('does not bring back an older command where of a partial undo nothing can come', async () => {
    await run('-c', 'echo > older');
    await run('undo');
    await run('-c', 'echo 1 > a; echo 1 > b');
    write('b', 'mine\n');
    await run('undo');
    write('a', 'mine\n');
    expect(await run('redo')).toMatchObject({ exitCode: 1 });
    expect([read('a'), has('older')]).toEqual(['mine\n', false]);
  });

  it.each([
    ['by its name', async (id: string) => run('changes', 'undo', id)],
    [
      'before another command was',
      async () => {
        await run('undo');
        await run('-c', 'echo > other');
      },
    ],
  ])('leaves a preview that was taken back %s', async (_, reject) => {
    const id = await preview('echo > made');
    await run('changes', 'apply', id);
    await reject(id);
    const redone = await run('redo');
    expect([redone.exitCode, has('made')]).toEqual([125, false]);
    expect(redone.stderr).toContain(`sandbox-run redo ${id}`);
    expect((await run('redo', id)).exitCode).toBe(0);
    expect(has('made')).toBe(true);
  });

  it.each([
    ['without a name', false],
    ['by its name', true],
  ])('brings back only what was taken back, and not what had never been applied, %s', async (_, named) => {
    const id = await preview('echo > wanted; echo > unwanted; git init -q r; git -C r config user.name x');
    await run('changes', 'apply', id, 'wanted');
    await run('undo');
    expect(await run('redo', ...(named ? [id] : []))).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining('1 change is applied'),
    });
    expect(readdirSync(place.workspace)).toEqual(['wanted']);
  });
});

const CHANGED_WITHIN = 'something in it changed';

describe_('a directory that a command removed in a preview (needs namespaces)', () => {
  /** A preview in which `d` goes, then something else happens to it, then the preview is applied. */
  async function removed(other: (root: string) => void, command = 'rm -r d') {
    const root = arena.freshCorner();
    mkdirSync(join(root, 'd/in'), { recursive: true });
    for (const name of ['d/f', 'd/in/f', 'd/in/g']) writeFileSync(join(root, name), 'theirs');
    linkSync(join(root, 'd/f'), join(root, 'linked'));
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
    const { changes } = await sandbox.run(command, { effect: 'preview' });
    other(root);
    const sets = await sandbox.changes();
    const { notDone } = await sets.apply(changes?.id ?? '');
    return { root, sets, id: changes?.id ?? '', notDone };
  }

  /** Does something to a file, and puts its times back. */
  function keepingTimes(path: string, work: () => void): void {
    const { atime, mtime } = statSync(path);
    execFileSync('touch', ['-r', path, `${path}.times`]);
    work();
    utimesSync(path, atime, mtime);
    execFileSync('touch', ['-r', `${path}.times`, path]);
    rmSync(`${path}.times`);
  }

  it('goes where nothing happened to it, and comes back', async () => {
    const { root, sets, id, notDone } = await removed(() => {});
    expect([notDone, readdirSync(root)]).toEqual([[], ['linked']]);
    await sets.undo(id);
    expect(readFileSync(join(root, 'd/in/f'), 'utf8')).toBe('theirs');
    expect(await sets.apply(id)).toMatchObject({ notDone: [] });
    expect(readdirSync(root)).toEqual(['linked']);
  });

  it('goes where the same command takes another name of a file in it', async () => {
    const { root, notDone } = await removed(() => {}, 'rm linked; rm -r d');
    expect([notDone, readdirSync(root)]).toEqual([[], []]);
  });

  it.each([
    [
      'was written to',
      (root: string) =>
        keepingTimes(join(root, 'd/in/f'), () => writeFileSync(join(root, 'd/in/f'), 'edited')),
    ],
    [
      'was written to by another name',
      (root: string) =>
        keepingTimes(join(root, 'linked'), () => writeFileSync(join(root, 'linked'), 'edited')),
    ],
    [
      'was replaced',
      (root: string) =>
        keepingTimes(join(root, 'd/in/f'), () => {
          writeFileSync(join(root, 'aside'), 'edited');
          renameSync(join(root, 'aside'), join(root, 'd/in/f'));
        }),
    ],
  ])('stays where a file in it %s, which has the size and times of before', async (_, other) => {
    const { root, notDone } = await removed(other);
    expect(notDone).toEqual([{ path: 'd', why: CHANGED_WITHIN }]);
    const texts = ['d/in/f', 'd/f'].map((name) => readFileSync(join(root, name), 'utf8'));
    expect(texts).toContain('edited');
  });

  it('stays where a command replaced it by a file', async () => {
    const { root, notDone } = await removed(
      (root) => keepingTimes(join(root, 'd/in/f'), () => writeFileSync(join(root, 'd/in/f'), 'edited')),
      'rm -r d; echo > d',
    );
    expect([notDone, readFileSync(join(root, 'd/in/f'), 'utf8')]).toEqual([
      [{ path: 'd', why: CHANGED_WITHIN }],
      'edited',
    ]);
  });
});
