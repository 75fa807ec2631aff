import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  createSandbox,
  type ExecutionResult,
  messageForModel,
  openSession,
  type Sandbox,
  type SandboxOptions,
} from '../../src/index.ts';
import { stateDirectory } from '../../src/run/index.ts';
import { makeArena, snapshot } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { HOST } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';
import { openLayers } from './support/spare-layers.ts';

// What a command may do with a layer that it has because it may lose work; that what is lost comes back is in
// losses-taken-back.test.ts.

const arena = makeArena();
useOwnState(arena);
const describe_ = describe.skipIf(!HOST.namespaces);

const idOf = ({ changes }: ExecutionResult): string => changes?.id ?? 'no change set';
const undo = async (sandbox: Sandbox, result: ExecutionResult) =>
  (await sandbox.changes()).undo(idOf(result));
const isAskedAbout = ({ error }: ExecutionResult) => error?.code === 'command.needs_approval';

/** A workspace without version control, with files of a person. */
function workspaceWith(...names: readonly string[]) {
  const root = arena.freshCorner();
  for (const name of names) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), `${name} is mine\n`);
  }
  const has = (...some: readonly string[]) => some.map((name) => existsSync(join(root, name)));
  return { root, has };
}

const open = (workspace: string, options: SandboxOptions = {}) => createSandbox({ workspace, ...options });
const gone = (files: number, changes = 0, history = false) => ({ gone: { files, changes, history } });

