import { join } from 'node:path';
import type { AfterLook, HookEvent, HookOptions } from '../hooks/hook-adapter.ts';
import { type DecidedAnswer, type Fields, HookInput, hookOutput, isFields } from '../hooks/hook-input.ts';
import { operatorWords } from '../hooks/rewrite.ts';
import { blockingHooks, HOOK_TIMEOUT_SECONDS, toolPattern } from '../install/hook-command.ts';
import { changedSettings } from '../install/hook-settings.ts';
import { changedToml, type TomlTable, tomlSwitch } from '../install/toml-text.ts';
import type { Agent, FileChange, InstallPlaces, InstallScope } from './agent.ts';

const INPUT = new HookInput('Codex');

/** Names of the tool that hands text to a shell: all that hooks see of every kind of it, and what it is called inside. */
const SHELL_TOOLS = ['Bash', 'exec_command', 'shell_command', 'shell', 'local_shell'];
/** Tools whose results others wrote. */
const OUTSIDE_TOOLS = ['mcp__.*', 'web_search', 'web_fetch', 'read_mcp_resource', 'list_mcp_resources'];

const OUTSIDE = new RegExp(toolPattern(OUTSIDE_TOOLS));

const AFTER = 'PostToolUse';

/** The events that we are asked for, and of which tools. */
const EVENTS = {
  SessionStart: undefined,
  PreToolUse: toolPattern(SHELL_TOOLS),
  [AFTER]: toolPattern(OUTSIDE_TOOLS),
  SessionEnd: undefined,
};

/** Seconds of one call of a tool; the server itself ends commands, and asks for as long as the policy says. */
const MCP_CALL_SECONDS = 3600;
/** Seconds until the server answers: on a host that is busy a start of Node takes long. */
const MCP_START_SECONDS = 60;

/**
 * Codex: hooks in the format of Claude Code, with other rules. It knows no question (`ask` is a failure), and it runs the
 * command as it was after every failure: another status than 2, 2 without a reason, a hook that is late or cannot start.
 * So a command is rewritten or refused, and where the policy asks, the run of ours does.
 */
export const codex: Agent = {
  hooks: {
    agent: 'codex',
    modes: ['rewrite'],
    // It starts its hooks in the directory of the session; "cwd" is what the model wants.
    projectOf: () => undefined,
    isAfter: (input) => isFields(input) && input.hook_event_name === AFTER,
    decode,
    example: (command, { session, cwd }) => ({
      ...{ session_id: session, turn_id: 'example', cwd, hook_event_name: 'PreToolUse' },
      ...{ tool_name: 'Bash', tool_input: { command }, tool_use_id: 'example' },
    }),
    encode: (answer) => hookOutput(answer, decisionOf),
  },
  installer: {
    hooks: {
      what: 'hooks',
      filesOf: (scope, places, options) => {
        const directory = directoryOf(scope, places);
        const path = join(directory, 'hooks.json');
        return [
          { path, change: (text) => changedSettings(text, hooksChange(options), path) },
          {
            path: join(directory, 'config.toml'),
            change: (text) => text,
            switchedOff: (text) =>
              tomlSwitch(text, 'features', 'hooks') === false ? '"features.hooks" is false' : undefined,
          },
        ];
      },
      next: 'Codex runs NO hook before you trust it: start codex and choose to trust the hooks (/hooks shows them). Until then its commands are not confined. They need sandbox_mode = "danger-full-access"; --mcp needs neither',
    },
    mcp: {
      what: 'MCP server (in place of the shell tool)',
      filesOf: (scope, places, options) => [
        mcpChange(join(directoryOf(scope, places), 'config.toml'), scope, places, options),
      ],
      next: "Codex's own shell tool is off now, so that every command goes through sandbox-run; start a new session",
    },
  },
};

function directoryOf(scope: InstallScope, { home, project, env }: InstallPlaces): string {
  return scope === 'project' ? join(project, '.codex') : env.CODEX_HOME || join(home, '.codex');
}

function decode(given: unknown): HookEvent {
  const input = INPUT.all(given);
  const event = INPUT.text(input, 'hook_event_name');
  if (event === 'SessionStart' || event === 'SessionEnd')
    return INPUT.sessionEvent(input, event === 'SessionStart');
  if (event !== 'PreToolUse' && event !== AFTER) return { kind: 'other' };
  // No other agent sends it.
  INPUT.text(input, 'turn_id');
  const session = INPUT.text(input, 'session_id');
  const tool = INPUT.text(input, 'tool_name');
  const cwd = INPUT.directory(input, 'cwd');
  if (event === AFTER) {
    const saw: AfterLook['saw'] | undefined = OUTSIDE.test(tool) ? 'outside' : undefined;
    return saw === undefined ? { kind: 'other' } : { kind: 'after-look', session, tool, cwd, saw };
  }
  if (!SHELL_TOOLS.includes(tool)) return { kind: 'other' };
  const tools = INPUT.fields(input, 'tool_input');
  return {
    ...{ kind: 'before-command', session, tool, cwd, call: INPUT.optional(input, 'tool_use_id', 'string') },
    ...{ command: INPUT.shellText(tools), timeoutMs: undefined, isBackground: false, canAsk: false },
    withCommand: (command) => ({ ...tools, command }),
  };
}

function decisionOf(answer: DecidedAnswer): Fields {
  if (answer.verdict !== 'allow') return refusal(answer.reason);
  // Without an input it would be a failure there, and run the command as it is.
  if (answer.input === undefined) return refusal('Not run: sandbox-run has no command to run in its place');
  return { permissionDecision: 'allow', updatedInput: answer.input };
}

const refusal = (reason: string) => ({
  permissionDecision: 'deny',
  permissionDecisionReason: reason.trim() || 'Not run',
});

const hooksChange = (options: HookOptions | undefined) =>
  blockingHooks('codex', options, EVENTS, { timeout: HOOK_TIMEOUT_SECONDS });

/** In `config.toml`: the server, whose calls Codex fails unless they are approved beforehand, and no other shell beside it. */
function mcpChange(
  path: string,
  scope: InstallScope,
  { project }: InstallPlaces,
  options: HookOptions | undefined,
): FileChange {
  const change = (text: string | undefined) =>
    changedToml(text, options === undefined ? [] : wantedTables(scope, project, options), path);
  return { path, change };
}

function wantedTables(
  scope: InstallScope,
  project: string,
  { program, sandbox }: HookOptions,
): readonly TomlTable[] {
  const [command = '', ...words] = program;
  const limit = sandbox.timeout === undefined ? [] : ['--timeout', String(sandbox.timeout / 1000)];
  // Without it the workspace is where Codex was started.
  const workspace = scope === 'project' ? ['--workspace', project] : [];
  return [
    { name: ['features'], values: { shell_tool: false } },
    {
      name: ['mcp_servers', 'sandbox-run'],
      values: {
        command,
        args: [...words, 'mcp', ...workspace, ...operatorWords(sandbox), ...limit],
        default_tools_approval_mode: 'approve',
        startup_timeout_sec: MCP_START_SECONDS,
        tool_timeout_sec: MCP_CALL_SECONDS,
        required: true,
      },
    },
  ];
}
