import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadAddon, type NativeAddon } from '../../src/confine/native/index.ts';
import type { ExecutionResult, Sandbox } from '../../src/index.ts';
import {
  Below,
  ChangeStore,
  chosenNumbers,
  describeOperations,
  type Operation,
  operationsOf,
  stateDirectory,
  type TreeEntry,
} from '../../src/run/index.ts';
import { CLI, makePlace } from '../cli/support.ts';
import { makeArena, snapshot } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';

const arena = makeArena();
useOwnState(arena);
/** Changes can be held back here. */
const it_ = it.skipIf(!HOST.namespaces);

async function fresh(): Promise<{ readonly root: string; readonly sandbox: Sandbox }> {
  const root = arena.freshCorner();
  return { root, sandbox: await arena.sandbox(WITH_VIEW, { workspace: root }) };
}

async function preview(sandbox: Sandbox, command: string): Promise<string> {
  const result: ExecutionResult = await sandbox.run(command, { effect: 'preview' });
  expect([result.status, result.error, result.warnings]).toEqual(['exited', undefined, []]);
  if (result.changes?.id === undefined) throw new Error('nothing was changed');
  return result.changes.id;
}

describe('a command cannot', () => {
  it_('stop apply in the middle by taking the name of what is being made (needs namespaces)', async () => {
    const { root, sandbox } = await fresh();
    const id = await preview(sandbox, 'echo a > a; echo b > b');
    await sandbox.run(`mkdir -p .sandbox-run-${id}-0/x .sandbox-run-${id}-1/x`);
    const applied = await (await sandbox.changes()).apply(id);
    expect(applied.notDone).toEqual([]);
    expect(readFileSync(join(root, 'b'), 'utf8')).toBe('b\n');
  });

  it_(
    'have its other work lost, or get in the way of undo, by going deeper than any path leads (needs namespaces)',
    async () => {
      const { root, sandbox } = await fresh();
      const deep = `python3 -c "import os
for i in range(60): os.mkdir('d' * 100); os.chdir('d' * 100)
open('end', 'w').close()"`;
      const id = await preview(sandbox, `echo kept > a; ${deep}`);
      const sets = await sandbox.changes();
      const applied = await sets.apply(id);
      expect([readFileSync(join(root, 'a'), 'utf8'), readdirSync(root)]).toEqual([
        'kept\n',
        ['a', 'd'.repeat(100)],
      ]);
      expect(new Set(applied.notDone.map(({ why }) => why))).toEqual(
        new Set(['its path is too long for it to be put in place']),
      );
      await sets.undo(id);
      expect(readdirSync(root)).toEqual([]);
      await sets.discard(id);
      expect(existsSync(join(stateDirectory(), 'changes', id))).toBe(false);
    },
  );

  it_('write lines of its own into a diff by a name or the target of a link (needs namespaces)', async () => {
    const { sandbox } = await fresh();
    const id = await preview(
      sandbox,
      `echo x > $'a\\n--- a/forged\\n+++ b/forged'; ln -s $'t\\ndiff a/forged b/forged' link; mkdir $'d\\nforged'`,
    );
    const diff = await (await sandbox.changes()).diff(id);
    expect(diff).toContain('forged');
    expect(
      diff.split('\n').filter((line) => /^(diff a\/forged|--- a\/forged|\+\+\+ b\/forged|forged)/.test(line)),
    ).toEqual([]);
  });

  it_(
    'have a diff show what lies behind a link that took the place of a directory (needs namespaces)',
    async () => {
      const { root, sandbox } = await fresh();
      mkdirSync(join(root, 'd'));
      writeFileSync(join(root, 'd/secret.txt'), 'old\n');
      const id = await preview(sandbox, 'echo new > d/secret.txt');
      renameSync(join(root, 'd'), join(root, 'aside'));
      symlinkSync(arena.outside, join(root, 'd'));
      expect(await (await sandbox.changes()).diff(id)).not.toContain(readFileSync(arena.secret, 'utf8'));
    },
  );

  it_(
    'have very large files compared to find out about renames (needs namespaces)',
    async () => {
      const { root, sandbox } = await fresh();
      writeFileSync(join(root, 'old'), '');
      truncateSync(join(root, 'old'), 2 ** 40);
      const id = await preview(sandbox, `rm old; truncate -s ${2 ** 40} new`);
      expect((await (await sandbox.changes()).show(id)).changes.map(({ change }) => change).sort()).toEqual([
        'created',
        'deleted',
      ]);
    },
    20_000,
  );

  const stamp = { mode: 0o755, bytes: 0, inode: 1, links: 1, modified: '0', changed: '0' } as const;
  const shown = { opaque: false, attributes: false, unreadable: false } as const;
  const marks = { ...shown, copied: false, whiteout: false } as const;

  it('have a deep tree in a layer beneath looked through again for each of its files', () => {
    const entries = new Map<string, TreeEntry>();
    let directory = 'd';
    for (let depth = 0; depth < 1_000; depth++, directory += '/d') {
      entries.set(directory, { ...stamp, ...marks, path: directory, kind: 'directory' });
      for (let at = 0; at < 20; at++) {
        const path = `${directory}/f${at}`;
        entries.set(path, { ...stamp, ...marks, path, kind: 'file' });
      }
    }
    const below = new Below(loadAddon(), arena.freshCorner(), [{ directory: '/nowhere', entries }]);
    const before = process.cpuUsage();
    expect([...below.within('')]).toHaveLength(21_000);
    for (const path of entries.keys()) expect(below.find(`${path}-not`)).toBeUndefined();
    // Not by the clock, which runs for the others on this machine, too.
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000).toBeLessThan(10_000);
  });

  it('have more taken away from one directory than a call takes', async () => {
    const entries = new Map<string, TreeEntry>([['d', { ...stamp, ...marks, path: 'd', kind: 'directory' }]]);
    for (let at = 0; at < 200_000; at++)
      entries.set(`d/f${at}`, { ...stamp, ...marks, path: `d/f${at}`, kind: 'file' });
    const workspace = arena.freshCorner();
    const operations = await operationsOf(
      [{ ...stamp, ...marks, opaque: true, path: 'd', kind: 'directory' }],
      {
        ...{ upper: '/nowhere', workspace, startedNs: 1n },
        below: new Below(loadAddon(), workspace, [{ directory: '/nowhere', entries }]),
      },
    );
    expect(operations).toHaveLength(200_000);
  });

  it_(
    'have more text shown than a string holds (needs namespaces)',
    async () => {
      const { sandbox } = await fresh();
      const line = 'n'.repeat(100_000);
      const id = await preview(
        sandbox,
        `for n in $(seq 30); do yes "$n"${line} | head -c 4000000 > t$n; done`,
      );
      const changes = await sandbox.changes();
      const diff = await changes.diff(id);
      expect(diff.length).toBeLessThan(80_000_000);
      expect(diff).toContain(`not shown, because so much else is: sandbox-run changes diff ${id} PATH`);
      expect(await changes.diff(id, 't9')).toContain(`\n+9${line}\n`);
      await changes.discard(id);
    },
    60_000,
  );

  it_(
    'fill the disk by apply or undo with files that are holes (needs namespaces)',
    async () => {
      const { root, sandbox } = await fresh();
      writeFileSync(join(root, 'theirs'), 'theirs');
      truncateSync(join(root, 'theirs'), 2 ** 40);
      const id = await preview(sandbox, 'truncate -s 1T made; echo end >> theirs');
      const changes = await sandbox.changes();
      const taken = () => readdirSync(root).map((name) => [name, lstatSync(join(root, name)).size > 2 ** 39]);
      const blocks = () => readdirSync(root).map((name) => lstatSync(join(root, name)).blocks);
      expect((await changes.apply(id)).notDone).toEqual([]);
      expect(taken()).toEqual([
        ['made', true],
        ['theirs', true],
      ]);
      expect(Math.max(...blocks())).toBeLessThan(100_000);
      expect((await changes.undo(id)).notDone).toEqual([]);
      expect(taken()).toEqual([['theirs', true]]);
      expect(lstatSync(join(root, 'theirs')).size).toBe(2 ** 40);
      expect(Math.max(...blocks())).toBeLessThan(100_000);
    },
    60_000,
  );

  it_(
    'have what is no file, or a set-ID bit, or a link to what lies below, applied unseen (needs namespaces)',
    async () => {
      const { root, sandbox } = await fresh();
      writeFileSync(join(root, 'theirs'), 'theirs\n');
      const id = await preview(
        sandbox,
        `ln theirs other; echo more >> other; cp /bin/true setid; chmod 6755 setid; mkfifo fifo
/usr/bin/python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
mknod device c 0 0; mknod null c 1 3; true`,
      );
      const changes = await sandbox.changes();
      const shown = (await changes.show(id)).changes;
      const named = shown.filter(({ refused }) => refused !== undefined).map(({ path }) => path);
      expect(named.toSorted()).toEqual(['fifo', 'socket']);
      // Not even by name.
      const applied = await changes.apply(id, ['fifo', 'socket']);
      expect([applied.done, applied.notDone.length]).toEqual([0, 2]);
      await changes.apply(id);
      expect(readdirSync(root)).toEqual(['other', 'setid', 'theirs']);
      expect(lstatSync(join(root, 'setid')).mode & 0o7777).toBe(0o755);
      expect(['other', 'theirs'].map((name) => readFileSync(join(root, name), 'utf8'))).toEqual([
        'theirs\nmore\n',
        'theirs\nmore\n',
      ]);
      await changes.undo(id);
      expect([readdirSync(root), readFileSync(join(root, 'theirs'), 'utf8')]).toEqual([
        ['theirs'],
        'theirs\n',
      ]);
    },
  );

  it_('break anything by names and times that hardly any program makes (needs namespaces)', async () => {
    const { root, sandbox } = await fresh();
    const id = await preview(
      sandbox,
      `/usr/bin/python3 -c "
import os
names = [b'a\\nb', b'\\x1b[2J', 'x\\u202ey'.encode(), b'n' * 255, b'\\xff\\xfe', b'\\\\xff', b'Case', b'case', b' ', b'-rf',
         b'.sandbox-run-' + b'0' * 24 + b'-0', b'.sandbox-run-' + b'0' * 24 + b'-0-new']
times = [-2**40, -1, 0, 1, 2**31, 2**33, 2**40, 2**62]
for at, name in enumerate(names):
    open(name, 'w').write(str(at))
    os.mkdir(b'd' + name[:250])
    os.symlink('x', b'l' + name[:250])
    for one in [name, b'd' + name[:250], b'l' + name[:250]]:
        try: os.utime(one, ns=(0, times[at % len(times)] * 10**9 + 999999999), follow_symlinks=False)
        except OverflowError: os.utime(one, (0, times[at % len(times)]), follow_symlinks=False)
"`,
    );
    const changes = await sandbox.changes();
    const { counts, changes: shown } = await changes.show(id);
    expect([counts.created, new Set(shown.map(({ path }) => path)).size]).toEqual([36, 36]);
    // Each is known by what it is shown as.
    for (const { path } of shown) expect((await changes.apply(id, [path])).done).toBe(1);
    expect(readdirSync(root, 'buffer')).toHaveLength(36);
    expect(readFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0xfe])]), 'utf8')).toBe(
      '4',
    );
    expect(await changes.list()).toHaveLength(1);
    expect((await changes.undo(id)).notDone).toEqual([]);
    expect(readdirSync(root)).toEqual([]);
  });

  it('have very many files compared with each other', () => {
    const stamp = {
      kind: 'file',
      mode: 0o644,
      bytes: 7,
      inode: 1,
      links: 1,
      modified: '0',
      changed: '0',
    } as const;
    const operations: Operation[] = [];
    for (let at = 0; at < 50_000; at++) {
      operations.push({ path: `dir/old${at}`, before: stamp, isOwn: true });
      operations.push({ path: `dir/new${at}`, after: stamp, isOwn: true });
    }
    const started = performance.now();
    const described = describeOperations(operations, {
      before: () => Buffer.from('/nowhere'),
      left: () => ({ at: Buffer.from('/nowhere'), isMoved: false }),
    });
    expect(described).toHaveLength(100_000);
    expect(chosenNumbers(described, operations, ['dir']).numbers).toHaveLength(100_000);
    const paths = operations.map(({ path }) => path);
    expect(chosenNumbers(described, operations, paths).named.size).toBe(100_000);
    expect(performance.now() - started).toBeLessThan(10_000);
  }, 20_000);
});

