import { type BigIntStats, type Dirent, lstatSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { readOr } from '../../errors/shortage.ts';
import type { Versions } from '../../model/surroundings.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { pathOf, textOfPath } from '../../util/path-text.ts';
import { readRegular } from '../held-directory.ts';

/** Files that are looked at for one question; of a larger tree something may be lost. */
const MOST_FILES = 20_000;
/** Names that are read for one question, of which most are not asked about. */
const MOST_NAMES = 200_000;
/** Bytes of a `.git` that is a file. */
const MOST_LINK = 8192;

interface Repository {
  /** Of its working tree. */
  readonly root: string;
  /** Where its HEAD and its index are. */
  readonly directory: string;
  readonly index: GitIndex | undefined;
  /** By their paths beneath the root. */
  readonly entries: ReadonlyMap<string, IndexEntry>;
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
      if (entry !== undefined && isUnchanged(path, entry)) return true;
    }
    return false;
  }

  /** The `.git` file of a submodule or a linked worktree: what it leads to is there without it, and git makes it anew. */
  function isPointer(path: string): boolean {
    return basename(path) === '.git' && repositoryOf(dirname(path))?.root === dirname(path);
  }

  function lostWith(
    path: string,
    counts: (path: string, isDirectory: boolean) => boolean = () => true,
  ): string | undefined {
    const name = basename(path);
    const pending = /[*?[]/.test(name) ? matching(dirname(path), name) : [path];
    let [left, names] = [MOST_FILES, MOST_NAMES];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      if (left-- === 0 || names < 0) return next;
      const info = look(next);
      if (info === undefined || !counts(next, info.isDirectory())) continue;
      if (!info.isDirectory()) {
        if (!isKept(next) && !isOwn(next) && !isPointer(next)) return next;
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
    return undefined;
  }

  const changedFrom = (directory: string, path?: string, unstaged = false) => {
    const repository = repositoryOf(directory);
    return repository && changedIn(repository, path ?? repository.root, unstaged);
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

  return { lostWith, changedFrom, stagedIn, changedSinceStop };
}

function changedIn(
  { root, index, entries }: Repository,
  path: string,
  unstaged: boolean,
): string | undefined {
  if (index === undefined) return undefined;
  if (!index.isAsCommitted && !unstaged) {
    // Of a path that neither is there nor is tracked nothing is lost.
    const isTracked = () => [...entries.keys()].some((entry) => isBeneath(join(root, entry), path));
    return look(path) !== undefined || isTracked() ? path : undefined;
  }
  for (const entry of entries.values()) {
    // What is in a submodule is left alone.
    if (entry.kind === 'repository') continue;
    const file = join(root, entry.path);
    // What is gone is not lost by being brought back.
    if (isBeneath(file, path) && look(file) !== undefined && !isUnchanged(file, entry)) return file;
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

/** As long as a merge may take, in nanoseconds. */
const MERGED_NS = 1_000_000_000n;

/**
 * The first file that was staged since, or whose conflict somebody works on: git itself had written it before. What git adds
 * to its store, or has there and adds again, is new there.
 */
function workedOnSince(
  { root, directory, index }: Repository,
  since: bigint,
  tracked: boolean,
): string | undefined {
  const common = readOr(() => readRegular(pathOf(join(directory, 'commondir')), MOST_LINK), undefined);
  const objects = join(
    common === undefined ? directory : resolve(directory, textOfPath(common).trim()),
    'objects',
  );
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
  // That of a further working tree leads to the rest of it.
  if (!has('HEAD') || !(has('commondir') || (has('objects') && has('refs')))) return undefined;
  const path = join(directory, 'index');
  const content = readOr(() => readRegular(pathOf(path), INDEX_BYTES), undefined);
  const index = content && parseIndex(content);
  return { root, directory, index, entries: new Map(index?.entries.map((entry) => [entry.path, entry])) };
}

function isUnchanged(path: string, { kind, mtime, size }: IndexEntry): boolean {
  if (kind === 'repository') return false;
  const info = look(path);
  return (
    info !== undefined &&
    BigInt(size) === (info.size & 0xffffffffn) &&
    BigInt(mtime[0]) === info.mtimeNs / 1_000_000_000n &&
    (mtime[1] === 0 || BigInt(mtime[1]) === info.mtimeNs % 1_000_000_000n)
  );
}

interface FoundEntry {
  /** As `textOfPath` makes it. */
  readonly name: string;
  readonly isDirectory: boolean;
}

/** What cannot be looked at is nothing that a command of the same user could delete. */
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

/** As the shell finds them: `*`, `?` and, with more of a chance than is right, brackets; no hidden files. */
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

/** Of an entry for a repository within the repository (gitformat-index(5): a 4-bit type, unused bits, permissions). */
const GITLINK = 0o160000;
const SYMBOLIC_LINK = 0o120000;

/** In an entry: where its parts are, and the name's flags behind object ids of both kinds. */
const MTIME_AT = 8;
const MODE_AT = 24;
const SIZE_AT = 36;
const FLAGS_AT = [60, 72] as const;
/** The signature of the file, its version and the count of entries. */
const HEADER_BYTES = 12;

/** One file that is tracked, as it was when git looked at it last. */
interface IndexEntry {
  /** Relative to the worktree. */
  readonly path: string;
  readonly kind: 'file' | 'link' | 'repository';
  /** Seconds and nanoseconds. */
  readonly mtime: readonly [number, number];
  /** The lower 32 bits; 0 also where git could not be sure. */
  readonly size: number;
  /** The id of its content, in hexadecimal digits. */
  readonly object: string;
  /** It is one side of a conflict. */
  readonly isConflict: boolean;
}

/** An index, read. */
interface GitIndex {
  readonly entries: readonly IndexEntry[];
  /** Nothing was staged since the last commit or checkout, as far as git noted it (the extension TREE). */
  readonly isAsCommitted: boolean;
}

/** Reads an index of git, of versions 2 to 4; `undefined`: it is none that git would read. */
function parseIndex(index: Buffer): GitIndex | undefined {
  if (index.toString('latin1', 0, 4) !== 'DIRC' || index.length < HEADER_BYTES) return undefined;
  for (const flagsAt of FLAGS_AT) {
    const found = readEntries(index, flagsAt);
    if (found !== undefined) return { entries: found.entries, isAsCommitted: hasValidTree(index, found.end) };
  }
  return undefined;
}

function readEntries(
  index: Buffer,
  flagsAt: number,
): { readonly entries: readonly IndexEntry[]; readonly end: number } | undefined {
  const version = index.readUInt32BE(4);
  if (version < 2 || version > 4) return undefined;
  const entries: IndexEntry[] = [];
  let at = HEADER_BYTES;
  let name = Buffer.alloc(0);
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    if (at + flagsAt + 2 > index.length) return undefined;
    const mode = index.readUInt32BE(at + MODE_AT);
    const kind = kindOf(mode);
    if (kind === undefined) return undefined;
    const isExtended = version >= 3 && (index.readUInt16BE(at + flagsAt) & 0x4000) !== 0;
    let from = at + flagsAt + (isExtended ? 4 : 2);
    let kept = Buffer.alloc(0);
    if (version === 4) {
      const dropped = readVarint(index, from);
      if (dropped === undefined || dropped.value > name.length) return undefined;
      kept = name.subarray(0, name.length - dropped.value);
      from = dropped.end;
    }
    const end = index.indexOf(0, from);
    if (end < 0) return undefined;
    name = Buffer.concat([kept, index.subarray(from, end)]);
    entries.push({
      path: textOfPath(name),
      kind,
      mtime: [index.readUInt32BE(at + MTIME_AT), index.readUInt32BE(at + MTIME_AT + 4)],
      size: index.readUInt32BE(at + SIZE_AT),
      object: index.toString('hex', at + SIZE_AT + 4, at + flagsAt),
      isConflict: (index.readUInt16BE(at + flagsAt) & 0x3000) !== 0,
    });
    // Older versions fill up to a multiple of eight, with at least one NUL.
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
  }
  return { entries, end: at };
}

/** A 040000 stands for a directory of a sparse index. */
function kindOf(mode: number): IndexEntry['kind'] | undefined {
  if (mode > 0o177777) return undefined;
  switch (mode & 0o170000) {
    case 0o040000:
    case 0o100000:
      return 'file';
    case SYMBOLIC_LINK:
      return 'link';
    case GITLINK:
      return 'repository';
    default:
      return undefined;
  }
}

/** git's `decode_varint`. */
function readVarint(bytes: Buffer, at: number): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  for (let end = at; ; end++) {
    const byte = bytes[end];
    if (byte === undefined || end - at > 6) return undefined;
    value = value * 128 + (byte & 127);
    if ((byte & 128) === 0) return { value, end: end + 1 };
    value += 1;
  }
}

/** Whatever is staged makes the entry of the whole tree invalid (a count of -1), until it is committed. */
function hasValidTree(index: Buffer, extensionsAt: number): boolean {
  let at = extensionsAt;
  while (at + 8 <= index.length) {
    const length = index.readUInt32BE(at + 4);
    if (index.toString('latin1', at, at + 4) === 'TREE')
      return /^\0\d/.test(index.toString('latin1', at + 8, at + 8 + Math.min(length, 16)));
    at += 8 + length;
  }
  return false;
}

const GITLINK_MODE = Buffer.from([0, 0, 0xe0, 0]);

/**
 * The repositories that an index names, whatever else it holds, relative to its worktree: `git status` runs what their
 * configuration says. `undefined`: it is no index that git would read.
 */
export function gitlinksOf(index: Buffer): readonly string[] | undefined {
  // Almost every index: there is none, and nothing has to be read.
  if (index.toString('latin1', 0, 4) === 'DIRC' && !index.includes(GITLINK_MODE)) return [];
  return parseIndex(index)
    ?.entries.filter(({ kind }) => kind === 'repository')
    .map(({ path }) => path);
}

/** An index larger than this is not read. */
const INDEX_BYTES = 256 * 1024 * 1024;

/**
 * Where the repositories are, absolute, that the index of a `.git` names and that are not looked at otherwise. `read`: its
 * content, at most so many bytes.
 */
export function repositoriesOutOfSight(
  index: string,
  read: (path: string, limit: number) => Buffer | undefined,
): readonly string[] {
  const content = read(index, INDEX_BYTES);
  const links = content === undefined ? [] : (gitlinksOf(content) ?? []);
  return links.filter(isOutOfSight).map((link) => join(dirname(dirname(index)), link, '.git'));
}

/** Whether a repository at that path would not be looked at otherwise: see TreePlaces in native/process/tree_places.cc. */
export function isOutOfSight(path: string): boolean {
  return /(^|\/)node_modules\/(@[^/]+\/[^/]+|[^@/][^/]*)\/./.test(path);
}
