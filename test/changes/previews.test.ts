import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { deferred } from '../../src/base/deferred.ts';
import { loadAddon } from '../../src/confine/native/index.ts';
import type { Sandbox } from '../../src/index.ts';
import type { Change, ExecutionResult } from '../../src/model/index.ts';
import { stateDirectory } from '../../src/run/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { HOST, TIERS, type Tier, WITH_VIEW, WITHOUT_VIEW } from '../support/tiers.ts';
import { openLayers, runUntilSpare } from './support/spare-layers.ts';

const arena = makeArena();
const shared = process.env.XDG_STATE_HOME;
// What layers wait, and how much is kept, is looked at here: a sandbox of another test may make its next layer meanwhile.
beforeEach(() => {
  process.env.XDG_STATE_HOME = arena.freshCorner();
});
afterAll(() => {
  process.env.XDG_STATE_HOME = shared;
});
/** Who cannot read what its mode says nobody may. */
const isUser = process.getuid?.() !== 0;
const VIEWS = TIERS.filter(({ view }) => view);
/** Changes can be held back here. */
const it_ = it.skipIf(!HOST.namespaces);
const describe_ = describe.skipIf(!HOST.namespaces);

/** A workspace of its own, in which nothing else happens. */
async function fresh(tier: Tier = WITH_VIEW): Promise<{ readonly root: string; readonly sandbox: Sandbox }> {
  const root = arena.freshCorner();
  const sandbox = await arena.sandbox(tier, { workspace: root });
  return { root, sandbox };
}

/** What a person can tell of a tree: names, kinds, modes, contents, times of files, and which names are one file. */
function picture(root: string): Readonly<Record<string, string>> {
  const seen: Record<string, string> = {};
  const numbers = new Map<number, number>();
  const look = (directory: Buffer, shown: string): void => {
    for (const name of readdirSync(directory, { encoding: 'buffer' }).sort(Buffer.compare)) {
      const at = Buffer.concat([directory, Buffer.from('/'), name]);
      const path = `${shown}/${name.toString('latin1')}`;
      const info = lstatSync(at);
      const mode = (info.mode & 0o7777).toString(8);
      if (info.isSymbolicLink()) seen[path] = `link ${readlinkSync(at, 'latin1')}`;
      else if (info.isDirectory()) {
        seen[path] = `directory ${mode}`;
        if ((info.mode & 0o500) === 0o500 || !isUser) look(at, path);
      } else if (info.isFile()) {
        const first = numbers.get(info.ino) ?? numbers.size;
        numbers.set(info.ino, first);
        const content = (info.mode & 0o400) !== 0 ? readFileSync(at, 'latin1') : '?';
        seen[path] = `file ${mode} ${info.nlink > 1 ? `same as ${first} ` : ''}${content}`;
      } else seen[path] = `other ${mode}`;
    }
  };
  look(Buffer.from(root), '');
  return seen;
}

async function preview(sandbox: Sandbox, command: string, on?: string): Promise<ExecutionResult> {
  const result = await sandbox.run(command, { effect: 'preview', ...(on === undefined ? {} : { on }) });
  expect([result.status, result.error, result.warnings]).toEqual(['exited', undefined, []]);
  return result;
}

function idOf({ changes }: ExecutionResult): string {
  if (changes?.id === undefined) throw new Error('nothing was changed');
  return changes.id;
}

const named = ({ changes }: ExecutionResult): Readonly<Record<string, Change['change']>> =>
  Object.fromEntries((changes?.changes ?? []).map(({ path, change }) => [path, change]));

