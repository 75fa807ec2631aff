import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { orElse } from '../../base/or-else.ts';
import { PERMISSIONS } from '../../confine/kernel/mode-bits.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { O_PATH } from '../../workspace/index.ts';
import { Below, joined, lookAt, type TreeSummary } from './below.ts';
import { seconds } from './copies.ts';
import { asListed } from './git-directories.ts';
import { HeldPaths } from './held-paths.ts';
import { isAsLeft, openAsLeft, STILL_WRITTEN } from './left-file.ts';
import { COMPARED_BYTES, canBeNamed, haveSameBytes, type Operation, UNREADABLE } from './operations.ts';
import {
  CHANGED,
  CHANGED_WITHIN,
  conflict,
  GONE,
  MISSING,
  MOUNTED,
  NEW,
  NOT_THERE,
  nameIn,
  type Placed,
  type PlaceParts,
  Places,
  placedAs,
  TAKEN,
} from './places.ts';
import { exchangeNames, renameOurs, renameVacant } from './renames.ts';
import { bytesOf, isSameObject, type RawPath, type Stamp } from './tree.ts';

/** What became of what was there: it is kept, or a copy of it; nothing of it is; it may not be kept; it is not there any more. */
type Kept = 'itself' | 'copy' | 'nothing' | 'refused' | 'gone';

/**
 * Puts what a command left where it belongs, Each object is made beside its place, or is the layer's own,
 * and is put there by rename; no link is followed; what is not as it was when the command ended stays as it is. What was
 * there before is kept.
 */
