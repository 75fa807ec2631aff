import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadAddon } from '../../../src/confine/native/load.ts';
import { type Listener, listenForClients } from '../../../src/serve/core/listener.ts';
import type { Peer } from '../../../src/serve/core/peer.ts';
import { gateOffer } from '../../../src/serve/gate/gate-service.ts';
import type { ConnectionLimits } from '../../../src/serve/protocol/limits.ts';
import { eventually } from '../../support/eventually.ts';
import { connectTo, makeRoom, OWN_UID, requestText, serverParts, turn } from './support.ts';

const { peerCredentials, tryLock } = loadAddon();
const NOBODY = 65534;
const isRoot = OWN_UID === 0;

let room: ReturnType<typeof makeRoom>;
let servers: Listener[];

beforeEach(() => {
  room = makeRoom();
  servers = [];
});
afterEach(async () => {
  await Promise.all(servers.map((server) => server.close('the gate server is stopping')));
  const left = readdirSync(room.path).filter((name) => name.includes('sock'));
  room.dispose();
  expect(left).toEqual([]);
});

interface Serve {
  readonly path?: string;
  readonly allowed?: readonly number[];
  readonly peers?: (fd: number) => Peer;
}

function listen(
  parts: Omit<ReturnType<typeof serverParts>['parts'], 'allowedUids'>,
  path: string,
  { allowed = [OWN_UID], peers = peerCredentials }: Serve = {},
  limits: Partial<ConnectionLimits> = {},
): Promise<Listener> {
  return listenForClients(gateOffer({ ...parts, onProblem: () => {}, limits }), {
    ...{ path, name: 'the gate', sharedDirectory: true, addon: { peerCredentials: peers, tryLock } },
    admits: ({ uid }) => allowed.includes(uid),
    forOthers: allowed.some((uid) => uid !== OWN_UID),
  });
}

async function serve(limits: Partial<ConnectionLimits> = {}, more: Serve = {}) {
  const path = join(room.path, 'gate.sock');
  const { parts, ...fakes } = serverParts();
  const server = await listen(parts, path, more, limits);
  servers.push(server);
  return { path, server, ...fakes };
}

