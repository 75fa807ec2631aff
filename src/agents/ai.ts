import { dirname, resolve } from 'node:path';
import { type Tool, type ToolExecutionOptions, tool } from 'ai';
import { z } from 'zod';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { visibleLine } from '../base/visible-text.ts';
import type { ExecutionResult } from '../model/index.ts';
import { exitStatus, introduceBoundaries, messageForModel, type Sandbox } from '../run/index.ts';
import { AskedCalls } from './asked-calls.ts';
import { withMessage } from './shell-action.ts';
import { DEFAULT_MODEL_OUTPUT, LONGEST_COMMAND, runForModel, timeWithin } from './shell-tool.ts';

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
  /** Default: what the tool is, and what its commands may do. */
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
      `Runs a bash command in a sandbox. ${introduceBoundaries(sandbox.plan, sandbox.defaults.timeout)} Each command has a shell of its own. Refused commands say why; do not look for a way around.`,
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
      const introduction = description === undefined ? { knowsBoundaries: true } : {};
      const call = { command, maxOutput, cwd, timeout, ...introduction };
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

const MIB = 1024 * 1024;

/** Names are long, messages about them are not. */
const QUOTED_CHARACTERS = 300;

/** A file that is none, such as a named pipe, keeps its reader waiting. */
const FILE_TIMEOUT = 30_000;

/** The `Sandbox` of the `bash-tool` package. */
export interface BashToolSandbox {
  /** A refused command has exit code 126, one that ran out of time 124, and the reason on `stderr`. */
  executeCommand(command: string): Promise<{ stdout: string; stderr: string; exitCode: number }>;
  /** The content, byte for byte; what is not UTF-8 becomes U+FFFD. Throws `SandboxError`. */
  readFile(path: string): Promise<string>;
  /** Writes files one after the other, with the directories that they need. Throws `SandboxError` at the first that fails. */
  writeFiles(
    files: readonly { readonly path: string; readonly content: string | Uint8Array }[],
  ): Promise<void>;
}

/** Options of `bashToolSandbox`. */
export interface BashToolSandboxOptions {
  /** Most bytes of a file that is read or written. Default: 1 MiB. */
  readonly maxFileBytes?: number;
  /** Most bytes of each output stream of a command. Default: 30,000. */
  readonly maxOutput?: number;
  /** Called with the result of each command, also those that read and write files. Not for the model. */
  readonly onResult?: (result: ExecutionResult) => void;
}

/**
 * A sandbox for `createBashTool({ sandbox, destination })` of `bash-tool`; as `destination` give `sandbox.workspace`. Files are
 * read and written by programs in the sandbox: what they may touch is up to the policy and the kernel, not to how a path looks.
 * @throws {SandboxError} from its methods: `file.unusable`, or the code of the refusal.
 */
export function bashToolSandbox(
  sandbox: Sandbox,
  { maxFileBytes = MIB, maxOutput = DEFAULT_MODEL_OUTPUT, onResult }: BashToolSandboxOptions = {},
): BashToolSandbox {
  // Absolute, so that it is no option and not "-".
  const at = (path: string) => resolve(sandbox.workspace, path);
  const timeout = timeWithin(FILE_TIMEOUT, sandbox.defaults.timeout) ?? FILE_TIMEOUT;

  async function runFor(
    what: string,
    argv: readonly [string, ...string[]],
    more: { readonly input?: Uint8Array; readonly maxOutput: number },
  ): Promise<ExecutionResult> {
    const result = await sandbox.run(argv, { encoding: 'bytes', timeout, ...more });
    onResult?.(result);
    if (result.status === 'exited' && result.exitCode === 0) return result;
    const stopped = messageForModel(result, sandbox.plan);
    if (result.error !== undefined && stopped !== undefined)
      throw new SandboxError(result.error.code, stopped);
    const said = Buffer.from(result.bytes?.stderr ?? []).toString();
    const why =
      result.status === 'timed-out' ? 'it took too long' : said || `exit status ${exitStatus(result)}`;
    throw unusable(what, why);
  }

  async function write(path: string, content: Uint8Array): Promise<void> {
    const what = `${path} cannot be written`;
    const directory = dirname(at(path));
    if (directory !== sandbox.workspace)
      await runFor(what, ['mkdir', '-p', '--', directory], { maxOutput: 4096 });
    await runFor(what, ['tee', '--', at(path)], { input: content, maxOutput: 4096 });
  }

  return {
    executeCommand: async (command) => {
      const { result, message } = await runForModel(sandbox, { command, maxOutput });
      onResult?.(result);
      return {
        stdout: result.stdout,
        stderr: withMessage(result.stderr, message),
        exitCode: exitStatus(result),
      };
    },
    readFile: async (path) => {
      checkPath(path);
      const what = `${path} cannot be read`;
      // One byte more tells a file that is too long; one without an end is not read to it.
      const argv = ['head', '-c', String(maxFileBytes + 1), '--', at(path)] as const;
      const { bytes } = await runFor(what, argv, { maxOutput: maxFileBytes + 1 });
      const content = bytes?.stdout ?? new Uint8Array();
      if (content.length > maxFileBytes) throw tooLarge(what, maxFileBytes);
      return Buffer.from(content).toString();
    },
    writeFiles: async (files) => {
      const ready = files.map(({ path, content }) => {
        checkPath(path);
        if (typeof content !== 'string' && !(content instanceof Uint8Array))
          throw unusable(`${path} cannot be written`, 'its content must be a string or bytes');
        const bytes = typeof content === 'string' ? Buffer.from(content) : content;
        if (bytes.length > maxFileBytes) throw tooLarge(`${path} cannot be written`, maxFileBytes);
        return { path, bytes };
      });
      for (const { path, bytes } of ready) await write(path, bytes);
    },
  };
}

function checkPath(path: string): void {
  if (typeof path === 'string' && path !== '' && !path.includes('\0')) return;
  throw new SandboxError('file.unusable', 'a path must be text that is not empty and has no NUL in it');
}

const unusable = (what: string, why: string) =>
  new SandboxError(
    'file.unusable',
    `${visibleLine(what, QUOTED_CHARACTERS)}: ${visibleLine(why, QUOTED_CHARACTERS)}`,
  );

const tooLarge = (what: string, most: number) =>
  unusable(what, `it has more than ${most} bytes (maxFileBytes); read or write a part of it by a command`);
