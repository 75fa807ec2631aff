import { errnoOf } from '../../base/errno-of.ts';
import { joined, lookAt } from './below.ts';
import { asListed } from './git-directories.ts';
import type { Operation } from './operations.ts';
import {
  type At,
  type Begun,
  CHANGED_SINCE,
  conflict,
  MOUNTED,
  NOT_THERE,
  type Placed,
  Places,
  placedAs,
  removeEmpty,
} from './places.ts';
import { renameOurs, renameVacant } from './renames.ts';
import type { PlacedStamp } from './store.ts';
import { isSameObject, type Stamp } from './tree.ts';

/** Takes back what {@link Placer} put in place: each only as long as it is what was put there. */
export class TakerBack extends Places {
  /** What somebody removed since need not be taken away. */
  protected readonly unless = { missing: undefined, taken: CHANGED_SINCE };

  noteDone(operation: Operation): void {
    const { after, before } = operation;
    if (after?.kind === 'directory' && before?.kind === 'directory')
      this.directories.push({ ...operation, after: { ...after, mode: before.mode } });
  }

  /** Puts back what was there before, which the stamp then says. `noted`: what was put there. */
  async takeBack(operation: Operation, noted: PlacedStamp): Promise<Placed> {
    const { path, after, before } = operation;
    const { number, isKept } = noted;
    const name = this.held.writableNameOf(path);
    if (name === undefined) return after === undefined ? conflict(NOT_THERE) : placedAs(undefined, isKept);
    const isMerged = before?.kind === 'directory' && after?.kind === 'directory';
    if (isMerged && lookAt(name)?.kind !== 'directory') return conflict('it is no directory any more');
    if (isMerged) {
      this.noteDone(operation);
      return placedAs(lookAt(name), isKept);
    }
    if (this.isMounted(operation)) return conflict(MOUNTED);
    if (before !== undefined && !isKept) return conflict('what was there before was not kept');
    const at = { ...this.at(operation, number, name), noted };
    const went = await this.goOn(at);
    if (went !== undefined) return went;
    const was = before && lookAt(at.kept);
    const now = lookAt(name);
    // It came before a crash.
    if (before !== undefined && was === undefined) return this.#back(at, now);
    const stamp = asListed(noted.stamp, now, name);
    // The object that was applied is not there any more: it was taken back before, or somebody removed it.
    const isGone = now === undefined && after !== undefined;
    if (!isGone && !isSameObject(stamp, now)) return conflict(CHANGED_SINCE);
    const isDirectory = now?.kind === 'directory';
    if (isDirectory && !removeEmpty(name)) return conflict('something else is in it now');
    const begun = { number, ...(now && !isDirectory && { goes: now }) };
    if (was === undefined) return await this.exchange(at, begun);
    return await this.exchange(at, { ...begun, comes: await this.#bring(at, was, begun) });
  }

  /** As the base has it; and a copy for which what was kept goes. */
  override async tidyAfter(operation: Operation, number: number): Promise<void> {
    await super.tidyAfter(operation, number);
    await this.copies.clear(copiedOf(this.keptAt(number)));
  }

  /** Lays what was there before beside its place: itself, or a copy where the change set is on another file system. */
  async #bring({ kept, beside }: At, was: Stamp, begun: Begun): Promise<Stamp> {
    try {
      if (renameVacant(this.parts.addon, kept, beside)) return was;
      throw new Error(`something took the name ${beside}`);
    } catch (error) {
      if (errnoOf(error) !== 'EXDEV' || (await this.copies.make(kept, beside, was)) !== true) throw error;
    }
    const comes = lookAt(beside) ?? was;
    this.parts.note({ ...begun, comes });
    // Nothing is at `kept` while what was there is on its way, or in its place.
    renameOurs(kept, copiedOf(kept));
    return comes;
  }

  protected whyOther({ beside }: At, goes: Stamp): string | undefined {
    return isSameObject(goes, lookAt(beside)) ? undefined : CHANGED_SINCE;
  }

  /** Nothing counts that was noted while what was there before had not left its place. */
  protected override begunOf(at: At): Begun | undefined {
    return lookAt(at.kept) === undefined ? super.begunOf(at) : undefined;
  }

  protected isStored({ name }: At, { comes, goes }: Begun): boolean {
    return comes !== undefined || !isSameObject(goes, lookAt(name));
  }

  protected async store(at: At, { comes, goes }: Begun): Promise<Placed | string> {
    if (!this.drop(at, at.noted?.isMoved === true)) return CHANGED_SINCE;
    const copied = copiedOf(at.kept);
    if (lookAt(copied) !== undefined) this.rest = copied;
    return this.#back(at, comes, goes);
  }

  /** What was there before is kept again. */
  protected async withdraw({ operation: { before }, kept, beside }: At): Promise<boolean> {
    if (lookAt(beside) === undefined) return true;
    if (before !== undefined && lookAt(kept) === undefined)
      renameOurs(lookAt(copiedOf(kept)) === undefined ? beside : copiedOf(kept), kept);
    await this.copies.clear(beside);
    return true;
  }

  /** The result of an operation that is taken back: the object there now, and the one that the layer has again, if it was moved. */
  #back({ operation: { path }, noted }: At, now: Stamp | undefined, went = noted?.stamp): Placed {
    const layered = noted?.isMoved ? lookAt(joined(this.parts.upper, path)) : undefined;
    const isBack = layered !== undefined && isSameObject(went, layered);
    return {
      ...placedAs(now, true),
      ...(noted?.isMoved && { isMoved: true }),
      ...(isBack && { changed: layered.changed, bytes: layered.bytes }),
    };
  }
}

/** Where what was kept is, once a copy of it is beside its place. */
const copiedOf = (kept: Buffer): Buffer => Buffer.concat([kept, Buffer.from('.copied')]);
