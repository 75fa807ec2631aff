import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
  utimesSync,
} from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { isNoDirectory, mountPointsWithin, O_PATH } from '../../workspace/index.ts';
import { joined, lookAt } from './below.ts';
import { Copies, partOf, seconds } from './copies.ts';
import { HeldPaths } from './held-paths.ts';
import type { Operation } from './operations.ts';
import { asideOf, exchangeNames, finishExchange, renameOurs, renameVacant } from './renames.ts';
import type { PlacedStamp } from './store.ts';
import { isSameObject, isWithin, type RawPath, rawPath, type Stamp, stampOf } from './tree.ts';

/** What became of an operation: what is noted of it, or why it was not carried out. */
export type Placed = Omit<PlacedStamp, 'number'> | { readonly conflict: string };

/**
 * What is noted of an operation before what comes to its name is exchanged for what has it: by that, each of both is known
 * again after a crash, wherever it is.
 */
export interface Begun {
  readonly number: number;
  /** Lies beside the name at first; missing: nothing comes. */
  readonly comes?: Stamp;
  /** Has the name at first, then lies beside it until it is stored; missing: nothing goes. */
  readonly goes?: Stamp;
  /** Nothing was exchanged: what comes goes back where it was, or is made anew. */
  readonly isVoid?: true;
}

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
  /** What a process noted that was cut short, by the number of its operation; `undefined`: none was. */
  readonly begun: ReadonlyMap<number, Begun> | undefined;
  /** Notes what is begun, so that it is known after a crash. */
  readonly note: (begun: Begun) => void;
}

