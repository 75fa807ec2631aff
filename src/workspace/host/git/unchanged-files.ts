import { createHash } from 'node:crypto';
import { type BigIntStats, lstatSync, readlinkSync } from 'node:fs';
import { readOr } from '../../../base/errors/shortage.ts';
import { pathOf } from '../../../base/path-text.ts';
import { readRegular } from '../held-directory.ts';
import type { IndexEntry } from './index-file.ts';

/** Contents that are read for one decision; what is beyond that counts as changed. */
const MOST_READ = 4_000;
const MOST_BYTES = 64 * 1024 * 1024;
/** Larger files are not read. */
const LARGEST = 16 * 1024 * 1024;

/** Whether a file is unchanged since its entry in git's index. */
export type IsUnchanged = (path: string, entry: IndexEntry) => boolean;

/**
 * Compares files with the entries of one index as git does: by size and time, and by content where the time differs or proves
 * nothing. `indexWritten`: when the index was written, in nanoseconds since 1970. `comparesModes`: whether the repository has
 * git compare who may execute a file (core.fileMode).
 */
export function unchangedFiles(indexWritten: bigint, comparesModes: boolean): IsUnchanged {
  const known = new Map<string, boolean>();
  let [files, bytes] = [MOST_READ, MOST_BYTES];

  const hasContent = (path: string, info: BigIntStats, entry: IndexEntry): boolean => {
    if (info.size > LARGEST || files === 0 || bytes < info.size) return false;
    files -= 1;
    bytes -= Number(info.size);
    const content = readOr(
      () =>
        info.isSymbolicLink() ? readlinkSync(pathOf(path), 'buffer') : readRegular(pathOf(path), LARGEST),
      undefined,
    );
    return content !== undefined && isContentOf(entry, content, info.isSymbolicLink());
  };

  return (path, entry) => {
    const { kind, size } = entry;
    if (kind === 'repository') return false;
    const info = readOr(() => lstatSync(pathOf(path), { bigint: true, throwIfNoEntry: false }), undefined);
    if (info === undefined || info.isSymbolicLink() !== (kind === 'link')) return false;
    const hasMode = kind === 'link' || ((info.mode & 0o100n) !== 0n) === entry.isExecutable;
    if (comparesModes && !hasMode) return false;
    const isOfSize = BigInt(size) === (info.size & 0xffffffffn);
    // git writes 0 where it was not sure of the content.
    if (!isOfSize && size !== 0) return false;
    if (isOfSize && hasTimeOf(entry, info) && isOlder(entry, indexWritten)) return true;
    const before = known.get(path);
    if (before !== undefined) return before;
    const isSame = hasContent(path, info, entry);
    known.set(path, isSame);
    return isSame;
  };
}

const NS = 1_000_000_000n;

/** Some builds of git note whole seconds. */
const hasTimeOf = ({ mtime: [seconds, nanoseconds] }: IndexEntry, { mtimeNs }: BigIntStats) =>
  BigInt(seconds) === mtimeNs / NS && (nanoseconds === 0 || BigInt(nanoseconds) === mtimeNs % NS);

/** What was written in the same tick as the index may have been changed after git looked at it. */
function isOlder({ mtime: [seconds, nanoseconds] }: IndexEntry, indexWritten: bigint): boolean {
  if (nanoseconds === 0) return BigInt(seconds) < indexWritten / NS;
  return BigInt(seconds) * NS + BigInt(nanoseconds) < indexWritten;
}

/**
 * Whether git has that content: as it is, or with the line ends that git may have changed when it wrote the file. No attributes
 * have to be known for that, as the file has the size that it had when git wrote it. Content that a filter makes, as that of
 * Git LFS, is not recognised.
 */
function isContentOf({ object, size }: IndexEntry, content: Buffer, isLink: boolean): boolean {
  const isBlob = (bytes: Buffer) =>
    object ===
    createHash(object.length === 40 ? 'sha1' : 'sha256')
      .update(`blob ${bytes.length}\0`)
      .update(bytes)
      .digest('hex');
  if (isBlob(content)) return true;
  if (isLink || size === 0 || !content.includes('\r\n')) return false;
  return isBlob(Buffer.from(content.toString('latin1').replaceAll('\r\n', '\n'), 'latin1'));
}
