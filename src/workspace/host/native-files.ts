// Functions of the addon for files and locks, without a command.

declare module '../../confine/native/contract.ts' {
  interface NativeAddon {
    /**
     * Takes the lock of an open file (flock(2)), exclusive unless it is to be shared; false: another process has it. It ends with
     * the last descriptor of the open file, however the process ends. Throws for anything but a lock that is taken.
     */
    tryLock(fd: number, shared?: boolean): boolean;
    /** Releases the lock of `tryLock`. */
    unlock(fd: number): void;
    /**
     * Whether any process has a file open for writing, or mapped. Throws for a descriptor that is not for reading only, a file
     * that belongs to somebody else, and a file system that cannot tell.
     */
    hasWriter(fd: number): boolean;
    /** Renames unless there is something of that name; returns why not (EEXIST; EINVAL: the file system cannot do this). */
    renameVacant(from: Buffer, to: Buffer): NativeFailure | undefined;
    /** Exchanges two names atomically; returns why not, like `renameVacant`. */
    exchangeNames(one: Buffer, other: Buffer): NativeFailure | undefined;
    /** Removes the kernel's attributes (overlayfs) from a file of a layer; does not follow a link at the end of the path. */
    removeLayerMarks(path: Buffer): void;
    /**
     * Adds up what lies beneath directories, on a thread: blocks, and something for each entry. No link is followed and no other
     * file system entered. `complete`: false where the time was not enough, and there is more.
     */
    measure(
      paths: readonly string[],
      budgetMs: number,
      done: (bytes: number, complete: boolean) => void,
    ): void;
    /** Removes the content of a directory, on a thread; follows no link and enters no other file system. */
    emptyDirectory(path: string, done: (isEmpty: boolean) => void): void;
    /**
     * Everything beneath a directory, on a thread: each directory before what is in it, names in the order of their bytes. No
     * link is followed and no other file system entered. `isLayer`: the upper directory of an overlay, whose marks are read and
     * whose shut directories are made readable. A failure (E2BIG): there is more than `most`.
     */
    walkTree(
      path: string,
      isLayer: boolean,
      most: number,
      done: (walked: NativeTree | undefined, failure: NativeFailure | undefined) => void,
    ): void;
    /**
     * What lies directly in a directory, and deeper in it what not everybody may read or is `named` (relative paths), on a thread.
     * Links are left out; what is shut, named or of another file system is not looked into. The failures are those of `walkTree`.
     */
    findShut(
      path: string,
      named: readonly string[],
      most: number,
      done: (walked: NativeTree | undefined, failure: NativeFailure | undefined) => void,
    ): void;
    /**
     * Copies what one file holds to another, empty one, on a thread, with its times: shares blocks where the file system can, and leaves holes
     * holes. The descriptors have to stay open meanwhile.
     */
    copyContent(from: number, to: number, done: (failure: NativeFailure | undefined) => void): void;
  }
}

/** What lies beneath a directory. */
export interface NativeTree {
  /** Paths relative to it, any bytes, each ended by NUL. */
  readonly names: Buffer;
  /**
   * Nine for each: mode, size, inode, links, seconds and nanoseconds of the last change of the content, the same of the last
   * change of anything, and marks: 1 opaque, 2 has attributes of its own, 4 could not be looked into, 8 a whiteout,
   * 16 a copy of what was beneath.
   */
  readonly numbers: Float64Array;
}
