import { z } from 'zod';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { visibleLine } from '../base/visible-text.ts';
import type { ExecutionResult, RunOptions } from '../model/index.ts';
import { exitStatus, type Sandbox } from '../run/index.ts';
import type { Approval } from './asked-calls.ts';
import { DEFAULT_MODEL_OUTPUT, LONGEST_COMMAND, runForModel, timeWithin } from './shell-tool.ts';

/** More commands than that in one action are no action. */
const MOST_COMMANDS = 64;

/** Most bytes of one stream that are taken in, whatever is asked for. */
const MOST_BYTES = 16 * 1024 * 1024;

/** An action of OpenAI's shell tool. What a limit cannot be is no limit: then the operator's holds. */
const ACTION = z.object({
  commands: z
    .array(z.string().max(LONGEST_COMMAND))
    .min(1)
    .max(MOST_COMMANDS)
    .describe('Shell strings, run one after the other.'),
  timeoutMs: z.number().positive().optional().catch(undefined).describe('Milliseconds for all of them.'),
  maxOutputLength: z
    .number()
    .int()
    .nonnegative()
    .optional()
    .catch(undefined)
    .describe('Most characters of output, of all commands and both streams together.'),
});
export type ShellAction = z.infer<typeof ACTION>;

/** What the operator says about the actions of a model. */
export interface ShellActionOptions {
  /** Most characters of output of an action, of all commands and both streams. Default: 30,000. A model can ask for less. */
  readonly maxOutput?: number;
  /** Milliseconds that an action may take. A model can ask for less; no command gets more than the sandbox's own time-out. */
  readonly timeout?: number;
  /** Ends what runs when aborted; what has not begun does not. */
  readonly signal?: AbortSignal;
  /** Called with the result of each command: decision, warnings, protected paths that it made. Not for the model. */
  readonly onResult?: (result: ExecutionResult) => void;
}

/** What became of one command. */
export interface CommandOutput {
  readonly stdout: string;
  /** Ends with the text for the model, if the command was refused or stopped. */
  readonly stderr: string;
  /** `undefined`: it ran out of time. */
  readonly exitCode: number | undefined;
}

/** What became of an action. */
export interface ActionOutput {
  /** The output of each command, in the order of the commands. */
  readonly output: readonly CommandOutput[];
  /** The limit on characters that was held. */
  readonly maxOutputLength: number;
}

/** An action as a model sent it, or one sentence about why it is none. */
export function parseAction(action: unknown): ShellAction | string {
  const parsed = ACTION.safeParse(action);
  return parsed.success
    ? parsed.data
    : `Not run: "commands" must be an array of 1 to ${MOST_COMMANDS} strings, each one a shell command of at most ${LONGEST_COMMAND} characters.`;
}

/**
 * Runs the commands of an action in their order, each in a shell of its own: the API calls them ordered, and a later one may
 * need what an earlier one made. One that fails or is refused does not keep the others from running; the end of the time does.
 * @param approvals what each of them is run with where the policy asks; `undefined`: nothing was approved.
 */
export async function runAction(
  sandbox: Sandbox,
  action: ShellAction | string,
  { maxOutput = DEFAULT_MODEL_OUTPUT, timeout = 0, signal, onResult }: ShellActionOptions,
  approvals: (
    commands: readonly string[],
  ) => readonly Approval[] | undefined | Promise<readonly Approval[] | undefined>,
): Promise<ActionOutput> {
  if (typeof action === 'string') return { output: [notRun(action, 126)], maxOutputLength: maxOutput };
  const { commands } = action;
  const maxOutputLength = Math.min(action.maxOutputLength ?? maxOutput, maxOutput);
  const time = timeWithin(action.timeoutMs, timeout);
  const end = time === undefined ? undefined : performance.now() + time;
  const approved = (await approvals(commands)) ?? [];
  const output: CommandOutput[] = [];
  let left = maxOutputLength;
  for (const [index, command] of commands.entries()) {
    // What one leaves is for those after it.
    const room = Math.floor(left / (commands.length - index));
    const more = { approved: approved[index] ?? false, signal };
    const one = await runOne(sandbox, command, { end, room, more, onResult });
    const [stdout, stderr] = shortenedTogether(one.stdout, one.stderr, room);
    left -= stdout.length + stderr.length;
    output.push({ ...one, stdout, stderr });
  }
  return { output, maxOutputLength };
}

interface Within {
  /** On the clock of `performance.now()`. */
  readonly end: number | undefined;
  /** Characters. */
  readonly room: number;
  readonly more: Pick<RunOptions, 'approved' | 'signal'>;
  readonly onResult: ShellActionOptions['onResult'];
}

async function runOne(
  sandbox: Sandbox,
  command: string,
  { end, room, more, onResult }: Within,
): Promise<CommandOutput> {
  const left = end === undefined ? undefined : Math.ceil(end - performance.now());
  if (left !== undefined && left <= 0)
    return notRun('Not run: the commands before it used up the time of the call.', undefined);
  if (more.signal?.aborted === true) return notRun('Not run: the call was canceled.', 130);
  try {
    // A character has up to four bytes.
    const maxOutput = Math.min(4 * room, MOST_BYTES);
    const call = { command, maxOutput, timeout: left };
    const { result, message } = await runForModel(sandbox, call, more);
    onResult?.(result);
    return {
      stdout: result.stdout,
      stderr: withMessage(result.stderr, message),
      exitCode: result.status === 'timed-out' ? undefined : exitStatus(result),
    };
  } catch (error) {
    // A library that catches this tells the model that the command succeeded.
    if (!(error instanceof SandboxError)) throw error;
    return notRun(`Not run (${error.code}): ${visibleLine(error.message, 300)}`, error.exitStatus);
  }
}

const notRun = (why: string, exitCode: number | undefined): CommandOutput => ({
  stdout: '',
  stderr: `${why}\n`,
  exitCode,
});

/** Standard error, and behind it, on lines of its own, what a model is told. */
export function withMessage(stderr: string, message: string | undefined): string {
  if (message === undefined) return stderr;
  return `${stderr}${stderr === '' || stderr.endsWith('\n') ? '' : '\n'}${message}\n`;
}

const LEFT_OUT = '\n[... left out ...]\n';

/**
 * Text of at most so many UTF-16 units, so never more characters either: its beginning and its end with a line between them
 * that says so, or only its beginning where there is no room for that. No character is cut in half.
 */
function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const room = most - LEFT_OUT.length;
  if (room < 2 * LEFT_OUT.length) return beginning(text, most);
  const tail = Math.floor(room / 2);
  // Of a pair, the second half means nothing without the first.
  const end = text.slice(text.length - tail).replace(/^[\udc00-\udfff]/, '');
  return `${beginning(text, room - tail)}${LEFT_OUT}${end}`;
}

const beginning = (text: string, most: number) => text.slice(0, most).replace(/[\ud800-\udbff]$/, '');

/** Two texts that share a room: each gets half at least, and what the other leaves. */
function shortenedTogether(first: string, second: string, most: number): readonly [string, string] {
  const forSecond = Math.min(second.length, Math.max(Math.floor(most / 2), most - first.length));
  const end = shortened(second, forSecond);
  return [shortened(first, most - end.length), end];
}
