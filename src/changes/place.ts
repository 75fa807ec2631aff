import {
  chmodSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
} from 'node:fs';
import { isNoDirectory } from '../host/held-directory.ts';
import type { NativeAddon, NativeFailure } from '../native/contract.ts';
import { errnoOf } from '../util/errno-of.ts';
import { orElse } from '../util/or-else.ts';
import { Below, joined, lookAt } from './below.ts';
import { HeldPaths, O_PATH, openToRead, renameOurs } from './held-paths.ts';
import { isAsLeft, openAsLeft, STILL_WRITTEN } from './left-file.ts';
import { COMPARED_BYTES, canBeNamed, haveSameBytes, type Operation, UNREADABLE } from './operations.ts';
import type { PlacedStamp } from './store.ts';
import {
  bytesOf,
  failureError,
  isWithin,
  PERMISSIONS,
  type RawPath,
  rawPath,
  type Stamp,
  stampOf,
} from './tree.ts';

/** What became of an operation: what is noted of it, or why it was not carried out. */
type Placed = Omit<PlacedStamp, 'number'> | { readonly conflict: string };

/** What the operations of one change set are placed with. */
interface PlacerParts {
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

/** What lies on another file system than the state directory is copied to be kept; more than this is not. */
const KEPT_BYTES = 256 * 1024 * 1024;
const KEPT_OBJECTS = 20_000;

/** What the name of something ends in that is to be put in place. */
const NEW = '-new';

const conflict = (why: string): Placed => ({ conflict: why });
const placedAs = (stamp: Stamp | undefined, isKept: boolean): Placed => ({ ...(stamp && { stamp }), isKept });
const MOUNTED = 'another file system is mounted in it';
const NOT_THERE = 'its directory is not there any more, or cannot be entered';

/**
 * Puts what a command left where it belongs, and takes it back. Each object is made beside its place, or is the layer's own,
 * and is put there by rename; no link is followed; what is not as it was when the command ended stays as it is. What was
 * there before is kept.
 */
export class Placer implements Disposable {
  readonly #parts: PlacerParts;
  readonly #held: HeldPaths;
  readonly #below: Below;
  /** Of files with several names: where the first of them is. */
  readonly #linked = new Map<number, RawPath>();
  /** Of files that lost a name here and may have others: when each changed last by that; missing: not known, but it did. */
  readonly #lostName = new Map<number, string | undefined>();
  /** Where file systems are mounted in the workspace. */
  #mounts: readonly RawPath[] | undefined;
  /** Directories, whose permissions and times come last. */
  readonly #directories: Operation[] = [];
  /** Nothing can be moved: the layer is on another file system. */
  #isElsewhere = false;

  constructor(parts: PlacerParts) {
    this.#parts = parts;
    this.#held = new HeldPaths(parts.workspace);
    this.#below = new Below(parts.addon, parts.workspace);
  }