export class Placer extends Places {
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
    const { after, before, path } = operation;
    this.lost.note(before);
    if (after?.kind === 'directory') this.directories.push(operation);
    if (after?.linked !== undefined) this.#linked.set(after.linked, { path, stamp });
  }

  /**
   * Puts what the command left in place. `isNamed`: a person wants just this. `resumes`: it may have been done in part,
   * before this process.
   */
  async put(asked: Operation, number: number, isNamed: boolean, resumes: boolean): Promise<Placed> {
    let operation = asked;
    const { path, after, refused } = operation;
    if (refused !== undefined && !(isNamed && canBeNamed(operation))) return conflict(refused);
    if (operation.conflict !== undefined) return conflict(operation.conflict);
    const name = this.held.writableNameOf(path);
    if (name === undefined) return conflict(NOT_THERE);
    const why = resumes ? await this.#lookAgain(operation, number, name) : undefined;
    if (why !== undefined) return conflict(why);
    const now = lookAt(name);
    const before = asListed(operation.before, now, name);
    operation = { ...operation, ...(before && { before }) };
    const isBegun = resumes && lookAt(this.keptAt(number)) !== undefined;
    if (resumes && this.#isDone(operation, name, now)) {
      this.noteDone(operation, now);
      if (!this.#isMoved(operation, now)) return placedAs(now, isBegun);
      removeMarks(this.parts.addon, name);
      return { ...placedAs(lookAt(name), isBegun), isMoved: true };
    }
    const known = before && now && { ...before, changed: this.lost.timeKnown(before, now, isBegun) };
    const problem = this.isMounted(operation)
      ? MOUNTED
      : isBegun && now === undefined
        ? undefined
        : await this.#problemWith({ ...operation, ...(known && { before: known }) }, now);
    if (problem !== undefined) return conflict(problem);
    if (before?.kind === 'directory' && after?.kind === 'directory') {
      this.directories.push(operation);
      return placedAs(now, true);
    }
    const beside = this.beside(name, number, NEW);
    const moves = this.#canMove(operation);
    const whyNot = moves ? undefined : await this.#make(operation, beside);
    if (whyNot !== undefined) return conflict(whyNot);
    // Before a crash it was set aside already.
    if (now === undefined) this.lost.note(operation.before);
    using _lost = now && this.lost.loses(before, name);
    let placed: Placed | undefined;
    try {
      placed = await this.#replace(operation, { number, name, now, isBegun, moves });
    } finally {
      // It is of no use, and may stay a long time where there is no room.
      if (placed === undefined || 'conflict' in placed) await this.copies.clear(beside);
    }
    return placed;
  }

  /** Puts what was made, or the layer's own, in the place of what is there, which is kept. */
  async #replace(
    operation: Operation,
    { number, name, now, isBegun, moves }: ReplacedPlace,
  ): Promise<Placed> {
    const { before } = operation;
    const replaces = isReplaced(operation);
    // What is still there although it is kept was copied.
    let kept: Kept = isBegun ? 'copy' : 'itself';
    if (before !== undefined && now !== undefined) {
      if (!isBegun) kept = await this.#keep(name, before, number, replaces);
      if (kept === 'refused') return conflict('it belongs to somebody else, and cannot be kept');
      if (kept === 'gone') return conflict(MISSING);
      const why = replaces ? undefined : await this.#takeAway(operation, { number, name, now, kept });
      if (why !== undefined) return conflict(why);
    }
    const isKept = kept !== 'nothing';
    const isThere = replaces ? now : undefined;
    let from = moves ? joined(this.parts.upper, operation.path) : this.beside(name, number, NEW);
    let placed = this.#putThere(operation, from, name, isThere, moves);
    if (placed === undefined) {
      // It cannot be moved after all.
      from = this.beside(name, number, NEW);
      const why = await this.#make(operation, from);
      placed = why === undefined ? this.#putThere(operation, from, name, isThere, false) : conflict(why);
    }
    if (placed === undefined || !('conflict' in placed)) return { ...placed, isKept };
    // What was there before is where it was.
    if (before === undefined || now === undefined) return placed;
    const keptAt = this.keptAt(number);
    if (replaces) await this.copies.clear(Buffer.from(keptAt));
    else if (isKept && !(await this.putBack(keptAt, name, before, number)))
      return { ...placed, conflict: `${placed.conflict}; what was there before is ${keptAt}` };
    return placed;
  }

  /** Why it is not as it was when the command ended; `undefined`: it is. */
  async #problemWith(
    { path, after, before, isOwn, tree }: Operation,
    now: Stamp | undefined,
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
    const isAsItWas =
      before.mode === now.mode &&
      before.bytes === now.bytes &&
      before.modified === now.modified &&
      (!isOwn || (before.inode === now.inode && before.changed === now.changed));
    return isAsItWas ? undefined : CHANGED;
  }

  /** Whether an operation that was begun before is done. */
  #isDone({ path, after, before }: Operation, name: Buffer, now: Stamp | undefined): boolean {
    if (after === undefined) return now === undefined;
    if (now === undefined || now.kind !== after.kind) return false;
    if (after.kind === 'directory') return before?.kind !== 'directory';
    if (after.kind === 'link') return linkBytes(name).toString('latin1') === after.target;
    const from = joined(this.parts.upper, path);
    if (now.mode !== after.mode || now.bytes !== after.bytes) return false;
    if (this.#isMoved({ after, path }, now)) return now.modified === after.modified;
    // A file may be larger than anybody can read.
    return after.bytes > COMPARED_BYTES ? now.modified === after.modified : haveSameBytes(from, name);
  }

  /** Keeps what is there. `stays`: until it is replaced; but for that, it is gone if it is kept itself. */
  async #keep(name: Buffer, before: Stamp, number: number, stays: boolean): Promise<Kept> {
    const to = Buffer.from(this.keptAt(number));
    try {
      if (stays) linkSync(name, to);
      else renameOurs(name, to);
      return 'itself';
    } catch (error) {
      // Another file system; a file that belongs to somebody else, or has too many names.
      const errno = errnoOf(error) ?? '';
      if (errno === 'ENOENT' && lookAt(name) === undefined) return 'gone';
      if (!['EXDEV', 'EPERM', 'EMLINK', 'EACCES'].includes(errno)) throw error;
      const isCopied = await this.copies.make(name, to, before, Buffer.from(`${to}.new`));
      if (isCopied === true) return 'copy';
      return isCopied === false && errno === 'EXDEV' ? 'nothing' : 'refused';
    }
  }

  /**
   * Takes what is there away. Somebody may have changed it, or put something else there, since it was looked at: then it
   * comes back. Returns why.
   */
  async #takeAway(
    operation: Operation,
    { number, name, now, kept }: TakenPlace,
  ): Promise<string | undefined> {
    const keptAt = Buffer.from(this.keptAt(number));
    const aside = this.beside(name, number);
    if (kept !== 'itself') renameOurs(name, aside);
    const at = kept === 'itself' ? keptAt : aside;
    const why = await this.#whyOther(operation, now, at);
    if (why !== undefined) return this.#giveUp(at, name, keptAt, why);
    if (kept !== 'itself') await this.copies.clear(aside, this.beside(name, number, GONE));
    return undefined;
  }

  /** Puts back what should not have been taken away, for which the reason is returned. */
  async #giveUp(at: Buffer, name: Buffer, keptAt: Buffer, why: string): Promise<string> {
    if (!renameVacant(this.parts.addon, at, name))
      return `${why}, and something else is there by now: it is ${at === keptAt ? at : `beside that, as ${nameIn(at)}`}`;
    if (at !== keptAt) await this.copies.clear(keptAt);
    return why;
  }

  /** Why what was taken away is not what was to be. */
  async #whyOther({ tree }: Operation, expected: Stamp, at: Buffer): Promise<string | undefined> {
    if (lookAt(at)?.kind !== 'directory' || tree === undefined)
      return isSameObject(expected, lookAt(at)) ? undefined : CHANGED;
    const found = await new Below(this.parts.addon, at.toString()).summary('', this.lost.changedBefore);
    return isSameTree(tree, found) ? undefined : CHANGED_WITHIN;
  }

  /** Since a crash: what was taken away and not looked at any more comes back if it is not what was to be. Returns why. */
  async #lookAgain(operation: Operation, number: number, name: Buffer): Promise<string | undefined> {
    const { before, after, isOwn, path } = operation;
    const { addon, upper } = this.parts;
    const [aside, beside, gone] = (['', NEW, GONE] as const).map((what) => this.beside(name, number, what));
    if (aside === undefined || beside === undefined || gone === undefined) return undefined;
    await this.copies.clear(gone);
    const kept = Buffer.from(this.keptAt(number));
    const expected = (there: Stamp) => (before && !isOwn ? { ...before, inode: there.inode } : before);
    const now = lookAt(name);
    for (const at of now === undefined && !isReplaced(operation) ? [aside, kept] : [aside]) {
      const there = lookAt(at);
      // A copy on another file system was made before the other one was taken away.
      const was = there && (at !== kept || there.inode === before?.inode) ? expected(there) : undefined;
      const why = was && (await this.#whyOther(operation, was, at));
      if (why !== undefined) return this.#giveUp(at, name, kept, why);
    }
    await this.copies.clear(aside, gone);
    const isMoved = this.#isMoved(operation, now);
    const from = isMoved ? joined(upper, path) : beside;
    const there = lookAt(from);
    const isExchanged =
      isReplaced(operation) &&
      lookAt(kept) !== undefined &&
      this.#isDone(operation, name, now) &&
      (now?.kind === 'link' || now?.modified === after?.modified);
    const isOther = isExchanged && there !== undefined && !isSameObject(expected(there), there);
    if (isOther) exchangeNames(addon, from, name);
    if (isMoved && !isOther) rmSync(from, { force: true });
    await this.copies.clear(beside);
    return isOther ? CHANGED : undefined;
  }

  /**
   * Whether a file of the layer itself can be the one in the workspace: it is what the command left, it belongs to whoever
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
  #isMoved({ path, after }: Pick<Operation, 'path' | 'after'>, now: Stamp | undefined): boolean {
    return (
      this.parts.moves &&
      now?.kind === 'file' &&
      now.inode === after?.inode &&
      lookAt(joined(this.parts.upper, path))?.inode !== now.inode
    );
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

  /**
   * Puts it in its place, from where it is. `isThere`: what is replaced; if it is something else by then, that stays.
   * `undefined`: it cannot be moved, because it is on another file system, or the command shut its directory.
   */
  #putThere(
    operation: Operation,
    from: Buffer,
    name: Buffer,
    isThere: Stamp | undefined,
    moves: boolean,
  ): Placed | undefined {
    const { after } = operation;
    if (after === undefined) return placedAs(undefined, true);
    try {
      if (after.kind === 'directory') {
        mkdirSync(name, { mode: 0o700 });
        this.directories.push(operation);
        return placedAs(lookAt(name), true);
      }
      const ours = lookAt(from);
      const why =
        isThere === undefined
          ? renameVacant(this.parts.addon, from, name)
            ? undefined
            : TAKEN
          : exchangeKnown(this.parts.addon, from, name, isThere);
      const changed = moves && why !== undefined ? lookAt(from)?.changed : undefined;
      if (why !== undefined) return { ...conflict(why), ...(changed === undefined ? {} : { changed }) };
      if (moves) removeMarks(this.parts.addon, name);
      this.#noteLinked(operation, ours);
      return { ...placedAs(ours, true), ...(moves ? { isMoved: true as const } : {}) };
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === 'EEXIST') return conflict(TAKEN);
      if (errno === 'ENOENT' && isThere !== undefined && lookAt(name) === undefined) return conflict(MISSING);
      if (!moves || (errno !== 'EXDEV' && errno !== 'EACCES')) throw error;
      this.#isElsewhere ||= errno === 'EXDEV';
      return undefined;
    }
  }

  #noteLinked({ path, after }: Operation, stamp: Stamp | undefined): void {
    const linked = after?.linked;
    if (linked !== undefined && !this.#linked.has(linked)) this.#linked.set(linked, { path, stamp });
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

/** Puts ours in the place of what was looked at, unless somebody changed or replaced it since: why. */
function exchangeKnown(addon: NativeAddon, from: Buffer, name: Buffer, isThere: Stamp): string | undefined {
  const ours = lookAt(from)?.inode;
  if (!exchangeNames(addon, from, name)) {
    if (!isSameObject(isThere, lookAt(name))) return CHANGED;
    renameSync(from, name);
    return undefined;
  }
  if (isSameObject(isThere, lookAt(from))) {
    rmSync(from);
    return undefined;
  }
  try {
    exchangeNames(addon, from, name);
    // Somebody replaced ours meanwhile.
    if (lookAt(from)?.inode !== ours) exchangeNames(addon, from, name);
  } catch (error) {
    // Somebody removed ours meanwhile, which is not what they had there.
    if (errnoOf(error) !== 'ENOENT' || !renameVacant(addon, from, name)) throw error;
  }
  return CHANGED;
}

/** Where something is put, and what is there. `isBegun`: it is kept already. */
interface ReplacedPlace {
  readonly number: number;
  readonly name: Buffer;
  readonly now: Stamp | undefined;
  readonly isBegun: boolean;
  readonly moves: boolean;
}

/** What is taken away. */
interface TakenPlace extends Pick<ReplacedPlace, 'number' | 'name'> {
  readonly now: Stamp;
  readonly kept: Kept;
}

/** It can be put in the place of what is there at once. */
const isReplaced = ({ before, after }: Operation): boolean =>
  before?.kind === 'file' && (after?.kind === 'file' || after?.kind === 'link');

/** Whether a directory holds what it held: the same objects, or at least the same content where it is not known by these. */
const isSameTree = (one: TreeSummary, other: TreeSummary): boolean =>
  one.digest === other.digest && (one.identity === undefined || one.identity === other.identity);
