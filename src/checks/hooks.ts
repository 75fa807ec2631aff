import type { Reason } from '../model/decision.ts';
import type { ToolHook } from '../model/gate-ports.ts';
import type { Check, CheckContext } from './check.ts';
import { askGuard } from './guards.ts';

const NAME = 'hooks';
/** What hooks see as the name of the tool. */
export const TOOL_NAME = 'run_command';

/** Asks the hooks in order, as far as the first that refuses. */
function askFrom(
  hooks: readonly ToolHook[],
  context: CheckContext,
  said: readonly Reason[],
): readonly Reason[] | Promise<readonly Reason[]> {
  const [hook, ...rest] = hooks;
  if (hook === undefined) return said;
  const input = Object.freeze({ command: context.text, cwd: context.cwd });
  const continueWith = (reason: Reason) => {
    const all = [...said, reason];
    return reason.verdict === 'deny' ? all : askFrom(rest, context, all);
  };
  const reason = askGuard(NAME, `the hook ${hook.name}`, context, () => hook.beforeToolUse(TOOL_NAME, input));
  return reason instanceof Promise ? reason.then(continueWith) : continueWith(reason);
}

/** Plug-ins. They come last, and can only refuse: whatever they say, an earlier refusal stands. */
export const hooks: Check = {
  name: NAME,
  summary: 'Asks plug-ins; the first that refuses, fails or answers unclearly refuses the command.',
  judge: (context) => (context.gate.hooks.length === 0 ? [] : askFrom(context.gate.hooks, context, [])),
};
