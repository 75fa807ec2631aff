import { join } from 'node:path';
import { shellWords } from '../../base/shell-quote.ts';
import type { AfterCommand, AfterLook, HookEvent, HookOptions } from '../hooks/hook-adapter.ts';
import { type DecidedAnswer, type Fields, HookInput, hookOutput, isFields } from '../hooks/hook-input.ts';
import { HOOK_TIMEOUT_SECONDS, hookWords } from '../install/hook-command.ts';
import { changedSettings, type SettingsChange, type WantedHook } from '../install/hook-settings.ts';
import type { Agent } from './agent.ts';

const INPUT = new HookInput('Claude Code');

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
const COMMANDS = 'Bash|Monitor';
const LOOKS = 'Read|NotebookRead|Grep';
const OUTSIDE = 'WebFetch|WebSearch|ReadMcpResourceTool|ListMcpResourcesTool|mcp__.*';

/** Time in which a command of ours has ended after its limit. */
const END_MS = 5_000;

const AFTER: ReadonlySet<unknown> = new Set(['PostToolUse', 'PostToolUseFailure']);

/** Claude Code: the hooks `SessionStart`, `PreToolUse`, `PostToolUse` and `PostToolUseFailure`. */
export const claudeCode: Agent = {
  hooks: {
    agent: 'claude-code',
    modes: ['decide', 'rewrite'],
    projectOf: (env) => env.CLAUDE_PROJECT_DIR,
    isAfter: (input) => isFields(input) && AFTER.has(input.hook_event_name),
    sentBy,
    decode,
    example: (command, { session, cwd }) => ({
      ...{ session_id: session, cwd, hook_event_name: 'PreToolUse' },
      ...{ tool_name: 'Bash', tool_input: { command, description: 'An example' }, tool_use_id: 'example' },
    }),
    encode: (answer) => hookOutput(answer, decisionOf),
  },
  installer: {
    hooks: {
      what: 'hooks',
      filesOf: (scope, { home, project }, options) => {
        // The hooks name where programs are on this machine and block every command where they are not, so they are
        // nothing for `settings.json`, which is shared.
        const path =
          scope === 'user'
            ? join(home, '.claude/settings.json')
            : join(project, '.claude/settings.local.json');
        return [
          {
            path,
            change: (text) => changedSettings(text, claudeCodeChange(options), path),
            switchedOff: (text) =>
              JSON.parse(text).disableAllHooks === true ? '"disableAllHooks" is true' : undefined,
          },
        ];
      },
    },
  },
};

/**
 * Agents that take or import the settings of Claude Code take its answers otherwise: Codex runs a command that is asked
 * about, Gemini CLI knows no word of them.
 */
function sentBy(input: unknown): string | undefined {
  if (!isFields(input)) return undefined;
  if (input.turn_id !== undefined) return 'codex';
  return input.hook_event_name === 'BeforeTool' || input.hook_event_name === 'AfterTool'
    ? 'gemini-cli'
    : undefined;
}

function decode(given: unknown): HookEvent {
  const input = INPUT.all(given);
  const event = INPUT.text(input, 'hook_event_name');
  if (event === 'SessionStart' || event === 'SessionEnd')
    return INPUT.sessionEvent(input, event === 'SessionStart');
  if (event !== 'PreToolUse' && !AFTER.has(event)) return { kind: 'other' };
  const tool = INPUT.text(input, 'tool_name');
  const call = INPUT.optional(input, 'tool_use_id', 'string');
  const cwd = INPUT.directory(input, 'cwd');
  const about = { call, cwd };
  if (SHELL_TOOLS.has(tool)) {
    const session = INPUT.text(input, 'session_id');
    const given = INPUT.fields(input, 'tool_input');
    const command = INPUT.shellText(given);
    if (event !== 'PreToolUse')
      return { kind: 'after-command', session, command, ...about, ...endOf(input, event) };
    const timeoutMs = INPUT.duration(given, tool === 'Bash' ? 'timeout' : 'timeout_ms');
    return {
      ...{ kind: 'before-command', session, tool, command, ...about, timeoutMs },
      isBackground: tool !== 'Bash' || INPUT.optional(given, 'run_in_background', 'boolean') === true,
      canAsk: true,
      withCommand: (changed, limitMs) => ({
        ...given,
        command: changed,
        // Longer than our own limit: otherwise Claude Code's could come first and move the command to the background.
        ...(tool === 'Bash' && limitMs > 0 && timeoutMs !== undefined ? { timeout: limitMs + END_MS } : {}),
      }),
    };
  }
  if (event === 'PreToolUse') return { kind: 'other' };
  const saw = whatWasSeen(tool, input);
  return saw === undefined
    ? { kind: 'other' }
    : { kind: 'after-look', session: INPUT.text(input, 'session_id'), tool, cwd, saw };
}