describe('a command that handed an open file to another one', () => {
  /**
   * Another command waits for that on a socket, in a place where both may write; it maps the file, and writes to it when told:
   * once the preview has ended, and a person has looked.
   */
  async function handed(mode: string) {
    const root = arena.freshCorner();
    const shared = mkdtempSync(join(arena.root, 'shared-'));
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root, writable: [shared] });
    const job = sandbox.start(
      `/usr/bin/python3 -c "
import socket, array, os, signal, time, mmap
s = socket.socket(socket.AF_UNIX); s.bind('${shared}/sock'); s.listen(); c, _ = s.accept()
_, anc, _, _ = c.recvmsg(10, 4096)
fd = array.array('i', anc[0][2][:4])[0]
m = mmap.mmap(fd, 0); m[0:4] = b'good'; c.send(b'x')
def told(what):
    while not os.path.exists('${shared}/' + what): time.sleep(0.01)
told('write'); m[0:4] = b'EVIL'; open('${shared}/written', 'w').close()
told('end'); m.close(); os.close(fd); open('${shared}/ended', 'w').close(); signal.pause()"`,
      { background: true },
    );
    await eventually(() => expect(existsSync(join(shared, 'sock'))).toBe(true));
    const id = await preview(
      sandbox,
      `/usr/bin/python3 -c "
import socket, array, os
f = os.open('f', os.O_RDWR | os.O_CREAT, ${mode}); os.write(f, b'good' * 100)
s = socket.socket(socket.AF_UNIX); s.connect('${shared}/sock')
s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [f]))]); s.recv(1)"; echo ok > other`,
    );
    const tell = async (what: string, done: string) => {
      writeFileSync(join(shared, what), '');
      await eventually(() => expect(existsSync(join(shared, done))).toBe(true));
    };
    const layered = join(new ChangeStore(loadAddon(), stateDirectory()).upperOf(id), 'f');
    return { root, id, tell, job, layered, changes: await sandbox.changes() };
  }

  it.runIf(HOST.namespaces).each(['0o644', '0o200', '0o000'])(
    'has nothing applied that nobody saw (mode %s)',
    async (mode) => {
      const { root, id, tell, job, layered, changes } = await handed(mode);
      const notShown = async () =>
        expect(await changes.diff(id, 'f')).toContain('not shown: something writes to it');
      await notShown();
      await tell('write', 'written');
      // What was left is another file now.
      expect(readFileSync(layered, 'utf8')).toMatch(/^EVIL/);
      await notShown();
      const applied = await changes.apply(id);
      expect(applied.notDone).toEqual([
        { path: 'f', why: expect.stringContaining('something writes to it') },
      ]);
      expect(readdirSync(root)).toEqual(['other']);
      await tell('end', 'ended');
      // What is shown from now on nobody can change any more, and so it is what is applied.
      const shown = await changes.diff(id, 'f');
      const later = await changes.apply(id);
      expect([shown.includes('+EVIL'), existsSync(join(root, 'f'))]).toEqual(
        later.notDone.length === 0 ? [true, true] : [false, false],
      );
      await job.kill('SIGKILL');
    },
    30_000,
  );
});

