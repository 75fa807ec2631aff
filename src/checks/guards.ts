import type { Reason } from '../model/decision.ts';
import type { GuardAnswer } from '../model/gate-ports.ts';
import { errorMessage } from '../util/error-message.ts';
import { isPromise } from '../util/promise.ts';
import type { CheckContext } from './check.ts';

/** What a guard's answer means for a check: everything but a clear yes refuses. */
function afterGuard(check: string, guard: string, answer: unknown): Reason {
  const { allowed, reason }: { readonly allowed?: unknown; readonly reason?: unknown } =
    typeof answer === 'object' && answer !== null ? answer : {};
  const note = typeof reason === 'string' && reason !== '' ? reason : undefined;
  if (allowed === true)
    return {
      check,
      verdict: undefined,
      code: 'no_objection',
      message: `${guard} does not object`,
      words: [],
    };
  if (allowed === false)
    return {
      check,
      verdict: 'deny',
      code: 'refused',
      message: note ?? `${guard} refuses the command`,
      words: [],
    };
  return {
    check,
    verdict: 'deny',
    code: 'answer_unclear',
    message: `${guard} gave no clear answer, so nothing is run`,
    words: [],
  };
}

/** For a guard that throws. */
function afterFailure(check: string, guard: string, error: unknown): Reason {
  const why = errorMessage(error);
  return {
    check,
    verdict: 'deny',
    code: 'failed',
    message: `${guard} failed (${why}), so nothing is run`,
    words: [],
  };
}

/** Asks one guard; synchronous as long as the guard is. One that does not answer in time gave no clear answer. */
export function askGuard(
  check: string,
  guard: string,
  context: CheckContext,
  ask: () => GuardAnswer | Promise<GuardAnswer>,
): Reason | Promise<Reason> {
  try {
    const answer = ask();
    if (!isPromise(answer)) return afterGuard(check, guard, answer);
    return context.gate.within(Promise.resolve(answer), context.rules.reviewerTimeoutMs).then(
      (settled) => afterGuard(check, guard, settled),
      (error: unknown) => afterFailure(check, guard, error),
    );
  } catch (error) {
    return afterFailure(check, guard, error);
  }
}
