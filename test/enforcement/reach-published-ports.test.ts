import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import type {
  BackgroundJob,
  ExecutionResult,
  Sandbox,
  SandboxOptions,
  StartedCommand,
} from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { bundleLauncher, PUBLISHER } from '../support/launcher.ts';
import { HOST_TIERS, LOOKED_AT_TIERS, stateOf, type Tier } from '../support/tiers.ts';

/*
 * A published port is a way in, for whatever connects to it, and for nothing else: no way out for commands, and not theirs to
 * take.
 */

/** Answers each connection in a thread of its own. `ADDRESS PORT [COUNT]`: behind so many, one gets much and all is over. Prints a line once it listens. */
const SERVER = `
import socket, sys, threading, time
address, port = sys.argv[1], int(sys.argv[2])
def serve(c):
    first = c.recv(1)
    if first == b'E':                       # echo
        while data := c.recv(65536): c.sendall(data)
    elif first == b'C':                     # counts until the other side has ended
        total = 0
        while data := c.recv(65536): total += len(data)
        c.sendall(b'%d' % total)
    elif first == b'S':                     # sends without end
        try:
            while True: c.sendall(bytes(65536))
        except OSError: pass
    elif first == b'R':                     # breaks off
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    c.close()
def listen():
    s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port)); s.listen(2000)
    return s
s = listen()
print('listens', flush=True)
left = int(sys.argv[3]) if len(sys.argv) > 3 else -1
while True:
    c, _ = s.accept()
    if left == 0:
        c.recv(1); c.sendall(b'last words' * 20000); c.close(); sys.exit()
    left -= 1
    threading.Thread(target=serve, args=(c,), daemon=True).start()
`;
const serverAt = (address: string, port: number, ...more: string[]) =>
  ['python3', '-c', SERVER, address, `${port}`, ...more] as const;

/** That nobody else is likely to have: with an open network it is one of the host. */
const INNER = 20_000 + ((process.pid * 7) % 10_000);

interface Mode {
  readonly name: string;
  readonly tier: Tier;
  readonly options: SandboxOptions;
}

const modesOf = (tier: Tier): readonly Mode[] => [
  ...(tier.view ? [{ name: 'off', tier, options: {} }] : []),
  { name: 'listed', tier, options: { net: ['@own'] } },
  { name: 'open', tier, options: { policy: { network: { mode: 'open' as const } } } },
];
const MODES = LOOKED_AT_TIERS.flatMap(modesOf).map((mode) => ({
  ...mode,
  title: `network ${mode.name}, ${mode.tier.name}`,
}));
const STRONGEST_MODES = modesOf(HOST_TIERS[0] as Tier);

/** Processes that carry connections of published ports for this one, or for another. */
const relaysOf = (parent: number): readonly number[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const status = readFileSync(`/proc/${pid}/status`, 'utf8');
        return /^Name:\tsandbox-run-rel/m.test(status) && status.includes(`\nPPid:\t${parent}\n`);
      } catch {
        return false;
      }
    });

const arena = makeArena();
const running: StartedCommand[] = [];
const jobs: BackgroundJob[] = [];
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.all(jobs.splice(0).map((job) => job.end()));
  for (const one of running.splice(0)) {
    one.cancel();
    await one.result.catch(() => {});
  }
});

async function untilItSays(started: StartedCommand, text: string): Promise<void> {
  for await (const line of started) if (line.includes(text)) return;
  throw new Error(JSON.stringify(await started.result));
}

async function serve(sandbox: Sandbox, words: readonly [string, ...string[]]): Promise<StartedCommand> {
  const started = sandbox.start(words);
  running.push(started);
  await untilItSays(started, 'listens');
  return started;
}

