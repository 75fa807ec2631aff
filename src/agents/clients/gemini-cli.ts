import { join, resolve } from 'node:path';
import type { AfterLook, HookAnswer, HookEvent, HookOptions } from '../hooks/hook-adapter.ts';
import { type Fields, HookInput, isFields } from '../hooks/hook-input.ts';
import { blockingHooks, HOOK_TIMEOUT_SECONDS, toolPattern } from '../install/hook-command.ts';
import { changedSettings } from '../install/hook-settings.ts';
import type { Agent } from './agent.ts';

const INPUT = new HookInput('Gemini CLI');

/** Names of the tool that hands text to a shell; the second one is its old name. */
const SHELL_TOOLS = ['run_shell_command', 'ShellTool'];
/** Tools whose results others wrote. */
const OUTSIDE_TOOLS = ['web_fetch', 'google_web_search', 'mcp_.*', 'read_mcp_resource', 'list_mcp_resources'];
/** Tools that show content of files, and which fields of their input say which. Without one: the project. */
const READING_TOOLS: Readonly<Record<string, readonly string[]>> = {
  read_file: ['file_path', 'absolute_path'],
  read_many_files: ['include', 'paths'],
  search_file_content: ['dir_path', 'path'],
  grep_search: ['dir_path', 'path'],
};

const OUTSIDE = new RegExp(toolPattern(OUTSIDE_TOOLS));

const AFTER = 'AfterTool';

/** The events that we are asked for, and of which tools. */
const EVENTS = {
  SessionStart: undefined,
  BeforeTool: toolPattern(SHELL_TOOLS),
  [AFTER]: toolPattern([...OUTSIDE_TOOLS, ...Object.keys(READING_TOOLS)]),
  SessionEnd: undefined,
};
/** The name that people switch a hook off by. */
const NAME = 'sandbox-run';

/**
 * Gemini CLI: the hooks `BeforeTool` and `AfterTool`. It runs the command as it was after a hook that is late, was killed or
 * ends with status 1. Only some versions put "ask" to their user, and the others take it for a yes: so a command is rewritten
 * or refused, and where the policy asks, the run of ours does.
 */
export const geminiCli: Agent = {
  hooks: {
    agent: 'gemini-cli',
    modes: ['rewrite'],
    projectOf: (env) => env.GEMINI_PROJECT_DIR,
    isAfter: (input) => isFields(input) && input.hook_event_name === AFTER,
    decode,
    example: (command, { session, cwd }) => ({
      ...{ session_id: session, cwd, hook_event_name: 'BeforeTool' },
      ...{ tool_name: 'run_shell_command', tool_input: { command } },
    }),
    encode,
  },
  installer: {
    hooks: {
      what: 'hooks',
      filesOf: (scope, { home, project }, options) => {
        const path = join(scope === 'user' ? home : project, '.gemini/settings.json');
        return [{ path, change: (text) => changedSettings(text, hooksChange(options), path), switchedOff }];
      },
    },
  },
};

function switchedOff(text: string): string | undefined {
  const { hooksConfig } = JSON.parse(text);
  if (!isFields(hooksConfig)) return undefined;
  if (hooksConfig.enabled === false) return '"hooksConfig.enabled" is false';
  const isNamed = Array.isArray(hooksConfig.disabled) && hooksConfig.disabled.includes(NAME);
  return isNamed ? `"hooksConfig.disabled" names ${NAME}` : undefined;
}

function decode(given: unknown): HookEvent {
  const input = INPUT.all(given);
  const event = INPUT.text(input, 'hook_event_name');
  if (!Object.hasOwn(EVENTS, event)) return { kind: 'other' };
  if (event === 'SessionStart' || event === 'SessionEnd')
    return INPUT.sessionEvent(input, event === 'SessionStart');
  const session = INPUT.text(input, 'session_id');
  const tool = INPUT.text(input, 'tool_name');
  const project = INPUT.directory(input, 'cwd');
  if (event === AFTER) {
    const saw = whatWasSeen(tool, input);
    return saw === undefined ? { kind: 'other' } : { kind: 'after-look', session, tool, cwd: project, saw };
  }
  if (!SHELL_TOOLS.includes(tool)) return { kind: 'other' };
  const tools = INPUT.fields(input, 'tool_input');
  const directory = INPUT.optional(tools, 'dir_path', 'string');
  return {
    ...{ kind: 'before-command', session, tool, call: undefined, timeoutMs: undefined, canAsk: false },
    cwd: project === undefined || directory === undefined ? project : resolve(project, directory),
    command: INPUT.shellText(tools),
    isBackground: INPUT.optional(tools, 'is_background', 'boolean') === true,
    // Its answer takes the place of all that the model wrote.
    withCommand: (command) => ({ ...tools, command }),
  };
}

function whatWasSeen(tool: string, input: Fields): AfterLook['saw'] | undefined {
  if (OUTSIDE.test(tool)) return 'outside';
  const names = Object.hasOwn(READING_TOOLS, tool) ? READING_TOOLS[tool] : undefined;
  if (names === undefined) return undefined;
  const tools = INPUT.fields(input, 'tool_input');
  const paths = names.flatMap((name) => tools[name] ?? []).filter((path) => typeof path === 'string');
  return { paths: paths.length === 0 ? ['.'] : paths };
}

function encode(answer: HookAnswer): string {
  switch (answer.verdict) {
    case 'none':
      return '';
    case 'tell':
      return said({
        hookSpecificOutput: { hookEventName: 'SessionStart', additionalContext: answer.text },
      });
    case 'inform':
      return said({ systemMessage: answer.text });
    case 'stop':
      return said({ continue: false, stopReason: answer.reason });
    case 'allow':
      return answer.input === undefined
        ? said({ decision: 'deny', reason: 'Not run: sandbox-run has no command to run in its place' })
        : said({
            decision: 'allow',
            hookSpecificOutput: { hookEventName: 'BeforeTool', tool_input: answer.input },
          });
    case 'ask':
    case 'deny':
      return said({ decision: 'deny', reason: answer.reason });
  }
}

const said = (output: Fields) => `${JSON.stringify(output)}\n`;

const hooksChange = (options: HookOptions | undefined) =>
  blockingHooks('gemini-cli', options, EVENTS, { name: NAME, timeout: HOOK_TIMEOUT_SECONDS * 1000 });
