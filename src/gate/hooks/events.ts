import { errorMessage } from '../../base/error-message.ts';
import { visibleLine } from '../../base/visible-text.ts';
import {
  clearAnswer,
  type GatePorts,
  type GuardAnswer,
  type HookSession,
  type ToolHook,
  type ToolInput,
  type ToolResult,
} from '../../model/index.ts';

/** How long each hook may take for an event. */
export interface EventLimit {
  readonly within: GatePorts['within'];
  readonly timeoutMs: number;
}

const MAX_MESSAGE_LENGTH = 300;

/** Tells the hooks what became of a tool. Returns a sentence for each that failed. */
export function afterToolUse(
  hooks: readonly ToolHook[],
  toolName: string,
  toolInput: ToolInput,
  result: ToolResult,
  limit: EventLimit,
): Promise<readonly string[]> {
  return tellAll(hooks, 'after_tool_use', (hook) => hook.afterToolUse?.(toolName, toolInput, result), limit);
}

/** Tells the hooks that a session ended. Returns a sentence for each that failed. */
export function sessionEnd(
  hooks: readonly ToolHook[],
  session: HookSession,
  limit: EventLimit,
): Promise<readonly string[]> {
  return tellAll(hooks, 'session_end', (hook) => hook.sessionEnd?.(session), limit);
}

/** Asks the hooks in order, as far as the first that refuses, fails, answers unclearly or not in time. */
export async function sessionStart(
  hooks: readonly ToolHook[],
  session: HookSession,
  limit: EventLimit,
): Promise<GuardAnswer> {
  for (const hook of hooks) {
    if (hook.sessionStart === undefined) continue;
    const answer = await startWith(hook, session, limit);
    if (!answer.allowed) return answer;
  }
  return { allowed: true };
}

async function startWith(hook: ToolHook, session: HookSession, limit: EventLimit): Promise<GuardAnswer> {
  try {
    const work = call(() => hook.sessionStart?.(session));
    // The hook is foreign code: its answer is checked.
    const answer = clearAnswer(await limit.within(work, limit.timeoutMs));
    if (answer === undefined) return { allowed: false, reason: `the hook ${hook.name} gave no clear answer` };
    if (answer.allowed) return answer;
    return { allowed: false, reason: answer.reason ?? `the hook ${hook.name} refuses the session` };
  } catch (error) {
    return { allowed: false, reason: failureOf(hook, 'session_start', error) };
  }
}

/** Informs all hooks at the same time; they do not decide anything here. */
async function tellAll(
  hooks: readonly ToolHook[],
  event: string,
  tell: (hook: ToolHook) => void | Promise<void>,
  { within, timeoutMs }: EventLimit,
): Promise<readonly string[]> {
  const failures = await Promise.all(
    hooks.map(async (hook) => {
      try {
        const told = await within(
          call(() => tell(hook)).then(() => true),
          timeoutMs,
        );
        return told === true ? [] : [`the hook ${hook.name} did not end in time (${event})`];
      } catch (error) {
        return [failureOf(hook, event, error)];
      }
    }),
  );
  return failures.flat();
}

/** A promise also of what throws at once. */
async function call<T>(work: () => T | Promise<T>): Promise<T> {
  return work();
}

function failureOf(hook: ToolHook, event: string, error: unknown): string {
  return visibleLine(`the hook ${hook.name} failed (${event}): ${errorMessage(error)}`, MAX_MESSAGE_LENGTH);
}