/** A server in a sandbox, with the port that leads to it. */
async function published(
  { tier, options }: Mode,
  more: SandboxOptions = {},
  words = serverAt('127.0.0.1', INNER),
) {
  const sandbox = await arena.sandbox(tier, { ...options, publish: [{ port: 0, inner: INNER }], ...more });
  let port = 0;
  const job = await sandbox.run([...words], { background: true });
  jobs.push(job);
  for await (const line of job) if (line.includes('listens')) break;
  port = job.published[0]?.port ?? 0;
  return { sandbox, job, port };
}

function open(port: number, host = '127.0.0.1'): Socket {
  const socket = connect({ port, host, allowHalfOpen: true });
  sockets.push(socket);
  socket.on('error', () => {});
  return socket;
}

/** What a server says to some text, or why it says nothing. */
async function ask(port: number, text: string | Buffer, host?: string): Promise<string> {
  const socket = open(port, host);
  const said: Buffer[] = [];
  let error = '';
  socket.on('data', (bytes: Buffer) => said.push(bytes));
  socket.on('error', (failed: NodeJS.ErrnoException) => {
    error = failed.code ?? '';
  });
  socket.end(text);
  await new Promise((done) => socket.once('close', done));
  return error === '' ? Buffer.concat(said).toString() : error;
}

async function somePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

describe.each(MODES)('$title', (mode) => {
  it('leads in, both ways, with the end of each, and is gone with the command', async () => {
    const { job, port } = await published(mode);
    try {
      expect(job.published).toEqual([{ addresses: ['127.0.0.1', '::1'], port, inner: INNER, relayed: true }]);
      const [socket] = (await job.ports()).filter((one) => one.port === INNER);
      expect(socket?.published).toEqual([`127.0.0.1:${port}`, `[::1]:${port}`]);
      for (const host of ['127.0.0.1', '::1']) {
        expect(await ask(port, 'Ehello', host)).toBe('hello');
        const much = Buffer.alloc(3_000_001, 'C');
        expect(await ask(port, much, host)).toBe('3000000');
      }
      expect(await ask(port, 'R')).toBe('ECONNRESET');
    } finally {
      const result = await job.end();
      expect(result).toMatchObject({ ports: [{ port }], warnings: [] });
    }
    expect(await ask(port, 'Ehello')).toBe('ECONNREFUSED');
    expect(relaysOf(process.pid)).toEqual([]);
  });

  it('is reset where nobody listens, and leads in as soon as somebody does, and again', async () => {
    const sandbox = await arena.sandbox(mode.tier, { ...mode.options, publish: [{ port: 0, inner: INNER }] });
    const job = await sandbox.run(['sleep', '60'], { background: true });
    const port = job.published[0]?.port ?? 0;
    expect(await ask(port, 'Ehello')).toBe('ECONNRESET');
    for (let turn = 0; turn < 2; turn += 1) {
      // It shares the port.
      const server = await serve(sandbox, serverAt('127.0.0.1', INNER));
      expect(await ask(port, 'Ehello')).toBe('hello');
      server.cancel();
      await server.result;
      expect(await ask(port, 'Ehello')).toBe('ECONNRESET');
    }
    await job.end();
    expect(await ask(port, 'Ehello')).toBe('ECONNREFUSED');
  });
});