// Root may look into everything.
describe.runIf(HOST.namespaces && process.getuid?.() !== 0)('a directory that may not be read', () => {
  it.each([
    ['goes itself', 'chmod 700 shut; rm -r shut'],
    ['lies in one that goes', 'chmod 700 around/shut; rm -r around'],
    ['is made anew', 'chmod 700 shut; rm -r shut; mkdir shut'],
    ['gives way to a file', 'chmod 700 shut; rm -r shut; echo file > shut'],
    ['has something changed in it', 'chmod 700 shut; echo new > shut/secret'],
    ['loses something', 'chmod 700 shut; rm shut/secret'],
  ])('stays, and is named, where it %s', async (_, command) => {
    const { root, sandbox } = await fresh();
    mkdirSync(join(root, 'around/shut'), { recursive: true });
    mkdirSync(join(root, 'shut'));
    const all = ['shut', 'around/shut'].map((name) => join(root, name));
    for (const shut of all) {
      writeFileSync(join(shut, 'secret'), 'old');
      chmodSync(shut, 0);
    }
    const id = await preview(sandbox, `${command}; echo ok > other`);
    const applied = await (await sandbox.changes()).apply(id);
    expect(applied.notDone).toEqual([
      {
        path: expect.stringMatching(/^(shut|around|shut\/secret)$/),
        why: expect.stringContaining('may not be read'),
      },
    ]);
    for (const shut of all) {
      chmodSync(shut, 0o700);
      expect(readFileSync(join(shut, 'secret'), 'utf8')).toBe('old');
    }
    expect(existsSync(join(root, 'other'))).toBe(true);
  });
});

