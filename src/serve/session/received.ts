import type { ApprovalRequest } from '../../model/approval.ts';
import type { Decision } from '../../model/decision.ts';
import type { EnforcementReport } from '../../model/enforcement-report.ts';
import type { TurnResult } from '../../model/execution-result.ts';
import type { ResultOf } from '../protocol/method-table.ts';
import type { CommandResult, Question } from '../protocol/results.ts';

/** A result that was sent, again as the model has it. `report`: what `initialize` told once for all of them. */
export function receivedTurn(
  { message: _, gapAt: __, decision, ...told }: ResultOf<'session.run'>,
  report: EnforcementReport | undefined,
): TurnResult {
  // It was validated as what is sent, which has no type for each status.
  return { ...told, report, decision: decision && receivedDecision(decision) } as TurnResult;
}

/** The same of a question: what somebody has to see. */
export function receivedRequest({
  question: _,
  request: __,
  expiresAt: ___,
  decision,
  ...told
}: Question): ApprovalRequest {
  return { ...told, decision: receivedDecision(decision) };
}

function receivedDecision({ reasons, ...decision }: NonNullable<CommandResult['decision']>): Decision {
  return {
    ...decision,
    reasons: reasons.map(({ verdict, ...reason }) => ({ ...reason, verdict: verdict ?? undefined })),
  };
}
