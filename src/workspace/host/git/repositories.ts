import { existsSync, lstatSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { absoluteOr, directoriesBetween, isBeneath } from '../../../base/absolute-path.ts';
import { errnoOf } from '../../../base/errno-of.ts';
import { SandboxError } from '../../../base/errors/sandbox-error.ts';
import { readOr, refuseShortage } from '../../../base/errors/shortage.ts';
import { pathOf, shownPath, textOfPath } from '../../../base/path-text.ts';
import type { PathLookup } from '../../../confine/plan/path-lookup.ts';
import { readRegular } from '../held-directory.ts';
import { type GitSetting, parseGitConfig } from './config-file.ts';
import { effectOfKey } from './config-keys.ts';

/** Files of a rebase, cherry-pick or revert in progress. They are looked for in every directory, because a `.git` file can lead to any. */
export const SEQUENCE_NAMES = ['git-rebase-todo', 'strategy', 'opts'] as const;

/** Names that git gives a meaning in a directory of its own; looked for wherever such a directory is. */
export const GIT_NAMES = [
  'HEAD',
  'objects',
  'refs',
  'config',
  'config.worktree',
  'commondir',
  'gitdir',
  'hooks',
  'index',
  ...SEQUENCE_NAMES,
] as const;

/** Honest work needs no larger configuration file than this. */
export const CONFIG_BYTES = 1024 * 1024;

/** What git reads from a directory of its own and obeys, whether it is there or not. */
const OBEYED = ['config', 'config.worktree', 'hooks', 'commondir', 'gitdir'];

/** By each of these a directory beneath a `.git` is taken for one of git's. */
const SIGNS = new Set(['HEAD', ...OBEYED]);

/** A repository, or the part of one that belongs to a submodule or a linked worktree. */
export interface GitDirectory {
  /** Absolute. */
  readonly path: string;
  /** Where its files are; `undefined`: it has none, or they are elsewhere. */
  readonly worktree: string | undefined;
}

/** Something in the workspace that git obeys. */
export interface ObeyedByGit {
  /** Absolute, not resolved. */
  readonly path: string;
  readonly reason: string;
  /** It is where git looks for hooks. */
  readonly hooks?: HooksOfGit;
}

/** A directory of hooks that a repository names. */
export interface HooksOfGit {
  readonly path: string;
  /** The file that names it. */
  readonly config: string;
  /** The directory of git. */
  readonly git: string;
}

/** The directories of git in a tree, and what leads to such. */
export interface GitParts {
  readonly directories: readonly GitDirectory[];
  /** Absolute: `.git` files and links. */
  readonly links: readonly string[];
}

/**
 * Which of them are a repository of a root itself, with its submodules; the others are content of the project, that commands move
 * and remove, and are settled when they end. A linked worktree in the tree is content, as far as git's directory of it goes.
 */
export function ownParts({ directories, links }: GitParts, roots: readonly string[]): GitParts {
  const tops = roots.flatMap((root) => [root, `${root}/.git`]);
  const own = directories.filter(({ path }) => tops.includes(path)).map(({ path }) => path);
  const isOfTree = (path: string) => {
    const [, git = ''] = /^(.*)\/worktrees\/[^/]+$/s.exec(path) ?? [];
    const dotGit = own.includes(git) ? linkedFrom(path) : undefined;
    return dotGit !== undefined && !tops.includes(dotGit) && roots.some((root) => isBeneath(dotGit, root));
  };
  return {
    directories: directories.filter(({ path }) => own.some((one) => isBeneath(path, one)) && !isOfTree(path)),
    links: links.filter((path) => tops.includes(path)),
  };
}

/** The `.git` file that git's directory of a linked worktree names. */
function linkedFrom(directory: string): string | undefined {
  const named = readPointer(join(directory, 'gitdir'));
  return named === undefined ? undefined : resolve(directory, named);
}

/** What is looked up, and where git's own files of the user are. */
interface GitSurroundings {
  readonly workspace: string;
  /** What commands can write, the workspace among it. */
  readonly roots: readonly string[];
  readonly home: string;
  /** Configuration that the user and the machine give every repository. */
  readonly configFiles: readonly string[];
  readonly lookup: PathLookup;
}

/** Commands read it themselves. */
export const SYSTEM_CONFIG = '/etc/gitconfig';

/** The files that git reads for every repository of the user (git-config(1), "FILES"). */
export function userConfigFiles(
  home: string,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const config = absoluteOr(env.XDG_CONFIG_HOME, join(home, '.config'));
  const system = env.GIT_CONFIG_NOSYSTEM === undefined ? [env.GIT_CONFIG_SYSTEM ?? SYSTEM_CONFIG] : [];
  const global =
    env.GIT_CONFIG_GLOBAL === undefined
      ? [join(config, 'git/config'), join(home, '.gitconfig')]
      : [env.GIT_CONFIG_GLOBAL];
  return [...system, ...global].filter(isAbsolute);
}

/**
 * The directories of git among what was found in the workspace. What lies beneath a `.git` counts by its name alone: a
 * command may take `HEAD` away for a while.
 */
export function gitDirectories(found: readonly string[], lookup: PathLookup): readonly GitDirectory[] {
  const directories = new Map<string, string | undefined>();
  const known = new Set(found);
  for (const path of found) {
    const directory = dirname(path);
    if (basename(path) === '.git') {
      if (lookup.resolve(path).kind === 'directory') directories.set(path, directory);
    } else if (
      !directories.has(directory) &&
      basename(directory) !== '.git' &&
      SIGNS.has(basename(path)) &&
      isOfGit(directory, (name) => known.has(join(directory, name)))
    ) {
      directories.set(directory, undefined);
    }
  }
  return [...directories].map(([path, worktree]) => ({ path, worktree }));
}

/** What else git wants there (`objects`, `refs`) is not watched, so `HEAD` alone counts; it may be a link that leads nowhere. */
function isOfGit(directory: string, has: (name: string) => boolean): boolean {
  return `${directory}/`.includes('/.git/') || has('HEAD');
}

/** Whether git would take the directory for one of its own, now or when the rest of it comes. */
export function isGitDirectory(directory: string): boolean {
  return isOfGit(
    directory,
    (name) => lstatSync(pathOf(join(directory, name)), { throwIfNoEntry: false }) !== undefined,
  );
}

/**
 * Whether a path is, or lies in, something that git obeys in a directory of its own, or leads git to a repository; not such a
 * directory as a whole.
 */
export function isObeyedInRepository(path: string): boolean {
  const infoOf = (one: string) => readOr(() => lstatSync(pathOf(one), { throwIfNoEntry: false }), undefined);
  if (basename(path) === '.git') return infoOf(path)?.isFile() === true;
  const isRepository = (one: string) => infoOf(join(one, 'HEAD')) !== undefined;
  return [path, ...directoriesBetween(path, '/')].some(
    (one) =>
      OBEYED.includes(basename(one)) &&
      isOfGit(dirname(one), () => isRepository(dirname(one))) &&
      !isRepository(one),
  );
}

/** The repository that the workspace lies in, if it does not begin there. */
function repositoryAround(workspace: string, lookup: PathLookup): GitDirectory | undefined {
  for (let at = dirname(workspace); ; at = dirname(at)) {
    if (lookup.resolve(join(at, '.git')).kind !== 'missing') return { path: join(at, '.git'), worktree: at };
    if (at === '/') return undefined;
  }
}

/** All that git obeys of these directories and that a command could write. */
export function obeyedByGit(
  { directories, links }: GitParts,
  around: GitSurroundings,
): readonly ObeyedByGit[] {
  const outer = repositoryAround(around.workspace, around.lookup);
  const found: ObeyedByGit[] = [
    // The `.git` file of a submodule or a linked worktree.
    ...links.map((path) => ({ path, reason: 'leads git to a repository' })),
    ...directories.flatMap(({ path }) =>
      OBEYED.map((name) => ({ path: join(path, name), reason: 'git obeys it' })),
    ),
  ];
  // Settings of a linked worktree or a submodule lie elsewhere, and can name paths in the workspace.
  const ledTo = [...links, ...(outer === undefined ? [] : [outer.path])].flatMap(directoriesOfLink);
  for (const directory of [...directories, ...(outer === undefined ? [] : [outer]), ...ledTo]) {
    found.push(...namedBy(directory, around));
  }
  const unique = new Map(found.map((one) => [one.path, one]));
  return [...unique.values()].filter(({ path }) => around.roots.some((root) => isBeneath(path, root)));
}

/** Bytes of a `.git` that is a file, of a `commondir` and of a `gitdir`. */
const LINK_BYTES = 8192;

/** What a file says by which parts of a repository name each other; `undefined`: there is none. */
export function readPointer(file: string): string | undefined {
  const content = readOr(() => readRegular(pathOf(file), LINK_BYTES), undefined);
  return content === undefined ? undefined : textOfPath(content).replace(/[\r\n]+$/, '');
}

/** The directory that a `.git` file leads to, and the one that this shares with other worktrees. */
function directoriesOfLink(path: string): readonly GitDirectory[] {
  const [, named] = /^gitdir: (.+)$/s.exec(readPointer(path) ?? '') ?? [];
  if (named === undefined) return [];
  const own = resolve(dirname(path), named);
  const shared = readPointer(join(own, 'commondir'));
  const worktree = dirname(path);
  return [
    { path: own, worktree },
    ...(shared === undefined ? [] : [{ path: resolve(own, shared), worktree }]),
  ];
}

/**
 * Directories from which a repository takes objects besides its own (`git clone --shared`, gitrepository-layout(5)). Commands can
 * write the file that names them, and nothing on the other side names the repository: none of it is to be believed.
 */
export function alternatesOf(worktree: string): readonly string[] {
  const named = join(worktree, '.git');
  return [named, ...directoriesOfLink(named).map(({ path }) => path)].flatMap((directory) => {
    const objects = join(directory, 'objects');
    const lines = readPointer(join(objects, 'info/alternates'))?.split('\n') ?? [];
    return lines.filter((line) => line !== '' && !/^[#"]/.test(line)).map((line) => resolve(objects, line));
  });
}

/**
 * Where the remotes are of the repository in which a directory is, as git goes there: by `url.*.insteadOf` of the repository and
 * of `userFiles`. Commands can write what says so: it is nothing to rely on.
 */
export function remotesOf(directory: string, userFiles: readonly string[]): readonly string[] {
  const around = [directory, ...directoriesBetween(directory, '/').toReversed()].map((one) =>
    join(one, '.git'),
  );
  const named = around.find((one) => existsSync(one));
  if (named === undefined) return [];
  const own = [named, ...directoriesOfLink(named).map(({ path }) => path)].flatMap((at) =>
    settingsOf(join(at, 'config')),
  );
  const all = [...userFiles.flatMap(settingsOf), ...own];
  return own.flatMap(({ key, value }) => {
    const [, kind] = /^remote\..*\.(pushurl|url)$/s.exec(key) ?? [];
    if (kind === undefined || value === undefined) return [];
    const instead = insteadOf(value, all, 'insteadof') ?? value;
    const pushed = kind === 'url' ? insteadOf(value, all, 'pushinsteadof') : undefined;
    return pushed === undefined ? [instead] : [instead, pushed];
  });
}

/** An address by the setting that fits most of its beginning; `undefined`: none does. */
function insteadOf(
  url: string,
  settings: readonly GitSetting[],
  kind: 'insteadof' | 'pushinsteadof',
): string | undefined {
  const end = `.${kind}`;
  const fitting = settings.flatMap(({ key, value = '' }) =>
    key.startsWith('url.') && key.endsWith(end) && value !== '' && url.startsWith(value)
      ? [{ base: key.slice('url.'.length, -end.length), length: value.length }]
      : [],
  );
  const best = fitting.sort((one, other) => other.length - one.length)[0];
  return best && best.base + url.slice(best.length);
}

/** What the configuration of a directory names: included files, hooks, programs. Conditions of includes are not looked at. */
function namedBy({ path, worktree }: GitDirectory, around: GitSurroundings): readonly ObeyedByGit[] {
  const base = worktree ?? path;
  const found: ObeyedByGit[] = [];
  const pending = [...around.configFiles, join(path, 'config'), join(path, 'config.worktree')];
  const seen = new Set<string>();
  for (let file = pending.pop(); file !== undefined; file = pending.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    for (const setting of settingsOf(file)) {
      const { effect } = effectOfKey(setting);
      const value = textOfPath(Buffer.from(setting.value ?? '', 'latin1'));
      const named = (text: string, from: string) => resolve(from, expandHome(text, around.home));
      if (effect === 'includes' && value !== '') {
        const included = named(value, dirname(file));
        pending.push(included);
        found.push({ path: included, reason: `${file} includes it` });
      } else if (setting.key === 'core.hookspath' && value !== '') {
        const hooks = named(value, base);
        found.push({
          path: hooks,
          reason: `core.hooksPath of ${file}`,
          hooks: { path: hooks, config: file, git: path },
        });
      } else if (effect === 'runs') {
        const words = programsIn(value);
        // `cd tools && ./driver`
        const entered = words
          .map((word) => named(word, base))
          .filter((one) => around.lookup.resolve(one).kind === 'directory');
        found.push(
          ...[base, ...entered].flatMap((from) =>
            words.map((word) => ({ path: named(word, from), reason: `${setting.key} of ${file} runs it` })),
          ),
        );
      }
    }
  }
  // A program that is a directory, or not there yet and only looks like a path, is none.
  return found.filter(
    ({ path: one, reason }) => !reason.endsWith('runs it') || around.lookup.resolve(one).kind === 'other',
  );
}

function expandHome(path: string, home: string): string {
  return path.startsWith('~/') ? join(home, path.slice(2)) : path;
}

/** Programs that run a file, or a program, which one of their words names, and the builtin that enters a directory. */
const RUNS_ITS_WORDS =
  /^(?:.*\/)?(?:(?:ba|da|a|z|k|mk|fi)?sh|source|\.|cd|env|exec|command|time|nice|nohup|xargs|sudo|timeout|node|deno|bun|tsx|npx|python[\d.]*|perl|ruby|php|lua|make|java|awk|sed)$/;

/** The words of a command line that can name a file from the directory where it runs. */
export function programsIn(commandLine: string): readonly string[] {
  const words = commandLine.match(/[^\s"'`;&|()<>$=!]+/g) ?? [];
  return words.some((word) => RUNS_ITS_WORDS.test(word))
    ? words
    : words.filter((word) => word.includes('/') || /\.(sh|bash|py|[cm]?[jt]s|rb|pl|php)$/.test(word));
}

const NOT_FOR_US = new Set([
  'ENOENT',
  'ENOTDIR',
  'ELOOP',
  'EACCES',
  'EPERM',
  'ENAMETOOLONG',
  'ERR_INVALID_ARG_VALUE',
]);

function settingsOf(file: string): readonly GitSetting[] {
  try {
    // Most of these files do not exist, and an exception costs more than a stat.
    if (statSync(pathOf(file), { throwIfNoEntry: false }) === undefined) return [];
    const path = realpathSync(pathOf(file), 'buffer');
    // Git reads it anyway, and the paths that it names would be left open.
    if (statSync(path).size > CONFIG_BYTES)
      throw new SandboxError(
        'confinement.failed',
        `${shownPath(textOfPath(path))} is too large for a configuration of git; make it smaller than 1 MiB`,
      );
    const content = readRegular(path, CONFIG_BYTES);
    return content === undefined ? [] : (parseGitConfig(content)?.settings ?? []);
  } catch (error) {
    refuseShortage(error);
    const errno = errnoOf(error);
    // Not there, or not for us: then git cannot read it either.
    if (errno !== undefined && NOT_FOR_US.has(errno)) return [];
    throw error;
  }
}
