import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { loadAddon } from '../../../src/confine/native/load.ts';
import type { ApprovalStore } from '../../../src/model/index.ts';
import { type Listener, listenForClients } from '../../../src/serve/core/listener.ts';
import { isOurs } from '../../../src/serve/core/peer.ts';
import { queueOffer } from '../../../src/serve/queue-offer.ts';
import { makeStatePlace, sampleRequest, until } from '../../support/approvals.ts';
import { holdOpen } from '../../support/half-open.ts';
import { lacks } from '../../support/programs.ts';
import { WITHOUT } from '../../support/without.ts';

const place = makeStatePlace();
const addon = loadAddon();
const outside = mkdtempSync(join(tmpdir(), 'approval-socket-'));
afterAll(() => rmSync(outside, { recursive: true, force: true }));

const servers: Listener[] = [];
const clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const server of servers.splice(0)) await server.close('stopping');
});

function listen(store: ApprovalStore, path: string, peerCredentials = addon.peerCredentials) {
  const offer = queueOffer(store, () => {});
  // Nobody is given up for taking his time: who is heard while others hold connections did not wait for that.
  const patient = { ...offer, limits: { ...offer.limits, handshakeMs: 600_000, lineMs: 600_000 } };
  return listenForClients(patient, {
    ...{ path, name: 'approvals serve', sharedDirectory: true, admits: isOurs },
    addon: { ...addon, peerCredentials },
  });
}

async function serve(options: { readonly path?: string; readonly store?: ApprovalStore } = {}) {
  const { approvals } = await place.open();
  const store = options.store ?? approvals;
  const path = options.path ?? join(place.directory, 'approvals.sock');
  const server = await listen(store, path);
  servers.push(server);
  return { store, server, path, post: () => store.post(sampleRequest(), Date.now() + 60_000) };
}

interface Reply {
  readonly id?: string | null;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly data: { readonly code: string } };
}

const code = (name: string) => ({ error: { data: { code: name } } });
let lastId = 0;
const requestText = (method: string, params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id: `${++lastId}`, method, params });

/** A program that talks to the server. `watch`: and is told what comes and goes. */
async function talkTo(path: string, { watch = false }: { readonly watch?: boolean } = {}) {
  const socket = connect(path);
  clients.push(socket);
  const replies: Reply[] = [];
  const waiting: ((reply: Reply | undefined) => void)[] = [];
  let ended = false;
  socket.on('error', () => {});
  const reader = createInterface({ input: socket });
  reader.on('error', () => {});
  reader.on('line', (line) => {
    const next = waiting.shift();
    if (next === undefined) replies.push(JSON.parse(line));
    else next(JSON.parse(line));
  });
  const closed = new Promise<void>((resolve) =>
    socket.on('close', () => {
      ended = true;
      for (const next of waiting.splice(0)) next(undefined);
      resolve();
    }),
  );
  const talk = {
    socket,
    closed,
    send: (method: string, params: object = {}) => socket.write(`${requestText(method, params)}\n`),
    /** `undefined`: the connection ended. */
    next: () =>
      new Promise<Reply | undefined>((resolve) => {
        const reply = replies.shift();
        if (reply !== undefined || ended) resolve(reply);
        else waiting.push(resolve);
      }),
  };
  talk.send('initialize', { protocolVersion: 1, approvals: watch });
  await talk.next();
  return talk;
}

