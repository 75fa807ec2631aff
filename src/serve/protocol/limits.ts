/** Version of the protocol; a client names the one that it speaks, and there is no other. */
export const PROTOCOL_VERSION = 1;

/** What a connection may use up of a server. Told to its client by `initialize`. */
export interface ConnectionLimits {
  /** Bytes of a message of a client, its line break not counted. A longer one ends the connection. */
  readonly messageBytes: number;
  /** Objects and arrays in each other. */
  readonly depth: number;
  /** Requests of a batch. */
  readonly batch: number;
  /** Requests of a connection without a response yet; further ones are refused with `protocol.busy`. */
  readonly requests: number;
  /** Bytes of those, together. */
  readonly requestBytes: number;
  /** Initialized connections at once, and as many that are not yet: of these the oldest are turned away for new ones. */
  readonly connections: number;
  /** Milliseconds that a client has for `initialize`. */
  readonly handshakeMs: number;
  /** Milliseconds for the rest of a line, once it has begun; 0: as long as it likes. */
  readonly lineMs: number;
  /** Milliseconds without a word of a client that waits for nothing; 0: as long as it likes. */
  readonly idleMs: number;
  /** Lines of a connection that are no message; then it is closed. */
  readonly malformed: number;
}

/** What a client may use up of a server that runs commands. */
export interface ServeLimits extends ConnectionLimits {
  /** Commands of `run` at once; further ones wait for their turn. */
  readonly runs: number;
  /** Questions of a connection that wait for an answer; what would be asked about on top is refused. */
  readonly questions: number;
  /** Commands of `spawn` at once. */
  readonly commands: number;
  /** Shell sessions at once. */
  readonly sessions: number;
  /** Bytes of each output stream in a result. */
  readonly outputBytes: number;
  /** Bytes of output in results that the client has not taken, above which no command is begun for it. */
  readonly untakenBytes: number;
}

const CONNECTION_LIMITS: ConnectionLimits = {
  messageBytes: 16 * 1024 * 1024,
  depth: 32,
  batch: 256,
  requests: 4096,
  requestBytes: 64 * 1024 * 1024,
  connections: 64,
  handshakeMs: 30_000,
  lineMs: 0,
  idleMs: 0,
  malformed: 16,
};

export const SERVE_LIMITS: ServeLimits = {
  ...CONNECTION_LIMITS,
  runs: 32,
  questions: 256,
  commands: 64,
  sessions: 16,
  outputBytes: 4 * 1024 * 1024,
  untakenBytes: 64 * 1024 * 1024,
};

/** The limits of a connection to a gate, whose clients are strangers. */
export const GATE_LIMITS: ConnectionLimits = {
  ...CONNECTION_LIMITS,
  messageBytes: 256 * 1024,
  batch: 32,
  requests: 32,
  requestBytes: 1024 * 1024,
  lineMs: 30_000,
  idleMs: 900_000,
  malformed: 8,
};

/** The limits of a connection to the queue of approvals, whose clients say little. */
export const QUEUE_LIMITS: ConnectionLimits = {
  ...CONNECTION_LIMITS,
  messageBytes: 64 * 1024,
  requests: 64,
};
