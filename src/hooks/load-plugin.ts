import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises';
import { Module } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SandboxError } from '../errors/sandbox-error.ts';
import type {
  GuardAnswer,
  HookAnswer,
  HookSession,
  ToolHook,
  ToolInput,
  ToolResult,
} from '../model/gate-ports.ts';
import type { HookPlugin } from '../model/policy-keys.ts';
import { directoriesBetween, isBeneath } from '../util/absolute-path.ts';
import { errnoOf } from '../util/errno-of.ts';
import { errorMessage } from '../util/error-message.ts';
import { visibleLine } from '../util/visible-text.ts';

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

/** What commands can write, and plug-ins therefore must not lie in. Absolute; need not exist. */
interface Writable {
  readonly workspace: string;
  readonly writable: readonly string[];
}

/** A plug-in that was examined. */
interface TrustedFile {
  readonly path: string;
  readonly content: Buffer;
  /** Hexadecimal. */
  readonly sha256: string;
}

const MAX_SIZE = 1024 * 1024;
const GROUP_OR_OTHERS_WRITE = 0o022;
const STICKY = 0o1000;

/**
 * Reads a plug-in that nobody but root and the user can have written, or whose content the policy names.
 * @throws {SandboxError} `hook.unusable`
 */
async function readTrusted({ path, sha256 }: HookPlugin, where: Writable): Promise<TrustedFile> {
  const canonical = join(await canonicalDirectory(dirname(path)), basename(path));
  // What leads there could be changed as well as what is there.
  if (canonical !== path) throw unusable(`its real place is ${canonical}: name that`);
  for (const root of [where.workspace, ...where.writable]) {
    const real = await realpath(root).catch(() => root);
    if ([root, real].some((place) => isBeneath(path, place)))
      throw unusable(`commands could write it, as it lies in ${root}`);
  }
  if (sha256 === undefined) await examineDirectories(path);
  const content = await readExamined(path, sha256 !== undefined);
  const found = createHash('sha256').update(content).digest('hex');
  if (sha256 !== undefined && found !== sha256)
    throw unusable(`its content has the SHA-256 ${found} and not that of the policy`);
  return { path, content, sha256: found };
}

async function canonicalDirectory(directory: string): Promise<string> {
  try {
    return await realpath(directory);
  } catch (error) {
    throw unusable(`its directory cannot be resolved (${codeOf(error)})`);
  }
}

/** Whoever can write a directory on the way can put another file in the place of this one. */
async function examineDirectories(path: string): Promise<void> {
  for (const directory of ['/', ...directoriesBetween(path, '/')]) {
    const info = await lstat(directory);
    // In a sticky directory, as /tmp, nobody moves what belongs to others.
    const isWritable = (info.mode & GROUP_OR_OTHERS_WRITE) !== 0 && (info.mode & STICKY) === 0;
    if (isForeign(info) || isWritable)
      throw unusable(`others own or can write ${directory}: change that, or pin its SHA-256`);
  }
}

async function readExamined(path: string, pinned: boolean): Promise<Buffer> {
  let file: FileHandle | undefined;
  try {
    // A pipe would never end, and a link lead somewhere else.
    file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    // Of what was opened, not of the name: nothing can be put in its place in between.
    const info = await file.stat();
    if (!info.isFile()) throw unusable('it is not a regular file');
    if (info.size > MAX_SIZE) throw unusable(`it is larger than ${MAX_SIZE} bytes`);
    if (!pinned) examineFile(info);
    return await file.readFile();
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const code = codeOf(error);
    throw unusable(code === 'ELOOP' ? 'it is a symbolic link' : `it cannot be read (${code})`);
  } finally {
    await file?.close();
  }
}

function examineFile(info: Stats): void {
  if (isForeign(info)) throw unusable('somebody else than root and the user owns it');
  if ((info.mode & GROUP_OR_OTHERS_WRITE) !== 0)
    throw unusable('others than its owner can write it: change that, or pin its SHA-256');
  // The other name may lie where commands can write.
  if (info.nlink > 1) throw unusable('it has a second name (a hard link): copy it, or pin its SHA-256');
}

function isForeign({ uid }: Stats): boolean {
  return uid !== 0 && uid !== process.geteuid?.();
}

function codeOf(error: unknown): string {
  return errnoOf(error) ?? String(error);
}
