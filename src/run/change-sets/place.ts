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
  rmdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { orElse } from '../../base/or-else.ts';
import { PERMISSIONS } from '../../confine/kernel/mode-bits.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { isNoDirectory, mountPointsWithin, O_PATH } from '../../workspace/index.ts';
import { Below, joined, lookAt, type TreeSummary } from './below.ts';
import { Copies, seconds } from './copies.ts';
import { asListed } from './git-directories.ts';
import { HeldPaths } from './held-paths.ts';
import { isAsLeft, openAsLeft, STILL_WRITTEN } from './left-file.ts';
import { COMPARED_BYTES, canBeNamed, haveSameBytes, type Operation, UNREADABLE } from './operations.ts';
import { exchangeNames, renameOurs, renameVacant } from './renames.ts';
import type { PlacedStamp } from './store.ts';
import { bytesOf, isSameObject, isWithin, type RawPath, rawPath, type Stamp, stampOf } from './tree.ts';

/** What became of an operation: what is noted of it, or why it was not carried out. */
type Placed =
  | Omit<PlacedStamp, 'number'>
  /** `changed`: when the file of the layer changed last, which was in the workspace for a moment. */
  | { readonly conflict: string; readonly changed?: string };

/** What became of what was there: it is kept, or a copy of it; nothing of it is; it may not be kept; it is not there any more. */
type Kept = 'itself' | 'copy' | 'nothing' | 'refused' | 'gone';

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

/** What the name of something ends in that is to be put in place. */
const NEW = '-new';
/** And of what is to be removed, a copy of which is kept. */
const GONE = '-gone';

