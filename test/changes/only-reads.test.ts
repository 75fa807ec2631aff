import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';

// With workspace.undo, what only reads runs without a layer, and cannot write the workspace.

const arena = makeArena();
useOwnState(arena);
const describe_ = describe.skipIf(!HOST.namespaces);

const git = (root: string, ...words: readonly string[]) =>
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], { cwd: root });

function repository(): string {
  const root = arena.freshCorner();
  git(root, 'init', '-q');
  writeFileSync(join(root, 'tracked'), 'one\n');
  git(root, 'add', '.');
  git(root, 'commit', '-qm', 'first');
  writeFileSync(join(root, 'tracked'), 'two\n');
  writeFileSync(join(root, 'notes'), 'untracked\n');
  return root;
}

const undoing = (workspace: string, hide: readonly string[] = []) =>
  arena.sandbox(WITH_VIEW, {
    ...{ workspace, undo: 'always' as const, hide },
    // What a command does is told by its words.
    policy: { unsafe: { unjudged_commands: false } },
  });

/** How the workspace is mounted, by the command's own mount table. */
async function mountOf(sandbox: Awaited<ReturnType<typeof undoing>>, command: string, root: string) {
  const { stdout, stderr } = await sandbox.run(`${command} >/dev/null; cat /proc/self/mountinfo`);
  const [options = '', kind] =
    stdout
      .split('\n')
      .map((line) => line.split(' '))
      .filter((fields) => fields[4] === root)
      .map((fields) => [fields[5], fields[fields.indexOf('-') + 1]])
      .at(-1) ?? [];
  if (kind === undefined) throw new Error(`${root} is not mounted: ${stdout} ${stderr}`);
  return kind === 'overlay' ? 'layer' : options.split(',').includes('ro') ? 'read-only' : 'writable';
}