/** An operation, and the names by which it is carried out. All are good until the next one is. */
export interface At {
  readonly operation: Operation;
  readonly number: number;
  /** In the workspace. */
  readonly name: Buffer;
  /** In the same directory: what comes lies there first, and then what went. */
  readonly beside: Buffer;
  /** In the change set: for what was there before. */
  readonly kept: Buffer;
  /** What was put in place, if that is taken back. */
  readonly noted?: PlacedStamp;
}

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

  /** When what is there now changed last, if nothing but the loss of another name changed it. */
  timeKnown(before: Stamp, now: Stamp): string {
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

/**
 * The walk that applies an operation, and backwards takes it back: what comes to a name is laid beside it, both are noted, they
 * are exchanged by rename, and what went is looked at and stored. It comes back where it is not what was to go. No link is
 * followed.
 *
 * | | comes | from | goes | is stored |
 * |---|---|---|---|---|
 * | apply | what the command left | the layer | what was there before | in `kept` |
 * | take back | what was there before | `kept` | what the command left | in the layer, if it was moved from it |
 *
 * After a crash the note tells how far it came: what lies beside the name is what comes (nothing was exchanged), or something
 * else (it was), or nothing (it is stored).
 */
export abstract class Places implements Disposable {
  protected readonly parts: PlaceParts;
  protected readonly held: HeldPaths;
  protected readonly copies: Copies;
  protected readonly lost = new LostNames();
  /** When files of the layer changed last that were moved out of it and back, by the number of their operation. */
  readonly touched = new Map<number, string>();
  /** Directories, whose permissions and times come last. */
  protected readonly directories: Operation[] = [];
  /** What is to be removed once it is noted that its operation is done: removing a directory can be cut short. */
  protected rest: Buffer | undefined;
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

  /** Why the walk ends where nothing has the name any more (`undefined`: it goes on), and where something else has it. */
  protected abstract readonly unless: { readonly missing: string | undefined; readonly taken: string };
  /** Why what went, and lies beside the name, is not what was to go. */
  protected abstract whyOther(at: At, goes: Stamp): string | undefined | Promise<string | undefined>;
  /** Stores what went, if anything did. Returns why that cannot be, or what is noted. */
  protected abstract store(at: At, begun: Begun): Promise<Placed | string>;
  /** Whether what went is stored, of an operation of which nothing lies beside its name. */
  protected abstract isStored(at: At, begun: Begun): boolean;
  /** Puts what lies beside the name and was to come back where it was. False: it has to stay there. */
  protected abstract withdraw(at: At): Promise<boolean>;

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

  /** Removes what is left of an operation, which is noted as done. */
  async tidy(): Promise<void> {
    const { rest } = this;
    this.rest = undefined;
    if (rest !== undefined) await this.copies.clear(rest);
  }

  /** The same of one that a process had noted before it was cut short. */
  async tidyAfter({ path }: Operation, number: number): Promise<void> {
    const name = this.held.nameOf(path);
    if (name !== undefined) await this.copies.clear(this.#beside(name, number));
  }

  [Symbol.dispose](): void {
    this.held[Symbol.dispose]();
  }

  protected at(operation: Operation, number: number, name: Buffer): At {
    return { operation, number, name, beside: this.#beside(name, number), kept: this.keptAt(number) };
  }

  protected keptAt(number: number): Buffer {
    return Buffer.from(`${this.parts.kept}/${number}`);
  }

  #beside(name: Buffer, number: number): Buffer {
    const directory = name.subarray(0, name.lastIndexOf('/') + 1);
    return Buffer.concat([directory, Buffer.from(`.sandbox-run-${this.parts.token}-${number}`)]);
  }

  /** Whether it holds a file system that is mounted there: a command did not see what is in that. */
  protected isMounted({ path, after, before }: Operation): boolean {
    if (before === undefined || (before.kind === 'directory' && after?.kind === 'directory')) return false;
    this.#mounts ??= mountsWithin(this.parts.workspace);
    return this.#mounts.some((mount) => isWithin(mount, path));
  }

  /** What had been noted of an operation before a crash, if it counts. */
  protected begunOf({ number }: At): Begun | undefined {
    const begun = this.parts.begun?.get(number);
    return begun?.isVoid ? undefined : begun;
  }

  /** Goes on with an operation that a crash cut short. `undefined`: nothing of it is done, and it begins anew. */
  protected async goOn(at: At): Promise<Placed | undefined> {
    if (this.parts.begun === undefined) return undefined;
    finishExchange(this.parts.addon, at.beside, at.name);
    await this.copies.clear(partOf(at.beside));
    const begun = this.begunOf(at);
    const is = lookAt(at.beside);
    const isExchanged =
      is === undefined ? begun && this.isStored(at, begun) : begun && !isSameObject(begun.comes, is);
    if (begun !== undefined && isExchanged) return this.#settle(at, begun);
    if (is !== undefined || begun !== undefined)
      this.parts.note({ ...begun, number: at.number, ...(is && { comes: is }), isVoid: true });
    if (!(await this.withdraw(at))) this.#setAside(at, at.beside);
    return undefined;
  }

  /** Exchanges what comes, which lies beside the name, for what has the name. */
  protected async exchange(at: At, begun: Begun): Promise<Placed> {
    try {
      this.parts.note(begun);
      const why = this.#trade(at, begun);
      return why === undefined ? await this.#settle(at, begun) : conflict(await this.#giveUp(at, begun, why));
    } catch (error) {
      // It may be long until this goes on, and what fails of this is done then.
      await this.#goBack(at, begun).catch(() => {});
      throw error;
    }
  }

  /** Exchanges the names. Returns why it did not. */
  #trade(at: At, { comes, goes }: Begun): string | undefined {
    const { addon } = this.parts;
    const { missing, taken } = this.unless;
    try {
      if (goes === undefined)
        return comes === undefined || renameVacant(addon, at.beside, at.name) ? undefined : taken;
      if (comes === undefined) renameOurs(at.name, at.beside);
      else if (!exchangeNames(addon, at.beside, at.name)) return taken;
      return undefined;
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || lookAt(at.name) !== undefined) throw error;
      return missing ?? this.#trade(at, { number: at.number, ...(comes && { comes }) });
    }
  }

  /** Looks at what went, which lies beside the name, and has it stored. */
  async #settle(at: At, begun: Begun): Promise<Placed> {
    const { goes } = begun;
    const isThere = lookAt(at.beside) !== undefined;
    const why = isThere && goes !== undefined ? await this.whyOther(at, goes) : undefined;
    const placed = why ?? (await this.store(at, begun));
    return typeof placed === 'string' ? conflict(await this.#giveUp(at, begun, placed)) : placed;
  }

  /** Undoes what was begun, for which the reason is returned, with what has no place any more because of somebody else. */
  async #giveUp(at: At, begun: Begun, why: string): Promise<string> {
    const left = await this.#goBack(at, begun);
    return left === undefined ? why : `${why}; what was there before is ${left}`;
  }

  /** Puts what went back in its place, if it did, and what came where it was. Returns where something is that has no place. */
  async #goBack(at: At, { comes }: Begun): Promise<Buffer | undefined> {
    const [aside, is] = [asideOf(at.beside), lookAt(at.beside)];
    const left = lookAt(aside) && this.#setAside(at, aside);
    const isOut = is !== undefined && !isSameObject(comes, is);
    const isBack = (!isOut || this.#tradeBack(at, comes)) && (await this.withdraw(at));
    return isBack ? left : this.#setAside(at, at.beside);
  }

  /** Gives the name to what went. False: somebody else has it by now. */
  #tradeBack({ name, beside }: At, came: Stamp | undefined): boolean {
    const { addon } = this.parts;
    try {
      if (came !== undefined) {
        if (!exchangeNames(addon, beside, name)) return false;
        if (isSameObject(came, lookAt(beside))) return true;
        // Somebody replaced what came meanwhile.
        exchangeNames(addon, beside, name);
        return false;
      }
    } catch (error) {
      // Somebody removed what came meanwhile, which is not what they had there.
      if (errnoOf(error) !== 'ENOENT') throw error;
    }
    return renameVacant(addon, beside, name);
  }

  /** Keeps what has no place any more under a name that nothing else gets, which is returned. */
  #setAside({ kept }: At, from: Buffer): Buffer {
    const to = Buffer.concat([kept, Buffer.from(`-${this.parts.token}`)]);
    try {
      renameOurs(from, to);
      return to;
    } catch (error) {
      if (errnoOf(error) !== 'EXDEV') throw error;
      return from;
    }
  }

  /** Does away with what the command left, which lies beside the name; the layer gets a file back that was moved out of it. */
  protected drop({ operation, beside, number }: At, isMoved: boolean): boolean {
    const layered = joined(this.parts.upper, operation.path);
    try {
      if (isMoved) {
        renameSync(beside, layered);
        const changed = lookAt(layered)?.changed;
        if (changed !== undefined) this.touched.set(number, changed);
      }
    } catch (error) {
      // It has to go without.
      if (!['EXDEV', 'EPERM', 'EACCES', 'ENOENT'].includes(errnoOf(error) ?? '')) throw error;
    }
    if (lookAt(beside)?.kind === 'directory') return removeEmpty(beside);
    rmSync(beside, { force: true });
    return true;
  }
}

/** Removes a directory. False: something is in it. */
export function removeEmpty(name: Buffer): boolean {
  try {
    rmdirSync(name);
    return true;
  } catch (error) {
    if (errnoOf(error) === 'ENOTEMPTY' || errnoOf(error) === 'EEXIST') return false;
    throw error;
  }
}

const hasOtherNames = (stamp: Stamp | undefined): stamp is Stamp =>
  stamp !== undefined && stamp.kind !== 'directory' && stamp.links > 1;

function mountsWithin(workspace: string): readonly RawPath[] {
  const root = rawPath(workspace);
  return mountPointsWithin(root).map((at) => at.slice(root.length + 1));
}
