import { type BigIntStats, type Dirent, lstatSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isBeneath } from '../../../base/absolute-path.ts';
import { readOr } from '../../../base/errors/shortage.ts';
import { pathOf, textOfPath } from '../../../base/path-text.ts';
import type { Versions } from '../../../model/index.ts';
import { readRegular } from '../held-directory.ts';
import { parseGitConfig } from './config-file.ts';
import { ignoredPaths } from './ignored-paths.ts';
import { type GitIndex, INDEX_BYTES, type IndexEntry, parseIndex } from './index-file.ts';
import { type IsUnchanged, unchangedFiles } from './unchanged-files.ts';

/** Files that are looked at for one question; of a larger tree something may be lost. */
const MOST_FILES = 20_000;
/** Names that are read for one question, of which most are not asked about. */
const MOST_NAMES = 200_000;
/** Bytes of a `.git` that is a file. */
const MOST_LINK = 8192;
/** Bytes of a configuration. */
const MOST_CONFIG = 1024 * 1024;

interface Repository {
  /** The root of the working tree. */
  readonly root: string;
  /** Where its HEAD and its index are. */
  readonly directory: string;
  readonly index: GitIndex | undefined;
  /** By their paths beneath the root. */
  readonly entries: ReadonlyMap<string, IndexEntry>;
  /** Whether a file is as git's index has it. */
  readonly isUnchanged: IsUnchanged;
  /** Whether git ignores a path beneath the root. */
  readonly ignores: (path: string) => boolean;
}

/**
 * What the repositories have that files are in, by their indexes: that of a workspace, one around it, those within. Git is
 * not run: what it obeys may be a command's. Nor is the index believed for anything but whether to ask: a command can write
 * it, and it can delete without being asked, too. `isOwn`: nobody but a command has worked on a file.
 */
export function createVersions(isOwn: (path: string) => boolean = () => false): Versions {
  const known = new Map<string, Repository | undefined>();

  function repositoryOf(directory: string): Repository | undefined {
    if (known.has(directory)) return known.get(directory);
    const found = readRepository(directory) ?? around(directory);
    known.set(directory, found);
    return found;
  }

  /** The one that a directory is in, if that is not the root of one. */
  function around(directory: string): Repository | undefined {
    return directory === '/' ? undefined : repositoryOf(dirname(directory));
  }

  /** Tracked, and as git saw it last, in whichever repository. */
  function isKept(path: string): boolean {
    for (let one = around(path); one !== undefined; one = around(one.root)) {
      const entry = one.entries.get(beneath(one.root, path));
      if (entry !== undefined && one.isUnchanged(path, entry)) return true;
    }
    return false;
  }

  /** The `.git` file of a submodule or a linked worktree: what it leads to is there without it, and git makes it anew. */
  function isPointer(path: string): boolean {
    return basename(path) === '.git' && repositoryOf(dirname(path))?.root === dirname(path);
  }

  function* eachLostWith(
    path: string,
    counts: (path: string, isDirectory: boolean) => boolean = () => true,
  ): Generator<string> {
    const name = basename(path);
    const pending = /[*?[]/.test(name) ? matching(dirname(path), name) : [path];
    let [left, names] = [MOST_FILES, MOST_NAMES];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (left-- === 0 || names < 0) {
        yield next;
        return;
      }
      const info = look(next);
      if (info === undefined || !counts(next, info.isDirectory())) continue;
      if (!info.isDirectory()) {
        if (!isKept(next) && !isOwn(next) && !isPointer(next)) yield next;
        continue;
      }
      const entries = entriesOf(next);
      names -= entries.length;
      // Most do not count, and need not be looked at.
      for (const entry of entries) {
        const inside = join(next, entry.name);
        if (counts(inside, entry.isDirectory)) pending.push(inside);
      }
    }
  }

  const lostWith: Versions['lostWith'] = (path, counts) =>
    eachLostWith(path, counts).next().value ?? undefined;
  const allLostWith: Versions['allLostWith'] = (path, counts) => [...eachLostWith(path, counts)];

  const changedFrom = (directory: string, path?: string, unstaged = false) => {
    const repository = repositoryOf(directory);
    return repository && changedIn(repository, path ?? repository.root, unstaged, isOwn);
  };

  const stagedIn = (directory: string) => {
    const { index, root } = repositoryOf(directory) ?? {};
    return index === undefined || index.isAsCommitted ? undefined : root;
  };

  const changedSinceStop = (directory: string, tracked: boolean) => {
    const repository = repositoryOf(directory);
    const since = repository && stoppedAt(repository);
    if (repository === undefined || since === undefined) return { stopped: false };
    return { stopped: true, file: workedOnSince(repository, since, tracked) };
  };

  const ignores = (path: string) => {
    const repository = around(path);
    return repository?.ignores(beneath(repository.root, path)) === true;
  };

  return { keeps: isKept, ignores, lostWith, allLostWith, changedFrom, stagedIn, changedSinceStop };
}