describe('apply that stops in the middle', () => {
  it_(
    'has what is in place already set aside where programs outside would obey it (needs namespaces)',
    async () => {
      const { root, sandbox } = await fresh();
      mkdirSync(join(root, 'z'));
      const hook = 'sub/.git/hooks/pre-commit';
      const id = await preview(
        sandbox,
        `git init -q sub; echo evil > ${hook}; chmod +x ${hook}; head -c 3000000 /dev/zero > z/large`,
      );
      // As on a full disk: the next one finds nothing of what is to be put in place.
      const upper = new ChangeStore(loadAddon(), stateDirectory()).upperOf(id);
      renameSync(join(upper, 'z'), join(upper, 'aside'));
      const changes = await sandbox.changes();
      await expect(changes.apply(id)).rejects.toMatchObject({ code: 'changes.incomplete' });
      expect(existsSync(join(root, hook))).toBe(false);
      // Commands are run all the same.
      const next = await arena.sandbox(WITH_VIEW, { workspace: root });
      const ran = await next.run('echo ok');
      expect(ran.stdout).toBe('ok\n');
      expect(ran.warnings).toEqual([expect.stringContaining(`the changes ${id} are applied in part`)]);
      renameSync(join(upper, 'aside'), join(upper, 'z'));
      await changes.apply(id);
      expect(lstatSync(join(root, 'z/large')).size).toBe(3_000_000);
    },
  );
});