describe('the approval socket', () => {
  it('is for us alone, and goes with its server', async () => {
    const { path, server } = await serve();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await server.close('stopping');
    expect(existsSync(path)).toBe(false);
  });

  it.each([
    ['nothing', ''],
    ['half a message', '{"jsonrpc": "2'],
  ])('hears others while somebody holds 200 connections open with %s', async (_, said) => {
    const { path, post } = await serve();
    const watcher = await talkTo(path, { watch: true });
    const attacker = await holdOpen(200, () => connect(path), said);
    try {
      const id = await post();
      // Who listened before the attack still does.
      for (;;) {
        const told = await watcher.next();
        expect(told).toMatchObject({ method: 'approvals.requested' });
        if (JSON.stringify(told).includes(id)) break;
      }
      const client = await talkTo(path);
      client.send('approvals.answer', { question: id, approved: true });
      expect(await client.next()).toMatchObject({ result: {} });
      expect(attacker.dropped()).toBeGreaterThan(100);
    } finally {
      attacker.release();
    }
  });

  it('lists what waits', async () => {
    const { path, post } = await serve();
    const id = await post();
    const client = await talkTo(path);
    client.send('approvals.list');
    expect((await client.next())?.result?.questions).toContainEqual(
      expect.objectContaining({ question: id, command: 'git push origin main' }),
    );
  });

  it('tells of what comes and goes', async () => {
    const { path, post, store } = await serve();
    for (const { id } of await store.list('pending')) await store.withdraw(id);
    const client = await talkTo(path, { watch: true });
    const other = await talkTo(path);
    const id = await post();
    expect(await client.next()).toMatchObject({ method: 'approvals.requested', params: { question: id } });
    await store.answer(id, { approved: false, reason: 'denied', by: 'test' });
    expect(await client.next()).toEqual({
      ...{ jsonrpc: '2.0', method: 'approvals.withdrawn', params: { question: id, state: 'denied' } },
    });
    // Who did not ask for it is told nothing.
    other.send('approvals.list');
    expect(await other.next()).toMatchObject({ result: { questions: [] } });
  });

  it.each([
    [{ approved: true }, { approved: true, scope: 'once' }],
    [
      { approved: true, scope: 'always' },
      { approved: true, scope: 'always' },
    ],
    [{ approved: false }, { approved: false, reason: 'denied' }],
    [
      { approved: false, scope: 'always' },
      { approved: false, reason: 'denied' },
    ],
  ])('takes an answer: %j', async (answer, outcome) => {
    const { path, post, store } = await serve();
    const id = await post();
    const client = await talkTo(path);
    client.send('approvals.answer', { question: id, ...answer });
    expect(await client.next()).toMatchObject({ result: {} });
    expect(await store.take(id)).toEqual({ ...outcome, by: `socket (process ${process.pid})` });
  });

  it('says when an answer comes too late, and goes on', async () => {
    const { path, post, store } = await serve();
    const id = await post();
    const client = await talkTo(path);
    client.send('approvals.answer', { question: id, approved: false });
    expect(await client.next()).toMatchObject({ result: {} });
    for (const question of [id, 'x']) {
      client.send('approvals.answer', { question, approved: true });
      expect(await client.next()).toMatchObject(code('approval.unknown'));
    }
    client.send('approvals.list');
    expect(await client.next()).toMatchObject({ result: { questions: expect.any(Array) } });
    expect(await store.take(id)).toMatchObject({ approved: false });
  });

  it('does not approve for a session where there is none', async () => {
    const { path, post, store } = await serve();
    const id = await post();
    const client = await talkTo(path);
    client.send('approvals.answer', { question: id, approved: true, scope: 'session' });
    expect(await client.next()).toMatchObject(code('usage.invalid'));
    expect(await store.take(id)).toBeUndefined();
  });

  it('takes messages in pieces', async () => {
    const { path } = await serve();
    const client = await talkTo(path);
    const text = requestText('approvals.list', {});
    for (const piece of [text.slice(0, 9), text.slice(9), `\n${text}`, '\n']) client.socket.write(piece);
    expect(await client.next()).toMatchObject({ result: {} });
    expect(await client.next()).toMatchObject({ result: {} });
  });
});

describe('what is no message to the approval socket', () => {
  const answerText = (params: object) => requestText('approvals.answer', params);
  it.each<[string, (id: string) => string]>([
    ['no JSON', () => 'approve everything'],
    ['no object', () => '[]'],
    ['null', () => 'null'],
    ['what the socket took before', (id) => JSON.stringify({ type: 'answer', id, approved: true })],
    ['an unknown method', () => requestText('approvals.approve-all', {})],
    ['a method that is not of the queue', () => requestText('run', { command: 'true' })],
    ['an unknown key', (id) => answerText({ question: id, approved: true, force: true })],
    ['something like a yes', (id) => answerText({ question: id, approved: 'true' })],
    ['an unknown scope', (id) => answerText({ question: id, approved: true, scope: '*' })],
    ['no answer', (id) => answerText({ question: id })],
    ['an id that is none', () => answerText({ question: { $ne: '' }, approved: true })],
    [
      'a yes and a no',
      (id) => answerText({ question: id, approved: true }).replace('"app', '"approved":false,"app'),
    ],
    ['bytes', () => '\xff\xfe\0'],
  ])('approves nothing, and is an error: %s', async (_, text) => {
    const { path, post, store } = await serve();
    const id = await post();
    const client = await talkTo(path);
    client.socket.write(`${text(id)}\n`, 'latin1');
    expect(await client.next()).toMatchObject({ error: { data: { code: expect.any(String) } } });
    expect(await store.take(id)).toBeUndefined();
  });

  it('approves nothing before initialize', async () => {
    const { path, post, store } = await serve();
    const id = await post();
    const socket = connect(path);
    clients.push(socket);
    socket.write(`${answerText({ question: id, approved: true })}\n`);
    const [said] = await once(socket, 'data');
    expect(JSON.parse(String(said))).toMatchObject(code('protocol.uninitialized'));
    expect(await store.take(id)).toBeUndefined();
  });

  it.each([
    ['without an end', 'x'.repeat(70_000)],
    ['with one', `${requestText('approvals.list', {})}${' '.repeat(70_000)}\n`],
    ['of JSON', `${'['.repeat(70_000)}\n`],
  ])('ends the connection if it is too long, %s', async (_, text) => {
    const { path } = await serve();
    const client = await talkTo(path);
    client.socket.write(text);
    expect(await client.next()).toMatchObject(code('protocol.too_long'));
    await client.closed;
  });

  it('a client that goes away in the middle harms nobody', async () => {
    const { path, post, store } = await serve();
    const id = await post();
    const client = await talkTo(path);
    client.socket.write(answerText({ question: id, approved: true }).slice(0, -1));
    client.socket.destroy();
    await client.closed;
    const other = await talkTo(path);
    other.send('approvals.list');
    expect(await other.next()).toMatchObject({ result: {} });
    expect(await store.take(id)).toBeUndefined();
  });
});