function changedIn(
  { root, index, entries, isUnchanged }: Repository,
  path: string,
  unstaged: boolean,
  isOwn: (path: string) => boolean,
): string | undefined {
  if (index === undefined) return undefined;
  if (!index.isAsCommitted && !unstaged) {
    // A path that does not exist and is not tracked loses nothing.
    const isTracked = () => [...entries.keys()].some((entry) => isBeneath(join(root, entry), path));
    return look(path) !== undefined || isTracked() ? path : undefined;
  }
  for (const entry of entries.values()) {
    // What is in a submodule is left alone.
    if (entry.kind === 'repository') continue;
    const file = join(root, entry.path);
    // What is gone is not lost by being brought back.
    if (!isBeneath(file, path) || look(file) === undefined || isUnchanged(file, entry)) continue;
    if (!isOwn(file)) return file;
  }
  return undefined;
}

/** What git writes when it comes to a stop in the middle, and nobody writes after that: files, and directories of files. */
const STOPS = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply', 'sequencer'];
/** What git writes after them at the same stop. */
const WITH_STOPS = ['AUTO_MERGE', 'REBASE_HEAD', 'MERGE_MSG', 'MERGE_MODE'];

/** When git came to a stop in the middle of a merge or the like, in nanoseconds since 1970; `undefined`: it did not. */
function stoppedAt({ directory }: Repository): bigint | undefined {
  const timesOf = (name: string): readonly bigint[] => {
    const at = join(directory, name);
    const info = look(at);
    if (info === undefined) return [];
    const inside = info.isDirectory()
      ? entriesOf(at).flatMap((entry) => look(join(at, entry.name)) ?? [])
      : [];
    return [info, ...inside].map(({ mtimeNs }) => mtimeNs);
  };
  const stops = STOPS.flatMap(timesOf);
  if (stops.length === 0) return undefined;
  let last = 0n;
  for (const time of [...stops, ...WITH_STOPS.flatMap(timesOf)]) if (time > last) last = time;
  // `git am` notes nothing after it has merged.
  return look(join(directory, 'rebase-apply')) === undefined ? last : last + MERGED_NS;
}

/** The time that is allowed for a merge, in nanoseconds. */
const MERGED_NS = 1_000_000_000n;

/**
 * The first file that was staged since, or whose conflict somebody works on: git itself had written it before. What git adds
 * to its store, or has there and adds again, is new there.
 */
function workedOnSince(
  { root, directory, index, isUnchanged }: Repository,
  since: bigint,
  tracked: boolean,
): string | undefined {
  const objects = join(commonDirectoryOf(directory), 'objects');
  const isNewer = (path: string) => (look(path)?.mtimeNs ?? 0n) > since;
  for (const entry of index?.entries ?? []) {
    if (entry.kind === 'repository') continue;
    const file = join(root, entry.path);
    const { object, isConflict } = entry;
    if (!isConflict && isNewer(join(objects, object.slice(0, 2), object.slice(2)))) return file;
    if ((isConflict || (tracked && !isUnchanged(file, entry))) && isNewer(file)) return file;
  }
  return undefined;
}