describe('what another process left', () => {
  it('is removed, and not what gets its description while it is looked at', async () => {
    const addon = loadAddon();
    const home = mkdtempSync(join(tmpdir(), 'sandbox-run-state-'));
    const workspace = arena.freshCorner();
    const left = await new ChangeStore(addon, home).open(workspace);
    left[Symbol.dispose]();
    const ended = await new ChangeStore(addon, home).open(workspace);
    const description = join(home, 'changes', ended.id, 'set.json');
    ended[Symbol.dispose]();
    // The moment between the two looks of whoever removes what is left.
    const late: NativeAddon = {
      ...addon,
      tryLock: (fd) => {
        if (readlinkSync(`/proc/self/fd/${fd}`).includes(ended.id)) writeFileSync(description, '{}');
        return addon.tryLock(fd);
      },
    };
    (await new ChangeStore(late, home).open(workspace))[Symbol.dispose]();
    const there = (id: string) => existsSync(join(home, 'changes', id));
    await expect.poll(() => there(left.id), { timeout: 10_000 }).toBe(false);
    expect([there(ended.id), existsSync(description)]).toEqual([true, true]);
    rmSync(home, { recursive: true });
  });
});

describe('the history', () => {
  const addon = loadAddon();
  const home = mkdtempSync(join(tmpdir(), 'sandbox-run-state-'));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  const store = new ChangeStore(addon, home);
  const there = (id: string) => existsSync(join(home, 'changes', id));
  /** A set that is applied. */
  async function applied(workspace: string, at: number): Promise<string> {
    const opened = await store.open(workspace);
    const { id } = opened;
    const after = { kind: 'file', mode: 0o644, bytes: 0, modified: '0' } as const;
    const set = { id, at, workspace, command: 'true', state: 'applied' } as const;
    store.save({ ...set, operations: [{ path: 'f', after, isOwn: true }], copies: [], placed: [] });
    opened.makeRoom();
    opened[Symbol.dispose]();
    return id;
  }
  const trim = async (workspace: string) =>
    (await new ChangeStore(addon, home).open(workspace))[Symbol.dispose]();

  it('has what was done last, also by a clock that was set back', async () => {
    const workspace = arena.freshCorner();
    const later: string[] = [];
    for (let n = 0; n < 202; n++) later.push(await applied(workspace, Date.now() + 10 ** 11 + n));
    const last = await applied(workspace, Date.now());
    await trim(workspace);
    await expect.poll(() => later.filter(there).length, { timeout: 10_000 }).toBe(199);
    expect([there(last), later.slice(0, 3).some(there)]).toEqual([true, false]);
    for (const id of [...later, last]) await store.remove(id);
  });
});

