import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { ServerConnection } from '../core/connect.ts';
import { describeIssue } from '../core/errors.ts';
import { GATE_LIMITS } from '../protocol/limits.ts';
import { METHODS, type ParamsFor } from '../protocol/tables.ts';
import type { GateAnswer } from './gate-decider.ts';

/** What the host said, or a no for want of a usable answer. */
export interface GateOutcome extends GateAnswer {
  /** `host`: that is its answer; `nobody`: there was none that could be used. */
  readonly by: 'host' | 'nobody';
}

/** What a gate is asked. */
type GateQuestionParams = ParamsFor<'gate.check'>;

/** After an answer, for the server to say that there is no other one. */
const END_MS = 500;

/** Why this cannot be asked at all; `undefined`: it can. */
export function unaskable(question: GateQuestionParams): string | undefined {
  const read = METHODS['gate.check'].params.safeParse(question);
  return read.success ? undefined : describeIssue('gate.check', read.error.issues[0]);
}

/** Asks the gate on a socket. Never rejects: whatever goes wrong is a no. */
export async function askGate(
  path: string,
  question: GateQuestionParams,
  { requestId, timeoutMs }: { readonly requestId: string; readonly timeoutMs: number },
): Promise<GateOutcome> {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), timeoutMs);
  try {
    const connection = await ServerConnection.open(path, { ...GATE_LIMITS, signal: over.signal });
    const { decision, reason } = await connection.call('gate.check', question, { id: requestId });
    // The answer came in time. If the server sends a second one, it does so before it ends its side.
    clearTimeout(timer);
    await connection.end(END_MS);
    return { decision, ...(reason === undefined ? {} : { reason }), by: 'host' };
  } catch (error) {
    if (over.signal.aborted) return noAnswer('there was no answer in time');
    if (error instanceof SandboxError) return noAnswer(error.message);
    return noAnswer(`the gate at ${path} cannot be reached (${errnoOf(error) ?? String(error)})`);
  } finally {
    clearTimeout(timer);
    over.abort();
  }
}

/** A no, because there is no answer. */
const noAnswer = (reason: string): GateOutcome => ({ decision: 'deny', reason, by: 'nobody' });
