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
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chosenNumbers, describeOperations } from '../../src/changes/describe.ts';
import type { Operation } from '../../src/changes/operations.ts';
import { ChangeStore } from '../../src/changes/store.ts';
import type { ExecutionResult, Sandbox } from '../../src/index.ts';
import type { NativeAddon } from '../../src/native/contract.ts';
import { loadAddon } from '../../src/native/load.ts';
import { stateDirectory } from '../../src/run/state.ts';
import { CLI, makePlace } from '../cli/support.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';

const arena = makeArena();

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
  it('stop apply in the middle by taking the name of what is being made', async () => {
    const { root, sandbox } = await fresh();
    const id = await preview(sandbox, 'echo a > a; echo b > b');
    await sandbox.run(`mkdir -p .sandbox-run-${id}-0/x .sandbox-run-${id}-1/x`);
    const applied = await (await sandbox.changes()).apply(id);
    expect(applied.notDone).toEqual([]);
    expect(readFileSync(join(root, 'b'), 'utf8')).toBe('b\n');
  });

  it('write lines of its own into a diff by a name or the target of a link', async () => {
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

  it('have a diff show what lies behind a link that took the place of a directory', async () => {
    const { root, sandbox } = await fresh();
    mkdirSync(join(root, 'd'));
    writeFileSync(join(root, 'd/secret.txt'), 'old\n');
    const id = await preview(sandbox, 'echo new > d/secret.txt');
    renameSync(join(root, 'd'), join(root, 'aside'));
    symlinkSync(arena.outside, join(root, 'd'));
    expect(await (await sandbox.changes()).diff(id)).not.toContain(readFileSync(arena.secret, 'utf8'));
  });

  it('have very large files compared to find out about renames', async () => {
    const { root, sandbox } = await fresh();
    writeFileSync(join(root, 'old'), '');
    truncateSync(join(root, 'old'), 2 ** 40);
    const id = await preview(sandbox, `rm old; truncate -s ${2 ** 40} new`);
    expect((await (await sandbox.changes()).show(id)).changes.map(({ change }) => change).sort()).toEqual([
      'created',
      'deleted',
    ]);
  }, 20_000);

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
    const described = describeOperations(operations, '/nowhere', () => Buffer.from('/nowhere'));
    expect(described).toHaveLength(100_000);
    expect(chosenNumbers(described, operations, ['dir']).numbers).toHaveLength(100_000);
    expect(performance.now() - started).toBeLessThan(5_000);
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
import socket, array, os, time, mmap
s = socket.socket(socket.AF_UNIX); s.bind('${shared}/sock'); s.listen(); c, _ = s.accept()
_, anc, _, _ = c.recvmsg(10, 4096)
fd = array.array('i', anc[0][2][:4])[0]
m = mmap.mmap(fd, 0); m[0:4] = b'good'; c.send(b'x')
def told(what):
    while not os.path.exists('${shared}/' + what): time.sleep(0.01)
told('write'); m[0:4] = b'EVIL'; open('${shared}/written', 'w').close()
told('end'); m.close(); os.close(fd); open('${shared}/ended', 'w').close(); time.sleep(60)"`,
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
  it('has what is in place already set aside where programs outside would obey it', async () => {
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
  });
});

describe('what another process left', () => {
  it('is removed, and not what gets its description while it is looked at', async () => {
    const addon = loadAddon();
    const home = mkdtempSync(join(tmpdir(), 'sandbox-run-state-'));
    const workspace = arena.freshCorner();
    const left = new ChangeStore(addon, home).open(workspace);
    left[Symbol.dispose]();
    const ended = new ChangeStore(addon, home).open(workspace);
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
    new ChangeStore(late, home).open(workspace)[Symbol.dispose]();
    const there = (id: string) => existsSync(join(home, 'changes', id));
    await expect.poll(() => there(left.id), { timeout: 10_000 }).toBe(false);
    expect([there(ended.id), existsSync(description)]).toEqual([true, true]);
    rmSync(home, { recursive: true });
  });
});

describe('a part that is applied', () => {
  it('has no settings of git with it that were not named', async () => {
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
  const state = process.env.XDG_STATE_HOME;
  const other = mkdtempSync('/dev/shm/sandbox-run-');
  beforeAll(() => {
    process.env.XDG_STATE_HOME = other;
  });
  afterAll(() => {
    process.env.XDG_STATE_HOME = state;
    rmSync(other, { recursive: true, force: true });
  });

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

  it('has deleted trees put back as they were, whatever their names', async () => {
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
