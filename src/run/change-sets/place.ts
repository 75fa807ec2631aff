import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { orElse } from '../../base/or-else.ts';
import { PERMISSIONS } from '../../confine/kernel/mode-bits.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { O_PATH } from '../../workspace/index.ts';
import { Below, joined, lookAt, type TreeSummary } from './below.ts';
import { seconds } from './copies.ts';
import { asListed } from './git-directories.ts';
import { HeldPaths } from './held-paths.ts';
import { isAsLeft, openAsLeft, STILL_WRITTEN } from './left-file.ts';
import { canBeNamed, type Operation, UNREADABLE } from './operations.ts';
import {
  type At,
  type Begun,
  CHANGED,
  CHANGED_WITHIN,
  conflict,
  MISSING,
  MOUNTED,
  NOT_THERE,
  type Placed,
  type PlaceParts,
  Places,
  placedAs,
  removeEmpty,
  TAKEN,
} from './places.ts';
import { renameOurs } from './renames.ts';
import { bytesOf, isSameObject, type RawPath, type Stamp } from './tree.ts';

/** Puts what a command left where it belongs. What is not as it was when the command ended stays as it is. */
export class Placer extends Places {
  protected readonly unless = { missing: MISSING, taken: TAKEN };
  readonly #below: Below;
  /** Of files with several names: where the first of them is. */
  readonly #linked = new Map<number, { readonly path: RawPath; readonly stamp: Stamp | undefined }>();
  /** Nothing can be moved: the layer is on another file system. */
  #isElsewhere = false;

  constructor(parts: PlaceParts) {
    super(parts);
    this.#below = new Below(parts.addon, parts.workspace);
  }

  noteDone(operation: Operation, stamp: Stamp | undefined): void {
    this.lost.note(operation.before);
    this.#notePlaced(operation, stamp);
  }

  /** Puts what the command left in place. `isNamed`: a person wants just this. */
  async put(asked: Operation, number: number, isNamed: boolean): Promise<Placed> {
    const { path, refused } = asked;
    if (refused !== undefined && !(isNamed && canBeNamed(asked))) return conflict(refused);
    if (asked.conflict !== undefined) return conflict(asked.conflict);
    const name = this.held.writableNameOf(path);
    if (name === undefined) return conflict(NOT_THERE);
    const found = this.at(asked, number, name);
    const went = await this.goOn(found);
    if (went !== undefined) return went;
    const now = lookAt(name);
    const before = asListed(asked.before, now, name);
    const begun = this.parts.begun?.get(number);
    // It came back to the layer, which changes only this time.
    const layered = begun?.comes && lookAt(joined(this.parts.upper, path));
    if (layered !== undefined && isSameObject(begun?.comes, layered))
      this.touched.set(number, layered.changed);
    const changed = this.touched.get(number);
    const after = asked.after && { ...asked.after, ...(changed === undefined ? {} : { changed }) };
    const operation = { ...asked, ...(after && { after }), ...(before && { before }) };
    const problem = this.isMounted(operation) ? MOUNTED : await this.#problemWith(operation, now, begun);
    if (problem !== undefined) return conflict(problem);
    if (before?.kind === 'directory' && after?.kind === 'directory') {
      this.directories.push(operation);
      return placedAs(now, true);
    }
    const at = { ...found, operation };
    const why = await this.#make(at);
    if (why !== undefined) return conflict(why);
    using _lost = now && this.lost.loses(before, name);
    const comes = lookAt(at.beside);
    return await this.exchange(at, { number, ...(comes && { comes }), ...(now && { goes: now }) });
  }

