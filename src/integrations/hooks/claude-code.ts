import { SandboxError } from '../../errors/sandbox-error.ts';
import type { AfterCommand, AfterLook, HookAdapter, HookAnswer, HookEvent } from './hook-adapter.ts';

// Decoded by hand: loading zod would take longer than everything else that a hook does.

type Fields = Readonly<Record<string, unknown>>;

/** Tools that hand text to a shell. Monitor runs a script whose lines the model is told as they come. */
const SHELL_TOOLS: ReadonlySet<string> = new Set(['Bash', 'Monitor']);
/** Tools whose results others wrote. */
const OUTSIDE_TOOLS = /^(?:WebFetch|WebSearch|ReadMcpResourceTool|ListMcpResourcesTool|mcp__.*)$/;
/** Tools that show content of files, and which field of their input says which. Without it: the current directory. */
const READING_TOOLS: Readonly<Record<string, string>> = {
  Read: 'file_path',
  NotebookRead: 'notebook_path',
  Grep: 'path',
};

/** Which tools each event is asked for, as a pattern of the agent's settings. */
export const CLAUDE_CODE_TOOLS = {
  before: 'Bash|Monitor',
  after:
    'Bash|Monitor|Read|NotebookRead|Grep|WebFetch|WebSearch|ReadMcpResourceTool|ListMcpResourcesTool|mcp__.*',
} as const;

const AFTER: ReadonlySet<unknown> = new Set(['PostToolUse', 'PostToolUseFailure']);

/** The hooks of Claude Code: `SessionStart`, `PreToolUse`, `PostToolUse` and `PostToolUseFailure`. */
export const claudeCodeHooks: HookAdapter = {
  agent: 'claude-code',
  projectOf: (env) => env.CLAUDE_PROJECT_DIR,
  isAfter: (input) => isFields(input) && AFTER.has(input.hook_event_name),
  decode,
  encode,
};

function decode(input: unknown): HookEvent {
  if (!isFields(input)) throw malformed('the input', 'a JSON object');
  const event = text(input, 'hook_event_name');
  if (event === 'SessionStart') return { kind: 'session-start' };
  if (event !== 'PreToolUse' && !AFTER.has(event)) return { kind: 'other' };
  const tool = text(input, 'tool_name');
  const call = optional(input, 'tool_use_id', 'string');
  const cwd = optional(input, 'cwd', 'string');
  if (cwd?.startsWith('/') === false) throw malformed('"cwd"', 'an absolute path');
  const about = { call, cwd };
  if (SHELL_TOOLS.has(tool)) {
    const session = text(input, 'session_id');
    const given = fields(input, 'tool_input');
    const command = shellText(given);
    if (event !== 'PreToolUse')
      return { kind: 'after-command', session, command, ...about, ...endOf(input, event) };
    return {
      ...{ kind: 'before-command', session, command, ...about },
      timeoutMs: duration(given, tool === 'Bash' ? 'timeout' : 'timeout_ms'),
      isBackground: tool !== 'Bash' || optional(given, 'run_in_background', 'boolean') === true,
      withCommand: (changed) => ({ ...given, command: changed }),
    };
  }
  if (event === 'PreToolUse') return { kind: 'other' };
  const saw = whatWasSeen(tool, input);
  return saw === undefined
    ? { kind: 'other' }
    : { kind: 'after-look', session: text(input, 'session_id'), tool, cwd, saw };
}

function whatWasSeen(tool: string, input: Fields): AfterLook['saw'] | undefined {
  if (OUTSIDE_TOOLS.test(tool)) return 'outside';
  const field = Object.hasOwn(READING_TOOLS, tool) ? READING_TOOLS[tool] : undefined;
  if (field === undefined) return undefined;
  return { paths: [optional(fields(input, 'tool_input'), field, 'string') ?? '.'] };
}

/** Claude Code says how a command ended in words only. */
function endOf(input: Fields, event: string): Pick<AfterCommand, 'exitCode' | 'durationMs'> {
  const durationMs = optional(input, 'duration_ms', 'number') ?? 0;
  if (event === 'PostToolUse') return { exitCode: 0, durationMs };
  const [, status] = /^Exit code (\d{1,3})\b/.exec(String(input.error)) ?? [];
  return { exitCode: status === undefined ? undefined : Number(status), durationMs };
}

function shellText(input: Fields): string {
  const command = text(input, 'command');
  // Neither can be handed to a program as it is: what was judged would not be what runs.
  if (/\0|\p{Surrogate}/u.test(command)) throw malformed('"command"', 'text that can be handed to a program');
  return command;
}

function duration(input: Fields, name: string): number | undefined {
  const value = input[name];
  // A model that writes numbers as text is put right by the agent.
  const number = typeof value === 'string' && /^\d{1,12}$/.test(value) ? Number(value) : value;
  if (number === undefined || number === null) return undefined;
  if (typeof number === 'number' && Number.isFinite(number) && number >= 0) return number;
  throw malformed(`"${name}"`, 'a number of milliseconds');
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fields(input: Fields, name: string): Fields {
  const value = input[name];
  if (!isFields(value)) throw malformed(`"${name}"`, 'an object');
  return value;
}

function text(input: Fields, name: string): string {
  const value = input[name];
  if (typeof value !== 'string' || value === '') throw malformed(`"${name}"`, 'text');
  return value;
}

interface Kinds {
  readonly string: string;
  readonly number: number;
  readonly boolean: boolean;
}

function optional<K extends keyof Kinds>(input: Fields, name: string, kind: K): Kinds[K] | undefined {
  const value = input[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== kind) throw malformed(`"${name}"`, `a ${kind}`);
  return value as Kinds[K];
}

function malformed(what: string, expected: string): SandboxError {
  return new SandboxError(
    'usage.invalid',
    `the hook's input is not what Claude Code sends: ${what} is not ${expected}`,
  );
}

function encode(answer: HookAnswer): string {
  switch (answer.verdict) {
    case 'none':
      return '';
    case 'tell':
      return specific({ hookEventName: 'SessionStart', additionalContext: answer.text });
    case 'stop':
      return `${JSON.stringify({ continue: false, stopReason: answer.reason })}\n`;
    case 'deny':
      return permission({ permissionDecision: 'deny', permissionDecisionReason: answer.reason });
    default:
      return permission({
        permissionDecision: answer.verdict,
        permissionDecisionReason: answer.reason,
        ...(answer.input === undefined ? {} : { updatedInput: answer.input }),
      });
  }
}

const permission = (decision: Fields) => specific({ hookEventName: 'PreToolUse', ...decision });

const specific = (output: Fields) => `${JSON.stringify({ hookSpecificOutput: output })}\n`;
