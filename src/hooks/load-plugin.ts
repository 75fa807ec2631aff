import { Module } from 'node:module';
import { basename } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { GuardAnswer, HookSession, ToolHook, ToolInput, ToolResult } from '../model/gate-ports.ts';
import type { HookPlugin } from '../model/policy-keys.ts';
import { errorMessage } from '../util/error-message.ts';
import { visibleLine } from '../util/visible-text.ts';
import { readTrusted, type TrustedFile, type Writable } from './trusted-file.ts';

/** How long a module may take to load: an `await` at its top may never settle. */
const LOAD_TIMEOUT_MS = 10_000;
const MAX_REASON_LENGTH = 300;

/** What a plug-in exports: any of these, at least one. */
interface PluginModule {
  readonly before_tool_use?: (toolName: string, toolInput: ToolInput) => GuardAnswer | Promise<GuardAnswer>;
  readonly after_tool_use?: (
    toolName: string,
    toolInput: ToolInput,
    result: ToolResult,
  ) => void | Promise<void>;
  readonly session_start?: (session: HookSession) => GuardAnswer | Promise<GuardAnswer>;
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

/**
 * Loads the plug-ins of a policy, in its order. One that cannot be trusted or loaded becomes a hook that refuses
 * everything and says why. A file that is the same as before is the same module: Node runs it once.
 */
export async function loadHooks(
  plugins: readonly HookPlugin[],
  where: Writable,
  loadTimeoutMs = LOAD_TIMEOUT_MS,
): Promise<readonly ToolHook[]> {
  return Promise.all(plugins.map((plugin) => loadHook(plugin, where, loadTimeoutMs)));
}

async function loadHook(plugin: HookPlugin, where: Writable, timeoutMs: number): Promise<ToolHook> {
  const name = basename(plugin.path);
  try {
    const file = await readTrusted(plugin, where);
    return hookOf(name, await loaded(moduleUrl(file, plugin.sha256 !== undefined), timeoutMs));
  } catch (error) {
    return refusingHook(name, `the hook ${plugin.path} cannot be used: ${messageOf(error)}`);
  }
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
