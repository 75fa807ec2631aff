import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { bytesOfPath } from '../../base/path-text.ts';

/** How long git's lock on a file is waited for, and how long no other one is after that: a command may leave very many. */
const LOCK_MS = 1_000;
const IMPATIENT_MS = 10_000;
let impatientUntil = 0;

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;
/** open(2): a handle of a path, which needs no right to read what is there. Node does not name it. */
export const O_PATH = 0o10000000;
/** open(2): a file in a directory that has no name there. */
export const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

/**
 * Calls `use` with a name for a path (as `textOfPath` makes it), the directory of which stays the same one, whatever commands
 * rename meanwhile. No link is followed on the way from `root` (canonical). The name is bytes, as a command can have chosen it.
 * Returns `undefined` where there is no such directory.
 */
export function inDirectoryOf<T>(root: string, path: string, use: (at: Buffer) => T): T | undefined {
  if (!isBeneath(path, root) || path === root) return undefined;
  const parts = dirname(path).slice(root.length).split('/').filter(Boolean);
  let held: number | undefined;
  try {
    held = holdDirectory(root, parts.map(bytesOfPath));
    return use(inHeld(held, bytesOfPath(basename(path))));
  } catch (error) {
    if (isNoDirectory(error)) return undefined;
    throw error;
  } finally {
    if (held !== undefined) closeSync(held);
  }
}

/** A name for what is in a directory that is open. */
const inHeld = (directory: number, name: Buffer): Buffer =>
  Buffer.concat([Buffer.from(`/proc/self/fd/${directory}/`), name]);

/** A name of {@link inDirectoryOf} with a suffix, in the same directory. */
export const withSuffix = (at: Buffer, suffix: string): Buffer => Buffer.concat([at, Buffer.from(suffix)]);

/** The directory that a name of `inDirectoryOf` is in. */
export const heldAround = (at: Buffer): string => at.toString('latin1', 0, at.lastIndexOf('/'));

/**
 * Opens a directory beneath `root` (canonical), step by step: no link is followed. `parts`: its names on the way; bytes where
 * they need not be UTF-8.
 * @throws an error for which `isNoDirectory` holds where there is none.
 */
export function holdDirectory(root: string | Buffer, parts: readonly (string | Buffer)[]): number {
  let held = openDirectory(root);
  for (const part of parts) {
    try {
      const next = openDirectory(inHeld(held, Buffer.from(part)));
      closeSync(held);
      held = next;
    } catch (error) {
      closeSync(held);
      throw error;
    }
  }
  return held;
}

/** Whether an error says that there is no directory at a path. */
export function isNoDirectory(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === 'ENOENT' || errno === 'ENOTDIR' || errno === 'ELOOP';
}

/** Like `inDirectoryOf`, but restores the user's write permission if it is missing: a command may have removed it. */
export function inWritableDirectoryOf<T>(root: string, path: string, use: (at: Buffer) => T): T | undefined {
  return inDirectoryOf(root, path, (at) => {
    try {
      return use(at);
    } catch (error) {
      if (errnoOf(error) !== 'EACCES') throw error;
      const directory = heldAround(at);
      chmodSync(directory, (statSync(directory).mode & 0o777) | 0o300);
      return use(at);
    }
  });
}

function openDirectory(path: string | Buffer): number {
  return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/**
 * The content of a regular file of at most `limit` bytes; `undefined` where there is none, for a link, and for what would
 * make its reader wait (a FIFO).
 */
export function readRegular(path: string | Buffer, limit: number): Buffer | undefined {
  let file: number;
  try {
    file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR' || errno === 'ELOOP' || errno === 'ENXIO') return undefined;
    throw error;
  }
  try {
    const info = fstatSync(file);
    if (!info.isFile() || info.size > limit) return undefined;
    const content = Buffer.alloc(info.size);
    let length = 0;
    while (length < content.length) {
      const read = readSync(file, content, length, content.length - length, length);
      if (read === 0) break;
      length += read;
    }
    return content.subarray(0, length);
  } finally {
    closeSync(file);
  }
}

/**
 * Puts another file with this content in the place of one: what a process still has open or mapped of it is not what is
 * there any more. By way of `NAME.lock`, as git does; `false` where that is there, or the directory is gone.
 */
export function replaceFile(root: string, path: string, content: string | Buffer): boolean {
  const isDone = inDirectoryOf(root, path, (at) => {
    const mode = lstatSync(at, { throwIfNoEntry: false })?.mode ?? 0o644;
    const lockFile = withSuffix(at, '.lock');
    const lock = takeLock(lockFile, mode & 0o777);
    if (lock === undefined) return false;
    try {
      writeFileSync(lock, content);
    } finally {
      closeSync(lock);
    }
    renameSync(lockFile, at);
    return true;
  });
  return isDone === true;
}

/** Makes the file that git takes for a lock; `undefined`: there is one, and it stays. */
export function takeLock(path: Buffer, mode: number): number | undefined {
  const end = performance.now() < impatientUntil ? 0 : performance.now() + LOCK_MS;
  for (;;) {
    try {
      return openSync(path, 'wx', mode);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
      if (performance.now() >= end) {
        impatientUntil = performance.now() + IMPATIENT_MS;
        return undefined;
      }
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}
