import { chmodSync, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { posix } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { SET_GROUP_ID, SET_USER_ID } from '../../confine/kernel/mode-bits.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { ObjectKind } from '../../model/index.ts';
import { O_PATH } from '../../workspace/index.ts';
import { type Below, joined, type TreeSummary } from './below.ts';
import { withListed } from './git-directories.ts';
import { RemovedMeanwhile } from './removed-meanwhile.ts';
import { aroundPath, type RawPath, type Stamp, type TreeEntry } from './tree.ts';

/** One step from what was in the workspace to what a command made of it. */
export interface Operation {
  readonly path: RawPath;
  /** What is to be there; missing: nothing. */
  readonly after?: After;
  /** What was there when the command ended; missing: nothing. */
  readonly before?: Stamp;
  /** It is known by its number and the time of its change: it was the workspace's own, and not of a layer beneath. */
  readonly isOwn: boolean;
  /** Of a directory that goes: what was in it. */
  readonly tree?: TreeSummary;
  /** Why it is not applied unless it is named. */
  readonly refused?: string;
  /** What changed while the command ran. */
  readonly conflict?: string;
  /** What of it is not taken over. */
  readonly note?: string;
  /** The content is what it was. */
  readonly sameContent?: true;
  /** A person discarded it: it is neither shown nor applied. */
  readonly discarded?: true;
  /** It was applied and taken back. */
  readonly undone?: true;
}

/** What a command left at a path. */
export interface After {
  readonly kind: ObjectKind;
  readonly mode: number;
  readonly bytes: number;
  readonly modified: string;
  /** Of a file of the layer: when anything of it changed last, which nobody can set. */
  readonly changed?: string;
  /** Of a file of the layer: which one it is. */
  readonly inode?: number;
  /** Of a link. */
  readonly target?: string;
  /** Of a file with several names: the same for all of them. */
  readonly linked?: number;
}

const SET_ID = SET_USER_ID | SET_GROUP_ID;

/** Why a directory does not go, of which nobody knows what is in it. */
export const UNREADABLE = 'a directory there may not be read, and nobody knows what is in it (chmod u+rwx)';

const REMOVED = 'it was removed from the workspace while the command ran';

/** A command can go deeper than any path leads. */
const TOO_DEEP = 'its path is too long for it to be put in place';
/** What comes to a path beside the directories: the names of what is being made. */
const LONGEST = 4_095 - 128;

/** Files up to this size are compared with what was there; larger ones count as changed if they were written at all. */
export const COMPARED_BYTES = 64 * 1024 * 1024;

/** A link to one of these reaches what everybody can read and only the administrator changes. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64'];

/**
 * What a layer changes, each directory before what is in it. `startedNs`: before the command began, by the clock of files;
 * what changed in the workspace since is a conflict.
 */
export async function operationsOf(
  entries: readonly TreeEntry[],
  {
    upper,
    below,
    workspace,
    startedNs,
    isReplaced = false,
  }: {
    readonly upper: string;
    readonly below: Below;
    readonly workspace: string;
    readonly startedNs: bigint;
    /** Another directory is in the place of the workspace since. */
    readonly isReplaced?: boolean;
  },
): Promise<readonly Operation[]> {
  const known = new Set(entries.map(({ path }) => path));
  const replaced = new Set<RawPath>();
  const isLate = ({ changed }: { readonly changed: string }) => BigInt(changed) > startedNs;
  /** Directories that are not those which the command saw: what is in them says nothing of it. */
  const strange = new Set<RawPath>(isReplaced ? [''] : []);
  // Being moved changes nothing but this time. What changes in a directory changes both, and is found by itself.
  const wasMoved = (directory: Stamp) => isLate(directory) && directory.modified !== directory.changed;
  const removed = new RemovedMeanwhile(entries, below, workspace, startedNs);
  const conflictOf = (path: RawPath, before: Stamp | undefined, tree?: TreeSummary) => {
    if (tree?.unreadable === true) return { conflict: UNREADABLE };
    if (before === undefined) return removed.has(path) ? { conflict: REMOVED } : {};
    return isLate(before) || (tree && isLate(tree)) || strange.has(aroundPath(path))
      ? { conflict: 'it changed in the workspace while the command ran' }
      : {};
  };

  const removal = async (path: RawPath): Promise<readonly Operation[]> => {
    const found = below.find(path);
    if (found === undefined) return [];
    const { stamp: before, isOwn } = found;
    const tree = before.kind === 'directory' ? await treeOf(below, path, isOwn) : undefined;
    return [{ path, before, isOwn, ...(tree && { tree }), ...conflictOf(path, before, tree) }];
  };

  const ofDirectory = async (entry: TreeEntry): Promise<readonly Operation[]> => {
    const { path } = entry;
    const found = below.find(path);
    const before = found?.stamp;
    if (entry.opaque || replaced.has(aroundPath(path))) replaced.add(path);
    const isOwn = found?.isOwn ?? true;
    if (before?.kind !== 'directory')
      return [{ path, after: afterOf(entry), ...(before && { before }), isOwn, ...conflictOf(path, before) }];
    if (strange.has(aroundPath(path)) || (isOwn && wasMoved(before))) strange.add(path);
    const hidden: Operation[] = [];
    const names = replaced.has(path) ? namesOrNot(below, path) : [];
    if (names === undefined)
      return [{ path, after: afterOf(entry), before, isOwn, sameContent: true, conflict: UNREADABLE }];
    for (const name of names) {
      const inner = path === '' ? name : `${path}/${name}`;
      if (!known.has(inner)) hidden.push(...(await removal(inner)));
    }
    if (entry.mode === before.mode) return hidden;
    const mode = { path, after: afterOf(entry), before, isOwn, sameContent: true as const };
    return [{ ...mode, ...conflictOf(path, before) }, ...hidden];
  };

  const ofObject = async (entry: TreeEntry): Promise<readonly Operation[]> => {
    const { path } = entry;
    const at = joined(upper, path);
    const found = below.find(path);
    const before = found?.stamp;
    const target = entry.kind === 'link' ? linkBytes(at).toString('latin1') : undefined;
    const after: After = {
      ...afterOf(entry),
      ...(entry.kind === 'file' ? { changed: madeReadable(entry, at), inode: entry.inode } : {}),
      ...(target === undefined ? {} : { target }),
      ...(entry.kind === 'file' && entry.links > 1 ? { linked: entry.inode } : {}),
    };
    const same = found !== undefined && isSameContent(entry, at, found.stamp, found.at);
    const isAsItWas =
      same && before?.mode === entry.mode && (entry.kind === 'link' || before.modified === entry.modified);
    // What got another name is another file now, which both names stand for.
    if (isAsItWas && after.linked === undefined) return [];
    const tree = before?.kind === 'directory' ? await treeOf(below, path, found?.isOwn === true) : undefined;
    return [
      {
        ...{ path, after, isOwn: found?.isOwn ?? true, ...(tree && { tree }) },
        ...(found && { before: withListed(path, found.stamp, found.at) }),
        ...{ ...conflictOf(path, before, tree), ...refusalOf(after, path, workspace), ...noteOf(entry) },
        ...(same ? { sameContent: true as const } : {}),
      },
    ];
  };

  const operations: Operation[] = [];
  const stepsOf = async (entry: TreeEntry) => {
    if (isTooDeep(entry, [upper, workspace])) return [notPlaced(entry, TOO_DEEP)];
    if (entry.whiteout) return removal(entry.path);
    removed.look(entry);
    return entry.kind === 'directory' ? ofDirectory(entry) : ofObject(entry);
  };
  for (const entry of entries) {
    const steps = await stepsOf(entry).catch((error: unknown) => {
      if (errnoOf(error) !== 'EACCES') throw error;
      return [notPlaced(entry, UNREADABLE)];
    });
    // One by one: of a directory that was made anew there may be more than a call takes.
    for (const step of steps) operations.push(step);
  }
  return operations;
}

/** What is in a directory: of a layer's only the content tells whether it is the same later. */
async function treeOf(below: Below, path: RawPath, isOwn: boolean): Promise<TreeSummary> {
  const tree = await below.summary(path);
  return isOwn ? tree : { ...tree, identity: undefined };
}

const isTooDeep = ({ path, unreadable }: TreeEntry, roots: readonly string[]): boolean =>
  unreadable || roots.some((root) => Buffer.byteLength(root) + path.length > LONGEST);

function notPlaced(entry: TreeEntry, conflict: string): Operation {
  return { path: entry.path, ...(entry.whiteout ? {} : { after: afterOf(entry) }), isOwn: true, conflict };
}

/** `undefined`: it may not be looked into. */
function namesOrNot(below: Below, path: RawPath): readonly RawPath[] | undefined {
  try {
    return below.namesIn(path);
  } catch (error) {
    if (errnoOf(error) === 'EACCES') return undefined;
    throw error;
  }
}

function afterOf({ kind, mode, bytes, modified }: TreeEntry): After {
  // Of a directory set-group-ID says only what group new files in it have.
  const left = kind === 'directory' ? SET_ID & ~SET_GROUP_ID : SET_ID;
  return { kind, mode: mode & ~left, bytes: kind === 'file' ? bytes : 0, modified };
}

/**
 * Lets its owner read a file of a layer, which it stays from now on: what it is to be is known. Returns when it changed
 * last.
 */
function madeReadable({ mode, changed }: TreeEntry, at: Buffer): string {
  if ((mode & 0o400) !== 0) return changed;
  const file = openSync(at, O_PATH | constants.O_NOFOLLOW);
  try {
    chmodSync(`/proc/self/fd/${file}`, (mode & 0o777) | 0o400);
    return String(fstatSync(file, { bigint: true }).ctimeNs);
  } finally {
    closeSync(file);
  }
}

function noteOf({ mode, attributes, kind }: TreeEntry): { readonly note?: string } {
  const left = [
    ...(kind === 'file' && (mode & SET_ID) !== 0 ? ['its set-ID bits'] : []),
    ...(attributes ? ['its extended attributes or access list'] : []),
  ];
  return left.length === 0 ? {} : { note: `${left.join(' and ')} are not taken over` };
}

/** THE table of what is not applied: a person may still name a link; the rest cannot be applied at all. */
function refusalOf(after: After, path: RawPath, workspace: string): { readonly refused?: string } {
  switch (after.kind) {
    case 'file':
    case 'directory':
      return {};
    case 'link':
      return leadsOut(after.target ?? '', path, workspace)
        ? { refused: 'it leads out of the workspace; name it to apply it all the same' }
        : {};
    case 'device':
      return { refused: 'it is a device' };
    case 'fifo':
      return { refused: 'it is a FIFO; mkfifo makes it anew' };
    case 'socket':
      return { refused: 'it is a socket, which is of no use without the process that made it' };
  }
}

/** Whether it can be made by a person's word. */
export const canBeNamed = ({ after }: Operation): boolean => after === undefined || after.kind === 'link';

/** Of a link, by its words alone: `..` behind a name, which may itself be a link, counts as leading out. */
function leadsOut(target: RawPath, path: RawPath, workspace: string): boolean {
  const parts = target.split('/').filter((part) => part !== '' && part !== '.');
  const names = parts.findIndex((part) => part !== '..');
  if (names >= 0 && parts.indexOf('..', names) >= 0) return true;
  const root = Buffer.from(workspace).toString('latin1');
  const resolved = posix.resolve(`${root}/${aroundPath(path)}`, target);
  const isIn = (directory: string) => resolved === directory || resolved.startsWith(`${directory}/`);
  return !isIn(root) && !(target.startsWith('/') && SYSTEM.some(isIn));
}

/** Whether two objects hold the same; of what is large it is not known. */
function isSameContent(entry: Stamp, at: Buffer, before: Stamp, beforeAt: Buffer): boolean {
  if (entry.kind !== before.kind || entry.bytes !== before.bytes) return false;
  if (entry.kind === 'link') return linkBytes(at).equals(linkBytes(beforeAt));
  return entry.kind === 'file' && entry.bytes <= COMPARED_BYTES && haveSameBytes(at, beforeAt);
}

const PIECE = 256 * 1024;

/** Whether two files hold the same bytes; false for what cannot be read. */
export function haveSameBytes(one: Buffer, other: Buffer): boolean {
  const opened: number[] = [];
  try {
    // What became a link or a FIFO meanwhile is neither followed nor waited for.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
    for (const path of [one, other]) opened.push(openSync(path, flags));
    const [first = -1, second = -1] = opened;
    // Of very many small files most of the time would go into making room.
    const size = Math.min(PIECE, fstatSync(first).size + 1);
    const [piece, beside] = [Buffer.allocUnsafe(size), Buffer.allocUnsafe(size)];
    for (let at = 0; ; ) {
      const length = readSync(first, piece, 0, size, at);
      const besideLength = readSync(second, beside, 0, size, at);
      if (length !== besideLength || piece.compare(beside, 0, length, 0, length) !== 0) return false;
      if (length === 0) return true;
      at += length;
    }
  } catch {
    return false;
  } finally {
    for (const file of opened) closeSync(file);
  }
}
