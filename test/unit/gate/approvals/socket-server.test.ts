import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { ApprovalServer } from '../../../../src/gate/approvals/approval-server.ts';
import { serveApprovalSocket } from '../../../../src/gate/approvals/socket-server.ts';
import type { ApprovalStore } from '../../../../src/gate/state/state.ts';
import { loadAddon } from '../../../../src/native/load.ts';
import { makeStatePlace, sampleRequest, until } from '../../../support/approvals.ts';
import { holdOpen } from '../../../support/half-open.ts';
import { WITHOUT } from '../../../support/without.ts';

const place = makeStatePlace();
const { peerCredentials } = loadAddon();
const outside = mkdtempSync(join(tmpdir(), 'approval-socket-'));
afterAll(() => rmSync(outside, { recursive: true, force: true }));

const servers: ApprovalServer[] = [];
const clients: Socket[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  for (const server of servers.splice(0)) await server.close();
});

async function serve(options: { readonly path?: string; readonly store?: ApprovalStore } = {}) {
  const { approvals } = await place.open();
  const store = options.store ?? approvals;
  const path = options.path ?? join(place.directory, 'approvals.sock');
  const server = await serveApprovalSocket({ store, path, peerCredentials });
  servers.push(server);
  return { store, server, path, post: () => store.post(sampleRequest(), Date.now() + 60_000) };
}

type Reply = Readonly<Record<string, unknown>>;

/** A program that talks to the server. */
function talkTo(path: string) {
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
  return {
    socket,
    closed,
    send: (message: unknown) => socket.write(`${JSON.stringify(message)}\n`),
    /** `undefined`: the connection ended. */
    next: () =>
      new Promise<Reply | undefined>((resolve) => {
        const reply = replies.shift();
        if (reply !== undefined || ended) resolve(reply);
        else waiting.push(resolve);
      }),
  };
}

describe('the approval socket', () => {
  it('is for us alone, and goes with its server', async () => {
    const { path, server } = await serve();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await server.close();
    expect(existsSync(path)).toBe(false);
  });

  it.each([
    ['nothing', ''],
    ['half a message', '{"type": "li'],
  ])('hears others while somebody holds 200 connections open with %s', async (_, said) => {
    const { path, post } = await serve();
    const watcher = talkTo(path);
    watcher.send({ type: 'watch' });
    const attacker = await holdOpen(200, () => connect(path), said);
    try {
      const id = await post();
      // Who listened before the attack still does.
      for (;;) {
        const told = await watcher.next();
        expect(told).toMatchObject({ type: 'pending' });
        if (JSON.stringify(told).includes(id)) break;
      }
      const client = talkTo(path);
      client.send({ type: 'answer', id, approved: true });
      expect(await client.next()).toMatchObject({ type: 'answered', id });
      expect(attacker.dropped()).toBeGreaterThan(100);
    } finally {
      attacker.release();
    }
  });

  it('lists what waits', async () => {
    const { path, post } = await serve();
    const id = await post();
    const client = talkTo(path);
    client.send({ type: 'list' });
    expect(await client.next()).toMatchObject({
      type: 'list',
      requests: expect.arrayContaining([expect.objectContaining({ id, command: 'git push origin main' })]),
    });
  });

  it('tells of what comes and goes', async () => {
    const { path, post, store } = await serve();
    for (const { id } of await store.list('pending')) await store.withdraw(id);
    const client = talkTo(path);
    client.send({ type: 'watch' });
    const id = await post();
    expect(await client.next()).toMatchObject({ type: 'pending', request: { id } });
    await store.answer(id, { approved: false, reason: 'denied', by: 'test' });
    expect(await client.next()).toEqual({ type: 'settled', id, state: 'denied' });
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
    const client = talkTo(path);
    client.send({ type: 'answer', id, ...answer });
    expect(await client.next()).toEqual({ type: 'answered', id, approved: answer.approved });
    expect(await store.take(id)).toEqual({ ...outcome, by: `socket (process ${process.pid})` });
  });

  it('says when an answer comes too late, and goes on', async () => {
    const { path, post, store } = await serve();
    const id = await post();
    const client = talkTo(path);
    client.send({ type: 'answer', id, approved: false });
    client.send({ type: 'answer', id, approved: true });
    client.send({ type: 'answer', id: 'x', approved: true });
    client.send({ type: 'list' });
    expect(await client.next()).toMatchObject({ type: 'answered' });
    expect(await client.next()).toMatchObject({ type: 'error', code: 'approval.unknown' });
    expect(await client.next()).toMatchObject({ type: 'error', code: 'approval.unknown' });
    expect(await client.next()).toMatchObject({ type: 'list' });
    expect(await store.take(id)).toMatchObject({ approved: false });
  });

  it('does not approve for a session where there is none', async () => {
    const { path, post, store } = await serve();
    const id = await post();
    const client = talkTo(path);
    client.send({ type: 'answer', id, approved: true, scope: 'session' });
    expect(await client.next()).toMatchObject({ type: 'error', code: 'usage.invalid' });
    expect(await store.take(id)).toBeUndefined();
  });

  it('takes messages in pieces', async () => {
    const { path } = await serve();
    const client = talkTo(path);
    for (const piece of ['{"type":', '"list"', '}\n{"type":"list"}', '\n']) client.socket.write(piece);
    expect(await client.next()).toMatchObject({ type: 'list' });
    expect(await client.next()).toMatchObject({ type: 'list' });
  });
});

