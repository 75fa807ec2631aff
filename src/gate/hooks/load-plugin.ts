import { Module } from 'node:module';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { flatObject } from '../../base/flat-object.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type {
  GuardAnswer,
  HookAnswer,
  HookPlugin,
  HookSession,
  ToolHook,
  ToolInput,
  ToolResult,
} from '../../model/index.ts';
import { readTrusted, requireTrustedProgram, type TrustedFile, type Writable } from './trusted-file.ts';

/** How long a module may take to load: an `await` at its top may never settle. */
const LOAD_TIMEOUT_MS = 10_000;
const MAX_REASON_LENGTH = 300;

/** What a plug-in exports: any of these, at least one. */
interface PluginModule {
  readonly before_tool_use?: (toolName: string, toolInput: ToolInput) => HookAnswer | Promise<HookAnswer>;
  readonly after_tool_use?: (
    toolName: string,
    toolInput: ToolInput,
    result: ToolResult,
  ) => void | Promise<void>;
  readonly session_start?: (session: HookSession) => HookAnswer | Promise<HookAnswer>;
  readonly session_end?: (session: HookSession) => void | Promise<void>;
}

const EVENTS: ReadonlySet<string> = new Set([
  'before_tool_use',
  'after_tool_use',
  'session_start',
  'session_end',
]);
/** A function that nobody would ever call, because its name is misspelt. */
const LOOKS_LIKE_EVENT = /tool_?use$|^session_?(?:start|end|begin|stop)|^session_/i;

/** Asks a program of the operator; its answer, or why there is none. */
type AskProgram = (
  argv: readonly [string, ...string[]],
  question: unknown,
) => Promise<{ readonly answer: string } | { readonly problem: string }>;

/** What plug-ins are loaded with. */
export interface HookParts extends Writable {
  readonly askProgram: AskProgram;
  /** Whether the plug-ins of the policy were asked about this before, and had no objection. Missing: they were not. */
  readonly wasAsked?: ((toolName: string, toolInput: ToolInput) => Promise<boolean>) | undefined;
  readonly loadTimeoutMs?: number;
}

/**
 * Loads the plug-ins of a policy, in its order. One that cannot be trusted or loaded becomes a hook that refuses
 * everything and says why. A file that is the same as before is the same module: Node runs it once.
 */
export async function loadHooks(
  plugins: readonly HookPlugin[],
  parts: HookParts,
): Promise<readonly ToolHook[]> {
  return Promise.all(plugins.map((plugin) => loadHook(plugin, parts)));
}

async function loadHook(plugin: HookPlugin, parts: HookParts): Promise<ToolHook> {
  const { path, command } = plugin;
  const name = basename(path ?? command?.find(isScript) ?? command?.[0] ?? '');
  try {
    const hook =
      path === undefined ? await programHook(name, command, parts) : await moduleHook(name, plugin, parts);
    return askedOnce(hook, parts.wasAsked);
  } catch (error) {
    return refusingHook(name, `the hook ${path ?? name} cannot be used: ${messageOf(error)}`);
  }
}

/** Whether an argument is the script that the program of a command line runs as an interpreter. */
const isScript = (argument: string, index: number) => index > 0 && argument.startsWith('/');

async function moduleHook(
  name: string,
  { path = '', sha256 }: HookPlugin,
  { loadTimeoutMs = LOAD_TIMEOUT_MS, ...where }: HookParts,
): Promise<ToolHook> {
  const file = await readTrusted({ path, sha256 }, where);
  return hookOf(name, await loaded(moduleUrl(file, sha256 !== undefined), loadTimeoutMs));
}

/** A hook by command: the program is asked before a tool is used, and not informed afterwards. */
async function programHook(name: string, argv: HookPlugin['command'], parts: HookParts): Promise<ToolHook> {
  const [program, ...args] = argv ?? [];
  if (program === undefined) throw unusable('it names no program');
  await requireTrustedProgram([program, ...args], parts);
  return {
    name,
    beforeToolUse: async (toolName, toolInput) => {
      const outcome = await parts.askProgram([program, ...args], {
        tool_name: toolName,
        tool_input: toolInput,
      });
      if ('problem' in outcome) throw unusable(`it ${outcome.problem}`);
      const answer = flatObject(outcome.answer);
      if (answer === undefined) throw unusable('it wrote something else than one JSON object');
      // The caller checks the answer.
      return answer as HookAnswer;
    },
  };
}

