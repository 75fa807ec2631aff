import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  renameSync,
  rmSync,
  utimesSync,
} from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { isNoDirectory, mountPointsWithin, O_PATH } from '../../workspace/index.ts';
import { joined, lookAt } from './below.ts';
import { Copies, seconds } from './copies.ts';
import { HeldPaths } from './held-paths.ts';
import type { Operation } from './operations.ts';
import { renameVacant } from './renames.ts';
import type { PlacedStamp } from './store.ts';
import { isWithin, type RawPath, rawPath, type Stamp, stampOf } from './tree.ts';

/** What became of an operation: what is noted of it, or why it was not carried out. */
export type Placed =
  | Omit<PlacedStamp, 'number'>
  /** `changed`: when the file of the layer changed last, which was in the workspace for a moment. */
  | { readonly conflict: string; readonly changed?: string };

/** What the operations of one change set are placed with. */
export interface PlaceParts {
  readonly addon: NativeAddon;
  /** Canonical. */
  readonly workspace: string;
  /** Of the change set: what the command left. */
  readonly upper: string;
  /** Of the change set: what was there before, each as the number of its operation. */
  readonly kept: string;
  /** Part of the names of what is being made: nobody else knows it beforehand. */
  readonly token: string;
  /** Files of the layer are moved where they can be: nothing else needs them there. */
  readonly moves: boolean;
}

/** What the name of something ends in that is to be put in place. */
export const NEW = '-new';
/** And of what is to be removed, a copy of which is kept. */
export const GONE = '-gone';

export const conflict = (why: string): Placed => ({ conflict: why });
export const placedAs = (stamp: Stamp | undefined, isKept: boolean): Placed => ({
  ...(stamp && { stamp }),
  isKept,
});
export const CHANGED = 'it changed';
export const CHANGED_WITHIN = 'something in it changed';
export const CHANGED_SINCE = 'it changed since it was applied';
export const TAKEN = 'something is there that was not';
export const MISSING = 'it is not there any more';
export const MOUNTED = 'another file system is mounted in it';
export const NOT_THERE = 'its directory is not there any more, or cannot be entered';

/** Files that lost a name here and may have others. */
export class LostNames {
  /** When each had changed last before that, and when by that; missing: not known, but it did. */
  readonly #names = new Map<number, { readonly was: string; readonly is?: string }>();

  /** Takes into account that what was there before lost its name, before this process. */
  note(before: Stamp | undefined): void {
    if (hasOtherNames(before)) this.#names.set(before.inode, { was: before.changed });
  }

  /**
   * When what is there now changed last, if nothing but this changed it. Being kept changes the time of that; so does the
   * loss of another name. Since a crash somebody may have worked here.
   */
  timeKnown(before: Stamp, now: Stamp, isBegun: boolean): string {
    if (isBegun) return now.changed;
    if (!this.#names.has(before.inode)) return before.changed;
    return this.#names.get(before.inode)?.is ?? now.changed;
  }

  /** When a file in a directory that goes changed last, without the loss of another name here. */
  readonly changedBefore = ({ inode, changed }: Stamp): string => {
    const lost = this.#names.get(inode);
    return lost !== undefined && (lost.is ?? changed) === changed ? lost.was : changed;
  };

  /** Notes when a file with several names changed last, once it has lost this one. */
  loses(before: Stamp | undefined, name: Buffer): Disposable {
    if (!hasOtherNames(before)) return { [Symbol.dispose]: () => {} };
    const fd = openSync(name, O_PATH | constants.O_NOFOLLOW);
    return {
      [Symbol.dispose]: () => {
        const { changed } = stampOf(fstatSync(fd, { bigint: true }));
        this.#names.set(before.inode, { was: before.changed, is: changed });
        closeSync(fd);
      },
    };
  }
}

/** Where the operations of one change set belong, and what both doing them and taking them back needs. */
export abstract class Places implements Disposable {
  protected readonly parts: PlaceParts;
  protected readonly held: HeldPaths;
  protected readonly copies: Copies;
  protected readonly lost = new LostNames();
  /** Of files with several names: where the first of them is. */
  protected readonly linked = new Map<
    number,
    { readonly path: RawPath; readonly stamp: Stamp | undefined }
  >();
  /** Directories, whose permissions and times come last. */
  protected readonly directories: Operation[] = [];
  /** Where file systems are mounted in the workspace. */
  #mounts: readonly RawPath[] | undefined;