describe('who may use the approval socket', () => {
  const NO_PYTHON = lacks('python3');
  /** Says hello to a socket, and prints what comes. */
  const CLIENT = [
    'import socket, sys',
    's = socket.socket(socket.AF_UNIX)',
    's.connect(sys.argv[1])',
    'try:',
    '    s.sendall(b\'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\\n\')',
    "    print(s.recv(65536).decode() or 'closed')",
    'except (BrokenPipeError, ConnectionResetError):',
    "    print('closed')",
  ].join('\n');

  it.skipIf(NO_PYTHON)('this user', async () => {
    const { path } = await serve({ path: join(outside, 'own.sock') });
    expect((await execa('python3', ['-c', CLIENT, path])).stdout).toContain('approvals.answer');
  });

  it.skipIf(NO_PYTHON || process.getuid?.() !== 0)(
    'not another one, though the file would let him',
    async () => {
      chmodSync(outside, 0o755);
      const { path } = await serve({ path: join(outside, 'other.sock') });
      chmodSync(path, 0o666);
      const args = ['-u', 'nobody', '--', 'python3', '-c', CLIENT, path];
      expect((await execa('runuser', args)).stdout).toBe('closed');
    },
  );

  it.skipIf(NO_PYTHON)('not a process that is confined', async () => {
    const { path } = await serve({ path: join(outside, 'confined.sock') });
    // It has a filter more than this process, which may have one and no_new_privs itself.
    const { stdout } = await execa('python3', [
      WITHOUT,
      'namespaces',
      'EPERM',
      'python3',
      '-c',
      CLIENT,
      path,
    ]);
    expect(stdout).toBe('closed');
  });

  it('nobody whom the kernel does not name', async () => {
    const { approvals: store } = await place.open();
    const path = join(outside, 'unnamed.sock');
    const nameless = () => {
      throw new Error('not a Unix socket');
    };
    servers.push(await listen(store, path, nameless));
    const client = await talkTo(path);
    expect(await client.next()).toBeUndefined();
  });
});

describe('the path of the approval socket', () => {
  it('may hold what a server left that was killed', async () => {
    const path = join(outside, 'stale.sock');
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`;
    const dead = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    await new Promise((resolve) => dead.stdout.once('data', resolve));
    dead.kill('SIGKILL');
    await new Promise((resolve) => dead.once('close', resolve));
    expect(existsSync(path)).toBe(true);
    await serve({ path });
    const client = await talkTo(path);
    client.send('approvals.list');
    expect(await client.next()).toMatchObject({ result: {} });
  });

  it('is not taken from a server that runs', async () => {
    const { path } = await serve();
    await expect(serve({ path })).rejects.toMatchObject({ code: 'gate.unusable' });
    const client = await talkTo(path);
    client.send('approvals.list');
    expect(await client.next()).toMatchObject({ result: {} });
  });

  it('is not taken from something else', async () => {
    const path = join(outside, 'file');
    writeFileSync(path, 'precious');
    await expect(serve({ path })).rejects.toMatchObject({ code: 'gate.unusable' });
    expect(statSync(path).size).toBe(8);
  });

  it.each([
    ['too long', join(outside, 'x'.repeat(120))],
    ['in a directory that is not there', join(outside, 'nothing/here.sock')],
  ])('is refused if it is %s', async (_, path) => {
    await expect(serve({ path })).rejects.toMatchObject({ code: 'gate.unusable' });
  });

  it('is given back though somebody is told more than he reads', async () => {
    const { path, server, store } = await serve();
    const client = await talkTo(path, { watch: true });
    client.socket.pause();
    const long = sampleRequest({ command: 'x'.repeat(100_000) });
    for (let count = 0; count < 30; count += 1) await store.post(long, Date.now() + 60_000);
    // It has begun to tell, and there is far more than a socket takes.
    client.socket.resume();
    await client.next();
    client.socket.pause();
    await server.close('stopping');
    expect(existsSync(path)).toBe(false);
  });

  it('is given back when the server ends, connections and all', async () => {
    const { path, server } = await serve();
    const client = await talkTo(path);
    await until(() => (client.socket.connecting ? undefined : true));
    await server.close('stopping');
    await client.closed;
    const next = createServer();
    await new Promise<void>((resolve) => next.listen(path, resolve));
    await new Promise((resolve) => next.close(resolve));
  });
});
