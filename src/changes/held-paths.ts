import { chmodSync, closeSync, constants, fchmodSync, fstatSync, openSync } from 'node:fs';
import { holdDirectory, isNoDirectory } from '../host/held-directory.ts';
import { errnoOf } from '../util/errno-of.ts';
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
    const mode = fstatSync(fd).mode & 0o7777;
    if ((mode & 0o300) !== 0o300) {
      if (!this.#widened.has(around)) this.#widened.set(around, mode);
      fchmodSync(fd, mode | 0o300);
    }
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
    if (this.#last !== undefined) closeSync(this.#last.fd);
    this.#last = undefined;
  }

  #hold(directory: RawPath): number | undefined {
    if (this.#last?.path === directory) return this.#last.fd;
    if (this.#last !== undefined) closeSync(this.#last.fd);
    this.#last = undefined;
    const parts = directory === '' ? [] : directory.split('/').map(bytesOf);
    try {
      this.#last = { path: directory, fd: holdDirectory(this.#root, parts) };
      return this.#last.fd;
    } catch (error) {
      if (isNoDirectory(error)) return undefined;
      throw error;
    }
  }
}

const inHeld = (fd: number, name: RawPath): Buffer =>
  Buffer.concat([Buffer.from(`/proc/self/fd/${fd}/`), bytesOf(name === '' ? '.' : name)]);

/** Opens a regular file of ours to read it, also one that its owner may not read. Its permissions stay as they are. */
export function openToRead(path: Buffer, mode: number): number {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    return openSync(path, flags);
  } catch (error) {
    if (errnoOf(error) !== 'EACCES') throw error;
    chmodSync(path, mode | 0o400);
    const file = openSync(path, flags);
    fchmodSync(file, mode);
    return file;
  }
}
