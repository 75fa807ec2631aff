import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAnswerer, type GateDecide, type GateRequest } from '../../../src/serve/gate/gate-decider.ts';
import type { RefusedMessage } from '../../../src/serve/gate/gate-service.ts';

export const OWN_UID = process.geteuid?.() ?? -1;

/** A directory of one test. */
export function makeRoom(): { readonly path: string; readonly dispose: () => void } {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-gate-test-')));
  return { path, dispose: () => rmSync(path, { recursive: true, force: true }) };
}

/** The text of a request, with whatever a test wants to be different. */
export const requestText = (id: string, command = 'ls', more: object = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'gate.check', params: { command, ...more } });

const HELLO = JSON.stringify({
  ...{ jsonrpc: '2.0', id: 'hello', method: 'initialize' },
  params: { protocolVersion: 1 },
});

/** A decider that allows `allow…`, lets `ask…` wait for the test, and denies the rest; it notes everything. */
export function scriptedDecider() {
  const asked: GateRequest[] = [];
  const waiting = new Map<string, (yes: boolean) => void>();
  const withdrawn: string[] = [];
  const decide: GateDecide = (request) => {
    asked.push(request);
    const { command, requestId, signal } = request;
    if (command.startsWith('allow')) return Promise.resolve({ decision: 'allow' });
    if (command.startsWith('fail')) return Promise.reject(new Error('secret detail'));
    if (!command.startsWith('ask')) return Promise.resolve({ decision: 'deny', reason: 'it is denied' });
    signal.addEventListener('abort', () => withdrawn.push(requestId));
    return new Promise((done) => {
      waiting.set(requestId, (yes) => done({ decision: yes ? 'allow' : 'deny' }));
    });
  };
  return { asked, waiting, withdrawn, decide };
}

/** Everything that a server is given, with a memory of what it said. */
export function serverParts(timeoutMs = 10_000) {
  const decider = scriptedDecider();
  const refused: RefusedMessage[] = [];
  return {
    ...decider,
    refused,
    codes: () => refused.map(({ code }) => code),
    parts: {
      allowedUids: new Set([OWN_UID]) as ReadonlySet<number>,
      answer: createAnswerer({ decide: decider.decide, timeoutMs }),
      report: async (message: RefusedMessage) => {
        refused.push(message);
      },
    },
  };
}

interface Message {
  readonly id: string | null;
  readonly result?: object;
  readonly error?: { readonly data: { readonly code: string } };
}

/** A client that shows everything that it is sent after its hello. */
export interface TestClient {
  readonly socket: Socket;
  readonly lines: readonly string[];
  /** With the id as `request_id`, and the code of an error as `error`. */
  readonly answers: () => readonly Readonly<Record<string, unknown>>[];
  readonly closed: Promise<void>;
  isClosed(): boolean;
  send(text: string | Buffer): void;
}

/** Connects to a server; `hello` false: and says nothing. */
export async function connectTo(path: string, hello = true): Promise<TestClient> {
  const socket = createConnection(path);
  const lines: string[] = [];
  let rest = '';
  let isClosed = false;
  socket.setEncoding('utf8');
  socket.on('data', (text) => {
    const parts = (rest + String(text)).split('\n');
    rest = parts.pop() ?? '';
    lines.push(...parts.filter((line) => !line.startsWith('{"jsonrpc":"2.0","id":"hello",')));
  });
  const closed = new Promise<void>((done) => {
    socket.once('close', () => {
      isClosed = true;
      done();
    });
  });
  socket.on('error', () => {});
  await new Promise<void>((done, fail) => {
    socket.once('connect', () => done());
    socket.once('error', fail);
  });
  if (hello) socket.write(`${HELLO}\n`);
  const answerOf = ({ id, result, error }: Message) => ({
    request_id: id,
    ...(error === undefined ? result : { error: error.data.code }),
  });
  return {
    socket,
    lines,
    answers: () => lines.flatMap((line) => [JSON.parse(line)].flat().map(answerOf)),
    closed,
    isClosed: () => isClosed,
    send: (text) => void socket.write(text),
  };
}

/** What is ready to be read or written is, before it goes on. */
export const turn = () => new Promise<void>((done) => setImmediate(done));
