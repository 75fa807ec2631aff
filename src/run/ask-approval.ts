import type { ApprovalDesk } from '../gate/approvals/desk.ts';
import type { ApprovalAnswer, ApprovalRequest } from '../model/approval.ts';
import type { Decision } from '../model/decision.ts';
import type { CommandEffects } from '../policy/effects.ts';
import type { SettledCommand } from './command-line.ts';
import type { Examination } from './judge.ts';

/** What a command is at one moment: looked at before a person is asked, and again after the answer. */
export interface CommandSeen {
  readonly examination: Examination;
  readonly decision: Decision;
  readonly effects: CommandEffects;
  readonly settled: SettledCommand & { readonly ok: true };
}

/** How a person is asked. */
export interface Asking {
  readonly desk: ApprovalDesk;
  readonly requestOf: (seen: CommandSeen) => ApprovalRequest;
  /** Looks again; `undefined`: it could not be started any more. */
  readonly lookAgain: () => Promise<CommandSeen | undefined>;
  readonly signal: AbortSignal;
}

/**
 * Asks about a command. `isVoid`: it was approved, and what would run by now is not what was shown, or is refused.
 */
export async function askApproval(
  seen: CommandSeen,
  { desk, requestOf, lookAgain, signal }: Asking,
): Promise<{ readonly answer: ApprovalAnswer; readonly isVoid: boolean }> {
  const request = requestOf(seen);
  const answer = await desk.decide(request, signal);
  if (!answer.approved) return { answer, isVoid: false };
  const now = await lookAgain();
  const isSame =
    now !== undefined &&
    now.decision.verdict !== 'deny' &&
    now.settled.program === seen.settled.program &&
    requestOf(now).fingerprint === request.fingerprint;
  return { answer, isVoid: !isSame };
}
