import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadAddon } from '../../../src/confine/native/load.ts';
import { listenForClients } from '../../../src/serve/core/listener.ts';
import { askGate } from '../../../src/serve/gate/ask-gate.ts';
import { gateOffer } from '../../../src/serve/gate/gate-service.ts';
import { makeRoom, serverParts } from './support.ts';

const requestId = 'the-id';
const ask = (path: string, command: string, timeoutMs: number) =>
  askGate(path, { command }, { requestId, timeoutMs });
const yes = '{"jsonrpc":"2.0","id":"the-id","result":{"decision":"allow"}}\n';
const no = yes.replace('allow', 'deny');
const hello = (id: string) => {
  const capabilities = { methods: ['gate.check'], notifications: [], approvals: 'nobody' };
  const result = { protocolVersion: 1, serverVersion: '1', capabilities, limits: {} };
  return `${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`;
};

let room: ReturnType<typeof makeRoom>;
let ends: (() => unknown)[];
beforeEach(() => {
  room = makeRoom();
  ends = [];
});
afterEach(async () => {
  for (const end of ends) await end();
  room.dispose();
});

describe('a client of a gate', () => {
  const path = () => join(room.path, 'gate.sock');
  /** A server that does with a connection what a test wants, once it has said hello and a request came. */
  async function fake(behave: (socket: Socket) => void) {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('data', (text) => {
        socket.write(hello(JSON.parse(String(text)).id));
        socket.once('data', () => behave(socket));
      });
    });
    await new Promise<void>((done) => server.listen(path(), done));
    ends.push(() => {
      for (const socket of sockets) socket.destroy();
      return new Promise((done) => server.close(done));
    });
  }

  it.each([
    ['allow', { decision: 'allow', by: 'host' }],
    ['no', { decision: 'deny', by: 'host', reason: 'it is denied' }],
  ])('brings the answer of a gate (%s)', async (command, outcome) => {
    const { parts } = serverParts();
    const server = await listenForClients(gateOffer({ ...parts, onProblem: () => {} }), {
      ...{ path: path(), name: 'the gate', sharedDirectory: true, addon: loadAddon(), admits: () => true },
    });
    ends.push(() => server.close('stopping'));
    expect(await ask(path(), command, 5_000)).toEqual(outcome);
  });

  it('takes a yes of a server that never closes', async () => {
    await fake((socket) => socket.write(yes));
    expect(await ask(path(), 'x', 5_000)).toEqual({ decision: 'allow', by: 'host' });
  });

  it.each<[string, (socket: Socket) => void, RegExp]>([
    ['does not answer', () => {}, /in time/],
    ['answers late', (socket) => void socket.once('end', () => socket.write(yes)), /in time/],
    ['closes', (socket) => socket.end(), /closed/],
    ['breaks the connection', (socket) => socket.destroy(), /closed|broke|reached/],
    ['sends half an answer', (socket) => socket.write(yes.slice(0, -1)), /in time/],
    ['sends half an answer and closes', (socket) => socket.end(yes.slice(0, -1)), /within a message/],
    ['sends garbage', (socket) => socket.write('yes\n'), /no. JSON/],
    ['sends bytes', (socket) => socket.write(Buffer.from([255, 0, 10])), /UTF-8/],
    [
      'says what gates said before',
      (s) => s.write('{"request_id":"the-id","decision":"allow"}\n'),
      /no response/,
    ],
    ['asks itself', (socket) => socket.write(yes.replace('result', 'params')), /no response/],
    ['answers a batch', (socket) => socket.write(`[${yes.trim()}]\n`), /no response/],
    [
      'tells what it was not asked',
      (s) => s.write(`{"jsonrpc":"2.0","method":"allow","params":{}}\n${yes}`),
      /no such/,
    ],
    ['sends an empty line first', (socket) => socket.write(`\n${yes}`), /more than one/],
    ['answers twice at once', (socket) => socket.write(yes + yes), /more than one/],
    [
      'answers twice, not at once',
      (socket) => {
        socket.write(yes);
        // It has taken that, and ended its side.
        socket.once('end', () => socket.write(no));
      },
      /more than one/,
    ],
    [
      'answers another request',
      (socket) => socket.write(yes.replace('the-id', 'another')),
      /another request/,
    ],
    ['answers with a further key', (socket) => socket.write(yes.replace('}', ',"x":"y"}')), /keys/],
    [
      'answers with a yes and an error',
      (socket) => socket.write(yes.replace('"result', '"error":{},"result')),
      /no response/,
    ],
    ['decides otherwise', (socket) => socket.write(yes.replace('allow', 'Allow')), /decision/],
    ['says both', (socket) => socket.write(yes.replace('{"d', '{"decision":"deny","d')), /twice/],
    [
      'answers with two results',
      (socket) => socket.write(yes.replace('"result', '"result":{},"result')),
      /twice/,
    ],
    ['sends without end', (socket) => socket.write(Buffer.alloc(1024 * 1024, 'x')), /too long/],
  ])('makes a no of a server that %s', async (_, behave, reason) => {
    await fake(behave);
    const outcome = await ask(path(), 'x', 300);
    expect(outcome).toMatchObject({ decision: 'deny', by: 'nobody', reason: expect.stringMatching(reason) });
  });

  it('makes a no of a gate that is not there', async () => {
    expect(await ask(path(), 'x', 1_000)).toMatchObject({
      decision: 'deny',
      reason: expect.stringMatching(/ENOENT/),
    });
  });

  it('makes a no of what is too long to be asked', async () => {
    await fake(() => {});
    const outcome = await ask(path(), '\u0001'.repeat(100_000), 1_000);
    expect(outcome).toMatchObject({ decision: 'deny', reason: expect.stringMatching(/too long/) });
  });
});
