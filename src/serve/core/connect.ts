import { randomUUID } from 'node:crypto';
import { createConnection, type Socket } from 'node:net';
import { z } from 'zod';
import { ERROR_CODES, type ErrorCode } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { createLineReader } from '../../base/line-reader.ts';
import { within } from '../../gate/index.ts';
import { PROTOCOL_VERSION } from '../protocol/limits.ts';
import {
  CANCEL,
  METHODS,
  type MethodName,
  NOTIFICATIONS,
  type NotificationName,
  type NotificationParams,
  type ParamsFor,
  type ResultOf,
} from '../protocol/tables.ts';
import { describeIssue } from './errors.ts';
import { readMessage } from './message.ts';

/** What a server says without being asked. */
export type Told = {
  readonly [N in NotificationName]: { readonly method: N; readonly params: NotificationParams<N> };
}[NotificationName];

/** How a client talks. */
export interface ConnectOptions {
  /** Bytes of a message, either way. */
  readonly messageBytes: number;
  /** The client answers approval requests for its own commands. */
  readonly approvals?: boolean;
  readonly onTold?: (told: Told) => void;
  /** Breaks the connection. */
  readonly signal?: AbortSignal;
}

/** Objects and arrays in each other: of a result there are more than of a request. */
const DEPTH = 64;

const response = z.union([
  z.strictObject({ jsonrpc: z.literal('2.0'), id: z.string(), result: z.unknown() }),
  z.strictObject({
    jsonrpc: z.literal('2.0'),
    id: z.string().nullable(),
    error: z.strictObject({
      code: z.number(),
      message: z.string(),
      data: z.strictObject({ code: z.string(), message: z.string() }),
    }),
  }),
]);
const notification = z.strictObject({
  jsonrpc: z.literal('2.0'),
  method: z.string(),
  params: z.unknown(),
});

interface Waiting {
  readonly method: MethodName;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/**
 * A connection to a server of ours. What the server says has to be exactly an answer to one of its questions, or a
 * notification: after anything else nothing that it said counts.
 */
export class ServerConnection {
  readonly #socket: Socket;
  readonly #options: ConnectOptions;
  readonly #waiting = new Map<string, Waiting>();
  #broken: SandboxError | undefined;
  #about: ResultOf<'initialize'> | undefined;
  #tellEnded = () => {};
  /** Settles when the server has ended its side, or the connection broke. */
  readonly ended = new Promise<void>((done) => {
    this.#tellEnded = done;
  });

  private constructor(socket: Socket, options: ConnectOptions) {
    this.#socket = socket;
    this.#options = options;
    const reader = createLineReader(options.messageBytes);
    socket.on('data', (chunk: Buffer) => {
      reader.push(chunk);
      for (let line = reader.take(); line !== undefined && !this.#isBroken(); line = reader.take())
        this.#take(line);
    });
    socket.on('end', () => {
      if (reader.isPartial()) this.#fail(unusableAnswer('it ended within a message'));
      this.#end();
    });
    socket.on('error', () => {});
    socket.on('close', () => this.#end());
  }

  /**
   * Connects, and says hello. Rejects with the error of the system where nobody listens.
   * @throws {SandboxError} `protocol.version` and whatever else the server refuses it with; `gate.unusable`.
   */
  static async open(path: string, options: ConnectOptions): Promise<ServerConnection> {
    const { approvals, signal } = options;
    const socket = createConnection({ path, ...(signal === undefined ? {} : { signal }) });
    await new Promise<void>((done, fail) => {
      socket.once('connect', done);
      socket.once('error', fail);
    });
    const connection = new ServerConnection(socket, options);
    connection.#about = await connection.call('initialize', {
      protocolVersion: PROTOCOL_VERSION,
      ...(approvals === undefined ? {} : { approvals }),
    });
    return connection;
  }

  /** What the server said of itself. */
  get about(): ResultOf<'initialize'> | undefined {
    return this.#about;
  }

