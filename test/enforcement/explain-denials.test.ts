import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { parse } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PolicyFile, SandboxOptions } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { HOST, LOOKED_AT_TIERS, rowsFor, stateOf, type Tier } from '../support/tiers.ts';

/** What is outside: neither in the workspace nor where a private /tmp would be. */
interface Outside {
  readonly root: string;
  /** A directory beside it: nothing is proposed of one in which a socket lies. */
  readonly sockets: string;
  readonly process: ChildProcess;
  readonly port: number;
  readonly udpPort: number;
}

interface Case {
  readonly script: string;
  readonly operation: string;
  /** Beneath the directory outside; `''` is itself. */
  readonly object: string;
  /** By what it is held, where not every tier does; elsewhere it is not denied. */
  readonly needs?: 'view' | 'network' | 'scope' | 'truncate';
  /** No line lets it through. */
  readonly hopeless?: true;
}

/** Whether the answer to a case depends on the tier: on rights that Landlock got later, or on mounts. */
const differs = ([name, { needs, operation }]: readonly [string, Case]) =>
  needs !== undefined || operation === 'execute' || /^(mv|mkdir -p|a link (in|outside))/.test(name);

const python = (code: string) => `python3 -c '${code}'`;

/** `$O` is the directory outside. Each fails inside, and passes with the line that the first denial names. */
const CASES: Readonly<Record<string, Case>> = {
  'a shell writes a file': { script: 'echo x > $O/file', operation: 'write', object: 'file' },
  'a shell appends to a file': { script: 'echo x >> $O/file', operation: 'write', object: 'file' },
  'a shell creates a file': { script: 'echo x > $O/new', operation: 'create', object: 'new' },
  'a shell creates a file by a relative path': {
    script: 'cd /; echo x > .$O/new',
    operation: 'create',
    object: 'new',
  },
  'tee creates a file': { script: 'echo x | tee $O/new', operation: 'create', object: 'new' },
  'touch creates a file': { script: 'touch $O/new', operation: 'create', object: 'new' },
  'cp creates a file': { script: 'echo x > a; cp a $O/new', operation: 'create', object: 'new' },
  'cp replaces a file': { script: 'echo x > a; cp a $O/file', operation: 'write', object: 'file' },
  'dd writes a file': {
    script: 'dd if=/dev/zero of=$O/file bs=1 count=1 conv=notrunc',
    operation: 'write',
    object: 'file',
  },
  'truncate(1) shortens a file': { script: 'truncate -s 0 $O/file', operation: 'write', object: 'file' },
  'truncate(2) shortens a file': {
    script: python('import os; os.truncate(os.environ["O"] + "/file", 0)'),
    operation: 'write',
    object: 'file',
    needs: 'truncate',
  },
  'python opens a file to read and write': {
    script: python('import os; open(os.environ["O"] + "/file", "r+")'),
    operation: 'write',
    object: 'file',
  },
  'python opens a file by a descriptor of a directory': {
    script: python(
      'import os; d = os.open("/", os.O_PATH); os.open(os.environ["O"][1:] + "/new", os.O_WRONLY | os.O_CREAT, dir_fd=d)',
    ),
    operation: 'create',
    object: 'new',
  },
  'node writes a file': {
    script: 'node -e \'require("fs").writeFileSync(process.env.O + "/new", "x")\'',
    operation: 'create',
    object: 'new',
  },
  'mkdir makes a directory': { script: 'mkdir $O/new', operation: 'create', object: 'new' },
  'mkdir -p makes the first of several': {
    script: 'mkdir -p $O/new/er/est',
    operation: 'create',
    object: 'new',
  },
  'mkfifo makes a pipe': { script: 'mkfifo $O/new', operation: 'create', object: 'new' },
  'ln makes a symbolic link': { script: 'ln -s x $O/new', operation: 'create', object: 'new' },
  'mv moves something there': { script: 'echo x > a; mv a $O/new', operation: 'create', object: 'new' },
  'mv renames a file': { script: 'mv $O/file $O/new', operation: 'write', object: 'file' },
  'rm removes a file': { script: 'rm $O/file', operation: 'write', object: 'file' },
  'rmdir removes a directory': { script: 'rmdir $O/empty', operation: 'write', object: 'empty' },
  'rm -r removes a tree': { script: 'rm -r $O/empty', operation: 'write', object: 'empty' },
  'python removes a file': {
    script: python('import os; os.unlink(os.environ["O"] + "/file")'),
    operation: 'write',
    object: 'file',
  },
  'tar unpacks': {
    script: 'echo x > a; tar cf a.tar a; tar xPf a.tar --transform "s,^,$O/,"',
    operation: 'create',
    object: 'a',
  },
  'git makes a repository': {
    script: 'git init -q $O/repo',
    operation: 'create',
    object: 'repo',
  },
  'a link in the workspace leads to a file': {
    script: 'ln -s $O/file link; echo x > link',
    operation: 'write',
    object: 'file',
  },
  'a link in the workspace leads to what is not there': {
    script: 'ln -s $O/new link; echo x > link',
    operation: 'create',
    object: 'new',
  },
  'a link outside leads to a file that is written': {
    script: 'echo x > $O/link',
    operation: 'write',
    object: 'file',
  },
  'a link outside leads to a file that is read': {
    script: 'cat $O/link',
    operation: 'read',
    object: 'file',
  },
  'a directory outside is named by a link': {
    script: 'cat $O/by-link/in',
    operation: 'read',
    object: 'directory/in',
  },
  'a link in the workspace leads to a link outside': {
    script: 'ln -s $O/link link; cat link',
    operation: 'read',
    object: 'file',
  },
  'cat reads a file': { script: 'cat $O/file', operation: 'read', object: 'file' },
  'a shell reads a file': { script: 'read x < $O/file', operation: 'read', object: 'file' },
  'a shell sources a file': { script: '. $O/file.sh', operation: 'read', object: 'file.sh' },
  'python reads a file': {
    script: python('import os; open(os.environ["O"] + "/file")'),
    operation: 'read',
    object: 'file',
  },
  'node reads a file': {
    script: 'node -e \'require("fs").readFileSync(process.env.O + "/file")\'',
    operation: 'read',
    object: 'file',
  },
  'a link in the workspace is read': {
    script: 'ln -s $O/file link; cat link',
    operation: 'read',
    object: 'file',
  },
  'python lists a directory': {
    script: python('import os; os.listdir(os.environ["O"])'),
    operation: 'read',
    object: '',
  },
  'python loads a module': {
    script: 'PYTHONDONTWRITEBYTECODE=1 python3 $O/module.py',
    operation: 'read',
    object: 'module.py',
  },
  'a shell executes a program': { script: '$O/tool', operation: 'execute', object: 'tool' },
  'env executes a program': { script: 'env $O/tool', operation: 'execute', object: 'tool' },
  'a link to a program is executed': {
    script: 'ln -s $O/tool link; ./link',
    operation: 'execute',
    object: 'tool',
  },
  'a script is executed by a program': {
    script: 'printf "#!$O/tool x\\n" > script; chmod +x script; ./script',
    operation: 'execute',
    object: 'tool',
  },
  'python executes a program': {
    script: python('import os; os.execv(os.environ["O"] + "/tool", ["tool"])'),
    operation: 'execute',
    object: 'tool',
  },
};

