import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { ApprovalRequest, Decision, ExecutionResult } from '../../model/index.ts';
import { createDecoder, messageForModel } from '../../run/index.ts';
import type { CommandResult, Question } from '../protocol/results.ts';

const base64 = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');

/** A result as it is sent. What is enforced is the same for all of them: `initialize` tells it. */
export function wireResult(
  result: ExecutionResult,
  plan: LaunchPlan,
  about: { readonly command?: string } = {},
): CommandResult {
  const { report: _report, spilled: _spilled, bytes, decision, ...rest } = result;
  const output =
    bytes === undefined
      ? {}
      : { stdout: base64(bytes.stdout), stderr: base64(bytes.stderr), gapAt: bytes.gapAt };
  return {
    ...rest,
    ...output,
    decision: decision && sentDecision(decision),
    messageForModel: messageForModel(result, plan, about),
  };
}

const sentDecision = ({ reasons, ...decision }: Decision) => ({
  ...decision,
  reasons: reasons.map((reason) => ({ ...reason, verdict: reason.verdict ?? null })),
});

/** A question as it is sent. */
export function wireQuestion(
  request: ApprovalRequest,
  about: Pick<Question, 'question' | 'request' | 'expiresAt'>,
): Question {
  return { ...about, ...request, decision: sentDecision(request.decision) };
}

/** How output is sent. */
export interface OutputForm {
  readonly encoding: 'utf8' | 'base64';
  readonly escapes: 'keep' | 'neutralize';
}

/** Makes data for messages of the bytes of one stream, wherever they are cut. */
export function createOutputEncoder({ encoding, escapes }: OutputForm) {
  return encoding === 'base64' ? { write: base64, end: () => '' } : createDecoder(escapes === 'neutralize');
}