  /**
   * Asks, with an id that nobody can guess unless it is given. `signal`: gives the question up, which has its answer all the
   * same.
   * @throws {SandboxError} what the server refuses it with; `gate.unusable` without an answer that can be used.
   */
  call<M extends MethodName>(
    method: M,
    params: ParamsFor<M>,
    { id = randomUUID(), signal }: { readonly id?: string; readonly signal?: AbortSignal } = {},
  ): Promise<ResultOf<M>> {
    const line = JSON.stringify({ jsonrpc: '2.0', id, method, params });
    if (Buffer.byteLength(line) > this.#options.messageBytes)
      return Promise.reject(
        new SandboxError('protocol.too_long', 'the command is too long to be asked about'),
      );
    const cancel = () => this.#send({ jsonrpc: '2.0', method: CANCEL, params: { id } });
    const answer = new Promise<ResultOf<M>>((resolve, reject) => {
      if (this.#broken !== undefined) return reject(this.#broken);
      this.#waiting.set(id, { method, resolve: (result) => resolve(result as ResultOf<M>), reject });
      this.#socket.write(`${line}\n`);
    });
    signal?.addEventListener('abort', cancel, { once: true });
    return answer.finally(() => signal?.removeEventListener('abort', cancel));
  }

  /**
   * Asks nothing more. Settles when the server has ended its side, or after some time.
   * @throws {SandboxError} `gate.unusable`: it said more than it was asked.
   */
  async end(patienceMs: number): Promise<void> {
    this.#socket.end();
    await within(this.ended, patienceMs);
    this.#socket.destroy();
    if (this.#broken !== undefined && this.#broken !== ENDED) throw this.#broken;
  }

  /** Ends it at once, with everything that was asked. */
  close(): void {
    this.#socket.destroy();
  }

  #isBroken(): boolean {
    return this.#broken !== undefined;
  }

  #send(message: object): void {
    if (this.#socket.writable) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  #take(line: Buffer | 'too-long'): void {
    const problem = line === 'too-long' ? 'it is too long' : this.#hear(line);
    if (problem !== undefined) this.#fail(unusableAnswer(problem));
  }

  /** What is wrong with a message; `undefined`: it was one. */
  #hear(line: Buffer): string | undefined {
    const message = readMessage(line, DEPTH);
    if (message === undefined) return 'there is more than one';
    if ('problem' in message) return message.problem;
    const told = notification.safeParse(message.value);
    if (told.success) return this.#tell(told.data.method, told.data.params);
    const read = response.safeParse(message.value);
    if (!read.success) return 'it is no response of JSON-RPC 2.0';
    const { id } = read.data;
    const waiting = id === null ? undefined : this.#waiting.get(id);
    if (id === null && 'error' in read.data) {
      this.#fail(errorOf(read.data.error.data));
      return undefined;
    }
    if (id === null || waiting === undefined)
      return 'it is one to another request, or there is more than one';
    this.#waiting.delete(id);
    if ('error' in read.data) {
      waiting.reject(errorOf(read.data.error.data));
      return undefined;
    }
    const result = METHODS[waiting.method].result.safeParse(read.data.result);
    if (result.success) {
      waiting.resolve(result.data);
      return undefined;
    }
    this.#waiting.set(id, waiting);
    return describeIssue(waiting.method, result.error.issues[0]);
  }

  #tell(method: string, params: unknown): string | undefined {
    if (!Object.hasOwn(NOTIFICATIONS, method)) return 'there is no such notification';
    const name = method as NotificationName;
    const read = NOTIFICATIONS[name].params.safeParse(params);
    if (!read.success) return describeIssue(method, read.error.issues[0]);
    this.#options.onTold?.({ method: name, params: read.data } as Told);
    return undefined;
  }

  #end(): void {
    this.#fail(ENDED);
    this.#tellEnded();
  }

  #fail(error: SandboxError): void {
    this.#broken ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#broken);
    this.#waiting.clear();
    if (error !== ENDED) this.#socket.destroy();
  }
}

const ENDED = new SandboxError('gate.unusable', 'the server closed the connection without an answer');

const unusableAnswer = (problem: string) =>
  new SandboxError('gate.unusable', `the answer cannot be used: ${problem}`);

function errorOf({ code, message }: { readonly code: string; readonly message: string }): SandboxError {
  return new SandboxError(
    Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : 'protocol.failed',
    message,
  );
}