describe.each(VIEWS)('a preview $name', (tier) => {
  it('changes nothing in the workspace, and says what it would', async () => {
    const { root, sandbox } = await fresh(tier);
    writeFileSync(join(root, 'changed'), 'one\n');
    writeFileSync(join(root, 'moved'), 'to be moved\n');
    writeFileSync(join(root, 'mode'), 'm\n', { mode: 0o644 });
    writeFileSync(join(root, 'same'), 's\n');
    mkdirSync(join(root, 'gone/deep'), { recursive: true });
    writeFileSync(join(root, 'gone/deep/file'), 'x');
    const before = picture(root);
    const result = await preview(
      sandbox,
      'echo two >> changed; mkdir -p new/in; echo n > new/in/file; mv moved elsewhere; chmod 755 mode; rm -r gone; cat same > copy; cp copy same; ln -s changed link; cat changed',
    );
    expect(result.stdout).toBe('one\ntwo\n');
    expect(picture(root)).toEqual(before);
    expect(named(result)).toEqual({
      ...{ changed: 'changed', new: 'created', 'new/in': 'created', 'new/in/file': 'created' },
      ...{
        elsewhere: 'renamed',
        mode: 'mode',
        gone: 'deleted',
        same: 'times',
        copy: 'created',
        link: 'created',
      },
    });
    expect(result.changes).toMatchObject({
      state: 'waiting',
      counts: { created: 5, changed: 3, deleted: 1, renamed: 1 },
      changes: expect.arrayContaining([
        expect.objectContaining({ path: 'changed', bytesBefore: 4, bytes: 8 }),
        expect.objectContaining({ path: 'gone', kind: 'directory', objects: 2 }),
        expect.objectContaining({ path: 'mode', modeBefore: '0644', mode: '0755' }),
        expect.objectContaining({ path: 'elsewhere', from: 'moved' }),
      ]),
    });
    expect(sandbox.plan.report.controls.find(({ id }) => id === 'workspace-changes')?.state).toBe('off');
    expect(result.report.controls.find(({ id }) => id === 'workspace-changes')?.state).toBe('enforced');
    await (await sandbox.changes()).discard(idOf(result));
    expect(picture(root)).toEqual(before);
  });

  it('that changes nothing leaves nothing', async () => {
    const { root, sandbox } = await fresh(tier);
    writeFileSync(join(root, 'a'), 'a');
    const result = await preview(sandbox, 'cat a; touch new; rm new; exec 3>>a');
    expect(result.changes).toMatchObject({ id: undefined, changes: [], more: 0 });
    expect(await (await sandbox.changes()).list()).toEqual([]);
  });

  it('is applied, taken back and applied again', async () => {
    const { root, sandbox } = await fresh(tier);
    for (const name of ['a', 'b', 'c']) writeFileSync(join(root, name), `${name}\n`);
    const before = picture(root);
    const result = await preview(sandbox, 'echo more >> a; rm b; mv c d; mkdir e; echo f > e/f; chmod 700 e');
    const changes = await sandbox.changes();
    const id = idOf(result);
    // As many as there are in the list: what was renamed counts once.
    expect(result.changes?.changes).toHaveLength(5);
    expect(await changes.apply(id)).toMatchObject({ state: 'applied', done: 5, notDone: [] });
    const after = {
      ...{ '/a': 'file 644 a\nmore\n', '/d': 'file 644 c\n' },
      ...{ '/e': 'directory 700', '/e/f': 'file 644 f\n' },
    };
    expect(picture(root)).toEqual(after);
    expect(await changes.undo(id)).toMatchObject({ state: 'undone', done: 5, notDone: [] });
    expect(picture(root)).toEqual(before);
    expect(await changes.apply(id)).toMatchObject({ state: 'applied', done: 5, notDone: [] });
    expect(picture(root)).toEqual(after);
  });

  it('is still held in, and what lies beside the workspace is only read', async () => {
    const { root } = await fresh(tier);
    const beside = arena.freshCorner();
    writeFileSync(join(beside, 'file'), 'untouched');
    const sandbox = await arena.sandbox(tier, { workspace: root, writable: [beside] });
    const direct = await sandbox.run(`echo changed > ${beside}/control; cat ${beside}/control`);
    expect(direct.stdout).toBe('changed\n');
    const result = await preview(
      sandbox,
      `cat ${beside}/file; echo x > ${beside}/file; rm ${beside}/control; cat ${arena.secret}; echo in > file`,
    );
    expect(result.stdout).toBe('untouched');
    expect(readFileSync(join(beside, 'file'), 'utf8')).toBe('untouched');
    expect(existsSync(join(beside, 'control'))).toBe(true);
    expect(named(result)).toEqual({ file: 'created' });
    expect(result.report.controls.find(({ id }) => id === 'workspace-changes')?.reason).toContain(beside);
  });

  it('on another one sees its changes, and is applied after it', async () => {
    const { root, sandbox } = await fresh(tier);
    writeFileSync(join(root, 'old'), 'old\n');
    mkdirSync(join(root, 'tree'));
    writeFileSync(join(root, 'tree/in'), 'in\n');
    const first = idOf(await preview(sandbox, 'echo new > new; rm old; echo more >> tree/in'));
    const second = await preview(
      sandbox,
      'ls; cat new tree/in; echo second >> new; rm -r tree; rm -f old',
      first,
    );
    expect(second.stdout).toBe('new\ntree\nnew\nin\nmore\n');
    expect(named(second)).toEqual({ new: 'changed', tree: 'deleted' });
    const changes = await sandbox.changes();
    expect(await changes.diff(idOf(second), 'new')).toContain(' new\n+second\n');
    await expect(changes.apply(idOf(second))).rejects.toMatchObject({ code: 'changes.state' });
    await expect(changes.discard(first)).rejects.toMatchObject({ code: 'changes.state' });
    await changes.apply(first);
    expect(await changes.apply(idOf(second))).toMatchObject({ state: 'applied', notDone: [] });
    expect(picture(root)).toEqual({ '/new': 'file 644 new\nsecond\n' });
  });

  it('on others is compared with what these made of a file, and knows what it renames', async () => {
    const { root, sandbox } = await fresh(tier);
    writeFileSync(join(root, 'f'), 'workspace\n');
    const first = idOf(await preview(sandbox, 'echo first > f; echo moved > m'));
    const second = idOf(await preview(sandbox, 'echo second > other', first));
    const third = await preview(sandbox, 'echo third >> f; mv m n', second);
    expect(named(third)).toEqual({ f: 'changed', n: 'renamed' });
    expect(await (await sandbox.changes()).diff(idOf(third), 'f')).toContain(' first\n+third\n');
  });
});

describe('where there are no namespaces', () => {
  it('a preview is refused in one line, and nothing runs', async () => {
    const { root, sandbox } = await fresh(WITHOUT_VIEW);
    const result = await sandbox.run('touch made', { effect: 'preview' });
    expect(result.error).toMatchObject({
      code: 'changes.unavailable',
      message: expect.stringMatching(
        /^changes cannot be held back: a preview needs a mount namespace of ours \(.+\); see sandbox-run doctor;/,
      ),
    });
    expect(readdirSync(root)).toEqual([]);
  });
});

