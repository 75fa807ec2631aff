import type { Decision } from '../model/decision.ts';
import type { ExecutionError } from '../model/execution-result.ts';
import type { ActionBudget, Reservation } from '../model/gate-ports.ts';
import { refusalSentence } from '../policy/explain.ts';
import { isPromise } from '../util/promise.ts';

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

/** Reserves an action. A store that fails counts as used up. */
export function reserveAction(
  budget: ActionBudget | undefined,
  limit: number,
): Reservation | undefined | PromiseLike<Reservation | undefined> {
  try {
    const reserved = budget?.reserve(limit);
    if (!isPromise(reserved)) return reserved;
    return reserved.then(
      (reservation) => reservation,
      () => undefined,
    );
  } catch {
    return undefined;
  }
}
