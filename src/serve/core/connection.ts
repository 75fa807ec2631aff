import type { Readable, Writable } from 'node:stream';
import { deferred } from '../../base/deferred.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { createLineReader, type LineReader } from '../../base/line-reader.ts';
import { packageVersion } from '../../version.ts';
import { type ConnectionLimits, PROTOCOL_VERSION } from '../protocol/limits.ts';
import { CANCEL, METHODS, type MethodName, type ParamsOf, type ResultOf } from '../protocol/tables.ts';
import { errorResponse, type RequestId, type Response, RPC_ERROR } from './errors.ts';
import { readMessage } from './message.ts';
import type { Call, Conversation, Offer, RefusalCode } from './offer.ts';
import type { Peer } from './peer.ts';
import { Requests } from './requests.ts';

/** One client, by whatever it is connected. */
interface ConnectionParts {
  readonly input: Readable;
  readonly output: Writable;
  readonly peer?: Peer | undefined;
  /** Milliseconds for `initialize`; 0: as long as it likes. */
  readonly handshakeMs: number;
  /** Asked by `initialize`; false: as many are served as may be. */
  readonly admit: () => boolean;
  /** True: when its input ends, everything that it asked is answered first. False: it is gone then. */
  readonly answersAll?: boolean;
}

/** For a client to take its last answers. */
const LINGER_MS = 1_000;
const CLIENT_GONE = 'the client went away';
const REST_MISSING = 'the rest of a line did not come';

/** The reason for a rejected connection, in reports. */
export const TOO_MANY = 'too many clients are connected';

/** The error that a rejected client gets. */
export const tooManyClients = ({ connections }: ConnectionLimits): SandboxError =>
  new SandboxError(
    'protocol.busy',
    `${connections} clients are connected, which is the most; try again when one of them has gone`,
  );

/**
 * Serves one client until its input ends: one JSON text per line. It is read from only as fast as it takes what it is told,
 * so that it cannot fill memory.
 */
export class Connection {
  readonly #offer: Offer;
  readonly #parts: ConnectionParts;
  readonly #reader: LineReader;
  readonly #outgoing: Outgoing;
  readonly #conversation: Conversation;
  readonly #requests: Requests;
  readonly #gone = new AbortController();
  readonly #late: NodeJS.Timeout | undefined;
  readonly #idle: NodeJS.Timeout | undefined;
  readonly #over = deferred<void>();
  /** Requests until their response was handed on. */
  readonly #answering = new Set<Promise<void>>();
  #lineTimer: NodeJS.Timeout | undefined;
  #reported: Promise<void> = Promise.resolve();
  #malformed = 0;
  #isInitialized = false;
  #reading = true;
  /** The peer was sent the reason for the end, and may still be writing. */
  #isTold = false;
  #pumping = false;
  #inputEnded = false;
  #ending: Promise<void> | undefined;

