import { createHash } from 'node:crypto';
import { lstatSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { identityOf, inDirectoryOf, readRegular, replaceFile } from '../../workspace/index.ts';
import { LARGEST_INDEX, listedBy } from './git-directories.ts';

/**
 * Saves and restores git's index where the git directory lies outside of the workspace (linked worktree, submodule, directory of a
 * monorepo). The layer over the workspace does not cover that index, so a copy is taken before the command, for undo.
 */

/** Where such an index is. All canonical. */
interface PlaceOfIndex {
  /** Where git keeps what all working trees of the repository share. */
  readonly directory: string;
  /** In that directory. */
  readonly index: string;
}

/** An index that a command changed, as a change set has it. What it was and became are files beside the set. */
export interface StoredIndex extends PlaceOfIndex {
  /** Which directories these are: a command can put others in their place. */
  readonly identity: string;
  /** Digest of HEAD, of the commit that it names and of an unfinished merge or rebase: the index is restored only if it is the same. */
  readonly head: string;
  /** Digests of the index entries before and after the command, without file times. */
  readonly before: string;
  readonly after: string;
  /** Of both files together. */
  readonly bytes: number;
  /** Why it is not put back: the command also changed what `head` stands for. */
  readonly isMoved?: true;
  readonly undone?: true;
}

/** An index before a command. */
export interface NotedIndex
  extends Pick<StoredIndex, 'directory' | 'index' | 'identity' | 'head' | 'before'> {
  readonly content: Buffer | undefined;
}

/** Stands for the list of an index that is not there. */
const NONE = 'none';
const SMALL = 64 * 1024;
const LARGE = 16 * 1024 * 1024;
/** Files in the git directory of a working tree that exist only during a merge, rebase, cherry-pick or revert. */
const UNDER_WAY = ['MERGE_HEAD', 'CHERRY_PICK_HEAD', 'REVERT_HEAD', 'rebase-merge', 'rebase-apply'];

const MOVED = 'the command also made commits or checked out another commit, which undo does not revert';
const CHANGED = 'it changed since';

/** @throws {SandboxError} `changes.unavailable`: undo could not put it back. */
export function noteIndex(place: PlaceOfIndex): NotedIndex {
  const noted = orElse(() => lookAtIndex(place), undefined);
  if (noted !== undefined) return noted;
  throw new SandboxError(
    'changes.unavailable',
    `${place.index} cannot be read, so undo could not put it back`,
  );
}

/** What a command made of an index, kept in the directory of its change set; `undefined`: it lists the same. */
export function keepIndex(set: string, noted: NotedIndex): StoredIndex | undefined {
  const { directory, index, identity, head, before, content } = noted;
  const now = orElse(() => lookAtIndex({ directory, index }), undefined);
  const isSamePlace = now?.identity === identity && now.head === head;
  if (isSamePlace && now.before === before) return undefined;
  const stored = { directory, index, identity, head, before, after: now?.before ?? NONE };
  if (!isSamePlace || content === undefined || now.content === undefined)
    return { ...stored, bytes: 0, isMoved: true };
  for (const [name, bytes] of [
    ['before', content],
    ['after', now.content],
  ] as const)
    writeFileSync(fileOf(set, name), bytes, { mode: 0o600, flush: true });
  return { ...stored, bytes: content.length + now.content.length };
}

/**
 * Puts an index back (`before`) or again (`after`). Returns why it stays as it is; `undefined`: it is in place.
 * @throws {SandboxError} `changes.busy`: a lock of git is beside it.
 */
export function putIndex(set: string, stored: StoredIndex, which: 'before' | 'after'): string | undefined {
  if (stored.isMoved === true) return MOVED;
  const now = orElse(() => lookAtIndex(stored), undefined);
  if (now?.identity !== stored.identity || now.head !== stored.head) return CHANGED;
  if (now.before === stored[which]) return undefined;
  if (now.before !== stored[which === 'before' ? 'after' : 'before']) return CHANGED;
  const content = readFileSync(fileOf(set, which));
  // Through the directory that is looked at, and no link on the way.
  if (replaceFile(stored.directory, stored.index, content)) return undefined;
  throw new SandboxError(
    'changes.busy',
    `git has locked ${stored.index}; if no git process is running, remove ${stored.index}.lock and try again`,
  );
}

const fileOf = (set: string, name: 'before' | 'after') => join(set, `index.${name}`);

/** `undefined`: what it lists cannot be told. */
function lookAtIndex({ directory, index }: PlaceOfIndex): NotedIndex | undefined {
  const read = (path: string, limit: number) =>
    inDirectoryOf(directory, path, (at) => readRegular(at, limit));
  const own = dirname(index);
  const content = read(index, LARGEST_INDEX);
  const isThere = inDirectoryOf(directory, index, (at) => lstatSync(at, { throwIfNoEntry: false }));
  const before = content === undefined ? (isThere ? undefined : NONE) : listedBy(content);
  const head = read(join(own, 'HEAD'), SMALL);
  if (before === undefined || head === undefined) return undefined;
  const [, reference] = /^ref: (refs\/[^\n]+)\n?$/.exec(head.toString('latin1')) ?? [];
  const parts = [
    head,
    reference === undefined ? undefined : read(join(directory, reference), SMALL),
    // Only where a reference is that has no file of its own.
    reference === undefined || read(join(directory, reference), SMALL) !== undefined
      ? undefined
      : packed(read(join(directory, 'packed-refs'), LARGE), reference),
    ...[directory, own].map((one) => read(join(one, 'reftable/tables.list'), SMALL)),
    ...UNDER_WAY.map((name) => {
      const path = join(own, name);
      const there = inDirectoryOf(directory, path, (at) => lstatSync(at, { throwIfNoEntry: false }));
      return there === undefined ? undefined : Buffer.from(`${there.ino}:${there.ctimeMs}`);
    }),
  ];
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part?.length ?? -1}\n`).update(part ?? '');
  const identity = [directory, own].map((path) => identityOf(path)).join(' ');
  return { directory, index, identity, head: hash.digest('hex'), before, content };
}

/** The line of a reference. */
function packed(content: Buffer | undefined, reference: string): Buffer | undefined {
  const line = content
    ?.toString('latin1')
    .split('\n')
    .find((one) => one.endsWith(` ${reference}`));
  return line === undefined ? undefined : Buffer.from(line, 'latin1');
}
