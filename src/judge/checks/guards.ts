import { errorMessage } from '../../base/error-message.ts';
import { isPromise } from '../../base/promise.ts';
import { clearAnswer, type HookAnswer, type Reason, type ToolHook } from '../../model/index.ts';
import { type Check, type CheckContext, reasonFor } from './check.ts';

/** What a guard's answer means for a check: everything but a clear yes refuses. */
function afterGuard(check: string, guard: string, answer: unknown): Reason {
  const clear = clearAnswer(answer);
  const reason = reasonFor(check);
  if (clear === undefined)
    return reason('deny', 'answer_unclear', `${guard} gave no clear answer, so nothing is run`);
  return clear.allowed
    ? reason(undefined, 'no_objection', `${guard} does not object`)
    : reason('deny', 'refused', clear.reason ?? `${guard} refuses the command`);
}

/** For a guard that throws. */
function afterFailure(check: string, guard: string, error: unknown): Reason {
  return reasonFor(check)('deny', 'failed', `${guard} failed (${errorMessage(error)}), so nothing is run`);
}

/** Asks one guard; synchronous as long as the guard is. One that does not answer in time gave no clear answer. */
function askGuard(
  check: string,
  guard: string,
  context: CheckContext,
  ask: () => HookAnswer | Promise<HookAnswer>,
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

const GIT_GUARD = 'git-guard';
const HOOKS = 'hooks';

/** The guard of the repository, behind a port. */
export const gitGuard: Check = {
  name: GIT_GUARD,
  summary: 'Asks the git guard, where there is one, about what would happen to the repository.',
  judge(context) {
    const guard = context.gate.gitGuard;
    if (guard === undefined) return [];
    const reason = askGuard(GIT_GUARD, 'the git guard', context, () =>
      guard.judge(context.parsed, context.cwd, context.text),
    );
    return reason instanceof Promise ? reason.then((settled) => [settled]) : [reason];
  },
};

/** Our name of the tool: hooks are told it beside the agent's own, and instead of it where that is not known. */
export const TOOL_NAME = 'run_command';

/** Asks the hooks in order, as far as the first that refuses. */
function askFrom(
  hooks: readonly ToolHook[],
  context: CheckContext,
  said: readonly Reason[],
): readonly Reason[] | Promise<readonly Reason[]> {
  const [hook, ...rest] = hooks;
  if (hook === undefined) return said;
  const input = Object.freeze({ command: context.text, cwd: context.cwd, tool: TOOL_NAME });
  const continueWith = (reason: Reason) => {
    const all = [...said, reason];
    return reason.verdict === 'deny' ? all : askFrom(rest, context, all);
  };
  const reason = askGuard(HOOKS, `the hook ${hook.name}`, context, () =>
    hook.beforeToolUse(TOOL_NAME, input),
  );
  return reason instanceof Promise ? reason.then(continueWith) : continueWith(reason);
}

/** Plug-ins. They are asked last, about what nothing has refused, and can only refuse. */
export const hooks: Check = {
  name: HOOKS,
  summary: 'Asks plug-ins; the first that refuses, fails or answers unclearly refuses the command.',
  isLast: true,
  judge: (context) => (context.gate.hooks.length === 0 ? [] : askFrom(context.gate.hooks, context, [])),
};