describe('a part that is applied', () => {
  it_('has no settings of git with it that were not named (needs namespaces)', async () => {
    const { root, sandbox } = await fresh();
    execFileSync('git', ['init', '-q', root]);
    await sandbox.close();
    const again = await arena.sandbox(WITH_VIEW, { workspace: root });
    const id = await preview(again, 'git config user.name Me; echo ok > ok');
    const name = () =>
      String(
        execFileSync('git', ['config', '--local', '--default', '', '--get', 'user.name'], { cwd: root }),
      );
    const changes = await again.changes();
    await changes.apply(id, ['ok']);
    expect([name(), existsSync(join(root, 'ok'))]).toEqual(['\n', true]);
    await changes.apply(id, ['.git/config']);
    expect(name()).toBe('Me\n');
  });
});

describe('a workspace on another file system than the state directory', () => {
  let other = '';
  beforeAll(() => {
    other = mkdtempSync('/dev/shm/sandbox-run-');
  });
  beforeEach(() => {
    process.env.XDG_STATE_HOME = other;
  });
  afterAll(() => rmSync(other, { recursive: true, force: true }));

  /** Names, modes and times, by find. */
  const picture = (root: string) =>
    String(execFileSync('find', ['.', '-printf', '%p %y %m %s %T@ %l\n'], { cwd: root, encoding: 'latin1' }))
      .split('\n')
      .map((line) =>
        line.includes(' d ')
          ? line.split(' ').slice(0, 3).join(' ')
          : line.replace(/(?<= l .*\.\d{6})\d+/, ''),
      )
      .sort();

  it_('has deleted trees put back as they were, whatever their names (needs namespaces)', async () => {
    const { root, sandbox } = await fresh();
    execFileSync(
      'bash',
      [
        '-c',
        `mkdir -p $'raw\\377/in\\376' plain/shut; echo 1 > $'raw\\377/in\\376/f'; echo 2 > plain/shut/f; ln -s nowhere plain/l; chmod 640 plain/shut/f; chmod 555 plain/shut; echo 3 > file; chmod 600 file`,
      ],
      { cwd: root },
    );
    const before = picture(root);
    const id = await preview(sandbox, 'chmod 755 plain/shut; rm -r raw* plain; echo 4 > file');
    const changes = await sandbox.changes();
    expect((await changes.apply(id)).notDone).toEqual([]);
    expect(readdirSync(root)).toEqual(['file']);
    expect((await changes.undo(id)).notDone).toEqual([]);
    expect(picture(root)).toEqual(before);
    expect((await changes.apply(id)).notDone).toEqual([]);
    expect(readdirSync(root)).toEqual(['file']);
    expect((await changes.undo(id)).notDone).toEqual([]);
    expect(picture(root)).toEqual(before);
    chmodSync(join(root, 'plain/shut'), 0o755);
    rmSync(join(root, 'plain'), { recursive: true });
  });
});

