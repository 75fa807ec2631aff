import { type BigIntStats, constants } from 'node:fs';
import { errnoName } from '../../confine/kernel/errno.ts';
import { PERMISSIONS } from '../../confine/kernel/mode-bits.ts';
import type { NativeAddon, NativeFailure } from '../../confine/native/contract.ts';
import type { ObjectKind } from '../../model/index.ts';
import type { NativeTree } from '../../workspace/index.ts';

/**
 * A path relative to the workspace, as its bytes: one character for each (latin1), because names need not be UTF-8. The
 * empty one is the workspace itself.
 */
export type RawPath = string;

/** For the file system. */
export const bytesOf = (path: RawPath): Buffer => Buffer.from(path, 'latin1');

/** From a path of this program, which is text. */
export const rawPath = (path: string): RawPath => Buffer.from(path, 'utf8').toString('latin1');

/**
 * For a person, and in JSON: bytes that are no UTF-8 as `\xNN`. Different paths stay different: a backslash that looks like
 * the beginning of that is itself `\x5c`.
 */
export function shownPath(path: RawPath): string {
  const bytes = bytesOf(path);
  const text = bytes.toString('utf8');
  const escaped = (plain: string) => plain.replace(/\\(?=x[0-9a-f]{2})/g, '\\x5c');
  if (!text.includes('\ufffd')) return escaped(text);
  return escaped(path).replace(/[\x80-\xff]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16)}`);
}

/** The directory around it. */
export function aroundPath(path: RawPath): RawPath {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

export const isWithin = (path: RawPath, directory: RawPath): boolean =>
  directory === '' || path === directory || path.startsWith(`${directory}/`);

/** What is known of an object without reading it. Times in nanoseconds since 1970, as decimal numbers. */
export interface Stamp {
  readonly kind: ObjectKind;
  /** Permissions with the set-ID and sticky bits. */
  readonly mode: number;
  readonly bytes: number;
  readonly inode: number;
  readonly links: number;
  readonly modified: string;
  /** Of anything: nobody can set it. */
  readonly changed: string;
  /** Of an index of git that was looked into: what it lists. */
  readonly listed?: string;
}

/** The same object as was put there: somebody may have read it, and linked to it, but not changed it. */
export function isSameObject(one: Stamp | undefined, other: Stamp | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.kind !== other.kind || one.inode !== other.inode) return false;
  if (one.kind === 'directory') return true;
  return one.bytes === other.bytes && one.modified === other.modified && one.mode === other.mode;
}

/** Something beneath a directory that was walked through. */
export interface TreeEntry extends Stamp {
  readonly path: RawPath;
  /** Of a layer: it hides what is beneath it in the workspace. */
  readonly opaque: boolean;
  /** Of a layer: it has extended attributes or an access list. */
  readonly attributes: boolean;
  /** Of a layer: it is a copy of what was there beneath it, or elsewhere before it was moved. */
  readonly copied: boolean;
  /** A directory that may not be looked into, or to which no path leads any more. */
  readonly unreadable: boolean;
  /** Of a layer: what was here was taken away. */
  readonly whiteout: boolean;
}

const FIELDS = 9;

const { S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK } = constants;
const KIND_OF_TYPE: ReadonlyMap<number, ObjectKind> = new Map([
  [S_IFREG, 'file'],
  [S_IFDIR, 'directory'],
  [S_IFLNK, 'link'],
  [S_IFIFO, 'fifo'],
  [S_IFSOCK, 'socket'],
]);

const kindOf = (mode: number): ObjectKind => KIND_OF_TYPE.get(mode & S_IFMT) ?? 'device';

export function stampOf(info: BigIntStats): Stamp {
  const mode = Number(info.mode);
  return {
    ...{ kind: kindOf(mode), mode: mode & PERMISSIONS, bytes: Number(info.size), inode: Number(info.ino) },
    ...{ links: Number(info.nlink), modified: String(info.mtimeNs), changed: String(info.ctimeNs) },
  };
}

/** More objects than this are too many for a change set. */
const MOST_OBJECTS = 2_000_000;

/**
 * Everything beneath a directory, each directory before what is in it. `isLayer`: the upper directory of an overlay.
 * @throws an error with `failure`, as the addon's functions do.
 */
export async function walkTree(
  addon: NativeAddon,
  path: string,
  isLayer = false,
): Promise<readonly TreeEntry[]> {
  const { names, numbers } = await new Promise<NativeTree>((resolve, reject) => {
    addon.walkTree(path, isLayer, MOST_OBJECTS, (walked, failure) => {
      if (walked !== undefined) resolve(walked);
      else reject(failureError(failure));
    });
  });
  const paths = names.toString('latin1').split('\0').slice(0, -1);
  return paths.map((name, at) => entryOf(name, numbers.subarray(at * FIELDS, (at + 1) * FIELDS)));
}

/** What the addon failed with, as Node's own functions would throw it. */
export function failureError(failure: NativeFailure | undefined): Error {
  const code = errnoName(failure?.errno ?? 0);
  return Object.assign(new Error(`${failure?.stage} failed: ${code}`), { failure, code });
}

function entryOf(path: RawPath, numbers: Float64Array): TreeEntry {
  const [
    mode = 0,
    bytes = 0,
    inode = 0,
    links = 0,
    modified = 0,
    modifiedNs = 0,
    changed = 0,
    changedNs = 0,
    marks = 0,
  ] = numbers;
  return {
    ...{ path, kind: kindOf(mode), mode: mode & PERMISSIONS, bytes, inode, links },
    ...{ modified: nanoseconds(modified, modifiedNs), changed: nanoseconds(changed, changedNs) },
    ...{ opaque: (marks & 1) !== 0, attributes: (marks & 2) !== 0 },
    ...{ unreadable: (marks & 4) !== 0, whiteout: (marks & 8) !== 0, copied: (marks & 16) !== 0 },
  };
}

const nanoseconds = (seconds: number, rest: number): string =>
  String(BigInt(seconds) * 1_000_000_000n + BigInt(rest));