describe_('what is not applied (needs namespaces)', () => {
  it('is what changed in the workspace meanwhile: it stays as it is, and the rest is applied', async () => {
    const { root, sandbox } = await fresh();
    for (const name of ['kept', 'edited', 'replaced', 'deleted']) writeFileSync(join(root, name), 'old\n');
    mkdirSync(join(root, 'tree'));
    writeFileSync(join(root, 'tree/a'), 'a');
    const result = await preview(
      sandbox,
      'for f in kept edited replaced deleted; do echo theirs > $f; done; echo n > new; rm -r tree',
    );
    writeFileSync(join(root, 'edited'), 'mine\n');
    writeFileSync(join(root, 'replacement'), 'old\n');
    renameSync(join(root, 'replacement'), join(root, 'replaced'));
    rmSync(join(root, 'deleted'));
    writeFileSync(join(root, 'new'), 'also mine\n');
    writeFileSync(join(root, 'tree/b'), 'added');
    const applied = await (await sandbox.changes()).apply(idOf(result));
    expect(Object.fromEntries(applied.notDone.map(({ path, why }) => [path, why]))).toEqual({
      ...{ edited: 'it changed', replaced: 'it changed', deleted: 'it is not there any more' },
      ...{ new: 'something is there that was not', tree: 'something in it changed' },
    });
    expect(picture(root)).toEqual({
      ...{ '/kept': 'file 644 theirs\n', '/edited': 'file 644 mine\n', '/replaced': 'file 644 old\n' },
      ...{ '/new': 'file 644 also mine\n', '/tree': 'directory 755' },
      ...{ '/tree/a': 'file 644 a', '/tree/b': 'file 644 added' },
    });
  });

  it('is what changed in the workspace while the command ran', async () => {
    const { root, sandbox } = await fresh();
    writeFileSync(join(root, 'edited'), 'old\n');
    let isChanged = false;
    const onOutput = () => {
      if (!isChanged) writeFileSync(join(root, 'edited'), 'mine\n');
      isChanged = true;
    };
    // What nobody reads yet holds the command back.
    const command = 'echo theirs > edited; echo; head -c 8000000 /dev/zero';
    const result = await sandbox.run(command, { effect: 'preview', onOutput, maxOutput: 10 });
    expect(result.changes?.changes).toMatchObject([{ path: 'edited', conflict: expect.any(String) }]);
    const applied = await (await sandbox.changes()).apply(idOf(result));
    expect(applied.notDone).toHaveLength(1);
    expect(readFileSync(join(root, 'edited'), 'utf8')).toBe('mine\n');
  });

  it('is taken back no more where it changed since', async () => {
    const { root, sandbox } = await fresh();
    writeFileSync(join(root, 'a'), 'a\n');
    writeFileSync(join(root, 'b'), 'b\n');
    const result = await preview(sandbox, 'echo 2 > a; echo 2 > b; mkdir d; echo x > d/x');
    const changes = await sandbox.changes();
    await changes.apply(idOf(result));
    writeFileSync(join(root, 'a'), 'mine\n');
    writeFileSync(join(root, 'd/mine'), 'mine\n');
    const undone = await changes.undo(idOf(result));
    expect(undone.state).toBe('applied');
    expect(undone.notDone.map(({ path }) => path).sort()).toEqual(['a', 'd']);
    expect(picture(root)).toEqual({
      ...{ '/a': 'file 644 mine\n', '/b': 'file 644 b\n' },
      ...{ '/d': 'directory 755', '/d/mine': 'file 644 mine\n' },
    });
  });

  it('can be chosen by path, with the directories that lead to it', async () => {
    const { root, sandbox } = await fresh();
    const result = await preview(sandbox, 'mkdir -p x/y z; echo 1 > x/y/a; echo 2 > x/y/b; echo 3 > z/c');
    const changes = await sandbox.changes();
    const id = idOf(result);
    await changes.apply(id, ['x/y/a']);
    expect(Object.keys(picture(root))).toEqual(['/x', '/x/y', '/x/y/a']);
    await expect(changes.apply(id, ['nowhere'])).rejects.toMatchObject({ code: 'changes.unknown' });
    await changes.apply(id, ['z/']);
    expect(Object.keys(picture(root))).toEqual(['/x', '/x/y', '/x/y/a', '/z', '/z/c']);
    await changes.apply(id);
    expect(Object.keys(picture(root))).toHaveLength(6);
    await changes.undo(id);
    expect(picture(root)).toEqual({});
  });
});

describe_('files with several names (needs namespaces)', () => {
  const linked = async () => {
    const { root, sandbox } = await fresh();
    execFileSync('bash', ['-c', 'echo 1 > a; ln a b; ln a c; mkdir d; ln a d/e'], { cwd: root });
    return { root, sandbox };
  };

  it.each([
    ['rm a b', ['/c', '/d', '/d/e']],
    ['echo x > a; echo y > b; echo z > d/e', ['/a', '/b', '/c', '/d', '/d/e']],
    ['mv a m; mv b n', ['/c', '/d', '/d/e', '/m', '/n']],
    ['ln -f a d/e; rm -r d', ['/a', '/b', '/c']],
  ])('%s: what one of them loses is no change of the others', async (command, names) => {
    const { root, sandbox } = await linked();
    const before = picture(root);
    const id = idOf(await preview(sandbox, command));
    const changes = await sandbox.changes();
    expect((await changes.apply(id)).notDone).toEqual([]);
    expect(Object.keys(picture(root)).sort()).toEqual(names);
    expect((await changes.undo(id)).notDone).toEqual([]);
    expect(picture(root)).toEqual(before);
  });

  it('are applied one by one as well, and what changed meanwhile stays', async () => {
    const { root, sandbox } = await linked();
    const id = idOf(await preview(sandbox, 'rm a b c'));
    const changes = await sandbox.changes();
    expect((await changes.apply(id, ['a'])).notDone).toEqual([]);
    expect((await changes.apply(id, ['b'])).notDone).toEqual([]);
    writeFileSync(join(root, 'c'), 'mine\n');
    expect((await changes.apply(id)).notDone).toMatchObject([{ path: 'c' }]);
    expect(Object.keys(picture(root))).toEqual(['/c', '/d', '/d/e']);
  });
});

