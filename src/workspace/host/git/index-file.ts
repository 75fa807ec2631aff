import { dirname, join } from 'node:path';
import { textOfPath } from '../../../base/path-text.ts';

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
export interface IndexEntry {
  /** Relative to the worktree. */
  readonly path: string;
  readonly kind: 'file' | 'link' | 'repository';
  /** Its owner may execute it: all that git notes of permissions. */
  readonly isExecutable: boolean;
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
export interface GitIndex {
  readonly entries: readonly IndexEntry[];
  /** Nothing was staged since the last commit or checkout, as far as git noted it (the extension TREE). */
  readonly isAsCommitted: boolean;
}

/** Reads an index of git, of versions 2 to 4; `undefined`: it is none that git would read. */
export function parseIndex(index: Buffer): GitIndex | undefined {
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
      isExecutable: (mode & 0o100) !== 0,
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
  // Almost no index has a gitlink, and then it need not be parsed.
  if (index.toString('latin1', 0, 4) === 'DIRC' && !index.includes(GITLINK_MODE)) return [];
  return parseIndex(index)
    ?.entries.filter(({ kind }) => kind === 'repository')
    .map(({ path }) => path);
}

/** An index larger than this is not read. */
export const INDEX_BYTES = 256 * 1024 * 1024;

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

/** Whether a repository at that path would not be looked at otherwise: see TreePlaces in native/index/tree_places.cc. */
export function isOutOfSight(path: string): boolean {
  return /(^|\/)node_modules\/(@[^/]+\/[^/]+|[^@/][^/]*)\/./.test(path);
}
