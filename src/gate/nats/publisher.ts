import type { Msg, MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import { parsedJson } from '../../base/parsed-json.ts';
import { ANSWER_MS, whereInstalled } from './connection.ts';

/** What a stream says of a message that it took. */
interface Stored {
  readonly seq: number;
  /** A message with this id was there already. */
  readonly duplicate: boolean;
}

interface Outgoing {
  readonly subject: string;
  readonly data: string | Uint8Array;
  readonly reply?: string;
  readonly headers?: MsgHdrs;
}

interface Waiting {
  readonly subject: string;
  readonly stored: (stored: Stored) => void;
  readonly fail: (error: Error) => void;
}

/**
 * Publishes over one connection. What is published in one turn of the event loop goes as one write, and what streams answer
 * comes by one subscription: the client has a timer, three promises and two errors with their stacks for each request, and a
 * write for each time that somebody waited.
 */
export class Publisher {
  readonly connection: NatsConnection;
  readonly #makeHeaders: () => MsgHdrs;
  /** What answers to this connection begin with. */
  readonly inbox: string;
  readonly #waiting = new Map<string, Waiting>();
  #outgoing: Outgoing[] = [];
  #published = 0;
  /** Why nothing can be answered any more. */
  #failure: Error | undefined;

  private constructor(connection: NatsConnection, inbox: string, makeHeaders: () => MsgHdrs) {
    this.connection = connection;
    this.#makeHeaders = makeHeaders;
    this.inbox = `${inbox}.`;
    connection.subscribe(`${inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#onAnswer(message);
        else this.#failAll(error);
      },
    });
    void connection.closed().then(() => this.#failAll(new Error('the connection is closed')));
    void this.#watchRefusals().catch(() => {});
  }

  /** @throws {SandboxError} `fleet.uninstalled`. */
  static async on(connection: NatsConnection): Promise<Publisher> {
    const { createInbox, headers } = await whereInstalled(() => import('@nats-io/transport-node'));
    return new Publisher(connection, createInbox(), headers);
  }

  /**
   * Publishes to a stream, and settles when that has the message.
   * @throws an error whose `code` is that of JetStream where the stream did not take it; else whether it did is unknown.
   */
  async publish(
    subject: string,
    data: string | Uint8Array,
    headers: Readonly<Record<string, string>>,
    timeoutMs = ANSWER_MS,
  ): Promise<Stored> {
    if (this.#failure !== undefined) throw this.#failure;
    const marked = this.#makeHeaders();
    for (const [name, value] of Object.entries(headers)) marked.append(name, value);
    this.#published += 1;
    const token = String(this.#published);
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<Stored>((stored, fail) => {
        timer = setTimeout(() => fail(new Error('no answer in time')), timeoutMs);
        this.#waiting.set(token, { subject, stored, fail });
        this.send({ subject, data, reply: `${this.inbox}${token}`, headers: marked });
      });
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(token);
    }
  }

  /** Publishes without waiting for an acknowledgement. @throws the server's error; missing subscribers are not an error. */
  async tell(subject: string, data: string): Promise<void> {
    this.#published += 1;
    const token = String(this.#published);
    let timer: NodeJS.Timeout | undefined;
    const refused = new Promise<never>((_, fail) => {
      this.#waiting.set(token, { subject, stored: () => {}, fail });
    });
    const patience = new Promise<void>((over) => {
      timer = setTimeout(over, ANSWER_MS);
    });
    try {
      this.connection.publish(subject, data);
      // The server's error for the message arrives before this answer, and is reported in the next turn.
      const answered = this.connection.flush().then(() => new Promise<void>((next) => setImmediate(next)));
      await Promise.race([refused, answered, patience]);
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(token);
    }
  }

  /** Sends what nobody acknowledges, with whatever else is sent in this turn. */
  send(message: Outgoing): void {
    if (this.#outgoing.length === 0) setImmediate(() => this.flush());
    this.#outgoing.push(message);
  }

  /** Hands all of it to the connection. */
  flush(): void {
    const outgoing = this.#outgoing;
    this.#outgoing = [];
    for (const { subject, data, reply, headers } of outgoing) {
      try {
        this.connection.publish(subject, data, { ...(reply && { reply }), ...(headers && { headers }) });
      } catch (error) {
        // The connection is closed, or the message too long.
        if (reply !== undefined && error instanceof Error) this.#fail(reply, error);
      }
    }
  }

  #onAnswer(message: Msg): void {
    const waiting = this.#waiting.get(message.subject.slice(this.inbox.length));
    if (waiting === undefined) return;
    const answer = parsedJson(message.data);
    const { error, seq, duplicate } = (answer ?? {}) as Record<string, unknown>;
    if (typeof seq === 'number' && error === undefined)
      waiting.stored({ seq, duplicate: duplicate === true });
    else waiting.fail(problemOf(error));
  }

  #fail(reply: string, error: Error): void {
    this.#waiting.get(reply.slice(this.inbox.length))?.fail(error);
  }

  #failAll(error: Error): void {
    this.#failure = error;
    for (const { fail } of this.#waiting.values()) fail(error);
  }

  /** What this user may not publish is told apart from the answers. */
  async #watchRefusals(): Promise<void> {
    for await (const status of this.connection.status()) {
      if (status.type !== 'error' || status.error.name !== 'PermissionViolationError') continue;
      const refused = Reflect.get(status.error, 'subject');
      for (const { subject, fail } of this.#waiting.values()) if (subject === refused) fail(status.error);
    }
  }
}

/** Why a stream did not take a message; without a reason nobody was there to take it. */
function problemOf(error: unknown): Error {
  if (typeof error !== 'object' || error === null) return new Error('nobody answers for the stream');
  const { err_code: code, description } = error as {
    readonly err_code?: unknown;
    readonly description?: unknown;
  };
  return Object.assign(new Error(String(description)), { code });
}