describe_('what a layer holds (needs namespaces)', () => {
  const outside = () => join(arena.root, 'outside');

  it.each([
    ['a link out of the workspace', 'ln -s "$OUT/secret.txt" bad', /leads out/],
    ['a link out by parents', 'ln -s ../../outside/secret.txt bad', /leads out/],
    [
      'a link that may lead out through another',
      'mkdir d; ln -s . d/up; ln -s d/up/../../outside bad',
      /leads out/,
    ],
    ['a link to a link out', 'ln -s / root; ln -s root/etc bad', /leads out/],
    ['a FIFO', 'mkfifo bad', /FIFO/],
    ['a socket', 'python3 -c "import socket; socket.socket(1).bind(\'bad\')"', /socket/],
  ])('does not come out: %s', async (_, command, why) => {
    const { root, sandbox } = await fresh();
    const result = await preview(sandbox, `OUT=${outside()}; ${command}`);
    const applied = await (await sandbox.changes()).apply(idOf(result));
    expect(applied.notDone).toContainEqual({ path: expect.any(String), why: expect.stringMatching(why) });
    for (const name of readdirSync(root)) {
      const info = lstatSync(join(root, name));
      expect([name, info.isDirectory() || info.isFile() || readlinkSync(join(root, name))]).not.toEqual([
        name,
        false,
      ]);
    }
  });

  it('a link out comes where a person names it, and is not followed', async () => {
    const { root, sandbox } = await fresh();
    const result = await preview(sandbox, `ln -s ${arena.secret} out; ln -s /usr/bin/env env`);
    const changes = await sandbox.changes();
    await changes.apply(idOf(result));
    expect(readdirSync(root)).toEqual(['env']);
    expect(await changes.apply(idOf(result), ['out'])).toMatchObject({ notDone: [] });
    expect(readlinkSync(join(root, 'out'))).toBe(arena.secret);
    await changes.undo(idOf(result));
    expect(readFileSync(arena.secret, 'utf8')).not.toBe('');
    expect(readdirSync(root)).toEqual([]);
  });

  it('does not come out by way of a directory that a link took the place of', async () => {
    const { root, sandbox } = await fresh();
    mkdirSync(join(root, 'd'));
    writeFileSync(join(root, 'd/f'), 'f');
    const victims = arena.freshVictims();
    const before = picture(victims);
    const result = await preview(
      sandbox,
      'echo evil > d/file; echo evil > d/f; rm -f d/none; mkdir d/new; echo x > d/new/x',
    );
    renameSync(join(root, 'd'), join(root, 'aside'));
    symlinkSync(victims, join(root, 'd'));
    const applied = await (await sandbox.changes()).apply(idOf(result));
    expect(applied.done).toBe(0);
    expect(picture(victims)).toEqual(before);
  });

  it('has nothing of the marks of the layer, and a command can make none', async () => {
    const { root, sandbox } = await fresh();
    mkdirSync(join(root, 'd'));
    writeFileSync(join(root, 'd/f'), 'f');
    const result = await preview(
      sandbox,
      `python3 - <<'E'
import os
for name in ('user.overlay.opaque', 'user.overlay.whiteout', 'user.overlay.redirect'):
    try: os.setxattr('d', name, b'y')
    except OSError as e: print(e.errno)
try: os.mknod('d/f2', 0o020000, 0)
except OSError as e: print(e.errno)
open('d/g', 'w').close()
E`,
    );
    expect(named(result)).toEqual({ 'd/g': 'created' });
    await (await sandbox.changes()).apply(idOf(result));
    expect(picture(root)).toEqual({ '/d': 'directory 755', '/d/f': 'file 644 f', '/d/g': 'file 644 ' });
    const listed = execFileSync('python3', [
      '-c',
      'import os,sys; print(os.listxattr(sys.argv[1]))',
      join(root, 'd/g'),
    ]);
    expect(String(listed)).toBe('[]\n');
  });

  it.each(['000', '644', '300'])('takes over directories of mode %s, and takes them away', async (mode) => {
    const { root, sandbox } = await fresh();
    mkdirSync(join(root, 'goes'));
    mkdirSync(join(root, 'stays'));
    writeFileSync(join(root, 'stays/f'), 'old');
    for (const name of ['goes', 'stays']) chmodSync(join(root, name), Number.parseInt(mode, 8));
    const before = picture(root);
    const plant = `mkdir d; echo x > d/f; mkdir d/e; echo y > d/e/g; chmod ${mode} d/e d; rmdir goes; echo z > z`;
    const result = await preview(sandbox, plant);
    const changes = await sandbox.changes();
    expect(await changes.diff(idOf(result))).toContain('+x');
    // Nobody knows whether a directory that cannot be read is what the command took away.
    const stays = isUser ? ['goes'] : [];
    const applied = await changes.apply(idOf(result));
    expect(applied.notDone.map(({ path }) => path)).toEqual(stays);
    expect(lstatSync(join(root, 'd')).mode & 0o777).toBe(Number.parseInt(mode, 8));
    expect(existsSync(join(root, 'goes'))).toBe(stays.length > 0);
    chmodSync(join(root, 'd'), 0o755);
    expect(lstatSync(join(root, 'd/e')).mode & 0o777).toBe(Number.parseInt(mode, 8));
    chmodSync(join(root, 'd/e'), 0o755);
    expect(readFileSync(join(root, 'd/f'), 'utf8') + readFileSync(join(root, 'd/e/g'), 'utf8')).toBe(
      'x\ny\n',
    );
    for (const name of ['d/e', 'd']) chmodSync(join(root, name), Number.parseInt(mode, 8));
    expect(await changes.undo(idOf(result))).toMatchObject({ notDone: [] });
    expect(picture(root)).toEqual(before);
    for (const name of ['goes', 'stays']) chmodSync(join(root, name), 0o755);
  });

  it('a directory that may not be read is not moved, and mv says so (needs namespaces)', async () => {
    const { root, sandbox } = await fresh();
    mkdirSync(join(root, 'd'));
    writeFileSync(join(root, 'd/f'), 'f\n');
    const shut = await preview(sandbox, 'chmod 600 d; mv -T d e');
    expect(shut).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('d/f') });
    const changes = await sandbox.changes();
    expect((await changes.apply(idOf(shut))).notDone).toEqual([]);
    expect(lstatSync(join(root, 'd')).mode & 0o777).toBe(0o600);
    chmodSync(join(root, 'd'), 0o700);
    expect(readFileSync(join(root, 'd/f'), 'utf8')).toBe('f\n');
    rmdirSync(join(root, 'e'));
    const open = await preview(sandbox, 'mv -T d e');
    expect(open).toMatchObject({ exitCode: 0, stderr: '' });
    await changes.apply(idOf(open));
    expect(picture(root)).toEqual({ '/e': 'directory 700', '/e/f': 'file 644 f\n' });
  });

  it('that a trusted program would run is set aside when it is applied, as after a command', async () => {
    const { root, sandbox } = await fresh();
    execFileSync('git', ['init', '-q', root]);
    await sandbox.close();
    const again = await arena.sandbox(WITH_VIEW, { workspace: root });
    const hook = 'sub/.git/hooks/pre-commit';
    const plant = `git init -q sub; echo evil > ${hook}; chmod +x ${hook}; git config core.fsmonitor evil; git config user.name Me; echo ok > ok`;
    const result = await preview(again, plant);
    const setting = (name: string) =>
      String(execFileSync('git', ['config', '--local', '--default', '', '--get', name], { cwd: root }));
    expect([setting('user.name'), existsSync(join(root, hook))]).toEqual(['\n', false]);
    const applied = await (await again.changes()).apply(idOf(result));
    expect(applied.notDone).toEqual([]);
    expect(applied.leftBehind.map(({ done, path }) => [done, path]).sort()).toEqual([
      ['shut', join(root, '.git/config')],
      ['shut', join(root, hook)],
    ]);
    expect([setting('user.name'), setting('core.fsmonitor')]).toEqual(['Me\n', '\n']);
    expect([existsSync(join(root, hook)), existsSync(join(root, 'ok'))]).toEqual([false, true]);
  });

  it('that a trusted program would run is set aside beneath names that are not UTF-8, too', async () => {
    const { root, sandbox } = await fresh();
    execFileSync('git', ['init', '-q', root]);
    await sandbox.close();
    const again = await arena.sandbox(WITH_VIEW, { workspace: root });
    const mark = join(root, '..', `mark-${basename(root)}`);
    const result = await preview(
      again,
      `printf '#!/bin/sh\\ntouch ${mark}\\n' > evil; chmod +x evil; d=$'s\\xff'; git init -q "$d"; git -C "$d" -c user.name=n -c user.email=e commit -q --allow-empty -m x; git add "$d"; git -C "$d" config core.fsmonitor $PWD/evil`,
    );
    const applied = await (await again.changes()).apply(idOf(result));
    expect(applied.leftBehind.map(({ done }) => done)).toEqual(['shut']);
    execFileSync('git', ['status'], { cwd: root, stdio: 'pipe' });
    expect(existsSync(mark)).toBe(false);
  });
});

