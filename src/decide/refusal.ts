import { SandboxError } from '../errors/sandbox-error.ts';
import type { ApprovalAnswer } from '../model/approval.ts';
import type { Decision } from '../model/decision.ts';
import type { ExecutionError } from '../model/execution-result.ts';
import { refusalSentence } from '../policy/explain.ts';
import { assertNever } from '../util/assert-never.ts';

const denied = (message: string): ExecutionError => ({
  code: 'command.denied',
  message,
  stage: undefined,
  errno: undefined,
  path: undefined,
});

/** Why a command that was judged is not run; `undefined`: it is. A question is answered by `approved`. */
export function refusalOf(decision: Decision, approved: boolean): ExecutionError | undefined {
  const message = refusalSentence(decision);
  if (message === undefined || (decision.verdict === 'ask' && approved)) return undefined;
  return {
    ...denied(message),
    code: decision.verdict === 'ask' ? 'command.needs_approval' : 'command.denied',
  };
}

/** For a command that is allowed, at a moment when the budget is used up by others. */
export function budgetRefusal(limit: number): ExecutionError {
  return denied(
    `refused by the policy: ${limit} actions of this hour are used (security.max_actions_per_hour), or they cannot be counted; wait`,
  );
}

/** For a command that somebody was asked about and that nobody approved. `asked`: what the policy asks. */
export function approvalRefusal(
  asked: ExecutionError,
  answer: ApprovalAnswer & { readonly approved: false },
  timeoutMs: number,
): ExecutionError {
  switch (answer.reason) {
    case 'nobody':
      return asked;
    case 'denied':
      return denied(`refused by whoever was asked (${answer.by})`);
    case 'expired':
      return {
        ...asked,
        message: `the policy asks before it runs this, and nobody answered within ${Math.round(timeoutMs / 1000)} s (approval.timeout_seconds)`,
      };
    case 'failed':
      return {
        ...asked,
        message: `${asked.message}; asking failed: ${answer.detail ?? 'no reason was given'}`,
      };
    default:
      return assertNever(answer.reason);
  }
}

/** For a command that cannot be decided about, because what remembers, asks or records does not work. */
export function unusableGate(error: unknown): ExecutionError {
  if (error instanceof SandboxError) return { ...denied(error.message), code: error.code };
  return denied(
    `refused, because the decision failed: ${error instanceof Error ? error.message : String(error)}`,
  );
}

/** Somebody said yes to something else. */
export const VOID: ExecutionError = {
  code: 'approval.void',
  message:
    'something changed while the question was open (a file behind the command, the directory, or what the policy says); ask again',
  stage: undefined,
  errno: undefined,
  path: undefined,
};