/** Where what all working trees of a repository share is. */
function commonDirectoryOf(directory: string): string {
  const common = readOr(() => readRegular(pathOf(join(directory, 'commondir')), MOST_LINK), undefined);
  return common === undefined ? directory : resolve(directory, textOfPath(common).trim());
}

/** A path without that of a directory around it. */
const beneath = (directory: string, path: string) => path.slice(directory === '/' ? 1 : directory.length + 1);

/** In a further working tree of a repository, and in a submodule, `.git` is a file that names it. */
function gitDirectoryOf(root: string): string {
  const at = join(root, '.git');
  const content = readOr(() => readRegular(pathOf(at), MOST_LINK), undefined);
  const text = content === undefined ? '' : textOfPath(content);
  const [, named] = /^gitdir: ([^\n]+)\n?$/.exec(text) ?? [];
  return named === undefined ? at : resolve(root, named);
}

/** `undefined`: there is none, or what git would not take for one: it looks further up then, and so do we. */
function readRepository(root: string): Repository | undefined {
  if (look(join(root, '.git')) === undefined) return undefined;
  const directory = gitDirectoryOf(root);
  const has = (name: string) => look(join(directory, name)) !== undefined;
  // The git directory of a linked worktree has `commondir` instead of `objects` and `refs`.
  if (!has('HEAD') || !(has('commondir') || (has('objects') && has('refs')))) return undefined;
  const path = join(directory, 'index');
  const content = readOr(() => readRegular(pathOf(path), INDEX_BYTES), undefined);
  const index = content && parseIndex(content);
  return {
    ...{ root, directory, index, entries: new Map(index?.entries.map((entry) => [entry.path, entry])) },
    isUnchanged: unchangedFiles(look(path)?.mtimeNs ?? 0n, comparesModes(directory)),
    ignores: ignoredPaths(root, directory, index?.entries.map((entry) => entry.path) ?? []),
  };
}

/** What `git init` writes where permissions do not last: a mode that differs is no change there. */
function comparesModes(directory: string): boolean {
  const common = commonDirectoryOf(directory);
  const content = readOr(() => readRegular(pathOf(join(common, 'config')), MOST_CONFIG), undefined);
  const settings = content && parseGitConfig(content)?.settings;
  const said = settings?.filter(({ key }) => key === 'core.filemode').at(-1);
  return said?.value === undefined || !/^(?:false|no|off|0|)$/i.test(said.value);
}

interface FoundEntry {
  /** As `textOfPath` makes it. */
  readonly name: string;
  readonly isDirectory: boolean;
}

/** `undefined` also for a path that cannot be looked at: a command of the same user could not delete it either. */
function look(path: string): BigIntStats | undefined {
  return readOr(() => lstatSync(pathOf(path), { bigint: true, throwIfNoEntry: false }), undefined);
}

function entriesOf(directory: string): readonly FoundEntry[] {
  const read = () =>
    readdirSync(pathOf(directory), {
      withFileTypes: true,
      encoding: 'buffer',
    }) as unknown as Dirent<Buffer>[];
  return readOr(read, []).map((entry) => ({
    name: textOfPath(entry.name),
    isDirectory: entry.isDirectory(),
  }));
}

/** Names that a shell pattern matches: `*`, `?`, and a bracket expression as any character; no hidden files. */
function matching(directory: string, pattern: string): string[] {
  const text = pattern
    .replace(/[.+^${}()|\\]/g, '\\$&')
    .replace(/\[[^\]]*\]/g, '?')
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  const wanted = new RegExp(`^${text}$`, 's');
  return entriesOf(directory)
    .map(({ name }) => name)
    .filter((name) => wanted.test(name) && (name[0] !== '.' || pattern[0] === '.'))
    .map((name) => join(directory, name));
}
