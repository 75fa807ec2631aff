/** A question that came in whole and well-formed. */
export interface GateRequest {
  readonly requestId: string;
  readonly command: string;
  readonly session: string | undefined;
  readonly tool: string | undefined;
  /** Who asks, by what the kernel says: `uid:N`. */
  readonly principal: string;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** The answer. */
export interface GateAnswer {
  readonly decision: 'allow' | 'deny';
  /** One sentence for whoever asked. */
  readonly reason?: string;
}

/** Decides, and has it on record before it returns. */
export type GateDecide = (request: GateRequest) => Promise<GateAnswer>;

/** Stable names of why a message or a connection is refused before anybody looks at what it asks. */
export type RefusalCode =
  | 'foreign_peer'
  | 'too_many_connections'
  | 'malformed'
  | 'too_long'
  | 'incomplete'
  | 'duplicate_id';

/** A message that was refused. */
export interface RefusedMessage {
  readonly code: RefusalCode;
  readonly principal: string;
  readonly message: string;
  readonly requestId?: string | undefined;
}

/** Puts a refusal on record. Never rejects: refused is refused. */
export type ReportRefusal = (refused: RefusedMessage) => Promise<void>;

/** Told after each answer, for a log. */
export type OnAnswer = (request: GateRequest, answer: GateAnswer) => void;

/** A server that is ready. */
export interface GateServer {
  /** Denies what is pending, answers that, and takes away what it made. */
  close(): Promise<void>;
}

/** The principal of a user. */
export function principalOf(uid: number): string {
  return `uid:${uid}`;
}