/** Names that file systems, shells and programs are known to get wrong. */
const NAMES = ['a', 'A', '-n', "b c\n'ü", '\\x41', 'raw\\377'];

/** Words for bash. `raw\377`: a byte that is no UTF-8. */
const word = (name: string) => (name === 'raw\\377' ? "$'raw\\377'" : `'${name.replaceAll("'", "'\\''")}'`);

const path = fc
  .array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 3 })
  .map((parts) => `./${parts.map(word).join('/')}`);

/** Not into itself: what cp makes of that depends on the order in which the file system lists a directory. */
const copy = (cp: string, from: string, to: string) =>
  `[[ "$(realpath -m ${to})/" == "$(realpath -m ${from})"/* ]] || ${cp} ${from} ${to}`;

/**
 * Not a directory with something in it that mv could not copy: a layer says EXDEV to the rename of a directory that
 * was there before, and what mv does then is up to the modes. "a directory that may not be read" below is about that.
 */
const move = (mv: string, from: string, to: string) =>
  `[[ -d ${from} && ! -L ${from} && -n "$(find ${from} ! -type l ! -readable -o -type d ! \\( -writable -executable \\))" ]] || ${mv} ${from} ${to}`;

const step = fc.oneof(
  fc.tuple(path, fc.stringMatching(/^[a-z]{0,9}$/)).map(([to, text]) => `printf ${text || "''"} > ${to}`),
  fc.tuple(path, fc.stringMatching(/^[a-z]{1,9}$/)).map(([to, text]) => `printf ${text} >> ${to}`),
  path.map((to) => `mkdir -p ${to}`),
  path.map((to) => `rm -rf ${to}`),
  path.map((to) => `rmdir ${to}`),
  fc.tuple(path, path).map(([from, to]) => move('mv -T', from, to)),
  fc.tuple(path, path).map(([from, to]) => move('mv', from, to)),
  fc.tuple(path, path).map(([from, to]) => copy('cp -r', from, to)),
  fc.tuple(path, path).map(([from, to]) => copy('cp -rT', from, to)),
  fc.tuple(fc.constantFrom('a', 'b c', './d/e'), path).map(([target, to]) => `ln -sfn '${target}' ${to}`),
  fc
    .tuple(fc.constantFrom('644', '600', '755', '700', '444', '500', '000'), path)
    .map(([mode, of]) => `chmod ${mode} ${of}`),
  fc.tuple(fc.nat(5000), path).map(([size, of]) => `truncate -s ${size} ${of}`),
  fc
    .tuple(path, path)
    .map(
      ([from, to]) => `if [ -f ${from} ] && [ ! -L ${from} ] && [ -n "$LINKS" ]; then ln ${from} ${to}; fi`,
    ),
);

const script = fc
  .array(step, { minLength: 1, maxLength: 12 })
  .map((steps) => steps.map((one) => `${one} 2>/dev/null`).join('\n'));