  /** Why it is not as it was when the command ended; `undefined`: it is. */
  async #problemWith(
    { path, after, before, isOwn, tree }: Operation,
    now: Stamp | undefined,
    begun: Begun | undefined,
  ): Promise<string | undefined> {
    if (before === undefined) return now === undefined ? undefined : TAKEN;
    if (now === undefined) return MISSING;
    if (before.kind !== now.kind) return `it is a ${now.kind} now`;
    if (now.kind === 'directory') {
      if (after?.kind === 'directory')
        return before.mode === now.mode ? undefined : 'its permissions changed';
      // With moves it was looked through just now, and is once more when it has been taken away.
      if (tree === undefined || this.parts.moves) return undefined;
      const found = await this.#below.summary(path, this.lost.changedBefore);
      if (found.unreadable) return UNREADABLE;
      return isSameTree(tree, found) ? undefined : CHANGED_WITHIN;
    }
    // To be exchanged, and back, changes the time of that: since a crash somebody may have worked here.
    const changed = isSameObject(begun?.goes, now) ? now.changed : this.lost.timeKnown(before, now);
    const isAsItWas =
      before.mode === now.mode &&
      before.bytes === now.bytes &&
      before.modified === now.modified &&
      (!isOwn || (before.inode === now.inode && changed === now.changed));
    return isAsItWas ? undefined : CHANGED;
  }

  protected async whyOther({ operation: { tree }, beside }: At, goes: Stamp): Promise<string | undefined> {
    if (goes.kind !== 'directory' || tree === undefined)
      return isSameObject(goes, lookAt(beside)) ? undefined : CHANGED;
    const found = await new Below(this.parts.addon, beside.toString()).summary('', this.lost.changedBefore);
    return isSameTree(tree, found) ? undefined : CHANGED_WITHIN;
  }

  protected isStored({ name, kept }: At, { comes }: Begun): boolean {
    return lookAt(kept) !== undefined || (comes !== undefined && isSameObject(comes, lookAt(name)));
  }

  /** Keeps what was there before: itself, or a copy where the change set is on another file system, unless that is too large. */
  protected async store(at: At, { comes, goes }: Begun): Promise<Placed | string> {
    const isKept = goes === undefined || (await this.#keep(at, goes));
    if (typeof isKept === 'string') return isKept;
    this.#notePlaced(at.operation, comes);
    return { ...placedAs(comes, isKept), ...(this.#isMoved(at, comes) ? { isMoved: true as const } : {}) };
  }

  async #keep({ beside, kept }: At, goes: Stamp): Promise<boolean | string> {
    if (lookAt(beside) === undefined) return lookAt(kept) !== undefined;
    let errno: string;
    try {
      renameOurs(beside, kept);
      return true;
    } catch (error) {
      // Another file system, or a directory that belongs to somebody else.
      errno = errnoOf(error) ?? '';
      if (!['EXDEV', 'EPERM', 'EACCES'].includes(errno)) throw error;
    }
    // A copy is whole: a crash came before this was removed.
    const isCopied = lookAt(kept) !== undefined || (await this.copies.make(beside, kept, goes));
    if (isCopied === undefined || (!isCopied && errno !== 'EXDEV'))
      return 'it belongs to somebody else, and cannot be kept';
    if (goes.kind === 'directory' || !isCopied) this.rest = beside;
    else await this.copies.clear(beside);
    return isCopied;
  }

  /** The layer gets its file back; what was made goes, and so does what somebody else put in its way. */
  protected async withdraw(at: At): Promise<boolean> {
    const is = lookAt(at.beside);
    // Somebody may have put something in it.
    if (is?.kind === 'directory' && at.operation.after?.kind === 'directory') return removeEmpty(at.beside);
    if (this.#isMoved(at, is)) return this.drop(at, true);
    await this.copies.clear(at.beside);
    return true;
  }

  #notePlaced(operation: Operation, stamp: Stamp | undefined): void {
    const { path, after } = operation;
    if (after?.kind === 'directory') this.directories.push(operation);
    if (after?.linked !== undefined && !this.#linked.has(after.linked))
      this.#linked.set(after.linked, { path, stamp });
  }

  /**
   * Whether a file of the layer itself can be the one in the workspace: it is what the command left, it belongs to the user who
   * applies, and nothing of it is left out. Nobody can open it to write to it any more: no path leads into the layer.
   */
  #canMove({ path, after, note }: Operation): boolean {
    if (!this.parts.moves || this.#isElsewhere || note !== undefined) return false;
    if (after?.kind !== 'file' || after.linked !== undefined) return false;
    const source = orElse(
      () => openAsLeft(this.parts.addon, joined(this.parts.upper, path), after),
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

  /** Whether a file is that of the layer, which has it no more. */
  #isMoved({ operation: { path, after } }: At, is: Stamp | undefined): boolean {
    return (
      this.parts.moves &&
      is?.kind === 'file' &&
      is.inode === after?.inode &&
      lookAt(joined(this.parts.upper, path))?.inode !== is.inode
    );
  }

  /** Lays what the command left beside its place. Returns why that cannot be. */
  async #make({ operation, beside }: At): Promise<string | undefined> {
    const { path, after } = operation;
    if (after === undefined) return undefined;
    if (this.#canMove(operation) && this.#move(path, beside)) return undefined;
    rmSync(beside, { force: true });
    if (after.kind === 'directory') {
      mkdirSync(beside, { mode: 0o700 });
      return undefined;
    }
    if (after.kind === 'link') {
      symlinkSync(bytesOf(after.target ?? ''), beside);
      lutimesSync(beside, seconds(after.modified), seconds(after.modified));
      return undefined;
    }
    if (this.#linkTo(after.linked, beside)) return undefined;
    const source = openAsLeft(this.parts.addon, joined(this.parts.upper, path), after);
    if (source === undefined) return STILL_WRITTEN;
    try {
      await this.copies.ofOpened(source, beside, after.mode);
      if (isAsLeft(this.parts.addon, source, after)) return undefined;
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

  /** Moves a file out of the layer. False: that is on another file system, or the command shut its directory. */
  #move(path: RawPath, beside: Buffer): boolean {
    try {
      renameOurs(joined(this.parts.upper, path), beside);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno !== 'EXDEV' && errno !== 'EACCES') throw error;
      this.#isElsewhere ||= errno === 'EXDEV';
      return false;
    }
    removeMarks(this.parts.addon, beside);
    return true;
  }

  /** Another name of a file that is in place already. */
  #linkTo(linked: number | undefined, beside: Buffer): boolean {
    const first = linked === undefined ? undefined : this.#linked.get(linked);
    if (first === undefined) return false;
    using other = new HeldPaths(this.parts.workspace);
    const name = other.nameOf(first.path);
    if (name === undefined || lookAt(name)?.kind !== 'file') return false;
    linkSync(name, beside);
    if (isSameObject(first.stamp, lookAt(beside))) return true;
    // Somebody changed it since.
    rmSync(beside);
    return false;
  }
}

/** Removes the overlay's extended attributes. The kernel refuses that on a read-only file, so it gets write permission for a moment. */
function removeMarks(addon: NativeAddon, name: Buffer): void {
  const file = openSync(name, O_PATH | constants.O_NOFOLLOW);
  try {
    const info = fstatSync(file);
    try {
      addon.removeLayerMarks(name);
    } catch (error) {
      if (!info.isFile() || (info.mode & 0o200) !== 0) throw error;
      const at = `/proc/self/fd/${file}`;
      chmodSync(at, (info.mode & PERMISSIONS) | 0o200);
      try {
        addon.removeLayerMarks(name);
      } finally {
        chmodSync(at, info.mode & PERMISSIONS);
      }
    }
  } finally {
    closeSync(file);
  }
}

/** Whether a directory holds what it held: the same objects, or at least the same content where it is not known by these. */
const isSameTree = (one: TreeSummary, other: TreeSummary): boolean =>
  one.digest === other.digest && (one.identity === undefined || one.identity === other.identity);
