import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  renameSync,
  unlinkSync,
} from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { PERMISSIONS } from '../../confine/kernel/mode-bits.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { O_PATH } from '../../workspace/index.ts';
import { lookAt } from './below.ts';
import { failureError } from './tree.ts';

/** Of a file system that has only the plain rename(2): NFS. */
const CANNOT = ['EINVAL', 'ENOSYS', 'EOPNOTSUPP'];

/** Renames unless there is something of that name by then: false. */
export function renameVacant(addon: NativeAddon, from: Buffer, to: Buffer): boolean {
  return widened(from, () => {
    const errno = nativeErrno(addon.renameVacant(from, to));
    if (errno === undefined || errno === 'EEXIST') return errno === undefined;
    // A second name is as good, where there can be one.
    try {
      if (lookAt(from)?.kind !== 'directory') {
        linkSync(from, to);
        unlinkSync(from);
        return true;
      }
    } catch (error) {
      if (errnoOf(error) === 'EEXIST') return false;
      // Where there cannot be one.
      if (!['EPERM', 'EMLINK', ...CANNOT].includes(errnoOf(error) ?? '')) throw error;
    }
    if (lookAt(to) !== undefined) return false;
    renameSync(from, to);
    return true;
  });
}

/** Each of two names gets what the other one had. False: the file system cannot do that at once. */
export function exchangeNames(addon: NativeAddon, one: Buffer, other: Buffer): boolean {
  return nativeErrno(addon.exchangeNames(one, other)) === undefined;
}

/** `undefined`: it was done. @throws what is no want of the file system. */
function nativeErrno(failure: ReturnType<NativeAddon['renameVacant']>): string | undefined {
  if (failure === undefined) return undefined;
  const error = failureError(failure);
  const errno = errnoOf(error) ?? '';
  if (errno === 'EEXIST' || CANNOT.includes(errno)) return errno;
  throw error;
}

/** Renames what is ours. */
export function renameOurs(from: Buffer, to: Buffer): void {
  widened(from, () => renameSync(from, to));
}

/** A directory takes along the way up from it, so that its owner has to be allowed to write it. */
function widened<T>(from: Buffer, rename: () => T): T {
  try {
    return rename();
  } catch (error) {
    if (errnoOf(error) !== 'EACCES') throw error;
  }
  const handle = openSync(from, O_PATH | constants.O_NOFOLLOW);
  try {
    const { mode } = fstatSync(handle);
    const isDirectory = (mode & constants.S_IFMT) === constants.S_IFDIR;
    const held = `/proc/self/fd/${handle}`;
    if (isDirectory) chmodSync(held, (mode & PERMISSIONS) | 0o200);
    try {
      return rename();
    } finally {
      if (isDirectory) chmodSync(held, mode & PERMISSIONS);
    }
  } finally {
    closeSync(handle);
  }
}
