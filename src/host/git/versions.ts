import { type BigIntStats, type Dirent, lstatSync, readdirSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { readOr } from '../../errors/shortage.ts';
import type { Versions } from '../../model/surroundings.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { readRegular } from '../held-directory.ts';
import { type GitIndex, INDEX_BYTES, type IndexEntry, parseIndex } from './index-file.ts';

/** Files that are looked at for one question; of a larger tree something may be lost. */
const MOST_FILES = 20_000;
/** Names that are read for one question, of which most are not asked about. */
const MOST_NAMES = 200_000;
/** Bytes of a `.git` that is a file. */
const MOST_LINK = 8192;

interface Repository {
  /** Of its working tree. */
  readonly root: string;
  readonly index: GitIndex | undefined;
  /** By their paths beneath the root. */
  readonly entries: ReadonlyMap<string, IndexEntry>;
}

/**
 * What the repositories have that files are in, by their indexes: that of a workspace, one around it, those within. Git is
 * not run: what it obeys may be a command's. Nor is the index believed for anything but whether to ask: a command can write
 * it, and it can delete without being asked, too.
 */
export function createVersions(): Versions {
  const known = new Map<string, Repository | undefined>();

  function repositoryOf(directory: string): Repository | undefined {
    if (known.has(directory)) return known.get(directory);
    const found =
      look(join(directory, '.git')) !== undefined
        ? readRepository(directory)
        : directory === '/'
          ? undefined
          : repositoryOf(dirname(directory));
    known.set(directory, found);
    return found;
  }

  /** Tracked, and as git saw it last. */
  function isKept(path: string): boolean {
    const repository = repositoryOf(dirname(path));
    const entry = repository?.entries.get(beneath(repository.root, path));
    return entry !== undefined && isUnchanged(path, entry);
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
        if (!isKept(next)) return next;
        continue;
      }
      const entries = entriesOf(next);
      names -= entries.length;
      // Most do not count, and need not be looked at.
      for (const entry of entries) {
        const inside = join(next, entry.name);
        if (counts(inside, entry.isDirectory())) pending.push(inside);
      }
    }
    return undefined;
  }

  const changedAt = (path: string) => changedIn(repositoryOf(path), path);
  const changedAround = (directory: string) => {
    const repository = repositoryOf(directory);
    return changedIn(repository, repository?.root ?? directory);
  };

  return { lostWith, changedAt, changedAround };
}

function changedIn(repository: Repository | undefined, path: string): string | undefined {
  if (repository?.index === undefined) return undefined;
  const { root, index, entries } = repository;
  if (!index.isAsCommitted) return path;
  for (const entry of entries.values()) {
    const file = join(root, entry.path);
    // What is gone is not lost by being brought back.
    if (isBeneath(file, path) && look(file) !== undefined && !isUnchanged(file, entry)) return file;
  }
  return undefined;
}

/** A path without that of a directory around it. */
const beneath = (directory: string, path: string) => path.slice(directory === '/' ? 1 : directory.length + 1);

/** In a further working tree of a repository, and in a submodule, `.git` is a file that names it. */
function gitDirectoryOf(root: string): string {
  const at = join(root, '.git');
  const content = readOr(() => readRegular(at, MOST_LINK), undefined);
  const [, named] = /^gitdir: ([^\n]+)\n?$/.exec(content?.toString() ?? '') ?? [];
  return named === undefined ? at : resolve(root, named);
}

function readRepository(root: string): Repository {
  const path = join(gitDirectoryOf(root), 'index');
  const content = readOr(() => readRegular(path, INDEX_BYTES), undefined);
  const index = content && parseIndex(content);
  return { root, index, entries: new Map(index?.entries.map((entry) => [entry.path, entry])) };
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

/** What cannot be looked at is nothing that a command of the same user could delete. */
function look(path: string): BigIntStats | undefined {
  return readOr(() => lstatSync(path, { bigint: true, throwIfNoEntry: false }), undefined);
}

function entriesOf(directory: string): readonly Dirent[] {
  return readOr(() => readdirSync(directory, { withFileTypes: true }), []);
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
