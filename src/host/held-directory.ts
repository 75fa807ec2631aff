import { chmodSync, closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { isBeneath } from '../util/absolute-path.ts';
import { errnoOf } from '../util/errno-of.ts';

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/**
 * Calls `use` with a name for the directory of a path that keeps leading to it, whatever commands rename meanwhile, and
 * with the last part of the path. No link is followed on the way from `root` (canonical). Returns `undefined` where there is
 * no such directory.
 */
export function inDirectoryOf<T>(
  root: string,
  path: string,
  use: (directory: string, name: string) => T,
): T | undefined {
  if (!isBeneath(path, root) || path === root) return undefined;
  const parts = dirname(path).slice(root.length).split('/').filter(Boolean);
  let held: number | undefined;
  try {
    held = openDirectory(root);
    for (const part of parts) {
      const next = openDirectory(`/proc/self/fd/${held}/${part}`);
      closeSync(held);
      held = next;
    }
    return use(`/proc/self/fd/${held}`, basename(path));
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR' || errno === 'ELOOP') return undefined;
    throw error;
  } finally {
    if (held !== undefined) closeSync(held);
  }
}

/** As `inDirectoryOf`, for who changes something there: a command may have taken its user's right to write away. */
export function inWritableDirectoryOf<T>(
  root: string,
  path: string,
  use: (directory: string, name: string) => T,
): T | undefined {
  return inDirectoryOf(root, path, (directory, name) => {
    try {
      return use(directory, name);
    } catch (error) {
      if (errnoOf(error) !== 'EACCES') throw error;
      chmodSync(directory, (statSync(directory).mode & 0o777) | 0o300);
      return use(directory, name);
    }
  });
}

function openDirectory(path: string): number {
  return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

/**
 * The content of a regular file of at most `limit` bytes; `undefined` where there is none, for a link, and for what would
 * make its reader wait (a FIFO).
 */
export function readRegular(path: string, limit: number): Buffer | undefined {
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