describe_('random programs of file operations (needs namespaces)', () => {
  it('make in a preview that is applied what they make without it, and undo brings back what was there', {
    timeout: 300_000,
  }, async () => {
    const { root, sandbox } = await fresh();
    // In a sandbox, too: root has less rights in it.
    const { root: plain, sandbox: direct } = await fresh();
    const changes = await sandbox.changes();
    const clear = (directory: string) => {
      execFileSync('bash', ['-c', `cd ${directory} && chmod -R u+rwx . && find . -mindepth 1 -delete`]);
    };
    await fc.assert(
      fc.asyncProperty(script, script, async (first, second) => {
        clear(root);
        clear(plain);
        for (const at of [root, plain])
          execFileSync('bash', ['-c', `exec 2>/dev/null\numask 022\ncd ${at}\n${first}\ntrue`]);
        const before = picture(root);
        await direct.run(`umask 022\nLINKS=1\n${second}\ntrue`);
        const result = await preview(sandbox, `umask 022\nLINKS=1\n${second}\ntrue`);
        expect(picture(root)).toEqual(before);
        if (result.changes?.id === undefined) {
          expect(picture(plain)).toEqual(before);
          return;
        }
        const id = result.changes.id;
        const applied = await changes.apply(id);
        const unread = applied.notDone.filter(({ why }) => why.includes('may not be read'));
        expect(applied.notDone).toEqual(isUser ? unread : []);
        if (unread.length === 0) expect(picture(root)).toEqual(picture(plain));
        expect((await changes.undo(id)).notDone).toEqual([]);
        expect(picture(root)).toEqual(before);
        await changes.discard(id);
      }),
      { numRuns: 30 },
    );
  });
});