describe('a file system that is mounted in the workspace', () => {
  // In a mount namespace of its own, which goes with the last process.
  it.runIf(process.getuid?.() === 0 && HOST.namespaces)(
    'stays where it is, although a command saw nothing in it and removed what is around it',
    async () => {
      const place = makePlace();
      try {
        const script = `set -e
mkdir -p parent/mnt; mount -t tmpfs none parent/mnt; echo precious > parent/mnt/f
"$@" --preview -- rm -rf parent
id=$("$@" changes list | cut -d' ' -f1)
"$@" changes apply $id || echo "status $?"
cat parent/mnt/f`;
        const { stdout, stderr } = await execa(
          'unshare',
          ['-m', 'bash', '-c', script, 'bash', process.execPath, CLI],
          { cwd: place.workspace, env: place.env, extendEnv: false, reject: false },
        );
        expect(stdout).toBe('status 1\nprecious');
        expect(stderr).toContain('stays as it is: parent: another file system is mounted in it');
      } finally {
        place.dispose();
      }
    },
  );
});

/** All that a tree holds, by path: kind, permissions, content. */
function contentsOf(root: string): Readonly<Record<string, string>> {
  const found = String(
    execFileSync(
      'find',
      ['.', '-mindepth', '1', '-printf', '%P %y %m %l\\n', '-type', 'f', '-exec', 'sha256sum', '{}', ';'],
      { cwd: root },
    ),
  );
  return Object.fromEntries(found.split('\n').map((line) => [line, line]));
}

