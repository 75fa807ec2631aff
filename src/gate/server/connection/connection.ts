import type { Socket } from 'node:net';
import type { Answerer } from '../answer.ts';
import type { RefusalCode, ReportRefusal } from '../ports.ts';
import type { GateResponse } from '../protocol.ts';
import { decodeRequest, encodeResponse, type GateMessage, MAX_MESSAGE_BYTES } from '../protocol.ts';
import type { SocketLimits } from './connection-limits.ts';
import { createLineReader } from './line-reader.ts';

/** One client, whose identity is settled. */
export interface ConnectionParts {
  readonly socket: Socket;
  readonly principal: string;
  readonly answer: Answerer;
  readonly report: ReportRefusal;
  readonly limits: SocketLimits;
}

/** A connection that is served. */
export interface Connection {
  /** Denies what is pending, tells the client, and closes. */
  close(reason: string): Promise<void>;
}

/**
 * Serves one client until it goes away. Its end of input is its end: whoever does not listen any more has withdrawn what
 * it asked. It is read from only as fast as it is answered, so that it cannot fill memory.
 */
export function serveConnection({ socket, principal, answer, report, limits }: ConnectionParts): Connection {
  const reader = createLineReader(MAX_MESSAGE_BYTES);
  const pending = new Map<string, AbortController>();
  let malformed = 0;
  let reading = true;
  let pumping = false;
  let lineTimer: NodeJS.Timeout | undefined;

  async function refuse(code: RefusalCode, message: string, requestId?: string): Promise<void> {
    await report({ code, transport: 'socket', principal, message, requestId });
  }

  function write(response: GateResponse): void {
    if (socket.writable) socket.write(encodeResponse(response));
  }

  function stop(): void {
    reading = false;
    clearTimeout(lineTimer);
  }

  /** Lines as they come, one after the other; the answers come in whatever order. */
  async function pump(): Promise<void> {
    if (pumping) return;
    pumping = true;
    try {
      while (reading && pending.size < limits.inFlight && !socket.writableNeedDrain) {
        const line = reader.take();
        if (line === undefined) {
          expectRest();
          socket.resume();
          return;
        }
        clearTimeout(lineTimer);
        lineTimer = undefined;
        if (line === 'too-long') {
          stop();
          await refuse('too_long', 'a line is longer than 256 KiB');
          socket.destroy();
          return;
        }
        await handle(line);
      }
    } finally {
      pumping = false;
    }
  }

  /** Whoever begins a line has to end it. */
  function expectRest(): void {
    if (!reader.isPartial() || lineTimer !== undefined) return;
    lineTimer = setTimeout(() => {
      stop();
      void refuse('incomplete', 'the rest of a line did not come');
      socket.destroy();
    }, limits.lineMs);
  }

  async function handle(line: Buffer): Promise<void> {
    const decoded = decodeRequest(line);
    if (decoded.ok) {
      await start(decoded.message);
      return;
    }
    const { problem, requestId } = decoded;
    await refuse('malformed', problem, requestId);
    malformed += 1;
    // An id that is pending has its answer coming, and there is to be one.
    if (requestId !== undefined && !pending.has(requestId))
      write({ request_id: requestId, decision: 'deny', reason: `refused: ${problem}` });
    if (requestId !== undefined && malformed < limits.malformed) return;
    // Without an id nobody can be told; and whoever goes on like this has nothing to say.
    finish('the client broke the protocol');
  }

  async function start({ request_id: requestId, command, session, tool }: GateMessage): Promise<void> {
    const before = pending.get(requestId);
    if (before !== undefined) {
      // One answer for both, a no: with two nobody could tell which of the commands was allowed.
      before.abort('its request_id was used twice');
      await refuse('duplicate_id', 'a request_id is used by two requests at once', requestId);
      return;
    }
    const controller = new AbortController();
    pending.set(requestId, controller);
    const { signal } = controller;
    void answer({ requestId, command, session, tool, principal, signal }).then(({ decision, reason }) => {
      pending.delete(requestId);
      write({ request_id: requestId, decision, ...(reason === undefined ? {} : { reason }) });
      void pump();
    });
  }

  function withdrawAll(reason: string): void {
    stop();
    for (const controller of pending.values()) controller.abort(reason);
  }

  /** Denies what is pending, and closes as soon as the client has taken that, or soon after. */
  function finish(reason: string): void {
    withdrawAll(reason);
    // After the answers, which are given in the microtasks of now.
    setImmediate(() => socket.end());
    const timer = setTimeout(() => socket.destroy(), limits.lingerMs);
    socket.once('close', () => clearTimeout(timer));
    socket.resume();
  }

  socket.on('data', (chunk) => {
    // What comes after the end of it all is not kept.
    if (!reading) return;
    socket.pause();
    reader.push(chunk);
    void pump();
  });
  socket.on('drain', () => void pump());
  socket.on('end', () => {
    if (reading && reader.isPartial()) void refuse('incomplete', 'the rest of a line did not come');
    withdrawAll('the client went away');
  });
  // Whatever went wrong with it, 'close' follows.
  socket.on('error', () => {});
  socket.on('close', () => withdrawAll('the client went away'));
  socket.setTimeout(limits.idleMs);
  socket.on('timeout', () => {
    if (pending.size === 0) socket.destroy();
    // It is told once only.
    else socket.setTimeout(limits.idleMs);
  });

  return {
    close: (reason) =>
      new Promise((done) => {
        if (socket.destroyed) {
          done();
          return;
        }
        socket.once('close', () => done());
        finish(reason);
      }),
  };
}
