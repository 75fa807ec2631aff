import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { orElse } from '../../base/or-else.ts';
import { bytesOfPath, pathOf, textOfPath } from '../../base/path-text.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { LeftBehind } from '../../model/index.ts';
import { writeGitConfig } from '../host/git/config-file.ts';
import { readRegular } from '../host/held-directory.ts';
import type { NativeChangedDirectory, NativeCopiedEntry } from '../host/native-index.ts';
import { timedId } from '../host/timed-id.ts';
import { ensureStateDirectory } from '../host/user-directories.ts';

/*
 * caches/KEY/hooks/    mode 0700; no command sees it but by a layer over it that is its own
 *   ID/                what commands wrote in a directory of hooks, as plain files; its time of change is when they began
 *   ID                 of a configuration file of git: what they set core.hooksPath to, as such a file
 */
/** Limits for the copies of all commands of a workspace. */
const MOST_ENTRIES = 512;
const MOST_BYTES = 1024 * 1024;
const MOST_SETTING_BYTES = 8192;
const MOST_MANIFEST_BYTES = 1024 * 1024;
/** Installers that say in their own file, which lies beside package.json, what hooks they are to install. */
const OWN_FILES: readonly (readonly [name: RegExp, command: string])[] = [
  [/^\.pre-commit-config\.ya?ml$/, 'pre-commit install'],
  [/^\.?lefthook\.(?:ya?ml|toml|jsonc?)$/, 'lefthook install'],
];
const INSTALLS = 'installs them';
const INSTALLER = /husky|simple-git-hooks|lefthook|yorkie|pre-commit|hookspath|\.git\/hooks/i;
/** What a script says that puts hooks where git looks for them. */
const PUTS_HOOKS =
  /hookspath|\.git\/hooks|--git-path[\s'",]+hooks|(?:git-(?:common-)?dir|git_dir)\b[^\n]*\bhooks\b/i;
/** Where people keep scripts, beneath the top of a project. */
const SCRIPT_DIRECTORIES = ['', 'scripts', 'script', 'bin', 'tools', 'hack'];
/** Programs with recipes, by the names of their files. */
const RECIPES: readonly (readonly [name: RegExp, program: string])[] = [
  [/^(?:GNUm|[mM])akefile$/, 'make'],
  [/^\.?[jJ]ustfile$/, 'just'],
];
/** Scripts that call each other are not followed further. */
const DEEPEST_SCRIPT = 3;
/** Installers that come as dependencies and install hooks when they are installed themselves. */
const BY_THEMSELVES = ['husky', 'yorkie', 'simple-git-hooks', 'lefthook'];
const PACKAGE_MANAGERS: readonly (readonly [lockFile: string, program: string])[] = [
  ['pnpm-lock.yaml', 'pnpm'],
  ['yarn.lock', 'yarn'],
  ['bun.lock', 'bun'],
  ['bun.lockb', 'bun'],
];

/**
 * How the installer of hooks of a project is started, in words of ours; `undefined`: the project has none that is known. Looks at
 * names in the directories (a workspace and the working tree around it), and into package.json if there is one.
 */
export function hookInstallerOf(directories: readonly string[]): string | undefined {
  for (const directory of directories) {
    const names = orElse(() => readdirSync(pathOf(directory)), []);
    const has = new Set(names);
    const byManifest = has.has('package.json') ? installerInManifest(directory, has) : undefined;
    const found =
      byManifest ??
      OWN_FILES.find(([pattern]) => names.some((name) => pattern.test(name)))?.[1] ??
      (has.has('.husky') ? 'npx husky' : undefined) ??
      installerInRecipes(directory, names) ??
      installerAmongScripts(directory);
    if (found !== undefined) return found;
  }
  return undefined;
}

function installerInManifest(directory: string, names: ReadonlySet<string>): string | undefined {
  const text = textAt(join(directory, 'package.json'));
  if (text === undefined || !(INSTALLER.test(text) || /"(?:prepare|(?:post)?install)"/.test(text)))
    return undefined;
  const manifest = orElse((): unknown => JSON.parse(text), undefined);
  const part = (name: string): Readonly<Record<string, unknown>> => {
    const value = (manifest as Readonly<Record<string, unknown>> | undefined)?.[name];
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  };
  const manager = PACKAGE_MANAGERS.find(([lock]) => names.has(lock))?.[1] ?? 'npm';
  const scripts = part('scripts');
  const script = ['prepare', 'postinstall', 'install'].find((name) => installs(name, scripts, directory));
  if (script !== undefined) return `${manager} run ${script}`;
  const dependencies = { ...part('dependencies'), ...part('devDependencies') };
  const own = BY_THEMSELVES.find((name) => name in dependencies);
  if (own !== undefined) return `${manager} rebuild ${own}`;
  return names.has('.husky') ? 'npx husky' : undefined;
}

/** Whether a script of a manifest installs hooks, or another script or a file of the project that it names does. */
function installs(
  name: string,
  scripts: Readonly<Record<string, unknown>>,
  directory: string,
  depth = DEEPEST_SCRIPT,
): boolean {
  const script = scripts[name];
  if (typeof script !== 'string' || depth === 0) return false;
  if (INSTALLER.test(script)) return true;
  const words = script.match(/[^\s"'`;&|()<>$=]+/g) ?? [];
  return words.some(
    (word) =>
      (Object.hasOwn(scripts, word) && word !== name && installs(word, scripts, directory, depth - 1)) ||
      ['', '.js', '.mjs', '.cjs', '.ts'].some((ending) => putsHooks(directory, `${word}${ending}`)),
  );
}

/** Whether a file of a project puts hooks where git looks for them, as its text says. */
function putsHooks(directory: string, name: string): boolean {
  const path = resolve(directory, name);
  return path !== directory && isBeneath(path, directory) && PUTS_HOOKS.test(textAt(path) ?? '');
}

const textAt = (path: string): string | undefined =>
  orElse(() => readRegular(pathOf(path), MOST_MANIFEST_BYTES)?.toString('utf8'), undefined);

/** `make hooks`, whose recipe puts them there. */
function installerInRecipes(directory: string, names: readonly string[]): string | undefined {
  for (const [pattern, program] of RECIPES) {
    const name = names.find((one) => pattern.test(one));
    let target: string | undefined;
    for (const line of name === undefined ? [] : (textAt(join(directory, name)) ?? '').split('\n')) {
      target = /^([\w.-]+)[^:=]*:(?!=)/.exec(line)?.[1] ?? target;
      if (target !== undefined && /^\s/.test(line) && PUTS_HOOKS.test(line)) return `${program} ${target}`;
    }
  }
  return undefined;
}

/** A script whose name says that it is about hooks. */
function installerAmongScripts(directory: string): string | undefined {
  for (const inner of SCRIPT_DIRECTORIES) {
    const names = orElse(() => readdirSync(pathOf(join(directory, inner))), []);
    const found = names.find(
      (name) => /^[\w.-]*hooks?[\w.-]*$/i.test(name) && putsHooks(directory, join(inner, name)),
    );
    if (found !== undefined) return join(inner, found);
  }
  return undefined;
}

/** Where hooks are kept in the directory of a workspace's cache. Nothing is made. */
export const keptHooksIn = (cache: string): string => join(cache, 'hooks');
/** Where the changes of one directory are, or what became of core.hooksPath in one configuration file. */
export const keptHooksOf = (hooks: string, path: string): string =>
  join(hooks, createHash('sha256').update(bytesOfPath(path)).digest('hex').slice(0, 32));

/** What is known of the hooks of a workspace when its commands begin. */
interface HookCopiesParts {
  /** Where they are kept; `undefined`: they go with the command. */
  readonly directory: string | undefined;
  readonly workspace: string;
  /** How a person installs them. */
  readonly installer: string | undefined;
  /** Whether commands see what is kept of core.hooksPath. */
  readonly isShown: boolean;
}

/** Keeps what installers of hooks wrote for the next commands, and says so. */
export class HookCopies {
  readonly #parts: HookCopiesParts;

  constructor(parts: HookCopiesParts) {
    this.#parts = parts;
  }

  /** What to say of it; nothing where it is what was kept already. `setting`: what became of core.hooksPath, if a command changed it. */
  settle(changed: readonly NativeChangedDirectory[], setting?: HooksPathChange): readonly LeftBehind[] {
    const news: string[] = [];
    let stays = true;
    for (const one of changed) {
      const kept = this.#keep(one);
      if (kept !== 'same') news.push(one.source);
      if (kept === 'lost') stays = false;
    }
    if (setting !== undefined) {
      const kept = this.#keepPath(setting);
      if (kept !== 'same') news.push(setting.config);
      if (kept === 'lost') stays = false;
    }
    const [path] = news;
    if (path === undefined) return [];
    const { installer } = this.#parts;
    const command = installer === undefined ? 'their installer' : `\`${installer}\``;
    return [
      {
        path,
        done: 'copied',
        program: 'git',
        reason: `hooks of git${stays ? '' : ', for this command only'}; outside of it ${command} ${INSTALLS}`,
      },
    ];
  }

  /** Says how hooks are installed where a host has no copies, and what a command wrote was taken away. */
  explain(found: readonly LeftBehind[]): readonly LeftBehind[] {
    const { installer } = this.#parts;
    const at = found.findIndex(
      ({ path, done, settings = [], reason }) =>
        done !== 'told' &&
        !reason.includes(INSTALLS) &&
        (/\/(?:\.husky|\.git(?:\/.*)?\/hooks)(?:\/|$)/.test(path) ||
          settings.some((setting) => setting.startsWith('core.hookspath'))),
    );
    if (installer === undefined || at < 0) return found;
    return found.map((one, index) =>
      index === at
        ? { ...one, reason: `${one.reason}; outside of the sandbox \`${installer}\` ${INSTALLS}` }
        : one,
    );
  }

  /** Whether a setting of core.hooksPath can be kept: commands see it, and it leads to a directory of the workspace. */
  takes({ config, values: [value, ...more] }: HooksPathChange): boolean {
    const { isShown, directory } = this.#parts;
    if (!isShown || more.length > 0 || basename(config) !== 'config') return false;
    // What a person set is another matter.
    if (value === undefined) return directory !== undefined && existsSync(keptHooksOf(directory, config));
    const path = resolve(this.#parts.workspace, textOfPath(Buffer.from(value, 'latin1')));
    return value !== '' && value.length < 1024 && isBeneath(path, this.#parts.workspace);
  }

  #keep({ source, isOverKept, lookedMs, isComplete, entries }: NativeChangedDirectory): Kept {
    const { directory } = this.#parts;
    if (directory === undefined || !isComplete) return 'lost';
    const place = keptHooksOf(directory, source);
    try {
      const before =
        isOverKept || isOfTheSame(place, lookedMs) ? readTree(place) : new Map<string, NativeCopiedEntry>();
      const after = laidOver(
        before,
        entries.filter((entry) => !isAsOutside(source, entry)),
      );
      if (isSame(before, after)) return 'same';
      if (after.size > MOST_ENTRIES) return 'lost';
      if ([...after.values()].reduce((sum, { content }) => sum + content.length, 0) > MOST_BYTES)
        return 'lost';
      makeDirectory(directory);
      const made = `${place}.${timedId(Date.now())}`;
      writeTree(made, after);
      // A change by a person after the look has to be newer than the copy: the newer one is used.
      utimesSync(made, lookedMs / 1000, lookedMs / 1000);
      const old = `${made}.old`;
      if (existsSync(place)) renameSync(place, old);
      renameSync(made, place);
      sweep(directory, basename(place));
      // Some installers write the time of day into their files. That commands have these is known.
      return [...after.keys()].every((path) => before.has(path)) ? 'same' : 'kept';
    } catch {
      // The command has ended well; the next one installs its hooks anew.
      return 'lost';
    }
  }

  #keepPath({ config, values: [value] }: HooksPathChange): Kept {
    const { directory } = this.#parts;
    if (directory === undefined) return 'lost';
    const path = keptHooksOf(directory, config);
    const content = value === undefined ? '' : writeGitConfig([{ key: 'core.hookspath', value }]);
    try {
      const before = orElse(() => readRegular(path, MOST_SETTING_BYTES)?.toString('utf8'), undefined) ?? '';
      if (before === content) return 'same';
      makeDirectory(directory);
      if (value === undefined) rmSync(path, { force: true });
      else {
        const made = `${path}.${timedId(Date.now())}`;
        writeFileSync(made, content, { mode: 0o600, flag: 'wx' });
        renameSync(made, path);
        sweep(directory, basename(path));
      }
      return value === undefined ? 'same' : 'kept';
    } catch {
      return 'lost';
    }
  }
}

/** What became of the setting that says where git looks for hooks. */
export interface HooksPathChange {
  /** The configuration file. */
  readonly config: string;
  readonly values: readonly (string | undefined)[];
}

type Kept = 'kept' | 'same' | 'lost';
type Tree = ReadonlyMap<string, NativeCopiedEntry>;

function makeDirectory(directory: string): void {
  ensureStateDirectory(dirname(directory));
  ensureStateDirectory(directory);
}

/** A turn of a session before this one wrote it. */
const isOfTheSame = (place: string, lookedMs: number) =>
  Math.round(lstatSync(place, { throwIfNoEntry: false })?.mtimeMs ?? 0) === lookedMs;

/** Removes unfinished copies. If two commands end at once, the copy of one of them is lost. */
function sweep(directory: string, name: string): void {
  for (const one of readdirSync(directory)) {
    if (one.startsWith(`${name}.`)) rmSync(join(directory, one), { recursive: true, force: true });
  }
}

/** What is kept of a directory. We wrote it, so there is nothing in it but what `writeTree` makes. */
function readTree(place: string, prefix = '', tree = new Map<string, NativeCopiedEntry>()): typeof tree {
  const around = Buffer.concat([bytesOfPath(place), Buffer.from('/')]);
  for (const name of readdirSync(around, 'buffer')) {
    const at = Buffer.concat([around, name]);
    const path = `${prefix}${textOfPath(name)}`;
    const info = lstatSync(at);
    const mode = info.mode & 0o777;
    if (info.isDirectory()) {
      tree.set(path, { path, kind: 'directory', mode, content: Buffer.alloc(0) });
      readTree(textOfPath(at), `${path}/`, tree);
    } else if (info.isSymbolicLink()) {
      tree.set(path, { path, kind: 'link', mode, content: linkBytes(at) });
    } else {
      const content = readRegular(at, MOST_BYTES) ?? Buffer.alloc(0);
      tree.set(path, { path, kind: 'file', mode, content });
    }
  }
  return tree;
}

function laidOver(before: Tree, entries: readonly NativeCopiedEntry[]): Tree {
  const after = new Map(before);
  for (const entry of entries) {
    if (entry.kind !== 'directory')
      for (const path of after.keys()) if (path !== entry.path && isIn(path, entry.path)) after.delete(path);
    // A hook of the user's that a command removed is there again for the next one.
    if (entry.kind === 'gone') after.delete(entry.path);
    else after.set(entry.path, entry);
  }
  return after;
}

/** An installer writes what is there already, too. */
function isAsOutside(source: string, { path, kind, mode, content }: NativeCopiedEntry): boolean {
  const at = pathOf(`${source}/${path}`);
  return orElse(() => {
    const info = lstatSync(at);
    if (kind === 'directory') return info.isDirectory();
    if (kind === 'link') return info.isSymbolicLink() && linkBytes(at).equals(content);
    return (
      kind === 'file' &&
      info.isFile() &&
      (info.mode & 0o100) === (mode & 0o100) &&
      readRegular(at, MOST_BYTES)?.equals(content) === true
    );
  }, false);
}

const isIn = (path: string, directory: string) => path.startsWith(`${directory}/`);

function isSame(a: Tree, b: Tree): boolean {
  return (
    a.size === b.size &&
    [...a].every(([path, one]) => {
      const other = b.get(path);
      return (
        other?.kind === one.kind &&
        (one.kind === 'link' || isExecutable(one) === isExecutable(other)) &&
        one.content.equals(other.content)
      );
    })
  );
}

const isExecutable = ({ kind, mode }: NativeCopiedEntry) => kind === 'file' && (mode & 0o100) !== 0;

function writeTree(place: string, tree: Tree): void {
  mkdirSync(place, { mode: 0o700 });
  const root = bytesOfPath(place);
  // What is around comes before what is in it.
  for (const one of [...tree.values()].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const path = Buffer.concat([root, Buffer.from('/'), bytesOfPath(one.path)]);
    if (one.kind === 'directory') mkdirSync(path, { mode: 0o700 });
    else if (one.kind === 'link') symlinkSync(one.content, path);
    else {
      writeFileSync(path, one.content, { mode: 0o600, flag: 'wx' });
      if (isExecutable(one)) chmodSync(path, 0o700);
    }
  }
}
