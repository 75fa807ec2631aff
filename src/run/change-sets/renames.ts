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

/** What renameat2(2) fails with on a file system that has only the plain rename(2), as NFS. */
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
      if (!isNoLink(error)) throw error;
    }
    if (lookAt(to) !== undefined) return false;
    renameSync(from, to);
    return true;
  });
}

/**
 * Each of two names in a directory gets what the other one had. Where the file system cannot do that at once, what `other` had
 * is at {@link asideOf} for a moment. False: somebody took the name `other` meanwhile, and it still is there.
 * @throws ENOENT: one of them is gone, and nothing was changed.
 */
export function exchangeNames(addon: NativeAddon, one: Buffer, other: Buffer): boolean {
  if (nativeErrno(addon.exchangeNames(one, other), 'EXDEV') === undefined) return true;
  const aside = asideOf(one);
  if (isLinked(other, aside, one)) renameSync(one, other);
  else {
    renameSync(other, aside);
    if (!renameVacant(addon, one, other)) return false;
  }
  renameSync(aside, one);
  return true;
}

/** Gives a file another name, where something else can be put over it: so its own name is never vacant. */
function isLinked(name: Buffer, to: Buffer, next: Buffer): boolean {
  if ([name, next].some((at) => lookAt(at)?.kind === 'directory')) return false;
  try {
    linkSync(name, to);
    return true;
  } catch (error) {
    if (isNoLink(error)) return false;
    throw error;
  }
}

/** Whether a second name was refused because there can be none: it is somebody else's, or the file system has no such names. */
const isNoLink = (error: unknown): boolean => ['EPERM', 'EMLINK', ...CANNOT].includes(errnoOf(error) ?? '');

/** Where what has a name is while two names are exchanged one after the other. */
export const asideOf = (one: Buffer): Buffer => Buffer.concat([one, Buffer.from('-old')]);

/** Finishes, or takes back, what was cut short where names cannot be exchanged, or renamed only where the other one is vacant. */
export function finishExchange(addon: NativeAddon, one: Buffer, other: Buffer): void {
  const aside = asideOf(one);
  const there = lookAt(other);
  const isSecondName = (name: Buffer) => {
    const is = lookAt(name);
    return is !== undefined && is.kind !== 'directory' && is.inode === there?.inode;
  };
  if (isSecondName(one)) unlinkSync(one);
  if (lookAt(aside) === undefined) return;
  if (lookAt(one) === undefined) renameSync(aside, one);
  else if (isSecondName(aside)) unlinkSync(aside);
  else renameVacant(addon, aside, other);
}

/** Why it was not done, if the file system cannot or the name is taken; `undefined`: it was. @throws all else, but for `also`. */
function nativeErrno(failure: ReturnType<NativeAddon['renameVacant']>, also = 'EEXIST'): string | undefined {
  if (failure === undefined) return undefined;
  const error = failureError(failure);
  const errno = errnoOf(error) ?? '';
  if (errno === also || CANNOT.includes(errno)) return errno;
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