describe('a gate on a socket', () => {
  it('answers with what was decided, and says who asked', async () => {
    const { path, asked } = await serve();
    const client = await connectTo(path);
    client.send(`${requestText('a', 'allow it', { session: 's', tool: 't' })}\n${requestText('b', 'no')}\n`);
    await eventually(() => expect(client.lines).toHaveLength(2));
    expect(client.answers()).toEqual([
      { request_id: 'a', decision: 'allow' },
      { request_id: 'b', decision: 'deny', reason: 'it is denied' },
    ]);
    expect(asked[0]).toMatchObject({
      requestId: 'a',
      command: 'allow it',
      session: 's',
      tool: 't',
      principal: `uid:${OWN_UID}`,
    });
  });

  it('answers in whatever order decisions are made', async () => {
    const { path, waiting } = await serve();
    const client = await connectTo(path);
    client.send(`${requestText('slow', 'ask')}\n${requestText('fast', 'allow')}\n`);
    await eventually(() => expect(client.answers()).toEqual([{ request_id: 'fast', decision: 'allow' }]));
    waiting.get('slow')?.(true);
    await eventually(() =>
      expect(client.answers()).toContainEqual({ request_id: 'slow', decision: 'allow' }),
    );
  });

  it('takes lines in any pieces', async () => {
    const { path } = await serve();
    const client = await connectTo(path);
    client.socket.setNoDelay(true);
    const text = `${requestText('a', 'allow ü€😀')}\n${requestText('b')}\n`;
    for (const byte of Buffer.from(text)) {
      client.send(Buffer.from([byte]));
      if (byte % 7 === 0) await turn();
    }
    await eventually(() => expect(client.lines).toHaveLength(2));
    expect(client.answers()[0]).toEqual({ request_id: 'a', decision: 'allow' });
  });

  it('answers 1,000 requests of 20 clients, each once and each its own', async () => {
    const { path, asked } = await serve();
    const clients = await Promise.all(Array.from({ length: 20 }, () => connectTo(path)));
    clients.forEach((client, index) => {
      for (let number = 0; number < 50; number += 1) {
        const id = `${index}.${number}`;
        client.send(`${requestText(id, number % 2 === 0 ? 'allow' : 'no')}\n`);
      }
    });
    await eventually(() => {
      for (const client of clients) expect(client.lines.length).toBeGreaterThanOrEqual(50);
    });
    // What comes for these comes after everything that came for the others.
    for (const client of clients) client.send(`${requestText('51', 'no')}\n`);
    await eventually(() => {
      for (const client of clients) expect(client.lines.length).toBeGreaterThanOrEqual(51);
    });
    clients.forEach((client, index) => {
      expect(
        client
          .answers()
          .map(({ request_id }) => request_id)
          .sort(),
      ).toEqual([...Array.from({ length: 50 }, (_, number) => `${index}.${number}`), '51'].sort());
      for (const { request_id, decision } of client.answers())
        expect(decision).toBe(Number(String(request_id).split('.')[1]) % 2 === 0 ? 'allow' : 'deny');
    });
    expect(asked).toHaveLength(1020);
  });

  it('denies what could not be decided, without saying why', async () => {
    const { path } = await serve();
    const client = await connectTo(path);
    client.send(`${requestText('a', 'fail')}\n`);
    await eventually(() => expect(client.lines).toHaveLength(1));
    expect(client.answers()[0]).toMatchObject({ decision: 'deny' });
    expect(client.lines[0]).not.toContain('secret detail');
  });

  it('decides no more of one client at a time than the limit, and tells it so', async () => {
    const { path, asked, waiting } = await serve({ requests: 4 });
    const client = await connectTo(path);
    for (let number = 0; number < 10; number += 1) client.send(`${requestText(`${number}`, 'ask')}\n`);
    await eventually(() => expect(client.lines).toHaveLength(6));
    expect(client.answers().map(({ error }) => error)).toEqual(Array(6).fill('protocol.busy'));
    expect(asked).toHaveLength(4);
    for (let number = 0; number < 4; number += 1) waiting.get(`${number}`)?.(true);
    await eventually(() => expect(client.lines).toHaveLength(10));
    client.send(`${requestText('more', 'allow')}\n`);
    await eventually(() =>
      expect(client.answers()).toContainEqual({ request_id: 'more', decision: 'allow' }),
    );
  });
});