/** What belongs to the host by its own rules, and not by a path of ours. */
const OTHERS: Readonly<Record<string, Case>> = {
  'a connection to a service of this machine': {
    script: python('import os, socket; socket.create_connection(("127.0.0.1", int(os.environ["PORT"])))'),
    operation: 'connect',
    object: '127.0.0.1:$PORT',
    needs: 'network',
  },
  'a connection to no address, which is this machine': {
    script: python('import os, socket; socket.create_connection(("0.0.0.0", int(os.environ["PORT"])))'),
    operation: 'connect',
    object: '127.0.0.1:$PORT',
    needs: 'network',
  },
  'a datagram to a service of this machine': {
    script: python(
      'import os, socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.connect(("127.0.0.1", int(os.environ["UDP_PORT"]))); s.send(b"x"); s.recv(1)',
    ),
    operation: 'connect',
    object: '127.0.0.1:$UDP_PORT',
    needs: 'network',
  },
  'a connection to a socket of this machine': {
    script: python('import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ["S"] + "/socket")'),
    operation: 'connect',
    object: '$S/socket',
    needs: 'network',
  },
  'a signal to a process outside': {
    script: 'kill -TERM $OTHER',
    operation: 'signal',
    object: '$OTHER (sleep)',
    needs: 'scope',
    hopeless: true,
  },
  'a hook of the repository': {
    script: 'echo x > .git/hooks/pre-commit',
    operation: 'create',
    object: '$PWD/.git/hooks/pre-commit',
    needs: 'view',
    hopeless: true,
  },
  'the directory that hooks are in': {
    script: 'mv .git other',
    operation: 'write',
    object: '$PWD/.git',
    needs: 'view',
    hopeless: true,
  },
};

