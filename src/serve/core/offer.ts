import type { ConnectionLimits } from '../protocol/limits.ts';
import type {
  MethodName,
  NotificationName,
  NotificationParams,
  ParamsOf,
  ResultOf,
} from '../protocol/tables.ts';
import type { RequestId } from './errors.ts';
import type { Peer } from './peer.ts';

/** One connection, for what is done on its behalf. */
export interface Client {
  /** Who the kernel says is at the other end; `undefined`: it is the one on our pipes. */
  readonly peer: Peer | undefined;
  /** Settles when there is room for more. */
  notify<N extends NotificationName>(name: N, params: NotificationParams<N>): Promise<void>;
  /** Settles when all that was said before has been taken, or nobody listens any more. */
  taken(): Promise<void>;
  /** Aborted when the connection ends, and everything with it; the reason is a sentence. */
  readonly gone: AbortSignal;
  /** Ends the connection. */
  end(reason: string): void;
}

/** One request of it. */
export interface Call {
  readonly id: RequestId;
  /** Aborted when the client gives the request up, or is gone. */
  readonly signal: AbortSignal;
  /** Done once the response was sent: what is said then comes after it. */
  afterwards(work: () => void): void;
}

/** Answers the requests of one method. What it throws is the answer, too. */
export type Handler<M extends MethodName> = (
  params: ParamsOf<M>,
  call: Call,
) => Promise<ResultOf<M>> | ResultOf<M>;

/** Those that a server has: `initialize` is the core's. */
export type Handlers = { readonly [M in Exclude<MethodName, 'initialize'>]?: Handler<M> };

type Initialize = ResultOf<'initialize'>;

/** What one client is served with; everything that it starts is its own. */
export interface Conversation {
  readonly handlers: Handlers;
  /** The client may ask from now on. Returns what `initialize` tells of this server besides. */
  begin(
    params: ParamsOf<'initialize'>,
    call: Call,
  ): Pick<Initialize, 'workspace' | 'report'> & {
    readonly approvals: Initialize['capabilities']['approvals'];
  };
  /** The client says nothing more: nobody answers what it is asked, and what it asked is answered. */
  heardAll?(): void;
  /** Ends what it started. */
  close(): Promise<void>;
}

/** Stable names of why a message or a connection is refused before anybody looks at what it asks. */
export type RefusalCode =
  | 'foreign_peer'
  | 'too_many_connections'
  | 'malformed'
  | 'too_long'
  | 'incomplete'
  | 'duplicate_id';

/** What was refused before anybody looked at what it asks. */
export interface Refusal {
  readonly code: RefusalCode;
  readonly peer: Peer | undefined;
  readonly message: string;
  readonly requestId?: string | undefined;
}

/** What a server offers to each client. */
export interface Offer {
  readonly limits: ConnectionLimits;
  /**
   * True: its clients are strangers. Requests that are none end the connection as lines do that are no JSON, ids are
   * plain, and one that is used twice at once makes a no of both.
   */
  readonly strangers: boolean;
  readonly notifications: readonly NotificationName[];
  open(client: Client): Conversation;
  /** Told in one line what went wrong on our side, for the log. */
  onProblem(message: string): void;
  /** Told of what is refused; more of the client is read when it settles. Never rejects. */
  onRefused?(refusal: Refusal): Promise<void>;
}