describe('what the kernel keeps of a layer in attributes', () => {
  const NAMES = [
    'opaque',
    'redirect',
    'metacopy',
    'whiteout',
    'origin',
    'impure',
    'overlay.opaque',
    'overlay.whiteout',
  ];
  /** Sets all of them to all that may be of use, where that is possible, and makes whiteouts. */
  const forging = (outside: string) => `
import os, stat
def tried(do, *words):
    try: do(*words)
    except OSError: pass
for at in ['dir', 'dir/in', 'dir/whole', 'dir/zero', 'made', 'made/whole', 'made/zero']:
    for space in ['user', 'trusted']:
        for name in ${JSON.stringify(NAMES)}:
            for value in [b'y', b'x', b'', b'/../../../../etc', b'${outside}', b'../outside']:
                tried(os.setxattr, at, space + '.overlay.' + name, value)
tried(os.mknod, 'dir/gone', stat.S_IFCHR | 0o600, 0)
tried(os.mknod, 'made/gone', stat.S_IFCHR | 0o600, 0)
`;
  function filled() {
    const root = arena.freshCorner();
    mkdirSync(join(root, 'dir/in'), { recursive: true });
    for (const name of ['dir/whole', 'dir/in/whole']) writeFileSync(join(root, name), "the user's\n");
    writeFileSync(join(root, 'dir/zero'), '');
    return root;
  }
  /** Of the layer itself. */
  const MAKES = 'mkdir made; touch made/zero; echo made > made/whole; echo new > dir/in/new; chmod 700 dir';

  it_('does not come from commands: all that is applied was shown (needs namespaces)', async () => {
    const root = filled();
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
    const script = `${MAKES}; /usr/bin/python3 -c "$FORGING"; unshare -Ur /usr/bin/python3 -c "$FORGING"; true`;
    const before = contentsOf(root);
    const victims = snapshot(arena.outside);
    const result = await sandbox.run(script, {
      effect: 'preview',
      env: { FORGING: forging(arena.outside) },
    });
    const id = result.changes?.id ?? '';
    const changes = await sandbox.changes();
    const shown = (await changes.show(id)).changes;
    expect(shown.map(({ path, change, kind }) => `${change} ${kind} ${path}`).toSorted()).toEqual([
      'created directory made',
      'created file dir/in/new',
      'created file made/whole',
      'created file made/zero',
      'mode directory dir',
    ]);
    // What it set itself is told of.
    const noted = shown.filter(({ note }) => note !== undefined).map(({ path }) => path);
    expect(noted).toEqual(['made/whole', 'made/zero']);
    expect(await changes.diff(id)).not.toContain(readFileSync(arena.secret, 'utf8'));
    // A command that runs on it sees what is shown.
    const seen = await sandbox.run('cat dir/whole dir/in/*; ls made; chmod 755 dir', {
      effect: 'preview',
      on: id,
    });
    expect(seen.stdout).toBe("the user's\nnew\nthe user's\nwhole\nzero\n");
    await changes.discard(seen.changes?.id ?? '');
    expect((await changes.apply(id)).notDone).toEqual([]);
    expect(readdirSync(join(root, 'made'))).toEqual(['whole', 'zero']);
    expect(readFileSync(join(root, 'dir/whole'), 'utf8')).toBe("the user's\n");
    await changes.undo(id);
    expect(contentsOf(root)).toEqual(before);
    expect(snapshot(arena.outside)).toEqual(victims);
  });

  it_('is not obeyed where an earlier command left it in the workspace (needs namespaces)', async () => {
    const root = filled();
    // Nothing holds this one.
    execFileSync('bash', ['-c', `${MAKES}; /usr/bin/python3 -c "$FORGING"`], {
      cwd: root,
      env: { ...process.env, FORGING: forging(arena.outside) },
    });
    const before = contentsOf(root);
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
    const changes = await sandbox.changes();
    const first = await sandbox.run(
      'cat dir/whole dir/in/*; ls -R; echo more >> dir/whole; echo 1 > dir/in/1; mv made other; chmod 711 dir',
      {
        effect: 'preview',
      },
    );
    const id = first.changes?.id ?? '';
    const second = await sandbox.run('cat dir/whole dir/in/*; ls -R; rm -r dir; mkdir dir; echo 2 > dir/2', {
      effect: 'preview',
      on: id,
    });
    const diffs = [await changes.diff(id), await changes.diff(second.changes?.id ?? '')];
    for (const text of [first.stdout, second.stdout, ...diffs])
      expect(text).not.toContain(readFileSync(arena.secret, 'utf8'));
    const described = (await changes.show(id)).changes.map(({ path, change }) => `${change} ${path}`);
    expect(described.toSorted()).toEqual(['created dir/in/1', 'created other', 'mode dir']);
    expect((await changes.apply(id)).notDone).toEqual([]);
    expect(readFileSync(join(root, 'dir/whole'), 'utf8')).toBe("the user's\n");
    await changes.undo(id);
    expect(contentsOf(root)).toEqual(before);
  });
});