/** With calls that Python does not have; `file`: what could be written outside. */
const calling = (code: string) =>
  python(`
import ctypes, os
libc = ctypes.CDLL(None)
file = os.environ["O"].encode() + b"/new"
${code}`);

/** Each fails without a sandbox as well, or is no failure: nothing is said of it. */
const UNTOLD: Readonly<Record<string, string>> = {
  'a file that is not there': 'cat missing; cat $O/missing; cat /etc/missing',
  'a directory that is not there': 'echo x > $O/missing/file',
  'a directory that is there': 'mkdir $PWD; mkdir /usr',
  'something in the workspace': 'echo x > a; rm a; mkdir d; rmdir d; false',
  'a program that is not there': '$O/missing; ./missing; missing',
  'a directory as a file': 'echo x > $PWD',
  'what is there already': 'set -C; echo x > a; echo y > a',
  'a port at which nobody is': 'exec 3<>/dev/tcp/127.0.0.1/1',
  'another address of this machine, at which nobody is':
    'exec 3<>/dev/tcp/127.0.0.2/$PORT; exec 3<>/dev/tcp/::1/$PORT; exec 3<>/dev/udp/127.0.0.1/$PORT; false',
  // The kernel names it itself, most programs copy then, and no option helps.
  'a rename from /tmp, as between file systems': `python3 -c 'import os; at = os.environ["TMPDIR"] + "/q"; open(at, "w"); os.rename(at, "q")'; false`,
  'a queue of POSIX, which no option allows': `python3 -c 'import ctypes, os; exit(ctypes.CDLL("librt.so.1").mq_open(b"/q", os.O_CREAT | os.O_RDWR, 0o600, None) != 0)'; false`,
  'a new name for what is not there': calling(
    'exit(libc.rename(b"missing", file) == 0 or libc.link(b"missing", file) != 0)',
  ),
  'a name that is taken, where nothing may be replaced': `echo x > a; ${calling(
    'exit(libc.renameat2(-100, b"a", -100, b"/usr/bin/env", 1) != 0)',
  )}`,
  'a directory that was missing and is made then': `echo x > d/new; mkdir d; ln -s e/new link; echo x > link; mkdir e; false`,
  'the directory of an object of git’s': 'git init -q .; echo x > a; git add a; git ls-files; false',
  'a directory that is not empty': 'rmdir $O; rmdir $O/directory',
  'a file as a directory':
    'rmdir $O/file; python3 -c \'import os; os.open(os.environ["O"] + "/file", os.O_RDONLY | os.O_DIRECTORY)\'',
  'a directory as a file that is removed': python('import os; os.unlink("/usr/share")'),
  'a name that something of another kind has': `mkdir d; ${calling(
    'o = os.environ["O"].encode(); exit(any(libc.rename(a, b) == 0 for a, b in [(b"d", o + b"/file"), (b"d", o + b"/directory"), (o + b"/file", o + b"/empty"), (o + b"/empty", o + b"/directory"), (o + b"/empty", o + b"/empty/in")]) or True)',
  )}`,
  'a signal to itself': 'sleep 60 & kill %1; kill -TERM $!; false',
  'a mode of 0000': 'echo x > a; chmod 0 a; cat a; echo y > a; false',
};

/** The same of an ordinary user: what is not theirs, and what they have shut for themselves. */
const UNTOLD_OF_USERS: Readonly<Record<string, string>> = {
  'a file in a directory of root': 'echo x > /usr/new',
  'a directory in one of root': 'mkdir /usr/new',
  'a file of root': 'echo x >> /etc/passwd',
  'what only root can remove': 'rm -f /etc/passwd',
  'a file outside that is shut': 'cat $O/shut; echo x >> $O/shut',
};

