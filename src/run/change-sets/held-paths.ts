import { accessSync, chmodSync, closeSync, constants, fchmodSync, fstatSync, openSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { PERMISSIONS } from '../../confine/kernel/mode-bits.ts';
import { holdDirectory, isNoDirectory, O_PATH } from '../../workspace/index.ts';
import { aroundPath, bytesOf, type RawPath } from './tree.ts';

/**
 * Names for paths of a workspace whose directories stay the same ones, whatever a command renames meanwhile; no link is
 * followed on the way. The directory of the last name is kept open: many that follow each other lie in the same.
 */
export class HeldPaths implements Disposable {
  readonly #root: string | Buffer;
  #last: { readonly path: RawPath; readonly fd: number } | undefined;
  /** Permissions that were widened, to be put back. */
  readonly #widened = new Map<RawPath, number>();

  /** `root`: canonical, or beneath a descriptor. */
  constructor(root: string | Buffer) {
    this.#root = root;
  }

  /** A name for the path, good until the next call; `undefined`: there is no directory to hold it. */
  nameOf(path: RawPath): Buffer | undefined {
    const fd = this.#hold(aroundPath(path));
    return fd === undefined ? undefined : inHeld(fd, path.slice(path.lastIndexOf('/') + 1));
  }

  /** The same, in a directory that its owner may write: a command may have left one that is shut. */
  writableNameOf(path: RawPath): Buffer | undefined {
    const around = aroundPath(path);
    const fd = this.#hold(around);
    if (fd === undefined) return undefined;
    this.#widen(around, fd, 0o300);
    return inHeld(fd, path.slice(path.lastIndexOf('/') + 1));
  }

  /** What a directory is to have in the end, in place of what was widened. */
  keepMode(path: RawPath, mode: number): void {
    if (this.#widened.has(path)) this.#widened.set(path, mode);
  }

  [Symbol.dispose](): void {
    for (const [path, mode] of [...this.#widened].toReversed()) {
      const fd = this.#hold(path);
      if (fd !== undefined) fchmodSync(fd, mode);
    }
    this.#letGo();
  }

  #hold(directory: RawPath): number | undefined {
    if (this.#last?.path === directory) return this.#last.fd;
    this.#letGo();
    const parts = directory === '' ? [] : directory.split('/').map(bytesOf);
    try {
      this.#last = { path: directory, fd: this.#open(directory, parts) };
      return this.#last.fd;
    } catch (error) {
      if (isNoDirectory(error)) return undefined;
      throw error;
    }
  }

  /** Opens a directory in which names can be looked up. */
  #open(directory: RawPath, parts: readonly Buffer[]): number {
    try {
      const fd = holdDirectory(this.#root, parts);
      if (isSearchable(fd)) return fd;
      closeSync(fd);
    } catch (error) {
      if (errnoOf(error) !== 'EACCES') throw error;
    }
    for (const at of [...leadingTo(directory), directory]) {
      // Those around it are open by now. A handle needs no permission, and is no link.
      const name = at === '' ? inRoot(this.#root) : this.nameOf(at);
      if (name === undefined) continue;
      const handle = openSync(name, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
      this.#widen(at, handle, 0o500);
      closeSync(handle);
    }
    this.#letGo();
    return holdDirectory(this.#root, parts);
  }

  #widen(path: RawPath, fd: number, wanted: number): void {
    const mode = fstatSync(fd).mode & PERMISSIONS;
    if ((mode & wanted) === wanted) return;
    if (!this.#widened.has(path)) this.#widened.set(path, mode);
    chmodSync(`/proc/self/fd/${fd}`, mode | wanted);
  }

  #letGo(): void {
    if (this.#last !== undefined) closeSync(this.#last.fd);
    this.#last = undefined;
  }
}

/** The directories that lead to it, the outermost first. */
function leadingTo(path: RawPath): readonly RawPath[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, at) => parts.slice(0, at + 1).join('/'));
}

const inRoot = (root: string | Buffer): Buffer => Buffer.concat([Buffer.from(root), Buffer.from('/.')]);

function isSearchable(fd: number): boolean {
  try {
    accessSync(`/proc/self/fd/${fd}/.`, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const inHeld = (fd: number, name: RawPath): Buffer =>
  Buffer.concat([Buffer.from(`/proc/self/fd/${fd}/`), bytesOf(name === '' ? '.' : name)]);

/** Opens a regular file of ours to read it, also one that its owner may not read. Its permissions stay as they are. */
export function openToRead(path: Buffer): number {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK;
  try {
    return openSync(path, flags | constants.O_NOFOLLOW);
  } catch (error) {
    if (errnoOf(error) !== 'EACCES') throw error;
    // By a handle: a link that takes its place meanwhile would have the permissions of something else changed.
    const handle = openSync(path, O_PATH | constants.O_NOFOLLOW);
    try {
      const info = fstatSync(handle);
      if (!info.isFile()) throw error;
      const held = `/proc/self/fd/${handle}`;
      chmodSync(held, (info.mode & PERMISSIONS) | 0o400);
      try {
        return openSync(held, flags);
      } finally {
        chmodSync(held, info.mode & PERMISSIONS);
      }
    } finally {
      closeSync(handle);
    }
  }
}