describe('a client that does not follow the protocol', () => {
  it('is told where that is possible, and goes on', async () => {
    const { path, codes, refused } = await serve();
    const client = await connectTo(path);
    client.send(`${requestText('a', '')}\n${requestText('b', 'allow')}\n`);
    await eventually(() => expect(client.lines).toHaveLength(2));
    expect(client.answers()[0]).toMatchObject({ request_id: 'a', error: 'usage.invalid' });
    expect(client.answers()[1]).toMatchObject({ request_id: 'b', decision: 'allow' });
    expect(codes()).toEqual(['malformed']);
    expect(refused[0]).toMatchObject({ principal: `uid:${OWN_UID}`, requestId: 'a' });
  });

  it.each<[string, string | Buffer, unknown]>([
    ['text', 'GET / HTTP/1.1\n', null],
    ['binary', Buffer.from([0, 255, 254, 1, 10]), null],
    ['an id that is a path', `${requestText('../../x')}\n`, null],
    [
      'an id that is none',
      '{"jsonrpc":"2.0","id":1.5,"method":"gate.check","params":{"command":"ls"}}\n',
      null,
    ],
    ['a key twice', `${requestText('a').slice(0, -1)},"params":{"command":"allow"}}\n`, null],
    ['a command twice', `${requestText('a').slice(0, -2)},"command":"allow"}}\n`, null],
    ['an answer of its own', '{"jsonrpc":"2.0","id":"a","result":{"decision":"allow"}}\n', null],
    ['what gates had before', '{"type":"security:bash_check","request_id":"a","command":"allow"}\n', null],
    ['what no gate has', '{"jsonrpc":"2.0","id":"a","method":"run","params":{"command":"ls"}}\n', 'a'],
  ])('is decided nothing for %s', async (_, text, id) => {
    const { path, codes, asked } = await serve({ malformed: 2 });
    const client = await connectTo(path);
    client.send(text);
    await eventually(() => expect(client.lines).toHaveLength(1));
    expect(client.answers()).toMatchObject([{ request_id: id, error: expect.any(String) }]);
    // Once more, and it has nothing to say any more.
    client.send(`nonsense\n${requestText('b', 'allow')}\n`);
    await client.closed;
    expect(asked).toEqual([]);
    expect(codes()).toEqual(['malformed', 'malformed']);
  });

  it('is decided nothing before initialize, and not heard for long without', async () => {
    const { path, asked, waiting } = await serve({ handshakeMs: 100 });
    const [silent, waits] = [await connectTo(path, false), await connectTo(path)];
    waits.send(`${requestText('b', 'ask')}\n`);
    silent.send(`${requestText('a', 'allow')}\n`);
    await silent.closed;
    expect(silent.answers()).toMatchObject([
      { request_id: 'a', error: 'protocol.uninitialized' },
      { request_id: null, error: 'protocol.uninitialized' },
    ]);
    expect(asked.map(({ requestId }) => requestId)).toEqual(['b']);
    waiting.get('b')?.(true);
    await eventually(() => expect(waits.answers()).toEqual([{ request_id: 'b', decision: 'allow' }]));
  });

  it('is closed after a line that is too long, in the middle of it', async () => {
    const { path, codes } = await serve();
    const client = await connectTo(path);
    client.send(Buffer.alloc(2 * 1024 * 1024, 'x'));
    await client.closed;
    expect(client.answers()).toEqual([{ request_id: null, error: 'protocol.too_long' }]);
    expect(codes()).toEqual(['too_long']);
  });

  it('is closed after too many malformed messages, and what is pending is denied', async () => {
    const { path, codes, asked, withdrawn } = await serve({ malformed: 3 });
    const client = await connectTo(path);
    client.send(`${requestText('pending', 'ask')}\n`);
    await eventually(() => expect(asked).toHaveLength(1));
    for (let number = 0; number < 9; number += 1) client.send(`${requestText(`${number}`, '')}\n`);
    await client.closed;
    expect(codes()).toEqual(['malformed', 'malformed', 'malformed']);
    expect(client.answers()).toContainEqual(
      expect.objectContaining({ request_id: 'pending', decision: 'deny' }),
    );
    expect(withdrawn).toEqual(['pending']);
  });

  it('is closed when half a line is all that comes', async () => {
    const { path, codes } = await serve({ lineMs: 50 });
    const client = await connectTo(path);
    client.send('{"jsonrpc":"2.');
    await client.closed;
    expect(codes()).toEqual(['incomplete']);
  });

  it('is on record when it goes away within a line', async () => {
    const { path, codes, asked } = await serve();
    const client = await connectTo(path);
    client.send(requestText('a', 'allow'));
    client.socket.end();
    await client.closed;
    await eventually(() => expect(codes()).toEqual(['incomplete']));
    expect(asked).toEqual([]);
  });

  it('is closed when nothing comes for long', async () => {
    const { path } = await serve({ idleMs: 50 });
    await (await connectTo(path)).closed;
  });

  it('but not while it waits for an answer', async () => {
    const { path, waiting } = await serve({ idleMs: 50 });
    const client = await connectTo(path);
    client.send(`${requestText('a', 'ask')}\n`);
    // One that comes later, and waits for nothing, is closed meanwhile.
    await (await connectTo(path)).closed;
    expect(client.isClosed()).toBe(false);
    waiting.get('a')?.(true);
    await eventually(() => expect(client.answers()).toEqual([{ request_id: 'a', decision: 'allow' }]));
    await client.closed;
  });

  it('gets one answer, a no, for an id that it uses twice at once', async () => {
    const { path, codes, waiting, withdrawn, asked } = await serve();
    const client = await connectTo(path);
    client.send(`${requestText('a', 'ask harmless')}\n`);
    await eventually(() => expect(asked).toHaveLength(1));
    client.send(`${requestText('a', 'allow evil')}\n`);
    await eventually(() => expect(client.lines).toHaveLength(2));
    // Somebody says yes to the first one, late.
    waiting.get('a')?.(true);
    client.send(`${requestText('later', 'no')}\n`);
    await eventually(() => expect(client.lines.length).toBeGreaterThanOrEqual(3));
    expect(client.answers()).toHaveLength(3);
    expect(client.answers()).toContainEqual({
      ...{ request_id: 'a', decision: 'deny', reason: 'its id was used twice' },
    });
    expect(client.answers()).toContainEqual({ request_id: null, error: 'protocol.invalid' });
    expect(asked.map(({ command }) => command)).toEqual(['ask harmless', 'no']);
    expect(codes()).toEqual(['duplicate_id']);
    expect(withdrawn).toEqual(['a']);
    // Answered, it is free again.
    client.send(`${requestText('a', 'allow')}\n`);
    await eventually(() => expect(client.answers()[3]).toEqual({ request_id: 'a', decision: 'allow' }));
  });

  it('may use the id of another connection', async () => {
    const { path, waiting } = await serve();
    const [one, other] = [await connectTo(path), await connectTo(path)];
    one.send(`${requestText('a', 'ask')}\n`);
    await eventually(() => expect(waiting.has('a')).toBe(true));
    other.send(`${requestText('a', 'no')}\n`);
    await eventually(() => expect(other.answers()).toMatchObject([{ request_id: 'a', decision: 'deny' }]));
    expect(one.lines).toEqual([]);
  });

  it('is allowed nothing for noise, in whatever pieces', async () => {
    const { path, asked } = await serve();
    const good = requestText('a', 'allow');
    const noise = fc.oneof(
      fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
      // A good request with one byte that is another one.
      fc
        .tuple(fc.nat(good.length - 1), fc.integer({ min: 0, max: 255 }))
        .map(([at, byte]) =>
          Buffer.concat([
            Buffer.from(good.slice(0, at)),
            Buffer.from([byte]),
            Buffer.from(good.slice(at + 1)),
          ]),
        ),
      fc.json().map((text) => Buffer.from(text)),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(noise, { maxLength: 5 }), async (messages) => {
        const client = await connectTo(path);
        const from = asked.length;
        for (const message of messages) client.send(Buffer.concat([message, Buffer.from('\n')]));
        client.socket.end();
        await client.closed;
        for (const { decision, request_id: id } of client.answers()) {
          const isAsked = asked.slice(from).some((request) => request.requestId === id);
          expect(decision !== 'allow' || isAsked).toBe(true);
        }
      }),
      { numRuns: 100 },
    );
    const client = await connectTo(path);
    client.send(`${good}\n`);
    await eventually(() => expect(client.answers()).toEqual([{ request_id: 'a', decision: 'allow' }]));
  });

  it('fills no memory by not taking its answers', async () => {
    const { path, asked } = await serve();
    const [client, other] = [await connectTo(path), await connectTo(path)];
    client.socket.pause();
    const request = (number: number) => `${requestText(`${'x'.repeat(100)}${number}`, 'no')}\n`;
    let sent = 0;
    const flood = () => {
      while (client.socket.writableLength < 1024 * 1024 && sent < 200_000) {
        client.send(request(sent));
        sent += 1;
      }
    };
    const floods = () => asked.filter(({ command }) => command === 'no').length;
    // It is read from until the buffers of the kernel are full, and then no more: others are answered many times, by this
    // same process, and nothing more of it is read.
    for (let round = 0, since = 0, before = 0; since < 100 && floods() < 20_000; round += 1, since += 1) {
      flood();
      other.send(`${requestText(`other.${round}`, 'allow')}\n`);
      while (other.lines.length <= round && !other.isClosed()) await turn();
      expect(other.lines).toHaveLength(round + 1);
      if (floods() !== before) [before, since] = [floods(), 0];
    }
    expect(floods()).toBeGreaterThan(0);
    expect(floods()).toBeLessThan(20_000);
    client.socket.destroy();
  });
});

