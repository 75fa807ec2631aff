import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ExecutionResult } from '../../src/model/index.ts';
import { lookAt, withListed } from '../../src/run/index.ts';
import { makeArena } from '../support/arena.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';

// What somebody does with git between a command and its undo.

const arena = makeArena();
useOwnState(arena);

function idOf({ changes }: ExecutionResult): string {
  if (changes?.id === undefined) throw new Error('nothing was changed');
  return changes.id;
}

/** A repository with a commit. `git`: what a person outside does. */
async function repository({ undo }: { readonly undo: 'always' | 'never' }) {
  const root = arena.freshCorner();
  const who = ['-c', 'user.name=A', '-c', 'user.email=a@b'];
  const git = (...words: readonly string[]) =>
    String(execFileSync('git', [...who, ...words], { cwd: root, stdio: 'pipe' })).trim();
  const write = (name: string, text: string) => writeFileSync(join(root, name), text);
  git('init', '-q', '-b', 'main', '.');
  write('a', 'one\n');
  git('add', '-A');
  git('commit', '-qm', 'one');
  const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root, undo });
  const run = async (command: string, options = {}) => {
    const result = await sandbox.run(
      `export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@b; ${command}`,
      options,
    );
    expect([result.status, result.exitCode, result.stderr, result.warnings]).toEqual(['exited', 0, '', []]);
    return idOf(result);
  };
  return { root, git, write, run, sandbox, changes: await sandbox.changes() };
}

const COMMIT = 'echo two >> a; git add -A; git commit -qm two';