  constructor(offer: Offer, parts: ConnectionParts) {
    const { limits } = offer;
    this.#offer = offer;
    this.#parts = parts;
    this.#reader = createLineReader(limits.messageBytes);
    this.#outgoing = new Outgoing(parts.output);
    this.#conversation = offer.open({
      peer: parts.peer,
      notify: (method, params) => this.#outgoing.send({ jsonrpc: '2.0', method, params }),
      taken: () => this.#outgoing.flush(),
      gone: this.#gone.signal,
      end: (reason) => void this.end(reason),
    });
    this.#requests = new Requests({
      handlers: {
        ...this.#conversation.handlers,
        initialize: (params, call) => this.#initialize(params, call),
      },
      isInitialized: () => this.#isInitialized,
      limits,
      strangers: offer.strangers,
      gone: this.#gone.signal,
      onFailure: (error) => this.#failed(error),
      onRefused: (code, problem, id) => {
        if (offer.strangers && code === 'malformed') this.#malformed += 1;
        this.#refused(code, problem, id);
      },
    });
    if (parts.handshakeMs > 0) this.#late = setTimeout(() => this.#isLate(), parts.handshakeMs);
    if (limits.idleMs > 0) this.#idle = setTimeout(() => this.#isIdle(), limits.idleMs);
    this.#listen();
  }

  /** Settles when it is over and nothing of it runs any more. */
  get ended(): Promise<void> {
    return this.#over.promise;
  }

  /** Ends it and everything that it started, with a sentence that says why. */
  end(reason: string): Promise<void> {
    this.#ending ??= this.#finish(reason);
    return this.#ending;
  }

  #listen(): void {
    const { input, output } = this.#parts;
    const isGone = () => {
      this.#outgoing.close();
      void this.end(CLIENT_GONE);
    };
    input.on('data', (chunk: Buffer) => {
      if (!this.#reading) return;
      this.#stir();
      input.pause();
      this.#reader.push(chunk);
      void this.#pump();
    });
    input.on('end', () => {
      this.#inputEnded = true;
      void this.#pump();
    });
    input.on('close', () => {
      if (!this.#inputEnded) isGone();
    });
    input.on('error', isGone);
    output.on('error', isGone);
    output.on('close', isGone);
  }

  /** Lines as they come, one after the other; the answers come in whatever order. */
  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      while (this.#reading) {
        await this.#outgoing.flush();
        await this.#reported;
        const line = this.#reader.take();
        if (line === undefined) break;
        clearTimeout(this.#lineTimer);
        this.#lineTimer = undefined;
        await this.#take(line);
      }
    } finally {
      this.#pumping = false;
    }
    if (this.#inputEnded) {
      if (this.#reading && this.#reader.isPartial()) this.#refused('incomplete', REST_MISSING);
      if (this.#parts.answersAll === true) await this.#answerAll();
      void this.end(CLIENT_GONE);
    } else if (this.#reading) {
      this.#expectRest();
      this.#parts.input.resume();
    }
  }

  /** The client says nothing more, and may still listen. */
  async #answerAll(): Promise<void> {
    this.#conversation.heardAll?.();
    await this.#requests.settled();
    await Promise.allSettled(this.#answering);
  }

  async #take(line: Buffer | 'too-long'): Promise<void> {
    const { messageBytes, malformed } = this.#offer.limits;
    if (line === 'too-long') {
      const problem = `a message is longer than ${messageBytes} bytes; the connection ends`;
      this.#refused('too_long', problem);
      this.#complainAndEnd('protocol.too_long', problem);
      return;
    }
    this.#handle(line);
    // What was refused at once is told before more is read.
    await Promise.resolve();
    if (this.#malformed >= malformed)
      this.#complainAndEnd('protocol.invalid', 'too much of this connection was no message; it ends');
  }

  #handle(line: Buffer): void {
    const message = readMessage(line, this.#offer.limits.depth);
    if (message === undefined) return;
    if ('problem' in message) {
      const { problem, kind } = message;
      this.#malformed += 1;
      this.#refused('malformed', problem);
      void this.#outgoing.send(errorResponse(null, 'protocol.invalid', problem, RPC_ERROR[kind]));
      return;
    }
    const { value } = message;
    const later: (() => void)[] = [];
    const afterwards = (work: () => void) => later.push(work);
    const answer = Array.isArray(value)
      ? this.#answerBatch(value, line.length, afterwards)
      : this.#requests.answer(value, line.length, afterwards);
    // Others do not wait for it.
    const told = answer
      .then((response) => (response === null ? undefined : this.#outgoing.send(response)))
      .finally(() => {
        this.#stir();
        for (const work of later) work();
      })
      .catch((error: unknown) => this.#failed(error))
      .finally(() => this.#answering.delete(told));
    this.#answering.add(told);
  }

  async #answerBatch(
    messages: readonly unknown[],
    bytes: number,
    afterwards: Call['afterwards'],
  ): Promise<Response | Response[] | null> {
    const { batch } = this.#offer.limits;
    if (messages.length === 0 || messages.length > batch) {
      const problem = `a batch has from 1 to ${batch} requests`;
      this.#refused('malformed', problem);
      return errorResponse(null, 'protocol.invalid', problem);
    }
    const share = Math.ceil(bytes / messages.length);
    const responses = await Promise.all(messages.map((one) => this.#requests.answer(one, share, afterwards)));
    const told = responses.filter((response) => response !== null);
    return told.length === 0 ? null : told;
  }

  #initialize(params: ParamsOf<'initialize'>, call: Call): ResultOf<'initialize'> {
    const { limits, notifications } = this.#offer;
    const turnAway = (error: SandboxError) => {
      call.afterwards(() => void this.end('it was turned away'));
      return error;
    };
    if (this.#isInitialized)
      throw new SandboxError('protocol.invalid', 'initialize: this connection is initialized already');
    if (params.protocolVersion !== PROTOCOL_VERSION)
      throw turnAway(
        new SandboxError(
          'protocol.version',
          `initialize: this server speaks version ${PROTOCOL_VERSION} of the protocol; use a client or a server that fits`,
        ),
      );
    if (!this.#parts.admit()) {
      this.#refused('too_many_connections', TOO_MANY);
      throw turnAway(tooManyClients(limits));
    }
    this.#isInitialized = true;
    const { approvals, ...about } = this.#conversation.begin(params, call);
    const has = (method: MethodName) =>
      method === 'initialize' || Object.hasOwn(this.#conversation.handlers, method);
    const methods = (Object.keys(METHODS) as MethodName[]).filter(has);
    return {
      protocolVersion: PROTOCOL_VERSION,
      serverVersion: packageVersion,
      capabilities: { methods: [...methods, CANCEL], notifications: [...notifications], approvals },
      limits: { ...limits },
      ...about,
    };
  }

  #isLate(): void {
    if (!this.#isInitialized)
      this.#complainAndEnd('protocol.uninitialized', 'initialize did not come in time');
  }

  /** Restarts the idle timer, after a message in either direction. */
  #stir(): void {
    if (this.#reading) this.#idle?.refresh();
  }

  #isIdle(): void {
    if (this.#requests.pending === 0) void this.end('it said nothing for long');
    else this.#idle?.refresh();
  }

  /** Starts the time limit for the rest of a line. */
  #expectRest(): void {
    const { lineMs } = this.#offer.limits;
    if (lineMs === 0 || !this.#reader.isPartial() || this.#lineTimer !== undefined) return;
    this.#lineTimer = setTimeout(() => {
      this.#refused('incomplete', REST_MISSING);
      this.#complainAndEnd('protocol.invalid', `${REST_MISSING}; the connection ends`);
    }, lineMs);
  }

  #failed(error: unknown): void {
    this.#offer.onProblem(`a request failed: ${errorMessage(error)}`);
  }

  #refused(code: RefusalCode, message: string, id?: RequestId): void {
    const requestId = id === undefined ? undefined : String(id);
    const told = this.#offer.onRefused?.({ code, peer: this.#parts.peer, message, requestId });
    this.#reported = Promise.all([this.#reported, told]).then(() => {});
  }

  #complainAndEnd(
    code: 'protocol.too_long' | 'protocol.invalid' | 'protocol.uninitialized',
    problem: string,
  ): void {
    if (!this.#reading) return;
    this.#reading = false;
    this.#isTold = true;
    void this.#outgoing.send(errorResponse(null, code, problem));
    void this.end('the client broke the protocol');
  }

  /** Closes the connection if the peer reads nothing for some time. */
  #closeWhenStuck(): NodeJS.Timeout {
    const { output } = this.#parts;
    let before: number | undefined;
    return setInterval(() => {
      if (output.writableNeedDrain && output.writableLength === before) this.#outgoing.close();
      before = output.writableLength;
    }, LINGER_MS);
  }

  async #finish(reason: string): Promise<void> {
    const { input, output } = this.#parts;
    this.#reading = false;
    for (const timer of [this.#late, this.#lineTimer, this.#idle]) clearTimeout(timer);
    this.#gone.abort(reason);
    // Input after the end is read and dropped.
    input.removeAllListeners('data');
    input.resume();
    const stuck = this.#closeWhenStuck();
    await Promise.allSettled([this.#requests.settled(), this.#conversation.close()]);
    // Each has its response now.
    await Promise.allSettled(this.#answering);
    await this.#outgoing.flush();
    clearInterval(stuck);
    this.#outgoing.close();
    await new Promise<void>((done) => {
      const late = setTimeout(done, LINGER_MS);
      const close = () => {
        clearTimeout(late);
        done();
      };
      // Closed with something unread, a socket fails the client's next write, and what it was told last may be lost with that.
      const isWriting = this.#isTold && !input.destroyed;
      if (isWriting) input.once('close', close);
      output.end(isWriting ? undefined : close);
    });
    input.destroy();
    output.destroy();
    this.#over.resolve();
  }
}

/** What is said to one client, in order. Nothing is encoded before there is room for it. */
class Outgoing {
  readonly #stream: Writable;
  #last: Promise<void> = Promise.resolve();
  #closed = false;
  // One for all waits: each of them would otherwise add listeners of its own.
  #wake = () => {};

  constructor(stream: Writable) {
    this.#stream = stream;
    for (const event of ['drain', 'close', 'error']) stream.on(event, () => this.#wake());
  }

  /** Settles when the message was handed on and there is room for the next, or nobody listens any more. Never rejects. */
  send(message: unknown): Promise<void> {
    this.#last = this.#last.then(async () => {
      if (!this.#isOpen()) return;
      if (!this.#stream.write(`${JSON.stringify(message)}\n`)) await this.#room();
    });
    return this.#last;
  }

  /** Settles when all that was to be said before has been taken. */
  flush(): Promise<void> {
    return this.#last;
  }

  /** Nothing is said from now on. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  #isOpen(): boolean {
    return !this.#closed && this.#stream.writable;
  }

  #room(): Promise<void> {
    return new Promise((done) => {
      this.#wake = done;
      if (!this.#isOpen() || !this.#stream.writableNeedDrain) done();
    });
  }
}