describe('a client that goes away', () => {
  it.each(['end', 'destroy'] as const)('withdraws what it asked (%s)', async (how) => {
    const { path, asked, withdrawn } = await serve();
    const client = await connectTo(path);
    client.send(`${requestText('a', 'ask')}\n`);
    await eventually(() => expect(asked).toHaveLength(1));
    client.socket[how]();
    await eventually(() => expect(withdrawn).toEqual(['a']));
  });

  it('makes room for others', async () => {
    const { path, codes } = await serve({ connections: 2 });
    const first = await connectTo(path);
    const second = await connectTo(path);
    const third = await connectTo(path);
    await third.closed;
    expect(codes()).toEqual(['too_many_connections']);
    first.socket.destroy();
    await eventually(async () => {
      const fourth = await connectTo(path);
      fourth.send(`${requestText('a', 'allow')}\n`);
      while (fourth.lines.length === 0 && !fourth.isClosed()) await turn();
      expect(fourth.answers()).toMatchObject([{ request_id: 'a', decision: 'allow' }]);
    });
    second.socket.destroy();
  });
});

describe('who may ask', () => {
  it('is settled by the kernel, before a byte is read', async () => {
    const { path, asked, refused } = await serve({}, { allowed: [NOBODY + 1] });
    const client = await connectTo(path);
    client.send(`${requestText('a', 'allow')}\n`);
    await client.closed;
    expect(client.lines).toEqual([]);
    expect(asked).toEqual([]);
    expect(refused).toMatchObject([{ code: 'foreign_peer', principal: `uid:${OWN_UID}` }]);
  });

  it('is nobody where the kernel does not say', async () => {
    const unable = () => {
      throw new Error('SO_PEERCRED');
    };
    const { path, refused } = await serve({}, { peers: unable });
    await (await connectTo(path)).closed;
    expect(refused).toMatchObject([{ code: 'foreign_peer', principal: 'unknown' }]);
  });

  it('keeps others out by the mode of the socket where only we may ask', async () => {
    const { path } = await serve();
    expect((statSync(path).mode & 0o777).toString(8)).toBe('600');
  });

  it('lets everybody connect where others may ask', async () => {
    const { path } = await serve({}, { allowed: [OWN_UID, OWN_UID + 1] });
    expect((statSync(path).mode & 0o777).toString(8)).toBe('666');
  });

  const asNobody = (path: string) =>
    new Promise<string>((done) => {
      const script = `
        const socket = require('net').createConnection(${JSON.stringify(path)});
        const hello = { jsonrpc: '2.0', id: 'hello', method: 'initialize', params: { protocolVersion: 1 } };
        socket.on('connect', () => socket.write(JSON.stringify(hello) + '\\n'));
        socket.once('data', () => {
          socket.write(${JSON.stringify(`${requestText('a', 'allow')}\n`)});
          socket.once('data', (data) => { process.stdout.write(data); socket.destroy(); });
        });
        socket.on('error', (error) => console.log(error.code));`;
      const child = spawn('runuser', ['-u', 'nobody', '--', process.execPath, '-e', script], { cwd: '/' });
      let output = '';
      child.stdout.on('data', (data) => {
        output += data;
      });
      child.once('close', () => done(output));
    });

  it.runIf(isRoot)('is another user only if that one is named', async () => {
    chmodSync(room.path, 0o755);
    const { path, server, asked } = await serve({}, { allowed: [OWN_UID, NOBODY] });
    expect(JSON.parse(await asNobody(path))).toMatchObject({ id: 'a', result: { decision: 'allow' } });
    expect(asked[0]?.principal).toBe(`uid:${NOBODY}`);
    await server.close('the gate server is stopping');

    const second = await serve({}, { allowed: [OWN_UID, NOBODY + 1] });
    expect(await asNobody(second.path)).not.toContain('decision');
    await eventually(() => expect(second.refused).toMatchObject([{ code: 'foreign_peer' }]));
    expect(second.refused[0]?.principal).toBe(`uid:${NOBODY}`);
    await second.server.close('stopping');

    const third = await serve();
    expect(await asNobody(third.path)).toBe('EACCES\n');
  });
});