  /**
   * Puts what the command left in place. `isNamed`: a person wants just this. `resumes`: it may have been done in part,
   * before this process.
   */
  async put(operation: Operation, number: number, isNamed: boolean, resumes: boolean): Promise<Placed> {
    const { path, after, before, refused } = operation;
    if (refused !== undefined && !(isNamed && canBeNamed(operation))) return conflict(refused);
    if (operation.conflict !== undefined) return conflict(operation.conflict);
    const name = this.#held.writableNameOf(path);
    if (name === undefined) return conflict(NOT_THERE);
    const now = lookAt(name);
    if (resumes)
      for (const beside of ['', NEW] as const) await this.#clear(this.#beside(name, number, beside));
    const isBegun = resumes && lookAt(this.#keptAt(number)) !== undefined;
    if (resumes && this.#isDone(operation, name, now)) {
      this.noteDone(operation, 'apply');
      if (!this.#isMoved(operation, now)) return placedAs(now, isBegun);
      this.#parts.addon.removeLayerMarks(name);
      return { ...placedAs(lookAt(name), isBegun), isMoved: true };
    }
    const known = before && now && { ...before, changed: this.#timeKnown(before, now, isBegun) };
    const problem = this.#isMounted(operation)
      ? MOUNTED
      : isBegun && now === undefined
        ? undefined
        : await this.#problemWith({ ...operation, ...(known && { before: known }) }, now);
    if (problem !== undefined) return conflict(problem);
    if (before?.kind === 'directory' && after?.kind === 'directory') {
      this.#directories.push(operation);
      return placedAs(now, true);
    }
    const beside = this.#beside(name, number, NEW);
    const moves = this.#canMove(operation);
    const why = moves ? undefined : await this.#make(operation, beside);
    if (why !== undefined) return conflict(why);
    const replaces = before?.kind === 'file' && (after?.kind === 'file' || after?.kind === 'link');
    let isKept: boolean | undefined;
    // Before a crash it was set aside already.
    if (now === undefined) this.noteLostName(operation);
    using _lost = now && this.#losesName(before, name);
    try {
      isKept = before === undefined || isBegun || (await this.#keep(name, before, number, replaces));
    } finally {
      // It is of no use, and may stay a long time where there is no room.
      if (isKept === undefined) await this.#clear(beside);
    }
    if (isKept === undefined) return conflict('it belongs to somebody else, and cannot be kept');
    if (before !== undefined && !replaces) await this.#clear(name, number);
    const isMoved = moves && this.#move(path);
    // It cannot be moved after all.
    const whyNot = moves && !isMoved ? await this.#make(operation, beside) : undefined;
    if (whyNot !== undefined) return conflict(whyNot);
    if (after !== undefined && !isMoved) this.#putThere(operation, beside);
    const placed = placedAs(lookAt(this.#held.nameOf(path) ?? name), isKept);
    return isMoved ? { ...placed, isMoved } : placed;
  }

  /** Puts back what was there before, which the stamp then says. The other one says what was put there. */
  async takeBack(operation: Operation, { number, stamp, isKept, isMoved }: PlacedStamp): Promise<Placed> {
    const { path, after, before } = operation;
    const name = this.#held.writableNameOf(path);
    if (name === undefined) return after === undefined ? conflict(NOT_THERE) : placedAs(undefined, isKept);
    const now = lookAt(name);
    if (before?.kind === 'directory' && after?.kind === 'directory') {
      if (now?.kind !== 'directory') return conflict('it is no directory any more');
      this.noteDone(operation, 'undo');
      return placedAs(now, isKept);
    }
    if (this.#isMounted(operation)) return conflict(MOUNTED);
    if (before !== undefined && !isKept) return conflict('what was there before was not kept');
    const kept = this.#keptAt(number);
    const isBack = before !== undefined && lookAt(kept) === undefined;
    if (isBack) return { ...placedAs(now, isKept), ...(isMoved && this.#inLayer(path, stamp)) };
    // What was set aside when it was applied is gone already.
    const isGone = now === undefined && after !== undefined;
    if (!isGone && !isSameObject(stamp, now)) return conflict('it changed since it was applied');
    if (now?.kind === 'directory') {
      const left = this.#removeDirectory(name);
      if (left !== undefined) return conflict(left);
    }
    if (isMoved && stamp !== undefined && now !== undefined) this.#giveBack(path, name, stamp);
    const replaces = before !== undefined && before.kind !== 'directory';
    if (now !== undefined && now.kind !== 'directory' && !replaces) unlinkSync(name);
    if (before !== undefined) await this.#putBack(kept, name, before, number);
    return { ...placedAs(lookAt(name), true), ...(isMoved && this.#inLayer(path, stamp)) };
  }

  /** Takes into account that what was there before lost its name, before this process. */
  noteLostName(operation: Operation | undefined): void {
    const before = operation?.before;
    if (hasOtherNames(before)) this.#lostName.set(before.inode, undefined);
  }

  /** Takes into account what was done, perhaps before this process. */
  noteDone(operation: Operation, doing: 'apply' | 'undo'): void {
    const { after, before, path } = operation;
    const isMerged = after?.kind === 'directory' && before?.kind === 'directory';
    if (doing === 'apply') {
      this.noteLostName(operation);
      if (after?.kind === 'directory') this.#directories.push(operation);
      if (after?.linked !== undefined) this.#linked.set(after.linked, path);
    } else if (isMerged) {
      this.#directories.push({ ...operation, after: { ...after, mode: before.mode } });
    }
  }

  /** Gives directories the permissions and times that they are to have. To be called when all is placed. */
  finish(): void {
    for (const { path, after, before } of this.#directories.toReversed()) {
      const name = this.#held.nameOf(path);
      if (name === undefined || after === undefined) continue;
      let fd: number;
      try {
        fd = openSync(name, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
      } catch (error) {
        // Another object took its place.
        if (isNoDirectory(error)) continue;
        throw error;
      }
      this.#held.keepMode(path, after.mode);
      const held = `/proc/self/fd/${fd}`;
      if (before?.kind !== 'directory') utimesSync(held, seconds(after.modified), seconds(after.modified));
      chmodSync(held, after.mode);
      closeSync(fd);
    }
    this.#directories.length = 0;
  }

  [Symbol.dispose](): void {
    this.#held[Symbol.dispose]();
  }

  /** Where it is before it is put in place, or when it has been taken away. */
  #beside(name: Buffer, number: number, what: typeof NEW | '' = ''): Buffer {
    const directory = name.subarray(0, name.lastIndexOf('/') + 1);
    return Buffer.concat([directory, Buffer.from(`.sandbox-run-${this.#parts.token}-${number}${what}`)]);
  }

  #keptAt(number: number): string {
    return `${this.#parts.kept}/${number}`;
  }

  /** Whether it holds a file system that is mounted there: a command did not see what is in that. */
  #isMounted({ path, after, before }: Operation): boolean {
    if (before === undefined || (before.kind === 'directory' && after?.kind === 'directory')) return false;
    this.#mounts ??= mountsWithin(this.#parts.workspace);
    return this.#mounts.some((mount) => isWithin(mount, path));
  }

  /**
   * When what is there now changed last, if nothing but this changed it. Being kept changes the time of that; so does the
   * loss of another name. Since a crash somebody may have worked here.
   */
  #timeKnown(before: Stamp, now: Stamp, isBegun: boolean): string {
    if (isBegun) return now.changed;
    if (!this.#lostName.has(before.inode)) return before.changed;
    return this.#lostName.get(before.inode) ?? now.changed;
  }

  /** Notes when a file with several names changed last, once it has lost this one. */
  #losesName(before: Stamp | undefined, name: Buffer): Disposable {
    if (!hasOtherNames(before)) return { [Symbol.dispose]: () => {} };
    const fd = openSync(name, O_PATH | constants.O_NOFOLLOW);
    return {
      [Symbol.dispose]: () => {
        this.#lostName.set(before.inode, stampOf(fstatSync(fd, { bigint: true })).changed);
        closeSync(fd);
      },
    };
  }

  /** Why it is not as it was when the command ended; `undefined`: it is. */
  async #problemWith(
    { path, after, before, isOwn, tree }: Operation,
    now: Stamp | undefined,
  ): Promise<string | undefined> {
    if (before === undefined) return now === undefined ? undefined : 'something is there that was not';
    if (now === undefined) return 'it is not there any more';
    if (before.kind !== now.kind) return `it is a ${now.kind} now`;
    if (now.kind === 'directory') {
      if (after?.kind === 'directory')
        return before.mode === now.mode ? undefined : 'its permissions changed';
      if (tree === undefined) return undefined;
      const { digest, unreadable } = await this.#below.summary(path);
      if (unreadable) return UNREADABLE;
      return digest === tree.digest ? undefined : 'something in it changed';
    }
    const isAsItWas =
      before.mode === now.mode &&
      before.bytes === now.bytes &&
      before.modified === now.modified &&
      (!isOwn || (before.inode === now.inode && before.changed === now.changed));
    return isAsItWas ? undefined : 'it changed';
  }

  /** Whether an operation that was begun before is done. */
  #isDone({ path, after, before }: Operation, name: Buffer, now: Stamp | undefined): boolean {
    if (after === undefined) return now === undefined;
    if (now === undefined || now.kind !== after.kind) return false;
    if (after.kind === 'directory') return before?.kind !== 'directory';
    if (after.kind === 'link') return readlinkSync(name, 'latin1') === after.target;
    const from = joined(this.#parts.upper, path);
    if (now.mode !== after.mode || now.bytes !== after.bytes) return false;
    if (this.#isMoved({ after, path }, now)) return now.modified === after.modified;
    // A file may be larger than anybody can read.
    return after.bytes > COMPARED_BYTES ? now.modified === after.modified : haveSameBytes(from, name);
  }

  /**
   * Keeps what is there. `stays`: until it is replaced. False: it was too much to be copied; `undefined`: it may not be
   * kept.
   */
  async #keep(name: Buffer, before: Stamp, number: number, stays: boolean): Promise<boolean | undefined> {
    const to = this.#keptAt(number);
    try {
      if (stays) linkSync(name, to);
      else renameOurs(name, to);
      return true;
    } catch (error) {
      // Another file system; a file that belongs to somebody else, or has too many names.
      const errno = errnoOf(error) ?? '';
      if (!['EXDEV', 'EPERM', 'EMLINK', 'EACCES'].includes(errno)) throw error;
      const isCopied = await this.#copy(name, Buffer.from(to), before, Buffer.from(`${to}.new`));
      return isCopied === false && errno !== 'EXDEV' ? undefined : isCopied;
    }
  }

  /**
   * Copies what is at a name, by way of another one: what has the name in the end is whole. False: it is too much;
   * `undefined`: it may not be read.
   */
  async #copy(
    from: Buffer,
    to: Buffer,
    { kind, bytes, mode }: Stamp,
    by: Buffer,
  ): Promise<boolean | undefined> {
    await this.#clear(by);
    let isWhole: boolean | undefined = kind === 'link' || kind === 'file' || kind === 'directory';
    try {
      if (kind === 'link') copyLink(from, by);
      else if (kind === 'file' && bytes <= KEPT_BYTES) await this.#copyFile(from, by, { mode });
      else isWhole = kind === 'directory' && (await this.#copyTree(from, by));
    } catch (error) {
      const errno = errnoOf(error);
      if (errno !== 'EACCES' && errno !== 'EPERM') {
        // A full disk is no place for halves.
        await this.#clear(by);
        throw error;
      }
      isWhole = undefined;
    }
    if (isWhole === true) renameSync(by, to);
    else await this.#clear(by);
    return isWhole;
  }

  /** Copies a directory; no link is followed, not even one that takes the place of what is being copied. */
  async #copyTree(from: Buffer, to: Buffer): Promise<boolean> {
    mkdirSync(to, { mode: 0o700 });
    using source = new HeldPaths(from);
    using target = new HeldPaths(to);
    const directories: RawPath[] = [''];
    let objects = 0;
    let total = 0;
    // What is found is looked into later.
    for (const directory of directories) {
      const inside = source.nameOf(directory === '' ? '.' : `${directory}/.`);
      if (inside === undefined) return false;
      for (const name of readdirSync(inside, { encoding: 'latin1' })) {
        const path = directory === '' ? name : `${directory}/${name}`;
        const [at, copy] = [source.nameOf(path), target.nameOf(path)];
        const stamp = at && lookAt(at);
        if (at === undefined || copy === undefined || stamp === undefined) return false;
        total += stamp.kind === 'file' ? stamp.bytes : 0;
        if (++objects > KEPT_OBJECTS || total > KEPT_BYTES) return false;
        if (stamp.kind === 'file') await this.#copyFile(at, copy, stamp);
        else if (stamp.kind === 'link') copyLink(at, copy);
        else if (stamp.kind !== 'directory') return false;
        else {
          mkdirSync(copy, { mode: 0o700 });
          directories.push(path);
        }
      }
    }
    for (const directory of directories.toReversed()) {
      const [at, copy] = [source, target].map((held) =>
        held.nameOf(directory === '' ? '.' : `${directory}/.`),
      );
      const stamp = at && lookAt(at);
      if (copy === undefined || stamp === undefined) return false;
      utimesSync(copy, seconds(stamp.modified), seconds(stamp.modified));
      chmodSync(copy, stamp.mode);
    }
    return true;
  }

  /** Removes what is at a name, if anything is. `number`: a directory is moved away first, as a whole. */
  async #clear(name: Buffer, number?: number): Promise<void> {
    const now = lookAt(name);
    if (now?.kind !== 'directory') {
      rmSync(name, { force: true });
      return;
    }
    let at = name;
    if (number !== undefined) {
      at = this.#beside(name, number);
      renameSync(name, at);
    }
    await new Promise((done) => this.#parts.addon.emptyDirectory(at.toString(), done));
    rmdirSync(at);
  }

  /**
   * Whether a file of the layer itself can be the one in the workspace: it is what the command left, it belongs to whoever
   * applies, and nothing of it is left out. Nobody can open it to write to it any more: no path leads into the layer.
   */
  #canMove({ path, after, note }: Operation): boolean {
    if (!this.#parts.moves || this.#isElsewhere || note !== undefined) return false;
    if (after?.kind !== 'file' || after.linked !== undefined) return false;
    const source = orElse(
      () => openAsLeft(this.#parts.addon, joined(this.#parts.upper, path), after),
      undefined,
    );
    if (source === undefined) return false;
    try {
      const { uid, mode } = fstatSync(source);
      return uid === process.geteuid?.() && (mode & PERMISSIONS) === after.mode;
    } finally {
      closeSync(source);
    }
  }

  /** Moves a file of the layer to its place. False: it is on another file system, or the command shut its directory. */
  #move(path: RawPath): boolean {
    const name = this.#held.writableNameOf(path);
    if (name === undefined) return false;
    try {
      renameSync(joined(this.#parts.upper, path), name);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno !== 'EXDEV' && errno !== 'EACCES') throw error;
      this.#isElsewhere ||= errno === 'EXDEV';
      return false;
    }
    this.#parts.addon.removeLayerMarks(name);
    return true;
  }

  /** Whether a file is that of the layer, which has it no more. */
  #isMoved({ path, after }: Pick<Operation, 'path' | 'after'>, now: Stamp | undefined): boolean {
    return (
      this.#parts.moves &&
      now?.kind === 'file' &&
      now.inode === after?.inode &&
      lookAt(joined(this.#parts.upper, path)) === undefined
    );
  }

  /** Has the layer get the file again that was moved from it, as far as that can be: it may be applied again. */
  #giveBack(path: RawPath, name: Buffer, stamp: Stamp): void {
    const to = joined(this.#parts.upper, path);
    try {
      linkSync(name, to);
    } catch (error) {
      // It was done before a crash; it has to go without.
      if (!['EEXIST', 'EXDEV', 'EPERM', 'EMLINK', 'ENOENT'].includes(errnoOf(error) ?? '')) throw error;
    }
    // Another one may have taken its place at just that time.
    if (!isSameObject(stamp, lookAt(to))) rmSync(to, { force: true });
  }

  /** When a file that the layer has again changed last. */
  #inLayer(path: RawPath, stamp: Stamp | undefined): Pick<PlacedStamp, 'changed'> {
    const now = lookAt(joined(this.#parts.upper, path));
    return now !== undefined && isSameObject(stamp, now) ? { changed: now.changed } : {};
  }

  /** Makes what the command left, beside its place; a directory comes later. Returns why that cannot be. */
  async #make({ path, after }: Operation, beside: Buffer): Promise<string | undefined> {
    if (after === undefined || after.kind === 'directory') return undefined;
    rmSync(beside, { force: true });
    if (after.kind === 'link') {
      symlinkSync(bytesOf(after.target ?? ''), beside);
      lutimesSync(beside, seconds(after.modified), seconds(after.modified));
      return undefined;
    }
    if (this.#linkTo(after.linked, beside)) return undefined;
    const source = openAsLeft(this.#parts.addon, joined(this.#parts.upper, path), after);
    if (source === undefined) return STILL_WRITTEN;
    try {
      await this.#copyOpened(source, beside, after.mode);
      if (isAsLeft(this.#parts.addon, source, after)) return undefined;
      rmSync(beside);
      return STILL_WRITTEN;
    } catch (error) {
      // A full disk is no place for halves.
      rmSync(beside, { force: true });
      throw error;
    } finally {
      closeSync(source);
    }
  }

  /** Puts it in its place. */
  #putThere(operation: Operation, beside: Buffer): void {
    const { path, after } = operation;
    const name = this.#held.writableNameOf(path);
    if (name === undefined || after === undefined) return;
    if (after.kind === 'directory') {
      mkdirSync(name, { mode: 0o700 });
      this.#directories.push(operation);
      return;
    }
    renameSync(beside, name);
    if (after.linked !== undefined && !this.#linked.has(after.linked)) this.#linked.set(after.linked, path);
  }

  /** Another name of a file that is in place already. */
  #linkTo(linked: number | undefined, beside: Buffer): boolean {
    const first = linked === undefined ? undefined : this.#linked.get(linked);
    if (first === undefined) return false;
    using other = new HeldPaths(this.#parts.workspace);
    const name = other.nameOf(first);
    if (name === undefined) return false;
    linkSync(name, beside);
    return true;
  }

  async #copyFile(from: Buffer, to: Buffer, { mode }: Pick<Stamp, 'mode'>): Promise<void> {
    const source = openToRead(from);
    try {
      await this.#copyOpened(source, to, mode);
    } finally {
      closeSync(source);
    }
  }

  async #copyOpened(source: number, to: Buffer, mode: number): Promise<void> {
    const file = openSync(to, 'wx', 0o600);
    try {
      const failure = await new Promise<NativeFailure | undefined>((done) =>
        this.#parts.addon.copyContent(source, file, done),
      );
      if (failure !== undefined) throw failureError(failure);
      fchmodSync(file, mode);
    } finally {
      closeSync(file);
    }
  }

  /** Why it cannot be removed. */
  #removeDirectory(name: Buffer): string | undefined {
    try {
      rmdirSync(name);
      return undefined;
    } catch (error) {
      if (errnoOf(error) === 'ENOTEMPTY' || errnoOf(error) === 'EEXIST') return 'something else is in it now';
      throw error;
    }
  }

  async #putBack(kept: string, name: Buffer, before: Stamp, number: number): Promise<void> {
    try {
      renameOurs(kept, name);
    } catch (error) {
      if (errnoOf(error) !== 'EXDEV') throw error;
      const is = lookAt(kept) ?? before;
      if ((await this.#copy(Buffer.from(kept), name, is, this.#beside(name, number))) !== true) throw error;
      await this.#clear(Buffer.from(kept));
    }
  }
}

const hasOtherNames = (stamp: Stamp | undefined): stamp is Stamp =>
  stamp !== undefined && stamp.kind !== 'directory' && stamp.links > 1;

function copyLink(from: Buffer, to: Buffer): void {
  const { modified } = lookAt(from) ?? { modified: '0' };
  symlinkSync(readlinkSync(from, 'buffer'), to);
  lutimesSync(to, seconds(modified), seconds(modified));
}

/** From proc(5): the fifth field, in which `\ooo` stands for a byte. */
function mountsWithin(workspace: string): readonly RawPath[] {
  const root = `${rawPath(workspace)}/`;
  return readFileSync('/proc/self/mountinfo', 'latin1')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .map((at) =>
      at.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8))),
    )
    .filter((at) => at.startsWith(root))
    .map((at) => at.slice(root.length));
}

/** The same object as was put there: somebody may have read it, and linked to it, but not changed it. */
export function isSameObject(one: Stamp | undefined, other: Stamp | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.kind !== other.kind || one.inode !== other.inode) return false;
  if (one.kind === 'directory') return true;
  return one.bytes === other.bytes && one.modified === other.modified && one.mode === other.mode;
}

/** Whole microseconds, and a little more: what is cut off is never one of them. */
const seconds = (nanoseconds: string): number => Number(BigInt(nanoseconds) / 1000n) / 1e6 + 4e-7;
