import type { NotificationName, NotificationParams } from './notification-table.ts';

/** The id that a client gave a request. */
export type RequestId = string | number;

/** One connection, for what is done on its behalf. */
export interface Client {
  /** Settles when there is room for more. */
  notify<N extends NotificationName>(name: N, params: NotificationParams<N>): Promise<void>;
  /** Settles when all that was said before has been taken, or nobody listens any more. */
  taken(): Promise<void>;
  /** Aborted when the connection ends, and everything with it. */
  readonly gone: AbortSignal;
}

/** One request of it. */
export interface Call {
  readonly id: RequestId;
  /** Aborted when the client gives the request up, or is gone. */
  readonly signal: AbortSignal;
  /** Done once the response was sent: what is said then comes after it. */
  afterwards(work: () => void): void;
}