describe('the end of a server', () => {
  it('denies what is pending, tells the clients, and takes the socket away', async () => {
    const { path, server, withdrawn, asked } = await serve();
    const [busy, idle] = [await connectTo(path), await connectTo(path)];
    busy.send(`${requestText('a', 'ask')}\n`);
    await eventually(() => expect(asked).toHaveLength(1));
    await server.close('the gate server is stopping');
    await Promise.all([busy.closed, idle.closed]);
    expect(busy.answers()).toEqual([
      { request_id: 'a', decision: 'deny', reason: 'the gate server is stopping' },
    ]);
    expect(withdrawn).toEqual(['a']);
    expect(existsSync(path)).toBe(false);
  });

  it('waits for nobody who does not read', async () => {
    const { path, server, asked } = await serve();
    const client = await connectTo(path);
    client.socket.pause();
    client.send(`${requestText('a', 'ask')}\n`);
    await eventually(() => expect(asked).toHaveLength(1));
    await server.close('the gate server is stopping');
    client.socket.destroy();
  });
});

describe('the path of a socket', () => {
  const claim = (path: string) => {
    const { parts } = serverParts();
    return listen(parts, path);
  };
  const at = (name: string) => join(room.path, name);

  it('that a killed server left behind is taken', async () => {
    const path = at('gate.sock');
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => console.log('ready'))`;
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    child.kill('SIGKILL');
    await once(child, 'close');
    expect(existsSync(path)).toBe(true);
    const { path: same } = await serve();
    const client = await connectTo(same);
    client.send(`${requestText('a', 'allow')}\n`);
    await eventually(() => expect(client.lines).toHaveLength(1));
  });

  it('that another server listens on is refused, and that one goes on', async () => {
    const { path } = await serve();
    await expect(claim(path)).rejects.toMatchObject({ code: 'gate.unusable' });
    const client = await connectTo(path);
    client.send(`${requestText('a', 'allow')}\n`);
    await eventually(() => expect(client.lines).toHaveLength(1));
  });

  it('goes to one of several servers that start at once over a stale one', async () => {
    const path = at('gate.sock');
    const stale = createServer().listen(path);
    await once(stale, 'listening');
    linkSync(path, at('kept'));
    stale.close();
    await once(stale, 'close');
    linkSync(at('kept'), path);
    const started = await Promise.allSettled(Array.from({ length: 8 }, () => claim(path)));
    const won = started.filter(({ status }) => status === 'fulfilled');
    for (const one of started) if (one.status === 'fulfilled') servers.push(one.value);
    expect(won).toHaveLength(1);
    const client = await connectTo(path);
    client.send(`${requestText('a', 'allow')}\n`);
    await eventually(() => expect(client.lines).toHaveLength(1));
  });

  it.each([
    ['a file', () => writeFileSync(at('x'), 'precious')],
    ['a directory', () => mkdirSync(at('x'))],
    ['a FIFO', () => spawnSync('mkfifo', [at('x')])],
    ['a link to a file', () => symlinkSync('/etc/passwd', at('x'))],
    ['a link to nothing', () => symlinkSync('/nonexistent', at('x'))],
  ])('that is %s is refused, and that stays', async (_, make) => {
    make();
    const before = readdirSync(room.path);
    await expect(claim(at('x'))).rejects.toMatchObject({ code: 'gate.unusable' });
    expect(readdirSync(room.path)).toEqual(before);
  });

  it.each([
    ['does not exist', () => at('no/x')],
    ['is a file', () => at('file/x')],
    ['everybody can write', () => at('open/x')],
    ['has a name that is too long', () => at('x'.repeat(108))],
  ])('in a directory that %s is refused', async (_, path) => {
    writeFileSync(at('file'), '');
    mkdirSync(at('open'));
    chmodSync(at('open'), 0o777);
    await expect(claim(path())).rejects.toMatchObject({ code: 'gate.unusable' });
  });

  it.runIf(isRoot)('that belongs to somebody else is refused', async () => {
    chmodSync(room.path, 0o1777);
    const path = at('their-socket');
    const script = `require('net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 9))`;
    spawnSync('runuser', ['-u', 'nobody', '--', process.execPath, '-e', script], { cwd: '/' });
    expect(statSync(path).uid).toBe(NOBODY);
    await expect(claim(path)).rejects.toThrow(/socket of user 65534/);
    spawnSync('rm', [path]);
  });
});