/** What another user's is in the workspace of root, whose commands have no capabilities: nothing of a policy helps. */
const OF_ANOTHER: Readonly<Record<string, Pick<Case, 'script' | 'operation' | 'object'>>> = {
  'writing a file': { script: 'echo x >> file', operation: 'write', object: 'file' },
  'cutting a file off': { script: 'truncate -s 0 file', operation: 'write', object: 'file' },
  'reading a file': { script: 'cat secret', operation: 'read', object: 'secret' },
  'running a file': { script: 'exec ./tool', operation: 'execute', object: 'tool' },
  'making a file': { script: 'echo x > directory/new', operation: 'create', object: 'directory/new' },
  'making a directory': { script: 'mkdir directory/new', operation: 'create', object: 'directory/new' },
  'moving a file there': { script: 'mv own directory', operation: 'create', object: 'directory/own' },
  'moving a file away': { script: 'mv directory/in new', operation: 'write', object: 'directory/in' },
  'removing a file': { script: 'rm -f directory/in', operation: 'write', object: 'directory/in' },
  'changing a mode': { script: 'chmod 777 file', operation: 'write', object: 'file' },
};
const USER = 65_534;

describe.each(LOOKED_AT_TIERS)('what the sandbox denied, $name', (tier) => {
  const arena = makeArena();
  let outside: Outside;
  let servers: readonly (Server | Socket)[];

  beforeAll(async () => {
    const root = realpathSync(mkdtempSync('/var/tmp/explain-'));
    const sockets = realpathSync(mkdtempSync('/var/tmp/explain-sockets-'));
    const sleeping = spawn('sleep', ['1000'], { stdio: 'ignore' });
    const server = createServer((socket) => socket.end()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const socket = createServer((connection) => connection.end()).listen(join(sockets, 'socket'));
    await once(socket, 'listening');
    const datagrams = createSocket('udp4').bind(0, '127.0.0.1');
    datagrams.on('message', (message, from) => datagrams.send(message, from.port, from.address));
    await once(datagrams, 'listening');
    servers = [server, socket, datagrams];
    const udpPort = datagrams.address().port;
    outside = { root, sockets, process: sleeping, port: address.port, udpPort };
  });
  afterAll(() => {
    outside.process.kill('SIGKILL');
    for (const server of servers) server.close();
    for (const directory of [outside.root, outside.sockets])
      rmSync(directory, { recursive: true, force: true });
  });

  /** As it is before each command. */
  function restore(): void {
    const { root } = outside;
    for (const name of [
      ...['new', 'repo', 'a', 'file', 'empty', 'tool', 'file.sh', 'module.py', 'shut'],
      ...['link', 'by-link', 'directory'],
    ])
      rmSync(join(root, name), { recursive: true, force: true });
    mkdirSync(join(root, 'empty'));
    writeFileSync(join(root, 'file'), 'content\n');
    mkdirSync(join(root, 'directory'));
    writeFileSync(join(root, 'directory/in'), 'content\n');
    symlinkSync('file', join(root, 'link'));
    symlinkSync('directory', join(root, 'by-link'));
    writeFileSync(join(root, 'file.sh'), 'true\n');
    writeFileSync(join(root, 'module.py'), '');
    writeFileSync(join(root, 'shut'), 'content\n', { mode: 0o000 });
    writeFileSync(join(root, 'tool'), '#!/bin/sh\ntrue\n', { mode: 0o755 });
  }

  const holds = {
    view: tier.view,
    network: tier.view,
    scope: tier.landlockAbi >= 6 && HOST.signalScope,
    truncate: tier.view || tier.landlockAbi >= 3,
  };

  async function run(
    on: Tier,
    workspace: string,
    script: string,
    policy: PolicyFile = {},
    effect?: 'preview',
  ) {
    restore();
    const sandbox = await arena.sandbox(on, { workspace, policy, explain: 'always' });
    const env = {
      ...{
        O: outside.root,
        S: outside.sockets,
        PORT: String(outside.port),
        OTHER: String(outside.process.pid),
      },
      ...{ UDP_PORT: String(outside.udpPort) },
      ...{ LC_ALL: 'C', GIT_CONFIG_NOSYSTEM: '1' },
    };
    return sandbox.run(
      ['bash', '-c', script],
      effect === undefined ? { env } : { env, effect, approved: true },
    );
  }

  async function check({ script, operation, hopeless, needs }: Case, workspace: string, whole: string) {
    const isHeld = needs === undefined || holds[needs];
    const denied = await run(tier, workspace, script);
    const first = denied.denials?.find((one) => one.operation === operation && one.object === whole);
    // Where nothing holds it, the kernel gave it, or it is said that it is not known.
    if (!isHeld) return expect(first).toBeUndefined();
    expect([denied.ok, denied.denials]).toEqual([
      false,
      expect.arrayContaining([expect.objectContaining({ operation, object: whole })]),
    ]);
    if (hopeless) return expect(first?.allow).toBeUndefined();
    // Exactly that line.
    const policy = parse(first?.allow?.policy ?? '') as PolicyFile;
    const allowed = await run(tier, arena.freshCorner(), script, policy);
    expect([allowed.ok, allowed.stderr]).toEqual([true, expect.anything()]);
  }

  it.each(rowsFor(tier, Object.entries(CASES), differs))(
    'is told, with what allows it: %s',
    async (_, one) => {
      await check(one, arena.freshCorner(), join(outside.root, one.object));
    },
  );

  it.each(Object.entries(OTHERS))('is told where it is held: %s', async (_, one) => {
    const workspace = arena.freshCorner();
    mkdirSync(join(workspace, '.git/hooks'), { recursive: true });
    writeFileSync(join(workspace, '.git/HEAD'), 'ref: refs/heads/main\n');
    mkdirSync(join(workspace, '.git/objects'));
    mkdirSync(join(workspace, '.git/refs'));
    const whole = one.object
      .replace('$PORT', String(outside.port))
      .replace('$UDP_PORT', String(outside.udpPort))
      .replace('$OTHER', String(outside.process.pid))
      .replace('$O', outside.root)
      .replace('$S', outside.sockets)
      .replace('$PWD', workspace);
    await check(one, workspace, whole);
  });

  describe.runIf(HOST.root)('of another user, to root without capabilities (needs root)', () => {
    const cornerOf = (owner: number) => {
      const corner = arena.freshCorner();
      mkdirSync(join(corner, 'directory'));
      writeFileSync(join(corner, 'own'), '');
      for (const name of ['file', 'directory/in']) writeFileSync(join(corner, name), 'content\n');
      writeFileSync(join(corner, 'secret'), 'content\n', { mode: 0o600 });
      writeFileSync(join(corner, 'tool'), '#!/bin/sh\ntrue\n', { mode: 0o700 });
      for (const name of ['file', 'secret', 'tool', 'directory', 'directory/in'])
        chownSync(join(corner, name), owner, owner);
      return corner;
    };

    it.each(rowsFor(tier, Object.entries(OF_ANOTHER)))(
      'is told: %s',
      async (_, { script, operation, object }) => {
        const corner = cornerOf(USER);
        const { denials } = await run(tier, corner, script);
        expect(denials).toContainEqual(
          expect.objectContaining({ operation, object: join(corner, object), control: 'privileges' }),
        );
        expect(denials?.some(({ allow }) => allow !== undefined)).toBe(false);
        // Without a sandbox, and where it is root's.
        expect(spawnSync('bash', ['-c', script], { cwd: corner }).status).toBe(0);
        expect((await run(tier, cornerOf(0), script)).ok).toBe(true);
      },
    );

    it('is said before, where the whole workspace is theirs', async () => {
      const warned = async (workspace: string, options: SandboxOptions = {}) => {
        const sandbox = await arena.sandbox(tier, { workspace, ...options });
        const { warnings } = await sandbox.run(['true']);
        return warnings.some((one) => one.includes(`the workspace belongs to user ${USER}`));
      };
      const corner = arena.freshCorner();
      expect(await warned(corner)).toBe(false);
      chownSync(corner, USER, USER);
      expect(await warned(corner)).toBe(true);
      expect(await warned(corner, { profile: 'read-only' })).toBe(false);
      chmodSync(corner, 0o777);
      expect(await warned(corner)).toBe(false);
    });

    it('is not said to be, where everybody may', async () => {
      const corner = cornerOf(USER);
      for (const name of ['file', 'directory', 'directory/in']) chmodSync(join(corner, name), 0o777);
      const script = 'echo x >> file; cat file; echo x > directory/new; rm directory/in; false';
      expect((await run(tier, corner, script)).denials).toBeUndefined();
    });
  });

  it.runIf(!HOST.root).each(rowsFor(tier, Object.entries(UNTOLD_OF_USERS)))(
    'is not said to be, as it is not theirs: %s',
    async (_, script) => {
      const { denials, exitCode } = await run(tier, arena.freshCorner(), script);
      expect([exitCode === 0, denials]).toEqual([false, undefined]);
    },
  );

  // Without a view a socket is refused before it is known where it would lead.
  const untold = Object.entries(UNTOLD).filter(([name]) => tier.view || !/at which nobody is/.test(name));
  it.each(rowsFor(tier, untold))('is not said to be: %s', async (_, script) => {
    const { denials, exitCode } = await run(tier, arena.freshCorner(), script);
    expect([exitCode === 0, denials]).toEqual([false, undefined]);
  });

  it.runIf(!tier.view).each([
    ['a TCP socket', 'exec 3<>/dev/tcp/127.0.0.1/$PORT', 'a TCP or UDP socket', 'network'],
    ['a UDP socket', 'exec 3<>/dev/udp/127.0.0.1/$PORT', 'a TCP or UDP socket', 'network'],
    [
      'a Unix socket',
      `python3 -c 'import socket; socket.socket(socket.AF_UNIX)'`,
      'a Unix socket',
      'unix-sockets',
    ],
  ])('is told of what is refused before it leads anywhere: %s', async (_, script, object, control) => {
    const { denials, stderr } = await run(tier, arena.freshCorner(), script);
    expect(stderr).toMatch('Permission denied');
    expect(denials).toEqual([expect.objectContaining({ operation: 'connect', object, control, count: 1 })]);
  });

  it('does not tell of sockets by which libc asks for users', async () => {
    const { denials } = await run(tier, arena.freshCorner(), 'ls -l / >/dev/null; id >/dev/null; false');
    expect((denials ?? []).filter(({ operation }) => operation === 'connect')).toEqual([]);
  });

  it.runIf(tier.view).each([
    ['is not told of what a preview removed', 'rm a; cat a; rm -r d; cat d/in; false', undefined],
    [
      'is told of what a preview cannot write',
      'echo x > $O/file',
      [expect.objectContaining({ operation: 'write' })],
    ],
  ])('%s', async (_, script, told) => {
    const workspace = arena.freshCorner();
    writeFileSync(join(workspace, 'a'), '');
    mkdirSync(join(workspace, 'd'));
    writeFileSync(join(workspace, 'd/in'), '');
    const { denials, exitCode, changes } = await run(tier, workspace, script, {}, 'preview');
    expect([exitCode === 0, changes?.effect, denials]).toEqual([false, 'preview', told]);
  });

  /** Why nobody looks; the host, the policy, and what the report says of it. */
  const UNSEEN: Readonly<Record<string, readonly [Tier, 'always' | 'never', string, RegExp]>> = {
    'the policy does not want it': [tier, 'never', 'off', /sandbox\.explain = "never"/],
    'the host refuses a listener': [
      { ...tier, asIf: (host) => ({ ...tier.asIf(host), seccompListener: false }) },
      ...(['always', 'unsupported', /needs a seccomp listener, which was refused/] as const),
    ],
  };

  it.each(Object.entries(UNSEEN))(
    'is not known, and said not to be, where %s',
    async (_, [on, explain, state, why]) => {
      restore();
      const sandbox = await arena.sandbox(on, { workspace: arena.freshCorner(), explain });
      const result = await sandbox.run(['bash', '-c', `echo x > ${outside.root}/new`]);
      const { denials, notLookedAt, report } = result;
      expect([denials, notLookedAt]).toEqual([undefined, expect.arrayContaining(['write', 'read'])]);
      const control = report.controls.find(({ id }) => id === 'denials');
      expect(control).toMatchObject({ state, reason: expect.stringMatching(why) });
    },
  );

  it('is said to be looked at', async () => {
    const sandbox = await arena.sandbox(tier, { workspace: arena.freshCorner(), explain: 'always' });
    // Without a view the network is shut by a filter, and no connection gets as far as being looked at.
    expect(stateOf(sandbox, 'denials')).toBe(tier.view ? 'enforced' : 'degraded');
  });
});