/**
 * The hook, which is not asked about a tool where it was before. One that cannot be used refuses all the same.
 */
function askedOnce(hook: ToolHook, wasAsked: HookParts['wasAsked']): ToolHook {
  if (wasAsked === undefined) return hook;
  return {
    ...hook,
    beforeToolUse: async (toolName, toolInput) =>
      (await wasAsked(toolName, toolInput)) ? {} : hook.beforeToolUse(toolName, toolInput),
  };
}

/**
 * A pinned plug-in runs from the very bytes that were hashed, so that it can import nothing by a relative path: the pin
 * would not cover it. Another one runs from its place.
 */
function moduleUrl({ path, content, sha256 }: TrustedFile, pinned: boolean): string {
  if (pinned) return `data:text/javascript;base64,${content.toString('base64')}`;
  return `${pathToFileURL(path)}?sha256=${sha256}`;
}

async function loaded(url: string, timeoutMs: number): Promise<Readonly<Record<string, unknown>>> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(unusable('it did not load in time')), timeoutMs);
  });
  try {
    return await Promise.race([importModule(url), late]);
  } finally {
    clearTimeout(timer);
  }
}

function hookOf(name: string, module: Readonly<Record<string, unknown>>): ToolHook {
  const names = Object.keys(module);
  const misspelt = names.find((key) => !EVENTS.has(key) && LOOKS_LIKE_EVENT.test(key));
  if (misspelt !== undefined) throw unusable(`it exports ${misspelt}, which is no event`);
  const events = names.filter((key) => EVENTS.has(key));
  if (events.length === 0) throw unusable(`it exports none of ${[...EVENTS].join(', ')}`);
  const wrong = events.find((key) => typeof module[key] !== 'function');
  if (wrong !== undefined) throw unusable(`what it exports as ${wrong} is not a function`);
  const plugin: PluginModule = module;
  const { before_tool_use, after_tool_use, session_start, session_end } = plugin;
  return {
    name,
    beforeToolUse: (toolName, toolInput) =>
      before_tool_use === undefined ? { allowed: true } : before_tool_use(toolName, toolInput),
    ...(after_tool_use === undefined ? {} : { afterToolUse: after_tool_use }),
    ...(session_start === undefined ? {} : { sessionStart: session_start }),
    ...(session_end === undefined ? {} : { sessionEnd: session_end }),
  };
}

function refusingHook(name: string, reason: string): ToolHook {
  const refusal: GuardAnswer = { allowed: false, reason };
  return { name, beforeToolUse: () => refusal, sessionStart: () => refusal };
}

/** Errors of the loader may hold the whole module, as its URL. */
function messageOf(error: unknown): string {
  const message = errorMessage(error).replace(/data:text\/javascript;base64,[\w+/=]*/g, 'the module');
  return visibleLine(message, MAX_REASON_LENGTH);
}

function unusable(why: string): SandboxError {
  return new SandboxError('hook.unusable', why);
}

type Import = (url: string) => Promise<Readonly<Record<string, unknown>>>;

/** What every loader of other languages uses, and no type declaration knows. */
type CompilingModule = Module & { _compile(code: string, filename: string): void };

/**
 * The `import()` of the language. Written out, it would become a `require()` in the program, which is built as CommonJS
 * and runs from compiled code that has no loader; the loader that node:vm offers says on each use that it is
 * experimental.
 */
const importModule: Import = (url) => {
  const module = new Module('sandbox-run:import-module') as CompilingModule;
  module._compile('module.exports = (url) => import(url);', '/sandbox-run/import-module.cjs');
  return (module.exports as Import)(url);
};
