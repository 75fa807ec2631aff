/** What a client may use up of a server. */
export interface SocketLimits {
  /** Of all clients together; further ones are closed at once. */
  readonly connections: number;
  /** Of one connection; it is not read from until one of them is answered. */
  readonly inFlight: number;
  /** Malformed messages of one connection; then it is closed. */
  readonly malformed: number;
  /** For the rest of a line, once it has begun. */
  readonly lineMs: number;
  /** Without a request, and without taking an answer. */
  readonly idleMs: number;
  /** For clients to take their last answers when the server stops. */
  readonly lingerMs: number;
}

export const SOCKET_LIMITS: SocketLimits = {
  connections: 64,
  inFlight: 32,
  malformed: 8,
  lineMs: 30_000,
  idleMs: 900_000,
  lingerMs: 1_000,
};