describe.each(HOST_TIERS.flatMap(modesOf))('network $name, $tier.name', (mode) => {
  it('hands on what a command says last', async () => {
    const { port, job } = await published(mode, {}, serverAt('127.0.0.1', INNER, '0'));
    expect(await ask(port, 'x')).toBe('last words'.repeat(20_000));
    await job.wait();
  });

  it('carries a thousand connections at a time, and slow readers hold nobody up', async () => {
    const { port, job } = await published(mode);
    // Each takes six descriptors at most, of those that the relay may have.
    const [, files = ''] =
      /^Max open files\s+\S+\s+(\S+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    const most = Math.min(1000, Math.floor((Number(files) - 16) / 6) - 1);
    const slow = Array.from({ length: 20 }, () => open(port));
    for (const socket of slow) {
      socket.pause();
      socket.write('S');
    }
    const many = Array.from({ length: most - slow.length }, () => open(port));
    const answered = many.map(
      (socket, at) =>
        new Promise<string>((done) => {
          socket.once('data', (bytes: Buffer) => done(bytes.toString()));
          socket.write(`E${at}`);
        }),
    );
    expect(await Promise.all(answered)).toEqual(many.map((_, at) => `${at}`));
    // All of them are open: one more answers, too.
    expect(await ask(port, 'Estill')).toBe('still');
    // Those that do not read have what fits on the way, and no more.
    expect(slow.every((socket) => !socket.destroyed)).toBe(true);
    await job.end();
  });

  it('is not the command’s: it cannot be signalled, traced or read, and other commands cannot connect to it', async () => {
    // What a relay has not handed on when its command ends keeps it for a second.
    await eventually(() => expect(relaysOf(process.pid)).toEqual([]));
    const { port, job, sandbox } = await published(mode);
    const [relay = 0] = relaysOf(process.pid);
    expect(relay).toBeGreaterThan(0);
    // Without a scope of signals a command can send them to any process of its user, which the report says.
    const signals = `
attempt('kill', lambda: os.kill(${relay}, 15))
attempt('stop', lambda: os.kill(${relay}, 19))`;
    const attack = `
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(name, act):
    try: act()
    except OSError: return
    print(name, flush=True)
def call(*arguments):
    if libc.syscall(*arguments) < 0: raise OSError(ctypes.get_errno(), '')
def trace():
    if libc.ptrace(16, ${relay}, 0, 0) < 0: raise OSError(ctypes.get_errno(), '')
def own(host, port):
    with socket.create_connection((host, port), 2) as s:
        s.sendall(b'Ex')
        if s.recv(1) != b'x': raise OSError
${stateOf(sandbox, 'signals') === 'enforced' ? signals : ''}
attempt('trace', trace)
attempt('descriptors', lambda: os.readlink('/proc/${relay}/fd/1'))
attempt('memory', lambda: open('/proc/${relay}/mem', 'rb').close())
def namespace():
    # Linux 5.10 answers with nothing.
    if os.readlink('/proc/${relay}/ns/net') == '': raise OSError
attempt('namespace', namespace)
attempt('limits', lambda: call(302, ${relay}, 7, (ctypes.c_long * 2)(3, 3), 0))
def steal():
    call(438, os.pidfd_open(${relay}), 1, 0)
attempt('steal', steal)
attempt('connect', lambda: own('127.0.0.1', ${port}))
attempt('connect6', lambda: own('::1', ${port}))
`;
    const stranger = await arena.sandbox(mode.tier, mode.options);
    for (const from of [sandbox, stranger]) {
      const { stdout, stderr } = await from.run(['python3', '-c', attack]);
      // With the network of the host they have its ports.
      const reached = mode.name === 'open' ? 'connect\nconnect6\n' : '';
      expect({ stdout, stderr }).toEqual({ stdout: reached, stderr: '' });
    }
    expect(await ask(port, 'Ehello')).toBe('hello');
    // The same from outside, where it is allowed to.
    process.kill(relay, 'SIGKILL');
    await eventually(() => expect(ask(port, 'Ehello')).resolves.toBe('ECONNREFUSED'));
    // Its sockets go before it is dead, which is what is looked for.
    await eventually(() => expect(readFileSync(`/proc/${relay}/status`, 'utf8')).toMatch(/^State:\tZ/m));
    // Another command gets a relay of its own.
    const other = await sandbox.run(['sleep', '60'], { background: true });
    jobs.push(other);
    expect(await ask(other.published[0]?.port ?? 0, 'Ehello')).toBe('hello');
    expect((await other.end()).warnings).toEqual([]);
    const result = await job.end();
    expect(result.warnings).toEqual([expect.stringContaining('was ended from outside')]);
    expect(relaysOf(process.pid)).toEqual([]);
  });
});

describe.each(STRONGEST_MODES)('network $name', (mode) => {
  it('is refused where the port is taken, by whom it is said and which is free; a policy’s is told', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const inner = INNER;
    const asked = await arena.sandbox(mode.tier, { ...mode.options, publish: [{ port, inner }] });
    const refused = await asked.run(['true']);
    expect(refused).toMatchObject({ status: 'setup-failed', error: { code: 'publish.taken' } });
    const [, next = ''] = /--publish (\d+:\d+)$/.exec(refused.error?.message ?? '') ?? [];
    expect(refused.error?.message).toBe(
      `port ${port} is taken by ${readFileSync('/proc/self/comm', 'utf8').trim()} (process ${process.pid}); ${Number.parseInt(next, 10)} is free: --publish ${next}`,
    );
    const instead = await arena.sandbox(mode.tier, { ...mode.options, publish: [next] });
    expect(await instead.run(['true'])).toMatchObject({ ok: true });
    const orFree = await arena.sandbox(mode.tier, {
      ...mode.options,
      publish: [{ port, inner, orFree: true }],
    });
    const found = await orFree.run(['true']);
    expect(found.ports?.[0]?.port).toBeGreaterThan(port);
    const policy = { ...(mode.options.policy as object), network: { mode: 'off' as const } };
    const network = {
      ...(mode.options.policy as { network?: object } | undefined)?.network,
      publish: [`${port}:${inner}`],
    };
    const byPolicy = await arena.sandbox(mode.tier, { ...mode.options, policy: { ...policy, network } });
    const ran = await byPolicy.run(['true']);
    // A second command beside a dev server serves nothing: of the port there is nothing to say.
    expect(ran).toMatchObject({ ok: true, warnings: [] });
    expect(ran.ports).toBeUndefined();
    server.close();
    await once(server, 'close');
    // A warden of an earlier command that has not begun yet has a copy of what this process listened by.
    await eventually(async () => {
      const again = await byPolicy.run(['true']);
      expect(again).toMatchObject({ ok: true, warnings: [], ports: [{ port, inner }] });
    });
  });

  it('is taken only where somebody has it, not in between: of many that want it one has it', async () => {
    const port = await somePort();
    const sandboxes = await Promise.all(
      Array.from({ length: 4 }, () =>
        arena.sandbox(mode.tier, { ...mode.options, publish: [{ port, inner: INNER }] }),
      ),
    );
    const results: readonly ExecutionResult[] = await Promise.all(
      sandboxes.map((sandbox) => sandbox.run(['sleep', '1'])),
    );
    expect(results.filter(({ ok }) => ok)).toHaveLength(1);
    expect(results.filter(({ error }) => error?.code === 'publish.taken')).toHaveLength(3);
  });
});

describe('a launcher that is killed', () => {
  let launcher = '';
  beforeAll(async () => {
    launcher = await bundleLauncher(PUBLISHER, 'publisher');
  });

  it.each(STRONGEST_MODES)('leaves no relay and no port, network $name', async ({ tier, options }) => {
    const task = {
      tier: tier.name,
      options: { workspace: arena.workspace, ...options, publish: [{ port: 0, inner: INNER }] },
      words: serverAt('127.0.0.1', INNER),
    };
    const child = spawn(process.execPath, [launcher], {
      env: { ...process.env, TASK: JSON.stringify(task) },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface({ input: child.stdout }), 'line');
    const port = Number(line);
    expect(await ask(port, 'Ehello')).toBe('hello');
    const relays = relaysOf(child.pid ?? 0);
    expect(relays).toHaveLength(1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    await eventually(async () => {
      expect(await ask(port, 'Ehello')).toBe('ECONNREFUSED');
      expect(relays.filter((pid) => readdirSync('/proc').includes(`${pid}`))).toEqual([]);
    });
  });
});
