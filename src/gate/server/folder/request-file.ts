import { constants } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { errnoOf } from '../../../util/errno-of.ts';
import { MAX_MESSAGE_BYTES } from '../protocol.ts';

/** What was found under a name in a folder that somebody else writes. */
export type ReadFile =
  | {
      readonly kind: 'file';
      readonly bytes: Buffer;
      readonly uid: number;
      /** Tells whether it is still the same file. */
      readonly inode: bigint;
      /** When it was put there, which its owner cannot say. Milliseconds since 1970. */
      readonly changedAt: number;
    }
  /** It is no file that could be a message; not to be read, and not to be answered. */
  | { readonly kind: 'forged'; readonly uid: number /* -1: not known */; readonly problem: string }
  | { readonly kind: 'gone' };

/** Its line break, too. */
const MAX_BYTES = MAX_MESSAGE_BYTES + 1;

/**
 * Reads a file that a stranger has put somewhere: follows no link, opens nothing that could block or do something when
 * it is opened, reads no more than a message can have, and trusts nothing that changes meanwhile.
 */
export async function readStrangersFile(
  path: string,
  isAllowed: (uid: number) => boolean,
): Promise<ReadFile> {
  let handle: FileHandle | undefined;
  let uid = -1;
  const forged = (problem: string): ReadFile => ({ kind: 'forged', uid, problem });
  try {
    const seen = await lstat(path, { bigint: true });
    uid = Number(seen.uid);
    // Before it is opened: opening a device may already do something.
    if (!seen.isFile()) return forged('it is not a regular file');
    if (!isAllowed(uid)) return forged('it belongs to somebody who may not ask');
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const before = await handle.stat({ bigint: true });
    if (before.ino !== seen.ino || before.dev !== seen.dev || before.uid !== seen.uid || !before.isFile())
      return forged('it was exchanged while it was read');
    if (before.nlink !== 1n) return forged('it has further names');
    if (before.size > MAX_BYTES) return forged('it is longer than 256 KiB');
    const bytes = await readUpTo(handle, Number(before.size) + 1);
    // By its name: a file that had another name when it was opened has lost this one since, or still has both.
    const after = await lstat(path, { bigint: true });
    const untouched =
      after.ino === before.ino &&
      after.dev === before.dev &&
      after.nlink === 1n &&
      bytes.length === Number(before.size) &&
      after.size === before.size &&
      after.mtimeNs === before.mtimeNs &&
      after.ctimeNs === before.ctimeNs;
    if (!untouched) return forged('it changed while it was read');
    return { kind: 'file', bytes, uid, inode: before.ino, changedAt: Number(before.ctimeMs) };
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'ENOENT') return { kind: 'gone' };
    // A link that took its place, no permission, a failing disk.
    return forged('it cannot be read');
  } finally {
    await handle?.close();
  }
}

async function readUpTo(handle: FileHandle, limit: number): Promise<Buffer> {
  const buffer = Buffer.alloc(limit);
  let size = 0;
  while (size < limit) {
    const { bytesRead } = await handle.read(buffer, size, limit - size, size);
    if (bytesRead === 0) break;
    size += bytesRead;
  }
  return buffer.subarray(0, size);
}
