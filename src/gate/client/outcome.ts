import type { GateAnswer } from '../server/ports.ts';
import { decodeResponse } from '../server/protocol.ts';

/** What the host said, or a no for want of a usable answer. */
export interface ClientOutcome extends GateAnswer {
  /** `host`: that is its answer; `nobody`: there was none that could be used. */
  readonly by: 'host' | 'nobody';
}

/** A no, because there is no answer. */
export function noAnswer(reason: string): ClientOutcome {
  return { decision: 'deny', reason, by: 'nobody' };
}

/** Reads an answer; whatever is not exactly one answer to this request is a no. */
export function outcomeOf(bytes: Uint8Array, requestId: string): ClientOutcome {
  const decoded = decodeResponse(bytes);
  if (!decoded.ok) return noAnswer(`the answer cannot be used: ${decoded.problem}`);
  const { request_id: answered, decision, reason } = decoded.message;
  if (answered !== requestId) return noAnswer('the answer cannot be used: it is one to another request');
  return { decision, ...(reason === undefined ? {} : { reason }), by: 'host' };
}
