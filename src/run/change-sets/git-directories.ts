import { createHash } from 'node:crypto';
import { closeSync, fstatSync, readFileSync } from 'node:fs';
import { orElse } from '../../base/or-else.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { Below, joined, lookAt } from './below.ts';
import { openToRead } from './held-paths.ts';
import { isSameObject, type RawPath, type Stamp } from './tree.ts';

/** What a command left, or took away, at a path. */
export interface PlacedAt {
  readonly path: RawPath;
  readonly stamp: Stamp | undefined;
  /** What was there before was not kept. */
  readonly isLost: boolean;
}

const USED = 'git was used there since, and may need it; git reset or git revert takes commits back';
const NOT_KEPT = 'part of what was there before was not kept, and would be missing';

/** The outermost directory of git's that a path is in: a repository's own, or a bare one, by their usual names. */
export const gitDirectoryOf = (path: RawPath): RawPath | undefined =>
  /^(?:.*?\/)?[^/]*\.git(?=\/)/s.exec(path)?.[0];

/** In such a directory: what says nothing of commits. */
const BESIDE = /^(?:config|config\.worktree|description|hooks\/.*|info\/.*)$/s;

/**
 * Directories of git's of which nothing may be taken back, and why: what is in them refers to each other, and somebody worked
 * there since, or it would come back in part. A commit on top of one that went could not be read any more. `others`: what
 * other change sets put into the workspace.
 */
export async function gitDirectoriesThatStay(
  addon: NativeAddon,
  workspace: string,
  placed: readonly PlacedAt[],
  others: () => readonly PlacedAt[],
): Promise<ReadonlyMap<RawPath, string>> {
  const inside = new Map<RawPath, PlacedAt[]>();
  for (const one of placed) {
    const directory = gitDirectoryOf(one.path);
    if (directory === undefined) continue;
    const known = inside.get(directory);
    if (known === undefined) inside.set(directory, [one]);
    else known.push(one);
  }
  const stay = new Map<RawPath, string>();
  if (inside.size === 0) return stay;
  const theirs = new Map(others().map(({ path, stamp }) => [path, BigInt(stamp?.changed ?? 0)]));
  for (const [directory, own] of inside) {
    if (own.some(({ isLost }) => isLost)) stay.set(directory, NOT_KEPT);
    else if (await isUsed(addon, workspace, directory, own, theirs)) stay.set(directory, USED);
  }
  return stay;
}

/** `theirs`: when what other change sets put there came. */
async function isUsed(
  addon: NativeAddon,
  workspace: string,
  directory: RawPath,
  placed: readonly PlacedAt[],
  theirs: ReadonlyMap<RawPath, bigint>,
): Promise<boolean> {
  const own = new Map(placed.map(({ path, stamp }) => [path, stamp]));
  const files = [...own].filter(([, stamp]) => stamp !== undefined && stamp.kind !== 'directory');
  const there = lookAt(joined(workspace, directory));
  // Nothing can refer to what only went, and nothing does where nothing is.
  if (files.length === 0 || there === undefined) return false;
  // A link leads out of the workspace, perhaps.
  if (there.kind !== 'directory') return true;
  const [since = 0n] = files
    .map(([, stamp]) => BigInt(stamp?.changed ?? 0))
    .toSorted((one, other) => Number(one - other));
  const left = new Set(files.map(([path]) => path));
  const all = await new Below(addon, workspace).all(directory).catch(() => undefined);
  // Then nobody knows.
  if (all === undefined) return true;
  for (const [name, now] of all) {
    if (now.unreadable === true) return true;
    if (now.kind === 'directory') continue;
    const path = `${directory}/${name}`;
    left.delete(path);
    // A preview that waited has the time of its command.
    const isAsLeft = own.has(path)
      ? isSameObject(asListed(own.get(path), now, joined(workspace, path)), now)
      : BESIDE.test(name) || (BigInt(now.modified) < since && (theirs.get(path) ?? -1n) < since);
    if (!isAsLeft) return true;
  }
  return left.size > 0;
}

const isIndex = (path: RawPath): boolean => /(?:^|\/)index$/.test(path) && gitDirectoryOf(path) !== undefined;

/** The same with what an index of git lists, if that is what is there. */
export function withListed(path: RawPath, stamp: Stamp, at: Buffer): Stamp {
  const listed = isIndex(path) ? listedIn(at) : undefined;
  return listed === undefined || !isSameObject(stamp, lookAt(at)) ? stamp : { ...stamp, listed };
}

/**
 * What is there now in place of what was, where that is an index of git which lists the same: whoever looks (`git status`)
 * writes it anew.
 */
export function asListed<T extends Stamp | undefined>(was: T, now: Stamp | undefined, at: Buffer): T | Stamp {
  if (was?.listed === undefined || now?.kind !== 'file' || isSameObject(was, now)) return was;
  return listedIn(at) === was.listed ? { ...now, listed: was.listed } : was;
}

/** An index that is larger is not read. */
export const LARGEST_INDEX = 64 * 1024 * 1024;
/** Of an entry: times, numbers and sizes of its file, among which stands its mode; then comes its object. */
const ENTRY = { mode: 24, afterMode: 28, object: 40, flags: 60, name: 62 };
const EXTENDED = 0x4000;
const HEADER = 12;

/** What an index lists, as a digest without what git knows of files on this machine; `undefined`: it cannot be told. */
function listedIn(at: Buffer): string | undefined {
  const bytes = orElse(() => {
    const file = openToRead(at);
    try {
      const info = fstatSync(file);
      return info.isFile() && info.size <= LARGEST_INDEX ? readFileSync(file) : undefined;
    } finally {
      closeSync(file);
    }
  }, undefined);
  // It ends sooner than it says.
  return bytes && orElse(() => digestOf(bytes), undefined);
}

/** What an index lists, by its content. As `listedIn`. */
export const listedBy = (index: Buffer): string | undefined =>
  orElse(() => digestOf(Buffer.from(index)), undefined);

/** From gitformat-index(5), with objects of 20 bytes; it blanks what is left out. @throws {RangeError} where it is none. */
function digestOf(bytes: Buffer): string | undefined {
  const version = bytes.readUInt32BE(4);
  if (bytes.toString('latin1', 0, 4) !== 'DIRC' || version < 2 || version > 4) return undefined;
  let at = HEADER;
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    let name = at + ENTRY.name + ((bytes.readUInt16BE(at + ENTRY.flags) & EXTENDED) === 0 ? 0 : 2);
    // How much of the name before it stays.
    if (version === 4) while ((bytes.readUInt8(name++) & 0x80) !== 0);
    const end = bytes.indexOf(0, name);
    if (end === -1) return undefined;
    // No entry: a file of holes would be looked through for long.
    if (bytes.readUInt32BE(at + ENTRY.mode) === 0) return undefined;
    bytes.fill(0, at, at + ENTRY.mode).fill(0, at + ENTRY.afterMode, at + ENTRY.object);
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
  }
  const digest = createHash('sha256').update(bytes.subarray(HEADER, at)).digest('hex');
  // Other parts can be made again where their names begin with a capital. `link` says that more is listed elsewhere.
  while (at < bytes.length - 20) {
    if (!/^(?:[A-Z]|sdir)/.test(bytes.toString('latin1', at, at + 4))) return undefined;
    at += 8 + bytes.readUInt32BE(at + 4);
  }
  return at === bytes.length - 20 ? digest : undefined;
}