  constructor(parts: PlaceParts) {
    this.parts = parts;
    this.held = new HeldPaths(parts.workspace);
    this.copies = new Copies(parts.addon);
  }

  /** Takes into account that what an operation found lost its name, before this process. */
  noteLost(operation: Operation | undefined): void {
    this.lost.note(operation?.before);
  }

  /** Takes into account what was done, perhaps before this process. `stamp`: what was put there. */
  abstract noteDone(operation: Operation, stamp: Stamp | undefined): void;

  /** Gives directories the permissions and times that they are to have. To be called when all is placed. */
  finish(): void {
    for (const { path, after, before } of this.directories.toReversed()) {
      const name = this.held.nameOf(path);
      if (name === undefined || after === undefined) continue;
      let fd: number;
      try {
        fd = openSync(name, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
      } catch (error) {
        // Another object took its place.
        if (isNoDirectory(error)) continue;
        throw error;
      }
      try {
        this.held.keepMode(path, after.mode);
        const held = `/proc/self/fd/${fd}`;
        if (before?.kind !== 'directory') utimesSync(held, seconds(after.modified), seconds(after.modified));
        chmodSync(held, after.mode);
      } finally {
        closeSync(fd);
      }
    }
    this.directories.length = 0;
  }

  [Symbol.dispose](): void {
    this.held[Symbol.dispose]();
  }

  /** Where it is before it is put in place, or when it has been taken away. */
  protected beside(name: Buffer, number: number, what: typeof NEW | typeof GONE | '' = ''): Buffer {
    const directory = name.subarray(0, name.lastIndexOf('/') + 1);
    return Buffer.concat([directory, Buffer.from(`.sandbox-run-${this.parts.token}-${number}${what}`)]);
  }

  protected keptAt(number: number): string {
    return `${this.parts.kept}/${number}`;
  }

  /** Whether it holds a file system that is mounted there: a command did not see what is in that. */
  protected isMounted({ path, after, before }: Operation): boolean {
    if (before === undefined || (before.kind === 'directory' && after?.kind === 'directory')) return false;
    this.#mounts ??= mountsWithin(this.parts.workspace);
    return this.#mounts.some((mount) => isWithin(mount, path));
  }

  /** Does away with what was put there; the layer gets a file again that was moved from it: it may be applied again. */
  protected drop({ path }: Operation, at: Buffer, isMoved: true | undefined): void {
    if (isMoved)
      try {
        renameSync(at, joined(this.parts.upper, path));
      } catch (error) {
        // It has to go without.
        if (!['EXDEV', 'EPERM', 'EACCES', 'ENOENT'].includes(errnoOf(error) ?? '')) throw error;
      }
    rmSync(at, { force: true });
  }

  /** False: something else is there. */
  protected async putBack(kept: string, name: Buffer, before: Stamp, number: number): Promise<boolean> {
    const { addon } = this.parts;
    const from = Buffer.from(kept);
    try {
      return renameVacant(addon, from, name);
    } catch (error) {
      if (errnoOf(error) !== 'EXDEV') throw error;
      const beside = this.beside(name, number, NEW);
      const is = lookAt(kept) ?? before;
      if ((await this.copies.make(from, beside, is, this.beside(name, number, GONE))) !== true) throw error;
      if (!renameVacant(addon, beside, name)) {
        await this.copies.clear(beside);
        return false;
      }
      await this.copies.clear(from);
      return true;
    }
  }
}

export const nameIn = (path: Buffer): string => path.subarray(path.lastIndexOf('/') + 1).toString();

const hasOtherNames = (stamp: Stamp | undefined): stamp is Stamp =>
  stamp !== undefined && stamp.kind !== 'directory' && stamp.links > 1;

function mountsWithin(workspace: string): readonly RawPath[] {
  const root = rawPath(workspace);
  return mountPointsWithin(root).map((at) => at.slice(root.length + 1));
}