describe('workspace.undo', () => {
  async function undoing(tier: Tier = WITH_VIEW) {
    const [root, beside] = [arena.freshCorner(), arena.freshCorner()];
    const sandbox = await arena.sandbox(tier, { workspace: root, undo: 'always', readable: [beside] });
    return { root, beside, sandbox, changes: await sandbox.changes() };
  }

  it_('applies what a command changed when it has ended, and takes it back (needs namespaces)', async () => {
    const { root, sandbox, changes } = await undoing();
    writeFileSync(join(root, 'a'), 'one\n');
    const first = await sandbox.run(`echo two >> a; ln -s ${arena.secret} out; echo ok`);
    expect(first).toMatchObject({ stdout: 'ok\n', warnings: [], changes: { state: 'applied' } });
    const second = await sandbox.run('cat a; rm a');
    expect(second.stdout).toBe('one\ntwo\n');
    expect(picture(root)).toEqual({ '/out': `link ${arena.secret}` });
    await changes.undo(idOf(second));
    await changes.undo(idOf(first));
    expect(picture(root)).toEqual({ '/a': 'file 644 one\n' });
  });

  it('a command that changes nothing leaves nothing to take back', async () => {
    const { sandbox, changes } = await undoing();
    expect((await sandbox.run('true')).changes).toBeUndefined();
    expect(await changes.list()).toEqual([]);
  });

  it_('several at once end up in the workspace, each to be taken back (needs namespaces)', async () => {
    const { root, sandbox, changes } = await undoing();
    const results = await Promise.all([1, 2, 3, 4].map((at) => sandbox.run(`echo ${at} > f${at}`)));
    expect(results.map(({ warnings }) => warnings)).toEqual([[], [], [], []]);
    expect(readdirSync(root).sort()).toEqual(['f1', 'f2', 'f3', 'f4']);
    for (const result of results) await changes.undo(idOf(result));
    expect(readdirSync(root)).toEqual([]);
  });

  it_('what two change at once is named, and waits (needs namespaces)', async () => {
    const { root, sandbox } = await undoing();
    writeFileSync(join(root, 'a'), 'old\n');
    // What nobody reads yet holds a command back.
    const held = (word: string) => {
      const [begun, goOn] = [deferred<void>(), deferred<void>()];
      const onOutput = () => {
        begun.resolve();
        return goOn.promise;
      };
      const command = `echo ${word} > a; echo; head -c 8000000 /dev/zero`;
      return { begun, goOn, result: sandbox.run(command, { onOutput, maxOutput: 10 }) };
    };
    const [one, other] = [held('first'), held('second')];
    await Promise.all([one.begun.promise, other.begun.promise]);
    one.goOn.resolve();
    const first = await one.result;
    other.goOn.resolve();
    const second = await other.result;
    expect(first.warnings).toEqual([]);
    expect(second.warnings).toEqual([expect.stringMatching(/^a is not in the workspace: it changed/)]);
    expect(readFileSync(join(root, 'a'), 'utf8')).toBe('first\n');
  });

  const changesRoot = () => join(stateDirectory(), 'changes');

  it_.each(['preview', 'undoable'] as const)(
    'what the kernel had beside its layer has gone when its sandbox is closed: %s (needs namespaces)',
    async (effect) => {
      const { root, sandbox } = await fresh();
      const results = await Promise.all(['a', 'b'].map((name) => sandbox.run(`echo > ${name}`, { effect })));
      await sandbox.run('echo > c; rm c', { effect });
      await sandbox.close();
      const ids = readdirSync(changesRoot()).filter((name) => name !== 'lock' && name !== 'journals');
      expect(ids.sort()).toEqual(results.map(idOf).sort());
      for (const id of ids)
        expect(readdirSync(join(changesRoot(), id)).sort()).toEqual(['kept', 'lock', 'set.json', 'upper']);
      expect(existsSync(join(root, 'a'))).toBe(effect === 'undoable');
    },
  );

  it_.each<readonly [string, (root: string) => void]>([
    ['a file that came', (root) => writeFileSync(join(root, 'd/new'), 'new')],
    ['a file that changed', (root) => writeFileSync(join(root, 'd/old'), 'changed since')],
    ['a file that went', (root) => rmSync(join(root, 'd/old'))],
    [
      'a directory in place of another',
      (root) => {
        renameSync(join(root, 'd'), join(root, 'was-d'));
        mkdirSync(join(root, 'd'));
        writeFileSync(join(root, 'd/other'), 'other');
      },
    ],
    ['a repository that came', (root) => void execFileSync('git', ['init', '-q', root])],
    ['another mode of the workspace', (root) => chmodSync(root, 0o750)],
    [
      'another directory in place of the workspace',
      (root) => {
        renameSync(root, `${root}-was`);
        mkdirSync(root);
        writeFileSync(join(root, 'fresh'), 'fresh');
      },
    ],
  ])(
    'on a layer that was made before it, a command sees and changes %s (needs namespaces)',
    async (_, change) => {
      const root = arena.freshCorner();
      mkdirSync(join(root, 'd'));
      writeFileSync(join(root, 'd/old'), 'old');
      const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root, undo: 'always' });
      const { spare } = await runUntilSpare(sandbox, 'cat d/*; ls -aR; echo first > first');
      change(root);
      const picture =
        'ls -laR --time-style=+ . | grep -v ^total; find . -path ./.git -prune -o -type f -exec cat {} +';
      const outside = String(execFileSync('bash', ['-c', picture], { cwd: root }));
      const seen = await sandbox.run(picture);
      // How many names a directory has is not told by every file system, nor how large it is. What the workspace lies in is
      // the view's own.
      const plain = (text: string) =>
        text
          .replaceAll(/ +/g, ' ')
          .replaceAll(/^(d\S+) \d+ (\S+ \S+) \d+/gm, '$1 $2')
          .replace(/^d.* \.\.\n/m, '');
      expect([seen.warnings, plain(seen.stdout)]).toEqual([[], plain(outside)]);
      await eventually(() => expect(openLayers()).not.toContain(spare));
      const wrote = await sandbox.run('echo mine > d/new 2>/dev/null || echo mine > mine');
      expect(wrote).toMatchObject({ warnings: [], changes: { state: 'applied' } });
      const mine = ['d/new', 'mine'].map((name) => join(root, name)).find(existsSync) ?? '';
      expect(readFileSync(mine, 'utf8')).toBe('mine\n');
    },
  );

  it_(
    'the oldest are forgotten where they hold too much, the last one never (needs namespaces)',
    async () => {
      const { root, sandbox, changes } = await undoing();
      const ids: string[] = [];
      // Nothing but holes.
      for (const name of ['a', 'b', 'c']) ids.push(idOf(await sandbox.run(`truncate -s 1200M ${name}`)));
      const kept = async () => (await changes.list()).map(({ id }) => id);
      expect(await kept()).toEqual(ids);
      await sandbox.run('echo small > d', { effect: 'preview' });
      const next = await arena.sandbox(WITH_VIEW, { workspace: root, undo: 'always' });
      await next.run('true');
      await eventually(async () => expect(await kept()).toEqual([ids[2], expect.anything()]));
    },
  );

  it_('what waits in vain counts to them, and what can be applied does not (needs namespaces)', async () => {
    const { root, beside, sandbox, changes } = await undoing();
    const held = async () => (await changes.list()).map(({ id }) => id);
    const huge = async (command: string) => {
      const hold = makeHold(beside);
      const started = sandbox.start(`${command}; echo ready; ${hold.words}`);
      for await (const line of started.outputText()) if (line.text.includes('ready')) break;
      writeFileSync(join(root, 'f'), 'mine');
      hold.letGo();
      return idOf(await started.result);
    };
    writeFileSync(join(root, 'f'), 'old');
    const ids: string[] = [];
    for (const size of ['1200M', '1201M', '1202M']) ids.push(await huge(`truncate -s ${size} f`));
    expect((await changes.list()).map(({ state }) => state)).toEqual(['waiting', 'waiting', 'waiting']);
    const preview = idOf(await sandbox.run('truncate -s 1300M other', { effect: 'preview' }));
    const next = await arena.sandbox(WITH_VIEW, { workspace: root, undo: 'always' });
    await next.run('true');
    await eventually(async () => expect(await held()).toEqual([ids[2], preview]));
  });

  it_('nothing is left of a layer that no command came for (needs namespaces)', async () => {
    const { sandbox } = await undoing();
    await runUntilSpare(sandbox, 'echo > made');
    await sandbox.close();
    expect(openLayers()).toEqual([]);
  });

  it('a workspace that has gone is a result, and leaves nothing', async () => {
    const { root, sandbox } = await undoing();
    await sandbox.run('true');
    rmSync(root, { recursive: true });
    const result = await sandbox.run('true');
    expect([result.status, result.error?.code]).toEqual(['setup-failed', 'policy.path_missing']);
    await sandbox.close();
    expect(openLayers()).toEqual([]);
    mkdirSync(root);
  });

  it('jobs and sessions change the workspace at once', async () => {
    const { root, sandbox, changes } = await undoing();
    const job = await sandbox.run('echo job > job; sleep 1000', { background: true });
    await eventually(() => expect(existsSync(join(root, 'job'))).toBe(true));
    await job.end();
    const session = await sandbox.session();
    expect((await session.run('echo session > session')).changes).toBeUndefined();
    expect(existsSync(join(root, 'session'))).toBe(true);
    expect(await changes.list()).toEqual([]);
  });

  it('says once where it has no effect, and commands work', async () => {
    const { root, sandbox } = await undoing(WITHOUT_VIEW);
    const result = await sandbox.run('echo x > x');
    expect(result.warnings).toEqual([
      expect.stringMatching(
        /^workspace\.undo has no effect here, because it needs namespaces \(see sandbox-run doctor\)/,
      ),
    ]);
    expect(existsSync(join(root, 'x'))).toBe(true);
    expect((await sandbox.run('echo x > y')).warnings).toEqual([]);
    const session = await sandbox.session();
    expect((await session.run('echo x > z')).warnings).toEqual([]);
  });
});