describe_('with workspace.undo (needs namespaces)', () => {
  const root = repository();
  it.each([
    ['true', 'read-only'],
    ['ls -la', 'read-only'],
    ['git status', 'read-only'],
    ['git log -1 | head -3', 'read-only'],
    ['grep -rn o . 2>/dev/null || echo none', 'read-only'],
    ['for f in *; do wc -l "$f"; done', 'read-only'],
    ['find . -type f | sort | xargs cat', 'read-only'],
    ['mktemp', 'read-only'],
    ['node --version', 'read-only'],
    ['mktemp ./x.XXXX', 'layer'],
    ['test -f notes && [[ -r notes ]]', 'read-only'],
    // What cannot be written is not what they would find without a sandbox.
    ['test -w notes', 'layer'],
    ['[ -w . ]', 'layer'],
    ['[[ -w notes ]]', 'layer'],
    ['if [[ -f notes && -w notes ]]; then ls; fi', 'layer'],
    ['find . -writable', 'layer'],
    ["git branch --sort=refname --format='%(refname)'", 'read-only'],
    ['git branch --format x', 'read-only'],
    ['x=$(git status); LC_ALL=C sort notes', 'read-only'],
    // They make a reference.
    ['git branch --format=x one', 'layer'],
    ['git tag --sort refname one', 'layer'],
    ['git config -l -e', 'layer'],
    ['git whatchanged --remerge-diff', 'layer'],
    ['git -c log.diffMerges=remerge show -m', 'layer'],
    // They say where to write.
    ['mktemp --tmpdir=.', 'layer'],
    ['TMPDIR=. mktemp', 'layer'],
    ['env TMPDIR=. mktemp', 'layer'],
    ['export TMPDIR=$PWD; mktemp -d', 'layer'],
    ['GIT_TRACE=$PWD/trace git status', 'layer'],
    ['touch made', 'layer'],
    ['git add notes', 'layer'],
    ['git merge-tree HEAD HEAD HEAD', 'layer'],
    ['git log --remerge-diff -1', 'layer'],
    ['git branch other', 'layer'],
    ['git config user.name a', 'layer'],
    ['sort -o notes notes', 'layer'],
    ['sed -i s/a/b/ notes', 'layer'],
    ['find . -name none -delete', 'layer'],
    ['xargs rm -f none </dev/null', 'layer'],
    ['node -e 0', 'layer'],
    ['bash ./none', 'layer'],
    ['echo ls | bash', 'layer'],
    ['PATH=. ls', 'layer'],
    ['make -v; make none', 'layer'],
  ])('%s: the workspace is %s', async (command, expected) => {
    const sandbox = await undoing(root);
    expect(await mountOf(sandbox, command, root)).toBe(expected);
  });

  it('sees what commands before it changed, and leaves no change set', async () => {
    const workspace = repository();
    const sandbox = await undoing(workspace);
    const first = await sandbox.run('echo more >> notes; mkdir d; echo new > d/new');
    expect(first.changes?.id).toBeDefined();
    const seen = await sandbox.run('cat notes d/new; git status --short');
    expect([seen.exitCode, seen.stderr, seen.stdout, seen.changes]).toEqual([
      0,
      '',
      'untracked\nmore\nnew\n M tracked\n?? d/\n?? notes\n',
      undefined,
    ]);
    const reported = seen.report.controls.find(({ id }) => id === 'workspace-changes');
    expect([reported?.state, reported?.reason]).toEqual(['enforced', expect.stringContaining('only reads')]);
    expect(await (await sandbox.changes()).list()).toHaveLength(1);
  });

  it('loses nothing where what it obeys would delete', async () => {
    const workspace = repository();
    const attack = join(workspace, 'attack');
    writeFileSync(attack, '#!/bin/sh\nrm -f notes\necho made > made\n', { mode: 0o755 });
    // The user's own doing, before any command.
    git(workspace, 'config', 'core.fsmonitor', attack);
    const sandbox = await undoing(workspace);
    const { exitCode } = await sandbox.run('git status --short');
    expect([exitCode, existsSync(join(workspace, 'notes')), existsSync(join(workspace, 'made'))]).toEqual([
      0,
      true,
      false,
    ]);
    // The same script, where it may.
    const { changes } = await sandbox.run('./attack; ls');
    expect(changes?.counts).toMatchObject({ created: 1, deleted: 1 });
  });

  it('says what kept it from writing where it would have', async () => {
    const workspace = repository();
    git(workspace, 'config', 'diff.own.textconv', 'touch made && cat');
    writeFileSync(join(workspace, '.gitattributes'), 'tracked diff=own\n');
    const sandbox = await undoing(workspace);
    const { exitCode, denials } = await sandbox.run('git diff');
    expect(exitCode).not.toBe(0);
    expect(denials).toContainEqual(
      expect.objectContaining({
        object: join(workspace, 'made'),
        control: 'workspace-changes',
        why: expect.stringContaining('--preview'),
      }),
    );
    const previewed = await sandbox.run('git diff', { effect: 'preview' });
    expect([previewed.exitCode, previewed.changes?.counts.created]).toEqual([0, 1]);
  });

  it('does not see what is hidden, also what came later', async () => {
    const workspace = repository();
    writeFileSync(join(workspace, 'a.key'), 'SECRET\n');
    const sandbox = await undoing(workspace, ['*.key']);
    expect((await sandbox.run('cat a.key')).stdout).toBe('');
    mkdirSync(join(workspace, 'd'));
    writeFileSync(join(workspace, 'd/b.key'), 'SECRET\n');
    expect((await sandbox.run('cat notes d/b.key')).stdout).toBe('untracked\n');
    expect(readFileSync(join(workspace, 'd/b.key'), 'utf8')).toBe('SECRET\n');
    expect(readdirSync(workspace)).toContain('a.key');
  });

  it('takes nothing from what a job leaves behind meanwhile', async () => {
    const workspace = repository();
    const sandbox = await undoing(workspace, ['*.key']);
    const reads = async () => expect((await sandbox.run('cat notes')).stdout).toBe('untracked\n');
    await reads();
    // What is hidden is another one now, and so is what keeps commands from it.
    writeFileSync(join(workspace, 'a.key'), 'SECRET\n');
    await reads();
    const hold = makeHold(workspace);
    const job = sandbox.start(
      `git init -q planted && git -C planted config core.fsmonitor /bin/evil; touch there; ${hold.words}`,
      { background: true },
    );
    await eventually(() => expect(existsSync(join(workspace, 'there'))).toBe(true));
    await reads();
    hold.letGo();
    const { leftBehind } = await job.wait();
    expect(leftBehind).toEqual([expect.objectContaining({ done: 'shut' })]);
  });

  it('runs beside others', async () => {
    const workspace = repository();
    const sandbox = await undoing(workspace);
    const all = await Promise.all(
      Array.from({ length: 12 }, (_, at) => sandbox.run(at % 3 === 0 ? `echo ${at} > f${at}` : 'cat notes')),
    );
    expect(all.map(({ status, exitCode }) => [status, exitCode])).toEqual(all.map(() => ['exited', 0]));
    expect(readdirSync(workspace).filter((name) => /^f\d/.test(name))).toHaveLength(4);
  });
});