describe.skipIf(!HOST.namespaces)('a repository of git (needs namespaces)', () => {
  it.each([[2], [3], [4]])(
    'whose index of version %i somebody only looked at is taken back, and applied again',
    async (version) => {
      const { git, run, changes } = await repository({ undo: 'always' });
      git('update-index', '--index-version', String(version));
      const id = await run(COMMIT);
      // It writes the index anew: the files are others by number and time.
      expect(git('status', '--short')).toBe('');
      expect(await changes.undo(id)).toMatchObject({ notDone: [], state: 'undone' });
      expect([git('status', '--short'), git('log', '--format=%s')]).toEqual(['', 'one']);
      expect(git('fsck', '--strict')).toBe('');
      expect(await changes.apply(id)).toMatchObject({ notDone: [], state: 'applied' });
      expect([git('status', '--short'), git('log', '--format=%s')]).toEqual(['', 'two\none']);
      expect(git('fsck', '--strict')).toBe('');
    },
  );

  it('whose index somebody only looked at gets what waits', async () => {
    const { git, write, run, changes } = await repository({ undo: 'never' });
    const id = await run('echo b > b; git add b', { effect: 'preview' });
    write('a', 'one\n');
    git('status', '--short');
    expect(await changes.apply(id)).toMatchObject({ notDone: [] });
    expect(git('status', '--short')).toBe('A  b');
  });

  it('keeps what somebody staged, and what that needs', async () => {
    const { git, write, run, changes } = await repository({ undo: 'always' });
    const id = await run('echo two >> a; git add -A');
    write('c', 'theirs\n');
    git('add', 'c');
    const { notDone } = await changes.undo(id);
    expect(notDone).toEqual([{ path: '.git', why: expect.stringContaining('git was used there since') }]);
    expect(git('status', '--short')).toBe('MM a\nA  c');
    expect(git('fsck', '--strict')).toBe('');
  });

  it('that somebody removed is nothing to keep', async () => {
    const { root, git, run, changes } = await repository({ undo: 'always' });
    const id = await run('git init -q inner; cd inner; git commit -q --allow-empty -m x');
    rmSync(join(root, 'inner/.git'), { recursive: true });
    expect(await changes.undo(id)).toMatchObject({ notDone: [], state: 'undone' });
    expect(git('status', '--short')).toBe('');
  });

  it('keeps what a preview on it needs that was applied later', async () => {
    const { git, run, changes } = await repository({ undo: 'never' });
    const commit = 'git update-ref refs/heads/made $(git commit-tree -p HEAD -m made HEAD^{tree})';
    const below = await run(commit, { effect: 'preview' });
    const above = await run('git branch mine made', { effect: 'preview', on: below });
    for (const id of [below, above]) expect(await changes.apply(id)).toMatchObject({ notDone: [] });
    expect((await changes.undo(below)).notDone).toEqual([
      { path: '.git', why: expect.stringContaining('git was used there since') },
    ]);
    expect(git('log', '-1', '--format=%s', 'mine')).toBe('made');
    for (const id of [above, below])
      expect(await changes.undo(id)).toMatchObject({ notDone: [], state: 'undone' });
    expect(git('fsck', '--strict')).toBe('');
  });

  it('of which a part was not kept stays: the rest may need it', async () => {
    const state = process.env.XDG_STATE_HOME;
    // What is on another file system is copied to be kept.
    const elsewhere = mkdtempSync('/dev/shm/sandbox-run-');
    process.env.XDG_STATE_HOME = elsewhere;
    const { root, run, changes, sandbox } = await repository({ undo: 'always' });
    onTestFinished(async () => {
      // It would make its next layer there.
      await sandbox.close();
      process.env.XDG_STATE_HOME = state;
      rmSync(elsewhere, { recursive: true, force: true });
    });
    const pack = (name: string) => join(root, '.git/objects/pack', name);
    writeFileSync(pack('old.pack'), '');
    truncateSync(pack('old.pack'), 257 * 1024 * 1024);
    const id = await run('cd .git/objects/pack; echo all > new.pack; rm old.pack; echo >> ../../../a');
    expect((await changes.undo(id)).notDone).toEqual([
      { path: '.git', why: expect.stringContaining('was not kept') },
    ]);
    expect(existsSync(pack('new.pack'))).toBe(true);
  });

  it.each([
    ['commits on top of it', (git: Git) => git('commit', '-q', '--allow-empty', '-m', 'three'), COMMIT],
    [
      'a branch that the command knew nothing of',
      (git: Git) => git('branch', '-q', 'mine', 'made'),
      'git update-ref refs/heads/made $(git commit-tree -p HEAD -m made HEAD^{tree})',
    ],
    [
      'a tag in a repository in the workspace',
      (git: Git) => git('-C', 'inner', 'tag', 'mine', 'made'),
      'git init -q inner; cd inner; git commit -q --allow-empty -m x; git branch made',
    ],
  ] as const)('keeps what %s need', async (_, does, command) => {
    const { git, run, changes } = await repository({ undo: 'always' });
    const id = await run(command);
    does(git);
    const { notDone } = await changes.undo(id);
    expect(notDone).toContainEqual({
      path: expect.stringMatching(/^(inner\/)?\.git$/),
      why: expect.stringContaining('git was used there since'),
    });
    const inner = command.includes('inner') ? ['-C', 'inner'] : [];
    expect(git(...inner, 'log', '-1', '--format=%s', inner.length > 0 ? 'mine' : 'main')).not.toBe('');
    expect(git(...inner, 'fsck', '--strict')).not.toContain('missing');
  });
});

describe('an index of git that a command made', () => {
  const words = (...numbers: readonly number[]) => Buffer.from(Uint32Array.from(numbers).buffer).swap32();

  it.each([
    ['entries', 1_000_000],
    ['other parts', 0],
  ])('with a hole in place of %s is none', (_, entries) => {
    const directory = join(arena.freshCorner(), 'x.git');
    mkdirSync(directory);
    const at = Buffer.from(join(directory, 'index'));
    writeFileSync(at, Buffer.concat([Buffer.from('DIRC'), words(2, entries)]));
    // Of entries and parts of no bytes there would be exactly so many.
    truncateSync(at, 12 + 64 * entries + (entries === 0 ? 8_000_000 : 0) + 20);
    const stamp = lookAt(at);
    expect(stamp && withListed('x.git/index', stamp, at)).toEqual(stamp);
  });
});

type Git = (...words: readonly string[]) => string;