describe('what is no message to the approval socket', () => {
  it.each([
    ['no JSON', () => 'approve everything'],
    ['an empty line', () => ''],
    ['no object', () => '[]'],
    ['null', () => 'null'],
    ['an unknown type', () => '{"type":"approve-all"}'],
    ['an unknown key', (id: string) => JSON.stringify({ type: 'answer', id, approved: true, force: true })],
    ['something like a yes', (id: string) => JSON.stringify({ type: 'answer', id, approved: 'true' })],
    ['an unknown scope', (id: string) => JSON.stringify({ type: 'answer', id, approved: true, scope: '*' })],
    ['no answer', (id: string) => JSON.stringify({ type: 'answer', id })],
    ['an id that is none', () => JSON.stringify({ type: 'answer', id: { $ne: '' }, approved: true })],
    ['bytes', () => '\xff\xfe\0'],
  ])('ends the connection, with an error: %s', async (_, text) => {
    const { path, post, store } = await serve();
    const id = await post();
    const client = talkTo(path);
    // What follows is not heard.
    client.socket.write(`${text(id)}\n${JSON.stringify({ type: 'answer', id, approved: true })}\n`, 'latin1');
    expect(await client.next()).toMatchObject({ type: 'error', code: 'usage.invalid' });
    expect(await client.next()).toBeUndefined();
    await client.closed;
    expect(await store.take(id)).toBeUndefined();
  });

  it.each([
    ['without an end', 'x'.repeat(70_000)],
    ['with one', `{"type":"list"}${' '.repeat(70_000)}\n`],
    ['of JSON', `${'['.repeat(70_000)}\n`],
  ])('is what is too long, %s', async (_, text) => {
    const { path } = await serve();
    const client = talkTo(path);
    client.socket.write(text);
    expect(await client.next()).toMatchObject({ type: 'error', code: 'usage.invalid' });
    await client.closed;
  });

  it('a client that goes away in the middle harms nobody', async () => {
    const { path, post, store } = await serve();
    const id = await post();
    const client = talkTo(path);
    client.socket.write(`{"type":"answer","id":"${id}","approved":true`);
    client.socket.destroy();
    await client.closed;
    const other = talkTo(path);
    other.send({ type: 'list' });
    expect(await other.next()).toMatchObject({ type: 'list' });
    expect(await store.take(id)).toBeUndefined();
  });
});

describe('who may use the approval socket', () => {
  /** Says `list` to a socket, and prints what comes until the end. */
  const CLIENT = [
    'import socket, sys',
    's = socket.socket(socket.AF_UNIX)',
    's.connect(sys.argv[1])',
    'try:',
    '    s.sendall(b\'{"type":"list"}\\n\')',
    "    print(s.recv(65536).decode() or 'closed')",
    'except (BrokenPipeError, ConnectionResetError):',
    "    print('closed')",
  ].join('\n');

  it('this user', async () => {
    const { path } = await serve({ path: join(outside, 'own.sock') });
    expect((await execa('python3', ['-c', CLIENT, path])).stdout).toContain('"type":"list"');
  });

  it.skipIf(process.getuid?.() !== 0)('not another one, though the file would let him', async () => {
    chmodSync(outside, 0o755);
    const { path } = await serve({ path: join(outside, 'other.sock') });
    chmodSync(path, 0o666);
    const args = ['-u', 'nobody', '--', 'python3', '-c', CLIENT, path];
    expect((await execa('runuser', args)).stdout).toBe('closed');
  });

  it('not a process that is confined', async () => {
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
    servers.push(await serveApprovalSocket({ store, path, peerCredentials: nameless }));
    const client = talkTo(path);
    client.send({ type: 'list' });
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
    const client = talkTo(path);
    client.send({ type: 'list' });
    expect(await client.next()).toMatchObject({ type: 'list' });
  });

  it('is not taken from a server that runs', async () => {
    const { path } = await serve();
    await expect(serve({ path })).rejects.toMatchObject({ code: 'gate.unusable' });
    const client = talkTo(path);
    client.send({ type: 'list' });
    expect(await client.next()).toMatchObject({ type: 'list' });
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

  it('is given back when the server ends, connections and all', async () => {
    const { path, server } = await serve();
    const client = talkTo(path);
    client.send({ type: 'watch' });
    await until(() => (client.socket.connecting ? undefined : true));
    await server.close();
    await client.closed;
    const next = createServer();
    await new Promise<void>((resolve) => next.listen(path, resolve));
    await new Promise((resolve) => next.close(resolve));
  });
});
