import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { askFolder } from '../../../../src/gate/client/ask-folder.ts';
import { askSocket } from '../../../../src/gate/client/ask-socket.ts';
import { serveSocket } from '../../../../src/gate/server/connection/socket-server.ts';
import { serveFolder } from '../../../../src/gate/server/folder/folder-server.ts';
import type { GateMessage } from '../../../../src/gate/server/protocol.ts';
import { loadAddon } from '../../../../src/native/load.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeRoom, pause, serverParts } from '../server/support.ts';

const { peerCredentials: peerOf, tryLock } = loadAddon();
const message = (command: string): GateMessage => ({
  type: 'security:bash_check',
  request_id: 'the-id',
  command,
});
const yes = '{"request_id":"the-id","decision":"allow"}\n';

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

describe('a client on a socket', () => {
  const path = () => join(room.path, 'gate.sock');
  /** A server that does with a connection what a test wants, once a request came. */
  async function fake(behave: (socket: Socket) => void) {
    const sockets = new Set<Socket>();
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.once('data', () => behave(socket));
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
    const server = await serveSocket({ path: path(), peerOf, tryLock, ...parts });
    ends.push(server.close);
    expect(await askSocket(path(), message(command), 5_000)).toEqual(outcome);
  });

  it('takes a yes of a server that never closes', async () => {
    await fake((socket) => socket.write(yes));
    expect(await askSocket(path(), message('x'), 5_000)).toEqual({ decision: 'allow', by: 'host' });
  });

  it.each<[string, (socket: Socket) => void, RegExp]>([
    ['does not answer', () => {}, /in time/],
    ['answers late', (socket) => void setTimeout(() => socket.write(yes), 400), /in time/],
    ['closes', (socket) => socket.end(), /closed/],
    ['breaks the connection', (socket) => socket.destroy(), /closed|broke|reached/],
    ['sends half an answer', (socket) => socket.write(yes.slice(0, -1)), /in time/],
    ['sends half an answer and closes', (socket) => socket.end(yes.slice(0, -1)), /closed/],
    ['sends garbage', (socket) => socket.write('yes\n'), /not JSON/],
    ['sends bytes', (socket) => socket.write(Buffer.from([255, 0, 10])), /not UTF-8/],
    ['sends an empty line first', (socket) => socket.write(`\n${yes}`), /more than one/],
    ['answers twice at once', (socket) => socket.write(yes + yes), /more than one/],
    [
      'answers twice, not at once',
      (socket) => {
        socket.write(yes);
        setTimeout(() => socket.write('{"request_id":"the-id","decision":"deny"}\n'), 50);
      },
      /more than one/,
    ],
    [
      'answers another request',
      (socket) => socket.write(yes.replace('the-id', 'another')),
      /another request/,
    ],
    ['answers with a further key', (socket) => socket.write(yes.replace('}', ',"x":"y"}')), /keys/],
    ['decides otherwise', (socket) => socket.write(yes.replace('allow', 'Allow')), /decision/],
    ['says both', (socket) => socket.write(yes.replace('{', '{"decision":"deny",')), /twice/],
    ['sends without end', (socket) => socket.write(Buffer.alloc(1024 * 1024, 'x')), /too long/],
  ])('makes a no of a server that %s', async (_, behave, reason) => {
    await fake(behave);
    const outcome = await askSocket(path(), message('x'), 300);
    expect(outcome).toMatchObject({ decision: 'deny', by: 'nobody', reason: expect.stringMatching(reason) });
  });

  it('makes a no of a gate that is not there', async () => {
    expect(await askSocket(path(), message('x'), 1_000)).toMatchObject({
      decision: 'deny',
      reason: expect.stringMatching(/ENOENT/),
    });
  });

  it('makes a no of what is too long to be asked', async () => {
    const outcome = await askSocket(path(), message('x'.repeat(300_000)), 1_000);
    expect(outcome).toMatchObject({ decision: 'deny', reason: expect.stringMatching(/too long/) });
  });
});

