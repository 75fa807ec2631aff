import { type Tool, type ToolExecutionOptions, tool } from 'ai';
import { z } from 'zod';
import type { ExecutionResult } from '../model/execution-result.ts';
import { exitStatus } from '../run/launch/exit-status.ts';
import type { Sandbox } from '../run/sandbox.ts';
import { AskedCalls } from './asked-calls.ts';
import { withMessage } from './shell-action.ts';
import { DEFAULT_MODEL_OUTPUT, LONGEST_COMMAND, runForModel } from './shell-tool.ts';

export { type BashToolSandbox, type BashToolSandboxOptions, bashToolSandbox } from './bash-tool-sandbox.ts';

/** What a model says about a command. Nothing that would grant anything: an unknown key is refused. */
const INPUT = z.strictObject({
  command: z.string().min(1).max(LONGEST_COMMAND).describe('The command, as it would be typed into bash.'),
  cwd: z
    .string()
    .max(4095)
    .optional()
    .describe('Directory in which it starts, relative to the workspace. Default: the workspace.'),
  timeout: z
    .number()
    .positive()
    .optional()
    .describe('Milliseconds after which it is ended. It gets less if the sandbox gives less.'),
});
export type ShellToolInput = z.infer<typeof INPUT>;

/** What became of a command, as the application sees it. */
export interface ShellToolOutput {
  readonly status: ExecutionResult['status'];
  /** As a shell would say it; 124: it ran out of time, 126: it was refused. */
  readonly exitCode: number;
  /** Text without escape sequences. */
  readonly stdout: string;
  readonly stderr: string;
  /** Why it was refused or stopped, for the model. */
  readonly message?: string;
  readonly durationMs: number;
}

/** Options of `shellTool`. */
export interface ShellToolOptions {
  /** Default: what the tool is, and where it runs. */
  readonly description?: string;
  /** Most bytes of each stream. Default: 30,000. */
  readonly maxOutput?: number;
  /** Called with the result of each command: decision, warnings, protected paths that it made. Not for the model. */
  readonly onResult?: (result: ExecutionResult) => void;
}

/**
 * A tool of the AI SDK that runs commands in the sandbox. What the policy asks becomes an approval request of the SDK; an
 * approval is good for exactly that call, once, and only with the same tool object: keep it from request to request.
 */
export function shellTool(
  sandbox: Sandbox,
  { description, maxOutput = DEFAULT_MODEL_OUTPUT, onResult }: ShellToolOptions = {},
): Tool<ShellToolInput, ShellToolOutput> {
  const asked = new AskedCalls(sandbox);
  return tool({
    description:
      description ??
      `Runs a bash command in a sandbox, in ${sandbox.workspace}. Each command has a shell of its own. Refused commands say why; do not look for a way around.`,
    inputSchema: INPUT,
    needsApproval: ({ command, cwd, timeout }, { toolCallId, messages }) =>
      asked.ask({
        ...{ id: toolCallId, content: contentOf({ command, cwd, timeout }), commands: [command], cwd },
        // The SDK asks a second time when the answer is there, with whatever the call is by then.
        isAnswered: isApproved(messages, toolCallId),
        // Whether there is an answer is in the messages, which come with the call that runs.
        isApproved: () => true,
      }),
    execute: async (input, { toolCallId, messages, abortSignal }) => {
      const [approved = false] =
        (isApproved(messages, toolCallId) ? asked.take(contentOf(input), toolCallId) : undefined) ?? [];
      const { command, cwd, timeout } = input;
      const call = { command, maxOutput, cwd, timeout };
      const { result, message } = await runForModel(sandbox, call, { approved, signal: abortSignal });
      onResult?.(result);
      const { status, stdout, stderr, durationMs } = result;
      return {
        ...{ status, exitCode: exitStatus(result), stdout, stderr, durationMs },
        ...(message === undefined ? {} : { message }),
      };
    },
    toModelOutput: ({ output }) => {
      const { status } = output;
      const type = status === 'denied' || status === 'setup-failed' ? 'error-text' : 'text';
      return { type, value: textForModel(output) };
    },
  });
}

const contentOf = ({ command, cwd, timeout }: ShellToolInput) =>
  JSON.stringify([command, cwd ?? null, timeout ?? null]);

/** Whether the application answered a question about the call with yes. */
function isApproved(messages: ToolExecutionOptions['messages'], toolCallId: string): boolean {
  const questions = new Set<string>();
  for (const { role, content } of messages) {
    if (role !== 'assistant' || typeof content === 'string') continue;
    for (const part of content) {
      if (part.type === 'tool-approval-request' && part.toolCallId === toolCallId)
        questions.add(part.approvalId);
    }
  }
  return messages.some(
    ({ role, content }) =>
      role === 'tool' &&
      content.some(
        (part) =>
          part.type === 'tool-approval-response' && part.approved === true && questions.has(part.approvalId),
      ),
  );
}

/** Short: output as it is, and only what is not as expected is said. */
function textForModel({ status, exitCode, stdout, stderr, message }: ShellToolOutput): string {
  if (status === 'denied' || status === 'setup-failed') return message ?? `Not run: exit status ${exitCode}`;
  const said = withMessage(stderr, message);
  const lines = [stdout, ...(said === '' ? [] : [`[stderr]\n${said}`])].map((text) => text.trimEnd());
  if (status === 'timed-out') lines.push('[ended: it ran out of time]');
  else if (status === 'canceled') lines.push('[ended: it was canceled]');
  else if (exitCode !== 0) lines.push(`[exit status ${exitCode}]`);
  return lines.filter((text) => text !== '').join('\n') || '[no output]';
}