describe_('a command that may lose work (needs namespaces)', () => {
  it('runs on a layer, says what is gone, and undo brings it back; with "never" it is asked about', async () => {
    const { root, has } = workspaceWith('a', 'b');
    const before = snapshot(root);
    await using asking = await open(root, { undo: 'never' });
    expect(isAskedAbout(await asking.run('rm a'))).toBe(true);
    expect(snapshot(root)).toEqual(before);
    await using sandbox = await open(root);
    const result = await sandbox.run('rm a b');
    expect(result).toMatchObject({ ok: true, changes: { effect: 'undoable', state: 'applied', ...gone(2) } });
    expect(messageForModel(result, sandbox.plan)).toBe(
      'Sandbox: 2 files gone that version control does not have. If that was not meant, tell the user, who can bring it back with `sandbox-run undo`.',
    );
    expect(has('a', 'b')).toEqual([false, false]);
    expect(await undo(sandbox, result)).toMatchObject({ state: 'undone', notDone: [] });
    expect(has('a', 'b')).toEqual([true, true]);
  });

  it('has no layer where nothing can be lost, and says nothing where nothing is', async () => {
    const { root } = workspaceWith('a');
    await using sandbox = await open(root);
    for (const line of ['echo x > made; mkdir dist; rm -rf dist; cat a', 'rm made', 'mv a b'])
      expect(await sandbox.run(line)).toMatchObject({ ok: true, changes: undefined });
    expect(existsSync(join(stateDirectory(), 'changes'))).toBe(false);
    const nothing = await sandbox.run('rm -f "$x"');
    expect([nothing.decision?.verdict, nothing.changes]).toEqual(['allow', undefined]);
    expect(messageForModel(nothing, sandbox.plan)).toBeUndefined();
    // One that something else changed is named where the line may lose anything.
    expect((await sandbox.run('rm -f "$x"; touch c')).changes).toMatchObject({ counts: { created: 1 } });
    // The next one has no layer that is made ahead.
    await eventually(() => expect(openLayers()).toEqual([]));
  });

  it('loses what an earlier one made on its layer without a word, and without a question', async () => {
    const { root, has } = workspaceWith('a');
    await using sandbox = await open(root);
    expect((await sandbox.run('rm a; echo x > made')).changes).toMatchObject(gone(1));
    expect(await sandbox.run('rm made')).toMatchObject({ ok: true, changes: undefined });
    expect(has('made')).toEqual([false]);
  });

  it('counts what its text does not show, and undo brings that back as well', async () => {
    const { root, has } = workspaceWith('a', 'hidden', 'deep/er');
    await using sandbox = await open(root);
    const python = `python3 -c 'import os, shutil; os.remove("hidden"); shutil.rmtree("deep")'`;
    const result = await sandbox.run(`rm a; ${python}`);
    expect(result.changes).toMatchObject(gone(3));
    expect(has('a', 'hidden', 'deep/er')).toEqual([false, false, false]);
    expect(await undo(sandbox, result)).toMatchObject({ notDone: [] });
    expect(has('a', 'hidden', 'deep/er')).toEqual([true, true, true]);
  });

  it('counts no file that has another place, and none that it only edits', async () => {
    const { root } = workspaceWith('a', 'b', 'edited', 'moved/one', 'moved/two');
    await using sandbox = await open(root);
    const result = await sandbox.run('rm a; mv b c; mv moved elsewhere; echo more >> edited');
    expect(result).toMatchObject({ ok: true, changes: gone(1) });
    expect(await undo(sandbox, result)).toMatchObject({ notDone: [] });
    expect(readFileSync(join(root, 'moved/two'), 'utf8')).toBe('moved/two is mine\n');
  });

  it('of git, says whose changes and which history are gone', async () => {
    const { root } = workspaceWith('tracked', 'stashed');
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
        stdio: 'pipe',
      });
    git('init', '-q');
    git('add', '.');
    git('commit', '-qm', 'first');
    writeFileSync(join(root, 'stashed'), 'to be stashed\n');
    git('stash', '-q');
    writeFileSync(join(root, 'tracked'), 'changed\n');
    await using sandbox = await open(root);
    const reset = await sandbox.run('git reset -q --hard');
    expect(reset).toMatchObject({ ok: true, changes: gone(0, 1) });
    expect(await undo(sandbox, reset)).toMatchObject({ notDone: [] });
    expect(readFileSync(join(root, 'tracked'), 'utf8')).toBe('changed\n');
    const drop = await sandbox.run('git stash drop -q');
    expect(drop).toMatchObject({ ok: true, changes: gone(0, 0, true) });
    expect(messageForModel(drop, sandbox.plan)).toMatch(
      /^Sandbox: commits or stashes of git gone that version control/,
    );
    expect(await undo(sandbox, drop)).toMatchObject({ notDone: [] });
    expect(git('stash', 'list').toString()).toContain('stash@{0}');
  });

  it('is asked about where nothing can be taken back', async () => {
    const { root, has } = workspaceWith('a');
    await using sandbox = await open(root);
    const job = await sandbox.run('rm a', { background: true }).catch((error: unknown) => error);
    expect(JSON.stringify((await (job as { readonly result?: unknown }).result) ?? job)).toContain(
      'needs_approval',
    );
    await using shell = await sandbox.session();
    expect(isAskedAbout((await shell.run('rm a')) as unknown as ExecutionResult)).toBe(true);
    const terminal = sandbox.spawn('rm a', { pty: { cols: 80, rows: 24 } });
    expect(isAskedAbout(await terminal.result)).toBe(true);
    expect(isAskedAbout(await sandbox.run('rm a', { effect: 'direct' }))).toBe(true);
    expect(has('a')).toEqual([true]);
  });

  it('is refused and asked about for all other reasons as before', async () => {
    const { root, has } = workspaceWith('a');
    const rule = (verdict: 'ask' | 'deny') => ({
      policy: { commands: { rules: [{ program: 'rm', verdict }] } },
    });
    for (const [options, code] of [
      [rule('ask'), 'command.needs_approval'],
      [rule('deny'), 'command.denied'],
      [{ autonomy: 'supervised' }, 'command.needs_approval'],
      [{ autonomy: 'readonly' }, 'command.denied'],
    ] as const) {
      await using sandbox = await open(root, options as SandboxOptions);
      expect([options, (await sandbox.run('rm a')).error?.code]).toEqual([options, code]);
    }
    await using sandbox = await open(root);
    // Something else is asked about in the same line, and then all of it.
    const both = await sandbox.check('rm a; coproc rm a');
    if (both.decision?.verdict === 'ask')
      expect(
        both.decision.reasons.some(({ check, verdict }) => check === 'losses' && verdict === 'ask'),
      ).toBe(true);
    expect(has('a')).toEqual([true]);
  });

  it('shares with its session what its session shares', async () => {
    const { root } = workspaceWith('a');
    await using sandbox = await open(root, { session: await openSession() });
    expect(await sandbox.run('echo before > /tmp/shared; echo before > ~/kept')).toMatchObject({ ok: true });
    const result = await sandbox.run('rm a; cat /tmp/shared; echo after > /tmp/shared');
    expect(result).toMatchObject({ ok: true, stdout: 'before\n', changes: gone(1) });
    expect(await sandbox.run('cat /tmp/shared')).toMatchObject({ stdout: 'after\n' });
  });

  it('that a person approved beforehand runs as it is', async () => {
    const { root, has } = workspaceWith('a');
    await using sandbox = await open(root);
    expect(await sandbox.run('rm a', { approved: true })).toMatchObject({ ok: true, changes: undefined });
    expect(has('a')).toEqual([false]);
  });
});