describe('a change set to run on', () => {
  it_.each(['never', 'always'] as const)(
    'makes of a command a preview by itself, with workspace.undo = %s (needs namespaces)',
    async (undo) => {
      const { createSandbox } = await import('../../src/index.ts');
      const root = arena.freshCorner();
      await using sandbox = await createSandbox({ workspace: root, undo });
      const on = idOf(await preview(sandbox, 'echo below > below'));
      const ran = await sandbox.run('cat below > above', { on });
      expect(ran.changes).toMatchObject({ effect: 'preview', state: 'waiting', on });
      const spawned = sandbox.spawn('touch spawned', { on });
      expect((await spawned.result).changes).toMatchObject({ effect: 'preview', state: 'waiting', on });
      expect(readdirSync(root)).toEqual([]);
      for (const effect of ['direct', 'undoable'] as const)
        await expect(sandbox.run('touch made', { on, effect })).rejects.toMatchObject({
          code: 'usage.invalid',
        });
      expect(await sandbox.run('touch made', { on: 'nonsense' })).toMatchObject({ status: 'setup-failed' });
      expect(readdirSync(root)).toEqual([]);
    },
  );
});

describe('losing work in the workspace', () => {
  it.each([
    ['never', 'ask'],
    ['losses', HOST.namespaces ? 'allow' : 'ask'],
    ['always', HOST.namespaces ? 'allow' : 'ask'],
  ] as const)('is asked about unless it can be taken back: workspace.undo = %s', async (undo, verdict) => {
    const { createSandbox } = await import('../../src/index.ts');
    const root = arena.freshCorner();
    writeFileSync(join(root, 'notes'), 'mine');
    await using sandbox = await createSandbox({ workspace: root, undo });
    const { decision } = await sandbox.check('rm -rf notes');
    expect([
      decision?.verdict,
      decision?.reasons.some(({ check, verdict: said }) => check === 'losses' && said === 'ask'),
    ]).toEqual([verdict, verdict === 'ask']);
    const preview = await sandbox.check('rm -rf notes', { effect: 'preview' });
    expect(preview.decision?.verdict).toBe('allow');
  });
});

describe('commands that can be taken back', () => {
  it_('do not leave more and more layers to be unmounted (needs namespaces)', async () => {
    const { createSandbox } = await import('../../src/index.ts');
    await using sandbox = await createSandbox({ workspace: arena.freshCorner(), undo: 'always' });
    const addon = loadAddon();
    const real = addon.closeConfinement;
    const close = vi.spyOn(addon, 'closeConfinement');
    let [going, most] = [0, 0];
    // As where a slow disk has much to write out.
    close.mockImplementation((confinement, done) => {
      most = Math.max(most, ++going);
      setTimeout(() => {
        going--;
        real(confinement, done);
      }, 300);
    });
    try {
      for (const name of ['a', 'b', 'c', 'd']) {
        const result = await sandbox.run(`echo > ${name}`);
        expect(result.changes?.state).toBe('applied');
      }
      await sandbox.run('python3 -c pass');
      expect(most).toBe(1);
    } finally {
      close.mockRestore();
    }
  });
});

describe('a rule with effect = "preview"', () => {
  const policy = { commands: { rules: [{ program: 'make-*', effect: 'preview' as const }] } };

  it_('has the changes of a command wait, and of others not (needs namespaces)', async () => {
    const { createSandbox } = await import('../../src/index.ts');
    const root = arena.freshCorner();
    writeFileSync(join(root, 'make-it'), '#!/bin/sh\necho made > made\n', { mode: 0o755 });
    await using sandbox = await createSandbox({ workspace: root, policy });
    const ruled = await sandbox.run('./make-it');
    expect(ruled).toMatchObject({ status: 'exited', changes: { state: 'waiting', counts: { created: 1 } } });
    expect(existsSync(join(root, 'made'))).toBe(false);
    await sandbox.run('echo x > other');
    expect(existsSync(join(root, 'other'))).toBe(true);
    const session = await sandbox.session();
    expect((await session.run('./make-it')).error?.code).toBe('command.needs_approval');
  });

  it_('is asked about no loss, in the same line or in its own (needs namespaces)', async () => {
    const { createSandbox } = await import('../../src/index.ts');
    const root = arena.freshCorner();
    const rm = { commands: { rules: [{ program: 'rm', words: ['-r'], effect: 'preview' as const }] } };
    mkdirSync(join(root, 'notes'));
    writeFileSync(join(root, 'mine'), 'mine');
    await using sandbox = await createSandbox({ workspace: root, policy: rm, undo: 'never' });
    expect(await sandbox.run('rm mine; rm -r notes')).toMatchObject({
      ...{ status: 'exited', changes: { state: 'waiting', counts: { deleted: 2 } } },
    });
    expect(existsSync(join(root, 'mine'))).toBe(true);
    // The rule is not about this one.
    expect((await sandbox.run('rm mine')).error?.code).toBe('command.needs_approval');
    // What lives on changes the workspace at once.
    const session = await sandbox.session();
    const { decision } = await session.run('rm -r mine');
    expect(decision?.reasons.filter(({ verdict }) => verdict === 'ask').map(({ check }) => check)).toEqual(
      expect.arrayContaining(['losses', 'rules']),
    );
  });

  it('asks where nothing can be held back', async () => {
    const root = arena.freshCorner();
    writeFileSync(join(root, 'make-it'), '#!/bin/sh\necho made > made\n', { mode: 0o755 });
    // As if nobody had said that commands need not be judged.
    const judged = { ...policy, unsafe: { unjudged_commands: false } };
    const sandbox = await arena.sandbox(WITHOUT_VIEW, { workspace: root, policy: judged });
    expect((await sandbox.run('./make-it')).error).toMatchObject({
      code: 'command.needs_approval',
      message: expect.stringContaining('previews make-*, which is not possible here'),
    });
    expect(existsSync(join(root, 'made'))).toBe(false);
  });
});
