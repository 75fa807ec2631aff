import type { Sandbox } from '../run/index.ts';
import { AskedCalls, bindNow } from './asked-calls.ts';
import {
  type ActionOutput,
  type CommandOutput,
  parseAction,
  runAction,
  type ShellAction,
  type ShellActionOptions,
} from './shell-action.ts';

export type { ShellAction, ShellActionOptions } from './shell-action.ts';

/** Options of `createShell`. */
export interface ShellOptions extends ShellActionOptions {
  /** What `shellTool` is told as `name`. Default: `shell`. */
  readonly toolName?: string;
}

/** Of one command of an action. A refused command has exit code 126, and the reason on `stderr`. */
export type ShellOutput = {
  stdout: string;
  stderr: string;
  outcome: { type: 'exit'; exitCode: number } | { type: 'timeout' };
};

/** What `needsApproval` asks of the run's context: part of `RunContext`. */
export interface ApprovalContext {
  isToolApproved(call: { toolName: string; callId: string }): boolean | undefined;
}

/** What `approve` needs of an interruption: part of `RunToolApprovalItem`. */
export interface ShellApproval {
  readonly rawItem: unknown;
}

/** For `shellTool({ shell, needsApproval: shell.needsApproval })` of `@openai/agents`. */
export interface SandboxShell {
  /** Runs the commands of an action, one after the other. Their outcome is a result, never an exception. */
  run(action: ShellAction): Promise<{ output: ShellOutput[]; maxOutputLength: number }>;
  /**
   * Whether the policy asks about a command of the action: then the run is interrupted, or `onApproval` is asked. An approval
   * is good for exactly that action, once, and for each command only while it is still the same question, also when one
   * before it changed something; `alwaysApprove` approves no later one.
   */
  readonly needsApproval: (
    context: ApprovalContext,
    action: ShellAction,
    callId?: string,
  ) => Promise<boolean>;
  /**
   * Says that a person approved the action of an interruption; beside `state.approve(interruption)`, and needed only for a
   * state that was made from text, which this shell was never asked about.
   */
  approve(interruption: ShellApproval): Promise<void>;
}

/** A shell for the shell tool of the OpenAI Agents SDK, whose commands run in the sandbox. */
export function createShell(
  sandbox: Sandbox,
  { toolName = 'shell', ...options }: ShellOptions = {},
): SandboxShell {
  const asked = new AskedCalls(sandbox);
  const contentOf = (action: ShellAction) => JSON.stringify(action);
  return {
    run: async (given) => {
      const action = parseAction(given);
      const approvals = () => (typeof action === 'string' ? undefined : asked.take(contentOf(action)));
      const { output, maxOutputLength } = await runAction(sandbox, action, options, approvals);
      return { output: output.map(shellOutput), maxOutputLength };
    },
    needsApproval: async (context, given, callId) => {
      const action = parseAction(given);
      // Is not run, which its result says; there is nothing to ask.
      if (typeof action === 'string') return false;
      const isApproved = () => callId !== undefined && context.isToolApproved({ toolName, callId }) === true;
      const { commands } = action;
      const content = contentOf(action);
      return asked.ask({ id: callId ?? '', content, commands, isAnswered: isApproved(), isApproved });
    },
    approve: async ({ rawItem }) => {
      const { callId, action: given } = rawItem as { readonly callId?: unknown; readonly action?: unknown };
      const action = parseAction(given);
      if (typeof action === 'string' || typeof callId !== 'string') return;
      const { commands } = action;
      const content = contentOf(action);
      await asked.remember({ id: callId, content, commands, isAnswered: true, isApproved: () => true });
    },
  };
}

function shellOutput({ stdout, stderr, exitCode }: CommandOutput): ShellOutput {
  return {
    stdout,
    stderr,
    outcome: exitCode === undefined ? { type: 'timeout' } : { type: 'exit', exitCode },
  };
}

/** A call of the shell tool in a response of the Responses API: what is used of `ResponseFunctionShellToolCall`. */
export interface ShellCall {
  readonly type: 'shell_call';
  readonly call_id: string;
  readonly action: {
    readonly commands: readonly string[];
    readonly timeout_ms?: number | null;
    readonly max_output_length?: number | null;
  };
  /** Given back as it is. */
  readonly caller?: { type: 'direct' } | { type: 'program'; caller_id: string } | null;
}

/** What goes back to the API as input: a `ResponseInputItem.ShellCallOutput`. */
export interface ShellCallOutput {
  type: 'shell_call_output';
  call_id: string;
  max_output_length: number;
  output: {
    stdout: string;
    stderr: string;
    outcome: { type: 'exit'; exit_code: number } | { type: 'timeout' };
  }[];
  caller?: { type: 'direct' } | { type: 'program'; caller_id: string };
}

/** Options of `runShellCall`. */
export interface ShellCallOptions extends ShellActionOptions {
  /**
   * A person looked at the commands of this very call (`sandbox.check` says what is asked) and wants them to run as they are
   * now: one whose files another of them changes is refused.
   */
  readonly approved?: boolean;
}

/** Runs a call of the Responses API without the Agents SDK, and makes the item that answers it. */
export async function runShellCall(
  sandbox: Sandbox,
  call: ShellCall,
  { approved = false, ...options }: ShellCallOptions = {},
): Promise<ShellCallOutput> {
  const { commands, timeout_ms, max_output_length } = call.action ?? {};
  const action = parseAction({ commands, timeoutMs: timeout_ms, maxOutputLength: max_output_length });
  // What one command changes is not what a person saw of those after it.
  const approvals = async (commands: readonly string[]) =>
    approved ? (await bindNow(sandbox, commands)).approvals : undefined;
  const done: ActionOutput = await runAction(sandbox, action, options, approvals);
  return {
    type: 'shell_call_output',
    call_id: call.call_id,
    max_output_length: done.maxOutputLength,
    output: done.output.map(({ stdout, stderr, exitCode }) => ({
      ...{ stdout, stderr },
      outcome: exitCode === undefined ? { type: 'timeout' } : { type: 'exit', exit_code: exitCode },
    })),
    ...(call.caller == null ? {} : { caller: call.caller }),
  };
}
