import type { Readable, Writable } from 'node:stream';
import { JSONRPCErrorCode, type JSONRPCResponse } from 'json-rpc-2.0';
import { createLineReader } from '../../gate/server/connection/line-reader.ts';
import type { Client } from './client.ts';
import { errorResponse } from './errors.ts';
import { createHandlers, type Shared } from './handlers.ts';
import { isDeeperThan } from './json-depth.ts';
import { createOutgoing } from './outgoing.ts';
import { createRequests } from './requests.ts';

/** One client, by whatever it is connected. */
export interface ConnectionParts {
  readonly input: Readable;
  readonly output: Writable;
  readonly shared: Shared;
  /** Milliseconds for `initialize`; 0: as long as it likes. */
  readonly handshakeMs: number;
  /** Asked by `initialize`; false: as many are served as may be. */
  readonly admit: () => boolean;
  readonly onFailure: (error: unknown) => void;
}

/** A connection that is served. */
export interface Connection {
  /** Settles when it is over and nothing of it runs any more. */
  readonly ended: Promise<void>;
  /** Ends it and everything that it started. */
  end(): Promise<void>;
}

/** For a client to take its last answers. */
const LINGER_MS = 1_000;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Serves one client until its input ends: one JSON text per line. It is read from only as fast as it takes what it is told,
 * so that it cannot fill memory.
 */
export function serveConnection({
  input,
  output,
  shared,
  handshakeMs,
  admit,
  onFailure,
}: ConnectionParts): Connection {
  const { limits } = shared;
  const reader = createLineReader(limits.messageBytes);
  const outgoing = createOutgoing(output);
  const gone = new AbortController();
  const client: Client = {
    notify: (method, params) => outgoing.send({ jsonrpc: '2.0', method, params }),
    taken: () => outgoing.flush(),
    gone: gone.signal,
  };
  const { handlers, isInitialized, close } = createHandlers(client, shared, {
    admit,
    refuse: () => void end(),
  });
  const requests = createRequests({ handlers, isInitialized, limits, gone: gone.signal, onFailure });
  /** Requests until their response was handed on. */
  const answering = new Set<Promise<void>>();
  let malformed = 0;
  let reading = true;
  let pumping = false;
  let inputEnded = false;
  let over: Promise<void> | undefined;
  let tellEnded = () => {};
  const ended = new Promise<void>((done) => {
    tellEnded = done;
  });

  const late =
    handshakeMs === 0
      ? undefined
      : setTimeout(() => {
          if (!isInitialized())
            void complainAndEnd('protocol.uninitialized', 'initialize did not come in time');
        }, handshakeMs);

  async function pump(): Promise<void> {
    if (pumping) return;
    pumping = true;
    try {
      while (reading) {
        await outgoing.flush();
        const line = reader.take();
        if (line === undefined) break;
        if (line === 'too-long') {
          const most = limits.messageBytes;
          await complainAndEnd(
            'protocol.too_long',
            `a message is longer than ${most} bytes; the connection ends`,
          );
        } else await handle(line);
      }
    } finally {
      pumping = false;
    }
    if (inputEnded) void end();
    else if (reading) input.resume();
  }

  async function handle(line: Buffer): Promise<void> {
    const message = parse(line);
    if (message === undefined) return;
    if ('problem' in message) {
      malformed += 1;
      if (malformed >= limits.malformed)
        await complainAndEnd('protocol.invalid', `${message.problem}; the connection ends`);
      else await outgoing.send(errorResponse(null, 'protocol.invalid', message.problem, message.number));
      return;
    }
    const { value } = message;
    const later: (() => void)[] = [];
    const afterwards = (work: () => void) => later.push(work);
    const answer = Array.isArray(value)
      ? answerBatch(value, line.length, afterwards)
      : requests.answer(value, line.length, afterwards);
    // Others do not wait for it; what was refused at once is told before more is read.
    const told = answer
      .then((response) => (response === null ? undefined : outgoing.send(response)))
      .finally(() => {
        for (const work of later) work();
      })
      .catch(onFailure)
      .finally(() => answering.delete(told));
    answering.add(told);
    await Promise.resolve();
  }

  async function answerBatch(
    messages: readonly unknown[],
    bytes: number,
    afterwards: (work: () => void) => void,
  ): Promise<JSONRPCResponse | JSONRPCResponse[] | null> {
    if (messages.length === 0 || messages.length > limits.batch)
      return errorResponse(null, 'protocol.invalid', `a batch has from 1 to ${limits.batch} requests`);
    const share = Math.ceil(bytes / messages.length);
    const responses = await Promise.all(messages.map((one) => requests.answer(one, share, afterwards)));
    const told = responses.filter((response) => response !== null);
    return told.length === 0 ? null : told;
  }

  function parse(
    line: Buffer,
  ): { readonly value: unknown } | { readonly problem: string; readonly number: number } | undefined {
    try {
      if (isDeeperThan(line, limits.depth))
        return {
          problem: `a message has objects and arrays more than ${limits.depth} deep`,
          number: JSONRPCErrorCode.InvalidRequest,
        };
      const text = utf8.decode(line);
      return /^\s*$/.test(text) ? undefined : { value: JSON.parse(text) };
    } catch {
      return { problem: 'a line is not JSON in UTF-8', number: JSONRPCErrorCode.ParseError };
    }
  }

  async function complainAndEnd(
    code: 'protocol.too_long' | 'protocol.invalid' | 'protocol.uninitialized',
    problem: string,
  ): Promise<void> {
    reading = false;
    void outgoing.send(errorResponse(null, code, problem));
    void end();
  }

  function end(): Promise<void> {
    over ??= finish();
    return over;
  }

  async function finish(): Promise<void> {
    reading = false;
    clearTimeout(late);
    gone.abort();
    // What comes after the end of it all is not kept.
    input.removeAllListeners('data');
    input.resume();
    await Promise.allSettled([requests.settled(), close()]);
    // Each has its response now; whoever takes none is not waited for.
    const timer = setTimeout(() => outgoing.close(), LINGER_MS);
    await Promise.allSettled(answering);
    await outgoing.flush();
    clearTimeout(timer);
    outgoing.close();
    await new Promise<void>((done) => {
      const late = setTimeout(done, LINGER_MS);
      output.end(() => {
        clearTimeout(late);
        done();
      });
    });
    input.destroy();
    output.destroy();
    tellEnded();
  }

  const isGone = () => {
    outgoing.close();
    void end();
  };
  input.on('data', (chunk: Buffer) => {
    if (!reading) return;
    input.pause();
    reader.push(chunk);
    void pump();
  });
  input.on('end', () => {
    inputEnded = true;
    void pump();
  });
  input.on('close', isInputClosed);
  input.on('error', isGone);
  output.on('error', isGone);
  output.on('close', isGone);

  function isInputClosed(): void {
    if (!inputEnded) isGone();
  }

  return { ended, end };
}