const conflict = (why: string): Placed => ({ conflict: why });
const placedAs = (stamp: Stamp | undefined, isKept: boolean): Placed => ({ ...(stamp && { stamp }), isKept });
const CHANGED = 'it changed';
const CHANGED_WITHIN = 'something in it changed';
const CHANGED_SINCE = 'it changed since it was applied';
const TAKEN = 'something is there that was not';
const MISSING = 'it is not there any more';
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
  readonly #copies: Copies;
  readonly #below: Below;
  /** Of files with several names: where the first of them is. */
  readonly #linked = new Map<number, { readonly path: RawPath; readonly stamp: Stamp | undefined }>();
  /**
   * Of files that lost a name here and may have others: when each had changed last before that, and when by that; missing:
   * not known, but it did.
   */
  readonly #lostName = new Map<number, { readonly was: string; readonly is?: string }>();
  /** Where file systems are mounted in the workspace. */
  #mounts: readonly RawPath[] | undefined;
  /** Directories, whose permissions and times come last. */
  readonly #directories: Operation[] = [];
  /** Nothing can be moved: the layer is on another file system. */
  #isElsewhere = false;

  constructor(parts: PlacerParts) {
    this.#parts = parts;
    this.#held = new HeldPaths(parts.workspace);
    this.#copies = new Copies(parts.addon);
    this.#below = new Below(parts.addon, parts.workspace);
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
    const name = this.#held.writableNameOf(path);
    if (name === undefined) return conflict(NOT_THERE);
    const why = resumes ? await this.#lookAgain(operation, number, name) : undefined;
    if (why !== undefined) return conflict(why);
    const now = lookAt(name);
    const before = asListed(operation.before, now, name);
    operation = { ...operation, ...(before && { before }) };
    const isBegun = resumes && lookAt(this.#keptAt(number)) !== undefined;
    if (resumes && this.#isDone(operation, name, now)) {
      this.noteDone(operation, 'apply', now);
      if (!this.#isMoved(operation, now)) return placedAs(now, isBegun);
      this.#removeMarks(name);
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
    const whyNot = moves ? undefined : await this.#make(operation, beside);
    if (whyNot !== undefined) return conflict(whyNot);
    // Before a crash it was set aside already.
    if (now === undefined) this.noteLostName(operation);
    using _lost = now && this.#losesName(before, name);
    let placed: Placed | undefined;
    try {
      placed = await this.#replace(operation, { number, name, now, isBegun, moves });
    } finally {
      // It is of no use, and may stay a long time where there is no room.
      if (placed === undefined || 'conflict' in placed) await this.#copies.clear(beside);
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
    let from = moves ? joined(this.#parts.upper, operation.path) : this.#beside(name, number, NEW);
    let placed = this.#putThere(operation, from, name, isThere, moves);
    if (placed === undefined) {
      // It cannot be moved after all.
      from = this.#beside(name, number, NEW);
      const why = await this.#make(operation, from);
      placed = why === undefined ? this.#putThere(operation, from, name, isThere, false) : conflict(why);
    }
    if (placed === undefined || !('conflict' in placed)) return { ...placed, isKept };
    // What was there before is where it was.
    if (before === undefined || now === undefined) return placed;
    const keptAt = this.#keptAt(number);
    if (replaces) await this.#copies.clear(Buffer.from(keptAt));
    else if (isKept && !(await this.#putBack(keptAt, name, before, number)))
      return { ...placed, conflict: `${placed.conflict}; what was there before is ${keptAt}` };
    return placed;
  }

  /** Puts back what was there before, which the stamp then says. The other one says what was put there. */
  async takeBack(operation: Operation, noted: PlacedStamp): Promise<Placed> {
    const { path, after, before } = operation;
    const { number, isKept, isMoved } = noted;
    const name = this.#held.writableNameOf(path);
    const stamp = name && asListed(noted.stamp, lookAt(name), name);
    const placed = { ...noted, ...(stamp && { stamp }) };
    if (name === undefined) return after === undefined ? conflict(NOT_THERE) : placedAs(undefined, isKept);
    const isMerged = before?.kind === 'directory' && after?.kind === 'directory';
    if (isMerged && lookAt(name)?.kind !== 'directory') return conflict('it is no directory any more');
    if (isMerged) {
      this.noteDone(operation, 'undo', undefined);
      return placedAs(lookAt(name), isKept);
    }
    if (this.#isMounted(operation)) return conflict(MOUNTED);
    if (before !== undefined && !isKept) return conflict('what was there before was not kept');
    const back = (now: Stamp | undefined): Placed => ({
      ...placedAs(now, true),
      ...(isMoved && this.#inLayer(path, stamp)),
    });
    const kept = Buffer.from(this.#keptAt(number));
    const was = before && lookAt(kept);
    if (before !== undefined && (was === undefined || isSameObject(stamp, was))) {
      // So far it came before a crash.
      if (was !== undefined) this.#drop(operation, kept, isMoved);
      return back(lookAt(name));
    }
    if (await this.#isCopiedBack(operation, name, placed)) return back(lookAt(name));
    const aside = this.#beside(name, number);
    // Taken away before a crash, and not looked at any more.
    const why = lookAt(aside) && this.#dropIfOurs(operation, aside, name, placed);
    if (why !== undefined) return conflict(why);
    const now = lookAt(name);
    // What was set aside when it was applied is gone already.
    const isGone = now === undefined && after !== undefined;
    if (!isGone && !isSameObject(stamp, now)) return conflict(CHANGED_SINCE);
    if (now?.kind === 'directory') {
      const left = this.#removeDirectory(name);
      if (left !== undefined) return conflict(left);
    } else if (now !== undefined && was !== undefined && was.kind !== 'directory') {
      const is = await this.#exchangeBack(operation, kept, name, placed);
      return typeof is === 'string' ? conflict(is) : back(was);
    } else if (now !== undefined) {
      renameSync(name, aside);
      const changed = this.#dropIfOurs(operation, aside, name, placed);
      if (changed !== undefined) return conflict(changed);
    }
    if (before === undefined) return back(undefined);
    if (!(await this.#putBack(kept.toString(), name, before, number))) return conflict(CHANGED_SINCE);
    return back(was);
  }

  /** Whether a copy of what was kept on another file system is in its place since before a crash; removes what is left of that. */
  async #isCopiedBack(
    operation: Operation,
    name: Buffer,
    { number, stamp, isMoved }: PlacedStamp,
  ): Promise<boolean> {
    const [beside, by] = [this.#beside(name, number, NEW), this.#beside(name, number, GONE)];
    await this.#copies.clear(by);
    const kept = Buffer.from(this.#keptAt(number));
    const [was, there, now] = [kept, beside, name].map(lookAt);
    if (was === undefined) return false;
    const targetOf = (at: Buffer) => linkBytes(at).toString('latin1');
    const isCopy = (one: Stamp, at: Buffer) =>
      one.kind === was.kind &&
      (one.kind !== 'file' || isSameObject({ ...was, inode: one.inode }, one)) &&
      (one.kind !== 'link' || targetOf(at) === targetOf(kept));
    const isExchanged = there !== undefined && isSameObject(stamp, there);
    if (isExchanged) this.#drop(operation, beside, isMoved);
    else if (there !== undefined && isCopy(there, beside)) await this.#copies.clear(beside);
    const isBack =
      isExchanged ||
      (now !== undefined && now.kind !== 'directory' && now.inode !== stamp?.inode && isCopy(now, name));
    if (isBack) await this.#copies.clear(kept);
    return isBack;
  }

  /** Exchanges what was put there for what was there before, if it is that. Returns why it stays. */
  async #exchangeBack(
    operation: Operation,
    kept: Buffer,
    name: Buffer,
    { number, stamp, isMoved }: PlacedStamp,
  ): Promise<string | undefined> {
    let from = kept;
    let isExchanged: boolean;
    try {
      isExchanged = exchangeNames(this.#parts.addon, from, name);
    } catch (error) {
      const is = lookAt(kept);
      // Somebody removed it meanwhile, as they might have before.
      if (errnoOf(error) === 'ENOENT' && is !== undefined && lookAt(name) === undefined)
        return (await this.#putBack(kept.toString(), name, is, number)) ? undefined : CHANGED_SINCE;
      if (errnoOf(error) !== 'EXDEV') throw error;
      from = this.#beside(name, number, NEW);
      const by = this.#beside(name, number, GONE);
      if (is === undefined || (await this.#copies.make(kept, from, is, by)) !== true) throw error;
      isExchanged = exchangeNames(this.#parts.addon, from, name);
    }
    const isOurs = isSameObject(stamp, lookAt(isExchanged ? from : name));
    if (isOurs && isExchanged) this.#drop(operation, from, isMoved);
    else if (isOurs) renameSync(from, name);
    else {
      if (isExchanged) exchangeNames(this.#parts.addon, from, name);
      if (from !== kept) await this.#copies.clear(from);
      return CHANGED_SINCE;
    }
    if (from !== kept) await this.#copies.clear(kept);
    return undefined;
  }

  /** Does away with what was put there and has been taken away, or puts it back: why. */
  #dropIfOurs(
    operation: Operation,
    aside: Buffer,
    name: Buffer,
    { stamp, isMoved }: PlacedStamp,
  ): string | undefined {
    if (isSameObject(stamp, lookAt(aside))) this.#drop(operation, aside, isMoved);
    else if (!renameVacant(this.#parts.addon, aside, name))
      return `${CHANGED_SINCE}, and something else is there by now: it is beside that, as ${nameIn(aside)}`;
    else return CHANGED_SINCE;
    return undefined;
  }

  /** Takes into account that what was there before lost its name, before this process. */
  noteLostName(operation: Operation | undefined): void {
    const before = operation?.before;
    if (hasOtherNames(before)) this.#lostName.set(before.inode, { was: before.changed });
  }

  /** Takes into account what was done, perhaps before this process. `stamp`: what was put there. */
  noteDone(operation: Operation, doing: 'apply' | 'undo', stamp: Stamp | undefined): void {
    const { after, before, path } = operation;
    const isMerged = after?.kind === 'directory' && before?.kind === 'directory';
    if (doing === 'apply') {
      this.noteLostName(operation);
      if (after?.kind === 'directory') this.#directories.push(operation);
      if (after?.linked !== undefined) this.#linked.set(after.linked, { path, stamp });
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
      try {
        this.#held.keepMode(path, after.mode);
        const held = `/proc/self/fd/${fd}`;
        if (before?.kind !== 'directory') utimesSync(held, seconds(after.modified), seconds(after.modified));
        chmodSync(held, after.mode);
      } finally {
        closeSync(fd);
      }
    }
    this.#directories.length = 0;
  }

  [Symbol.dispose](): void {
    this.#held[Symbol.dispose]();
  }

  /** Where it is before it is put in place, or when it has been taken away. */
  #beside(name: Buffer, number: number, what: typeof NEW | typeof GONE | '' = ''): Buffer {
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
    return this.#lostName.get(before.inode)?.is ?? now.changed;
  }

  /** When a file in a directory that goes changed last, without the loss of another name here. */
  readonly #changedBefore = ({ inode, changed }: Stamp): string => {
    const lost = this.#lostName.get(inode);
    return lost !== undefined && (lost.is ?? changed) === changed ? lost.was : changed;
  };

  /** Notes when a file with several names changed last, once it has lost this one. */
  #losesName(before: Stamp | undefined, name: Buffer): Disposable {
    if (!hasOtherNames(before)) return { [Symbol.dispose]: () => {} };
    const fd = openSync(name, O_PATH | constants.O_NOFOLLOW);
    return {
      [Symbol.dispose]: () => {
        const { changed } = stampOf(fstatSync(fd, { bigint: true }));
        this.#lostName.set(before.inode, { was: before.changed, is: changed });
        closeSync(fd);
      },
    };
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
      if (tree === undefined || this.#parts.moves) return undefined;
      const found = await this.#below.summary(path, this.#changedBefore);
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
    const from = joined(this.#parts.upper, path);
    if (now.mode !== after.mode || now.bytes !== after.bytes) return false;
    if (this.#isMoved({ after, path }, now)) return now.modified === after.modified;
    // A file may be larger than anybody can read.
    return after.bytes > COMPARED_BYTES ? now.modified === after.modified : haveSameBytes(from, name);
  }

  /** Keeps what is there. `stays`: until it is replaced; but for that, it is gone if it is kept itself. */
  async #keep(name: Buffer, before: Stamp, number: number, stays: boolean): Promise<Kept> {
    const to = Buffer.from(this.#keptAt(number));
    try {
      if (stays) linkSync(name, to);
      else renameOurs(name, to);
      return 'itself';
    } catch (error) {
      // Another file system; a file that belongs to somebody else, or has too many names.
      const errno = errnoOf(error) ?? '';
      if (errno === 'ENOENT' && lookAt(name) === undefined) return 'gone';
      if (!['EXDEV', 'EPERM', 'EMLINK', 'EACCES'].includes(errno)) throw error;
      const isCopied = await this.#copies.make(name, to, before, Buffer.from(`${to}.new`));
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
    const keptAt = Buffer.from(this.#keptAt(number));
    const aside = this.#beside(name, number);
    if (kept !== 'itself') renameOurs(name, aside);
    const at = kept === 'itself' ? keptAt : aside;
    const why = await this.#whyOther(operation, now, at);
    if (why !== undefined) return this.#giveUp(at, name, keptAt, why);
    if (kept !== 'itself') await this.#copies.clear(aside, this.#beside(name, number, GONE));
    return undefined;
  }

  /** Puts back what should not have been taken away, for which the reason is returned. */
  async #giveUp(at: Buffer, name: Buffer, keptAt: Buffer, why: string): Promise<string> {
    if (!renameVacant(this.#parts.addon, at, name))
      return `${why}, and something else is there by now: it is ${at === keptAt ? at : `beside that, as ${nameIn(at)}`}`;
    if (at !== keptAt) await this.#copies.clear(keptAt);
    return why;
  }

  /** Why what was taken away is not what was to be. */
  async #whyOther({ tree }: Operation, expected: Stamp, at: Buffer): Promise<string | undefined> {
    if (lookAt(at)?.kind !== 'directory' || tree === undefined)
      return isSameObject(expected, lookAt(at)) ? undefined : CHANGED;
    const found = await new Below(this.#parts.addon, at.toString()).summary('', this.#changedBefore);
    return isSameTree(tree, found) ? undefined : CHANGED_WITHIN;
  }

  /** Since a crash: what was taken away and not looked at any more comes back if it is not what was to be. Returns why. */
  async #lookAgain(operation: Operation, number: number, name: Buffer): Promise<string | undefined> {
    const { before, after, isOwn, path } = operation;
    const { addon, upper } = this.#parts;
    const [aside, beside, gone] = (['', NEW, GONE] as const).map((what) => this.#beside(name, number, what));
    if (aside === undefined || beside === undefined || gone === undefined) return undefined;
    await this.#copies.clear(gone);
    const kept = Buffer.from(this.#keptAt(number));
    const expected = (there: Stamp) => (before && !isOwn ? { ...before, inode: there.inode } : before);
    const now = lookAt(name);
    for (const at of now === undefined && !isReplaced(operation) ? [aside, kept] : [aside]) {
      const there = lookAt(at);
      // A copy on another file system was made before the other one was taken away.
      const was = there && (at !== kept || there.inode === before?.inode) ? expected(there) : undefined;
      const why = was && (await this.#whyOther(operation, was, at));
      if (why !== undefined) return this.#giveUp(at, name, kept, why);
    }
    await this.#copies.clear(aside, gone);
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
    await this.#copies.clear(beside);
    return isOther ? CHANGED : undefined;
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

  /** Whether a file is that of the layer, which has it no more. */
  #isMoved({ path, after }: Pick<Operation, 'path' | 'after'>, now: Stamp | undefined): boolean {
    return (
      this.#parts.moves &&
      now?.kind === 'file' &&
      now.inode === after?.inode &&
      lookAt(joined(this.#parts.upper, path))?.inode !== now.inode
    );
  }

  /** Does away with what was put there; the layer gets a file again that was moved from it: it may be applied again. */
  #drop({ path }: Operation, at: Buffer, isMoved: true | undefined): void {
    if (isMoved)
      try {
        renameSync(at, joined(this.#parts.upper, path));
      } catch (error) {
        // It has to go without.
        if (!['EXDEV', 'EPERM', 'EACCES', 'ENOENT'].includes(errnoOf(error) ?? '')) throw error;
      }
    rmSync(at, { force: true });
  }

  /** When a file that the layer has again changed last. */
  #inLayer(path: RawPath, stamp: Stamp | undefined): Pick<PlacedStamp, 'changed' | 'bytes'> {
    const now = lookAt(joined(this.#parts.upper, path));
    return now !== undefined && isSameObject(stamp, now) ? { changed: now.changed, bytes: now.bytes } : {};
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
      await this.#copies.ofOpened(source, beside, after.mode);
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
        this.#directories.push(operation);
        return placedAs(lookAt(name), true);
      }
      const ours = lookAt(from);
      const why =
        isThere === undefined
          ? renameVacant(this.#parts.addon, from, name)
            ? undefined
            : TAKEN
          : this.#exchange(from, name, isThere);
      const changed = moves && why !== undefined ? lookAt(from)?.changed : undefined;
      if (why !== undefined) return { ...conflict(why), ...(changed === undefined ? {} : { changed }) };
      if (moves) this.#removeMarks(name);
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

  /** Removes the overlay's extended attributes. The kernel refuses that on a read-only file, so it gets write permission for a moment. */
  #removeMarks(name: Buffer): void {
    const { addon } = this.#parts;
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
  #exchange(from: Buffer, name: Buffer, isThere: Stamp): string | undefined {
    const { addon } = this.#parts;
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

  #noteLinked({ path, after }: Operation, stamp: Stamp | undefined): void {
    const linked = after?.linked;
    if (linked !== undefined && !this.#linked.has(linked)) this.#linked.set(linked, { path, stamp });
  }

  /** Another name of a file that is in place already. */
  #linkTo(linked: number | undefined, beside: Buffer): boolean {
    const first = linked === undefined ? undefined : this.#linked.get(linked);
    if (first === undefined) return false;
    using other = new HeldPaths(this.#parts.workspace);
    const name = other.nameOf(first.path);
    if (name === undefined || lookAt(name)?.kind !== 'file') return false;
    linkSync(name, beside);
    if (isSameObject(first.stamp, lookAt(beside))) return true;
    // Somebody changed it since.
    rmSync(beside);
    return false;
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

  /** False: something else is there. */
  async #putBack(kept: string, name: Buffer, before: Stamp, number: number): Promise<boolean> {
    const { addon } = this.#parts;
    const from = Buffer.from(kept);
    try {
      return renameVacant(addon, from, name);
    } catch (error) {
      if (errnoOf(error) !== 'EXDEV') throw error;
      const beside = this.#beside(name, number, NEW);
      const is = lookAt(kept) ?? before;
      if ((await this.#copies.make(from, beside, is, this.#beside(name, number, GONE))) !== true) throw error;
      if (!renameVacant(addon, beside, name)) {
        await this.#copies.clear(beside);
        return false;
      }
      await this.#copies.clear(from);
      return true;
    }
  }
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

const nameIn = (path: Buffer): string => path.subarray(path.lastIndexOf('/') + 1).toString();

const hasOtherNames = (stamp: Stamp | undefined): stamp is Stamp =>
  stamp !== undefined && stamp.kind !== 'directory' && stamp.links > 1;

function mountsWithin(workspace: string): readonly RawPath[] {
  const root = rawPath(workspace);
  return mountPointsWithin(root).map((at) => at.slice(root.length + 1));
}