describe('a client on folders', () => {
  const folders = () => ({ requests: join(room.path, 'requests'), responses: join(room.path, 'responses') });
  const answerPath = () => join(folders().responses, 'the-id.json');
  const asked = () => eventually(() => expect(readdirSync(folders().requests)).toEqual(['the-id.json']));
  const left = () => readdirSync(folders().requests);

  beforeEach(() => {
    mkdirSync(folders().requests, { mode: 0o755 });
    mkdirSync(folders().responses, { mode: 0o755 });
  });

  it.each([
    ['allow', { decision: 'allow', by: 'host' }],
    ['no', { decision: 'deny', by: 'host', reason: 'it is denied' }],
  ])('brings the answer of a gate (%s)', async (command, outcome) => {
    const { parts } = serverParts();
    const server = await serveFolder({ ...folders(), tryLock, ...parts });
    ends.push(server.close);
    expect(await askFolder(folders(), message(command), 5_000)).toEqual(outcome);
    await eventually(() => expect(left()).toEqual([]));
  });

  it('withdraws what nobody answers', async () => {
    const { parts, withdrawn } = serverParts();
    const server = await serveFolder({ ...folders(), tryLock, ...parts, limits: { pollMs: 20 } });
    ends.push(server.close);
    const outcome = await askFolder(folders(), message('ask'), 300);
    expect(outcome).toMatchObject({ decision: 'deny', reason: expect.stringMatching(/in time/) });
    await eventually(() => expect(withdrawn).toEqual(['the-id']));
  });

  it('asks with a file that is complete', async () => {
    const outcome = askFolder(folders(), message('x'), 300);
    await asked();
    expect(JSON.parse(readFileSync(join(folders().requests, 'the-id.json'), 'utf8'))).toEqual(message('x'));
    await outcome;
    expect(left()).toEqual([]);
  });

  it.each<[string, () => void, RegExp]>([
    ['garbage', () => writeFileSync(`${answerPath()}.new`, 'yes'), /not JSON/],
    ['another id', () => writeFileSync(`${answerPath()}.new`, yes.replace('the-id', 'x')), /another request/],
    ['two answers', () => writeFileSync(`${answerPath()}.new`, yes + yes), /not JSON/],
    ['too much', () => writeFileSync(`${answerPath()}.new`, yes + ' '.repeat(300_000)), /longer/],
    ['a directory', () => mkdirSync(`${answerPath()}.new`), /regular/],
    [
      'a link',
      () => {
        writeFileSync(join(room.path, 'yes'), yes);
        symlinkSync(join(room.path, 'yes'), `${answerPath()}.new`);
      },
      /regular/,
    ],
  ])('makes a no of %s', async (_, make, reason) => {
    const outcome = askFolder(folders(), message('x'), 5_000);
    await asked();
    make();
    renameSync(`${answerPath()}.new`, answerPath());
    expect(await outcome).toMatchObject({
      decision: 'deny',
      by: 'nobody',
      reason: expect.stringMatching(reason),
    });
    expect(left()).toEqual([]);
  });

  it('makes a no of an answer that was there before', async () => {
    writeFileSync(answerPath(), yes);
    expect(await askFolder(folders(), message('x'), 5_000)).toMatchObject({ decision: 'deny' });
    expect(left()).toEqual([]);
  });

  it('makes a no of an answer that comes too late', async () => {
    const outcome = await askFolder(folders(), message('x'), 100);
    writeFileSync(answerPath(), yes);
    await pause(10);
    expect(outcome).toMatchObject({ decision: 'deny' });
  });

  it.each(['requests', 'responses'] as const)('makes a no of a missing folder (%s)', async (which) => {
    const outcome = await askFolder({ ...folders(), [which]: join(room.path, 'no') }, message('x'), 300);
    expect(outcome).toMatchObject({ decision: 'deny', by: 'nobody' });
    expect(existsSync(join(room.path, 'no'))).toBe(false);
  });
});
