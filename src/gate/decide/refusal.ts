import { assertNever } from '../../base/assert-never.ts';
import { errorMessage } from '../../base/error-message.ts';
import type { ErrorCode } from '../../base/errors/codes.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { refusalSentence } from '../../judge/index.ts';
import type { ApprovalAnswer, Decision, ExecutionError } from '../../model/index.ts';

/** An error that is about no step of a launch. */
export const errorOf = (code: ErrorCode, message: string, path?: string): ExecutionError => ({
  ...{ code, message, path },
  ...{ stage: undefined, errno: undefined },
});

const denied = (message: string) => errorOf('command.denied', message);

/** Why a judged command is not run; `undefined`: it runs. `approved` answers a question. */
export function refusalOf(decision: Decision, approved: boolean): ExecutionError | undefined {
  const message = refusalSentence(decision);
  if (message === undefined || (decision.verdict === 'ask' && approved)) return undefined;
  return errorOf(decision.verdict === 'ask' ? 'command.needs_approval' : 'command.denied', message);
}

/** For a command that is allowed, when other commands have used up the budget. */
export function budgetRefusal(limit: number): ExecutionError {
  return denied(
    `refused by the policy: all ${limit} actions of this hour are used (security.max_actions_per_hour), or they cannot be counted; wait`,
  );
}

/** Ways to answer that only a person has: an approver of the library, or a client of a server, may be a program. */
const IS_PERSON = /^(?:terminal|web page|command line|watch|MCP client .*)$/s;

/** For a command that was asked about and not approved. `asked`: the question of the policy. */
export function approvalRefusal(
  asked: ExecutionError,
  answer: ApprovalAnswer & { readonly approved: false },
  timeoutMs: number,
): ExecutionError {
  switch (answer.reason) {
    case 'nobody':
      return asked;
    case 'denied':
      return denied(
        IS_PERSON.test(answer.by)
          ? `refused by the person who was asked (${answer.by})`
          : `refused by ${answer.by}, which was asked`,
      );
    case 'expired':
      return {
        ...asked,
        message: `this command needs approval, and there was no answer within ${Math.round(timeoutMs / 1000)} s (approval.timeout_seconds)`,
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

/** For a command that cannot be decided about, because the state, the question or the record failed. */
export function unusableGate(error: unknown): ExecutionError {
  if (error instanceof SandboxError) return errorOf(error.code, error.message);
  return denied(`refused, because the decision failed: ${errorMessage(error)}`);
}

/** The approval was for something else. */
export const VOID = errorOf(
  'approval.void',
  'something changed after the question was asked (a file that the command uses or would remove, what a pattern matches, the directory, or the policy); ask again',
);

/** A decision in the shape of `check --json`, `--batch` and `serve`. */
export function decisionAsJson({ verdict, risk, reach, reasons }: Decision) {
  return {
    verdict,
    risk,
    reach,
    reasons: reasons.map((reason) => ({
      check: reason.check,
      verdict: reason.verdict ?? null,
      code: reason.code,
      message: reason.message,
    })),
  };
}