function whatWasSeen(tool: string, input: Fields): AfterLook['saw'] | undefined {
  if (OUTSIDE_TOOLS.test(tool)) return 'outside';
  const field = Object.hasOwn(READING_TOOLS, tool) ? READING_TOOLS[tool] : undefined;
  if (field === undefined) return undefined;
  return { paths: [INPUT.optional(INPUT.fields(input, 'tool_input'), field, 'string') ?? '.'] };
}

/** Claude Code says how a command ended in words only. */
function endOf(input: Fields, event: string): Pick<AfterCommand, 'exitCode' | 'durationMs'> {
  const durationMs = INPUT.optional(input, 'duration_ms', 'number') ?? 0;
  if (event === 'PostToolUse') return { exitCode: 0, durationMs };
  const [, status] = /^Exit code (\d{1,3})\b/.exec(String(input.error)) ?? [];
  return { exitCode: status === undefined ? undefined : Number(status), durationMs };
}

function decisionOf(answer: DecidedAnswer): Fields {
  return {
    permissionDecision: answer.verdict,
    permissionDecisionReason: answer.reason,
    ...('input' in answer && answer.input !== undefined ? { updatedInput: answer.input } : {}),
  };
}

const WORD = "'(?:[^']|'\\\\'')*'";
/** A command that this program has written: its own words, quoted as it quotes them. */
const OURS = new RegExp(
  `^${WORD} ${WORD}(?: ${WORD})? 'hook' 'claude-code'(?: ${WORD})*(?: \\|\\| exit 2)?$`,
);

/** The hooks that are wanted in its settings; `undefined`: none. */
export function claudeCodeChange(options: HookOptions | undefined): SettingsChange {
  return {
    isOurs: (command) => OURS.test(command),
    wanted: options === undefined ? [] : wantedHooks(options),
  };
}

function wantedHooks(options: HookOptions): readonly WantedHook[] {
  const told = ['--after', options.after ?? 'looks', ...(options.ends === true ? ['--ends'] : [])];
  const command = shellWords([...hookWords('claude-code', options), ...told]);
  const orBlock = `${command} || exit 2`;
  // A hook that does not start, or dies, has any status but 2, and only that one stops the call; versions that know
  // onFailure treat the other ways to fail the same. What is not answered in time is let through by old versions.
  const hook = { type: 'command', command: orBlock, timeout: HOOK_TIMEOUT_SECONDS, onFailure: 'block' };
  // Nothing is blocked where the model is told less.
  const session = { hooks: [{ type: 'command', command, timeout: HOOK_TIMEOUT_SECONDS }] };
  // Nobody waits for what is remembered; the model is told where that fails.
  const after = { matcher: toldAfterwards(options), hooks: [{ ...hook, asyncRewake: true }] };
  const isTold = after.matcher !== '';
  return [
    { event: 'SessionStart', group: session },
    { event: 'PreToolUse', group: { matcher: COMMANDS, hooks: [hook] } },
    ...(isTold
      ? [
          { event: 'PostToolUse', group: after },
          { event: 'PostToolUseFailure', group: after },
        ]
      : []),
    { event: 'SessionEnd', group: session },
  ];
}

/** The tools that we are told of when they have ended. What a command shows is remembered before it runs. */
function toldAfterwards({ after = 'looks', ends = false }: HookOptions): string {
  return [
    ...(ends ? [COMMANDS] : []),
    ...(after === 'looks' ? [LOOKS] : []),
    ...(after === 'nothing' ? [] : [OUTSIDE]),
  ].join('|');
}
