import { renameSync, rmdirSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import { joined, lookAt } from './below.ts';
import { asListed } from './git-directories.ts';
import type { Operation } from './operations.ts';
import {
  CHANGED_SINCE,
  conflict,
  GONE,
  MOUNTED,
  NEW,
  NOT_THERE,
  nameIn,
  type Placed,
  Places,
  placedAs,
} from './places.ts';
import { exchangeNames, renameVacant } from './renames.ts';
import type { PlacedStamp } from './store.ts';
import { isSameObject, type RawPath, type Stamp } from './tree.ts';

/** Takes back what {@link Placer} put in place: each only as long as it is what was put there. */
export class TakerBack extends Places {
  noteDone(operation: Operation): void {
    const { after, before } = operation;
    if (after?.kind === 'directory' && before?.kind === 'directory')
      this.directories.push({ ...operation, after: { ...after, mode: before.mode } });
  }

  /** Puts back what was there before, which the stamp then says. The other one says what was put there. */
  async takeBack(operation: Operation, noted: PlacedStamp): Promise<Placed> {
    const { path, after, before } = operation;
    const { number, isKept, isMoved } = noted;
    const name = this.held.writableNameOf(path);
    const stamp = name && asListed(noted.stamp, lookAt(name), name);
    const placed = { ...noted, ...(stamp && { stamp }) };
    if (name === undefined) return after === undefined ? conflict(NOT_THERE) : placedAs(undefined, isKept);
    const isMerged = before?.kind === 'directory' && after?.kind === 'directory';
    if (isMerged && lookAt(name)?.kind !== 'directory') return conflict('it is no directory any more');
    if (isMerged) {
      this.noteDone(operation);
      return placedAs(lookAt(name), isKept);
    }
    if (this.isMounted(operation)) return conflict(MOUNTED);
    if (before !== undefined && !isKept) return conflict('what was there before was not kept');
    const back = (now: Stamp | undefined): Placed => ({
      ...placedAs(now, true),
      ...(isMoved && this.#inLayer(path, stamp)),
    });
    const kept = Buffer.from(this.keptAt(number));
    const was = before && lookAt(kept);
    if (before !== undefined && (was === undefined || isSameObject(stamp, was))) {
      // So far it came before a crash.
      if (was !== undefined) this.drop(operation, kept, isMoved);
      return back(lookAt(name));
    }
    if (await this.#isCopiedBack(operation, name, placed)) return back(lookAt(name));
    const aside = this.beside(name, number);
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
    if (!(await this.putBack(kept.toString(), name, before, number))) return conflict(CHANGED_SINCE);
    return back(was);
  }

  /** Whether a copy of what was kept on another file system is in its place since before a crash; removes what is left of that. */
  async #isCopiedBack(
    operation: Operation,
    name: Buffer,
    { number, stamp, isMoved }: PlacedStamp,
  ): Promise<boolean> {
    const [beside, by] = [this.beside(name, number, NEW), this.beside(name, number, GONE)];
    await this.copies.clear(by);
    const kept = Buffer.from(this.keptAt(number));
    const [was, there, now] = [kept, beside, name].map(lookAt);
    if (was === undefined) return false;
    const targetOf = (at: Buffer) => linkBytes(at).toString('latin1');
    const isCopy = (one: Stamp, at: Buffer) =>
      one.kind === was.kind &&
      (one.kind !== 'file' || isSameObject({ ...was, inode: one.inode }, one)) &&
      (one.kind !== 'link' || targetOf(at) === targetOf(kept));
    const isExchanged = there !== undefined && isSameObject(stamp, there);
    if (isExchanged) this.drop(operation, beside, isMoved);
    else if (there !== undefined && isCopy(there, beside)) await this.copies.clear(beside);
    const isBack =
      isExchanged ||
      (now !== undefined && now.kind !== 'directory' && now.inode !== stamp?.inode && isCopy(now, name));
    if (isBack) await this.copies.clear(kept);
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
      isExchanged = exchangeNames(this.parts.addon, from, name);
    } catch (error) {
      const is = lookAt(kept);
      // Somebody removed it meanwhile, as they might have before.
      if (errnoOf(error) === 'ENOENT' && is !== undefined && lookAt(name) === undefined)
        return (await this.putBack(kept.toString(), name, is, number)) ? undefined : CHANGED_SINCE;
      if (errnoOf(error) !== 'EXDEV') throw error;
      from = this.beside(name, number, NEW);
      const by = this.beside(name, number, GONE);
      if (is === undefined || (await this.copies.make(kept, from, is, by)) !== true) throw error;
      isExchanged = exchangeNames(this.parts.addon, from, name);
    }
    const isOurs = isSameObject(stamp, lookAt(isExchanged ? from : name));
    if (isOurs && isExchanged) this.drop(operation, from, isMoved);
    else if (isOurs) renameSync(from, name);
    else {
      if (isExchanged) exchangeNames(this.parts.addon, from, name);
      if (from !== kept) await this.copies.clear(from);
      return CHANGED_SINCE;
    }
    if (from !== kept) await this.copies.clear(kept);
    return undefined;
  }

  /** Does away with what was put there and has been taken away, or puts it back: why. */
  #dropIfOurs(
    operation: Operation,
    aside: Buffer,
    name: Buffer,
    { stamp, isMoved }: PlacedStamp,
  ): string | undefined {
    if (isSameObject(stamp, lookAt(aside))) this.drop(operation, aside, isMoved);
    else if (!renameVacant(this.parts.addon, aside, name))
      return `${CHANGED_SINCE}, and something else is there by now: it is beside that, as ${nameIn(aside)}`;
    else return CHANGED_SINCE;
    return undefined;
  }

  /** When a file that the layer has again changed last. */
  #inLayer(path: RawPath, stamp: Stamp | undefined): Pick<PlacedStamp, 'changed' | 'bytes'> {
    const now = lookAt(joined(this.parts.upper, path));
    return now !== undefined && isSameObject(stamp, now) ? { changed: now.changed, bytes: now.bytes } : {};
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
}