describe_('an attack on what brings work back (needs namespaces)', () => {
  it('does not reach the change sets, their journals or the layer itself', async () => {
    const { root, has } = workspaceWith('a', 'b');
    await using sandbox = await open(root);
    const first = await sandbox.run('rm a');
    const state = stateDirectory();
    // What the kernel had beside the layer goes by itself.
    const kept = () => {
      const at = join(state, 'changes', idOf(first));
      return [snapshot(join(at, 'kept')), readFileSync(join(at, 'set.json'), 'utf8')];
    };
    const before = kept();
    const attack = `rm b; rm -rf ${state}; ls ${state}/changes; echo x > ${state}/changes/journals/${idOf(first)}; grep -o "upperdir=[^,]*" /proc/self/mountinfo; rm -rf "$(grep -o "upperdir=[^,]*" /proc/self/mountinfo | cut -d= -f2)"`;
    const result = await sandbox.run(['bash', '-c', attack]);
    expect(result.stdout).not.toContain(idOf(first));
    expect(kept()).toEqual(before);
    if (result.changes !== undefined) expect(await undo(sandbox, result)).toMatchObject({ notDone: [] });
    expect(await undo(sandbox, first)).toMatchObject({ state: 'undone', notDone: [] });
    expect(has('a', 'b')).toEqual([true, true]);
  });

  it('reaches nothing outside by links of the workspace', async () => {
    const victims = arena.freshVictims();
    const { root } = workspaceWith('a');
    symlinkSync(victims, join(root, 'link'));
    const before = snapshot(victims);
    await using sandbox = await open(root);
    // The text shows the one, and not the other.
    for (const line of [
      'rm a; rm -rf link/*',
      `rm a; python3 -c 'import shutil; shutil.rmtree("link/full")'; ln -sfn ${victims} a; rm -rf a/*`,
    ]) {
      const result = await sandbox.run(line);
      expect(snapshot(victims)).toEqual(before);
      if (result.changes !== undefined) expect(await undo(sandbox, result)).toMatchObject({ notDone: [] });
    }
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe('a is mine\n');
  });

  it('a hard link to a file outside is put back as the same file, and what is outside stays', async () => {
    const outside = join(arena.freshVictims(), 'file');
    const { root } = workspaceWith();
    linkSync(outside, join(root, 'linked'));
    const before = readFileSync(outside, 'utf8');
    await using sandbox = await open(root);
    const result = await sandbox.run('echo evil > linked; rm linked');
    expect(result.changes).toMatchObject(gone(1));
    expect(readFileSync(outside, 'utf8')).toBe(before);
    expect(await undo(sandbox, result)).toMatchObject({ notDone: [] });
    expect(statSync(join(root, 'linked')).ino).toBe(statSync(outside).ino);
  });

  it('a repository within the workspace comes back as a whole', async () => {
    const { root } = workspaceWith('inner/work');
    const git = (...args: readonly string[]) =>
      execFileSync('git', ['-C', join(root, 'inner'), ...args]).toString();
    git('init', '-q');
    git('add', 'work');
    const before = git('status', '--porcelain');
    await using sandbox = await open(root);
    const result = await sandbox.run('rm -rf inner');
    expect(result.changes).toMatchObject({ gone: { history: true } });
    expect(await undo(sandbox, result)).toMatchObject({ notDone: [] });
    expect(git('status', '--porcelain')).toBe(before);
  });

  it('what is ended half-way by its time limit is applied as far as it came, and comes back', async () => {
    const { root, has } = workspaceWith('a', 'b');
    await using sandbox = await open(root);
    // Only the limit ends it.
    const result = await sandbox.run('rm a; read forever < <(sleep infinity); rm b', { timeout: 1_000 });
    expect(result).toMatchObject({ status: 'timed-out', changes: gone(1) });
    expect(has('a', 'b')).toEqual([false, true]);
    expect(await undo(sandbox, result)).toMatchObject({ notDone: [] });
    expect(has('a', 'b')).toEqual([true, true]);
  });

  it('of two at a time each loses its own, and both come back', async () => {
    const { root, has } = workspaceWith('a', 'b', 'both');
    mkdirSync(join(root, 'meet'));
    await using sandbox = await open(root);
    const results = await Promise.all(['a', 'b'].map((name) => sandbox.run(`rm ${name} both`)));
    expect(has('a', 'b', 'both')).toEqual([false, false, false]);
    for (const result of results) if (result.changes !== undefined) await undo(sandbox, result);
    expect(has('a', 'b', 'both')).toEqual([true, true, true]);
  });

  it('what somebody writes meanwhile stays, and is said not to be gone', async () => {
    const { root } = workspaceWith('a', 'b');
    await using sandbox = await open(root);
    const started = sandbox.spawn('rm a b; echo removed; read x');
    await once(started.stdout, 'data');
    writeFileSync(join(root, 'b'), 'written meanwhile\n');
    started.stdin.end('\n');
    const result = await started.result;
    expect(result.changes).toMatchObject(gone(1));
    expect(result.warnings.join('\n')).toContain('b is not in the workspace: ');
    expect([existsSync(join(root, 'a')), readFileSync(join(root, 'b'), 'utf8')]).toEqual([
      false,
      'written meanwhile\n',
    ]);
  });
});
