import { existsSync } from 'node:fs';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { AppliedChanges, LeftBehind } from '../../model/index.ts';
import type { NativeChangedCopy } from '../../workspace/index.ts';
import { type Applied, Applier, type Intent, type NotPlaced, type Settle } from '../change-sets/apply.ts';
import { Below, type LowerLayer } from '../change-sets/below.ts';
import { keepIndex, type NotedIndex, putIndex } from '../change-sets/index-outside.ts';
import { operationsOf } from '../change-sets/operations.ts';
import type { OpenLayer, StoredSet } from '../change-sets/store.ts';
import { rawPath, shownPath, walkTree } from '../change-sets/tree.ts';
import { unfinishedIn } from '../change-sets/unfinished.ts';
import type { PreparedSandbox } from '../resolve/prepare-sandbox.ts';
import { stateDirectory } from '../state.ts';

import { copiesAt, inSet, isOfIndex, isPlaced, keptNumbers, ReadChanges } from './read-changes.ts';

/** What was applied and taken back; of a set of an older version, which did not note that, all. */
function takenBack(set: StoredSet): Pick<Intent, 'numbers' | 'copies'> {
  const kept = keptNumbers(set);
  const numbers = kept.filter((number) => set.operations[number]?.undone === true);
  const copies = set.copies.flatMap(({ source, isTaken, undone }) => (undone && !isTaken ? [source] : []));
  const isOlder = set.state === 'undone' && numbers.length + copies.length === 0;
  return isOlder ? { numbers: kept, copies: copiesAt(set, []) } : { numbers, copies };
}

/** Whether anything of it can be applied again. */
function canComeAgain(set: StoredSet): boolean {
  const { numbers, copies } = takenBack(set);
  const isFree = (number: number) =>
    set.operations[number]?.conflict === undefined && set.operations[number]?.refused === undefined;
  return copies.length > 0 || numbers.some(isFree) || (isOfIndex(set) && set.index?.isMoved !== true);
}

/** What commands changed in previews: to be looked at, applied, taken back and discarded. */
export class ChangeSets extends ReadChanges {
  readonly #applier: Applier;

  constructor(...made: ConstructorParameters<typeof ReadChanges>) {
    super(...made);
    this.#applier = new Applier(this.addon, this.store);
  }

  /**
   * Puts changes into the workspace of the sandbox: all that can be, or those at and beneath paths. A path that is named
   * itself is applied although it is a link that leads out.
   * @throws {SandboxError} `changes.unknown`, `changes.state`, `changes.busy`, `changes.incomplete`.
   */
  async apply(prepared: PreparedSandbox, id: string, asked: readonly string[] = []): Promise<AppliedChanges> {
    // Held until all is done: what is returned is waited for.
    using _lock = await this.store.waitForLock();
    const set = this.#toApply(id, prepared);
    const paths = asked.map((path) => inSet(set, path));
    const { numbers, named } =
      paths.length === 0
        ? { numbers: keptNumbers(set), named: new Set<number>() }
        : this.chosen(set, this.described(set), paths);
    const copies = copiesAt(set, paths);
    return await this.#settled(prepared, (settle) =>
      this.#applier.apply(set, { numbers, named, copies, renames: this.renames(set) }, settle),
    );
  }

  /**
   * Puts all that a command changed just now into the workspace, links that lead out as well: as if it had changed that
   * itself. Unless something runs on it by now, its files are moved.
   */
  async applyAll(prepared: PreparedSandbox, id: string): Promise<AppliedChanges> {
    using _lock = await this.store.waitForLock();
    using own = this.store.claim(id);
    const set = this.#own(id, prepared);
    const numbers = keptNumbers(set);
    const copies = copiesAt(set, []);
    if (isOfIndex(set)) {
      this.store.save({ ...set, state: 'applied', appliedAt: Date.now() });
      return { id, state: 'applied', done: 1, notDone: [], leftBehind: [] };
    }
    const wanted = { numbers, named: new Set(numbers), copies, renames: this.renames(set) };
    const moves = own === undefined ? {} : { moves: true as const };
    return await this.#settled(prepared, (settle) =>
      this.#applier.apply(set, { ...wanted, ...moves }, settle),
    );
  }

  /**
   * Applies again what was taken back, and nothing that was not in the workspace before that.
   * @throws {SandboxError} as `apply`.
   */
  async redo(prepared: PreparedSandbox, id: string): Promise<AppliedChanges> {
    using _lock = await this.store.waitForLock();
    const set = this.#toApply(id, prepared);
    const { numbers, copies } = takenBack(set);
    if (numbers.length + copies.length === 0 && !isOfIndex(set) && !this.#applier.isUnfinished(id))
      throw new SandboxError('changes.state', `nothing of the changes ${id} was taken back`);
    const again = true as const;
    const wanted = { numbers, named: new Set<number>(), copies, renames: this.renames(set), again };
    return await this.#settled(prepared, (settle) =>
      this.#withIndex(prepared, set, 'after', () => this.#applier.apply(set, wanted, settle)),
    );
  }

  /**
   * The change set of a workspace that was taken back last, as a whole or in part. Of one that was taken back as a whole and of
   * which nothing can come any more, the one before. `undefined`: there is none.
   * @throws {SandboxError} `changes.state`: a person rejected it, as a preview, or other changes were made or applied since.
   */
  lastTakenBack(workspace: string): string | undefined {
    const sets = this.store.list().filter((set) => set.workspace === workspace);
    // The oldest of those that went at the same time: undo --to goes backwards.
    const undone = sets
      .filter(({ undoneAt, state }) => undoneAt !== undefined || state === 'undone')
      .toSorted((one, other) => (other.undoneAt ?? 0) - (one.undoneAt ?? 0));
    for (const set of undone) {
      const { id, undoneAt = 0, atOnce, rejected } = set;
      const since = (one: StoredSet) =>
        one.id !== id && (one.at > undoneAt || (one.again !== true && (one.appliedAt ?? 0) > undoneAt));
      const why =
        atOnce !== true && rejected === true
          ? 'are those of a preview that was rejected'
          : sets.some(since)
            ? 'are older than others that were made or applied since'
            : undefined;
      if (why !== undefined)
        throw new SandboxError(
          'changes.state',
          `the changes ${id}, which were taken back last, ${why}; to apply them again, name them: sandbox-run redo ${id}`,
        );
      if (set.state !== 'undone' || canComeAgain(set)) return id;
    }
    return undone[0]?.id;
  }

  /**
   * Takes what was applied back. `isRejected`: redo applies it again only where it is named.
   * @throws {SandboxError} as `apply`.
   */
  async undo(prepared: PreparedSandbox, id: string, isRejected = false): Promise<AppliedChanges> {
    using _lock = await this.store.waitForLock();
    let set = this.#own(id, prepared);
    if (!isPlaced(set) && !this.#applier.isUnfinished(id))
      throw new SandboxError('changes.state', `nothing of the changes ${id} is in the workspace`);
    if (isRejected && set.atOnce !== true) {
      set = { ...set, rejected: true };
      this.store.save(set);
    }
    return await this.#settled(prepared, (settle) =>
      this.#withIndex(prepared, set, 'before', () => this.#applier.undo(set, this.renames(set), settle)),
    );
  }

  /** Puts the index of a repository outside of the workspace back, or again, and then the files. What a crash cuts short is done again. */
  async #withIndex(
    { resolved }: PreparedSandbox,
    set: StoredSet,
    which: 'before' | 'after',
    files: () => Promise<Applied>,
  ): Promise<Applied> {
    const { index } = set;
    if (index === undefined || (which === 'after') !== (index.undone === true)) return await files();
    const isSame = resolved.repository?.index === index.index;
    const why = isSame
      ? putIndex(this.store.directoryOf(set.id), index, which)
      : 'the workspace is not a part of that repository any more';
    const applied = await files();
    const { undone: _, ...again } = index;
    const state = which === 'before' ? 'undone' : 'applied';
    const now: StoredSet = {
      ...applied.set,
      ...(why === undefined
        ? { index: which === 'before' ? { ...index, undone: true as const } : again }
        : {}),
      ...(isOfIndex(set) && why === undefined
        ? {
            state,
            ...(which === 'before'
              ? { undoneAt: Date.now() }
              : { appliedAt: Date.now(), again: true as const }),
          }
        : {}),
    };
    this.store.save(now);
    const done = applied.done + (isOfIndex(set) && why === undefined ? 1 : 0);
    const path = rawPath(index.index);
    return {
      set: now,
      done,
      notPlaced: [...applied.notPlaced, ...(why === undefined ? [] : [{ path, why }])],
    };
  }

  /**
   * Forgets a change set, or what is at and beneath paths of it; what is left of such a one cannot be run on. What was
   * applied stays, and can be taken back unless it was all of it.
   * @throws {SandboxError} `changes.unknown`, `changes.state`, `changes.busy`.
   */
  async discard(id: string, paths: readonly string[] = []): Promise<void> {
    using _lock = await this.store.waitForLock();
    const isDamaged = paths.length === 0 && this.store.damaged().has(id);
    const set = isDamaged ? undefined : this.store.find(id);
    using own = await this.store.claimSoon(id);
    if (own === undefined)
      throw new SandboxError(
        'changes.state',
        `the changes ${id} cannot be discarded while a command runs on them`,
      );
    if (set === undefined) return await this.store.remove(id);
    const upon = this.store.list().find((set) => set.on === id && set.state === 'waiting');
    if (upon !== undefined)
      throw new SandboxError(
        'changes.state',
        `the changes ${upon.id} lie on ${id}, and could not be applied without it; discard them first`,
      );
    const left = this.#without(
      set,
      paths.map((path) => inSet(set, path)),
    );
    if (left === undefined) await this.store.remove(id);
    else this.store.save(left);
  }

  /** What is left of a change set when paths, or all that is not applied, are discarded; `undefined`: nothing. */
  #without(set: StoredSet, paths: readonly string[]): StoredSet | undefined {
    // Otherwise changes already in place could not be taken back. If the workspace is gone, nobody can finish it.
    if (this.#applier.isUnfinished(set.id) && existsSync(set.workspace))
      throw new SandboxError(
        'changes.state',
        `the changes ${set.id} are in the middle of being applied or taken back; finish that first (sandbox-run changes apply ${set.id})`,
      );
    const placed = new Set(set.placed.map(({ number }) => number));
    const waits = keptNumbers(set).filter((number) => !placed.has(number));
    const gone = copiesAt(set, paths);
    // Nothing of it can be taken back, or nothing else is left to be forgotten.
    if (paths.length === 0 && (!isPlaced(set) || waits.length + gone.length === 0)) return undefined;
    const within = paths.length === 0 ? new Set(waits) : this.chosen(set, this.described(set), paths).within;
    if (gone.length === 0 && [...within].every((number) => placed.has(number)))
      throw new SandboxError(
        'changes.state',
        `the changes ${set.id} are in the workspace there; sandbox-run changes undo ${set.id} takes them back`,
      );
    const operations = set.operations.map((operation, number) =>
      within.has(number) && !placed.has(number) ? { ...operation, discarded: true as const } : operation,
    );
    const copies = set.copies.filter(({ source }) => !gone.includes(source));
    const left = { ...set, operations, copies };
    return keptNumbers(left).length === 0 && copies.length === 0 ? undefined : left;
  }

  /**
   * Finishes what a crash cut short in the workspace of the sandbox, if it was, except for one change set. Returns why some
   * of it is not.
   */
  async finish(prepared: PreparedSandbox, except?: string): Promise<readonly string[]> {
    const unfinished: string[] = [];
    for (const id of unfinishedIn(stateDirectory())) {
      if (id === except) continue;
      // Whose it is nobody knows.
      const damaged = this.store.damaged().get(id);
      if (damaged !== undefined) unfinished.push(damaged);
      const set = this.store.list().find((one) => one.id === id);
      if (set?.workspace !== prepared.plan.workspace) continue;
      // Another process may be in the middle of it.
      using lock = this.store.tryLock();
      if (lock === undefined) continue;
      try {
        await this.#applier.resume(set, (effects) => void prepared.settle(effects));
      } catch (error) {
        // A full disk must not stop further commands: the next process that looks finishes the change set.
        if (!(error instanceof SandboxError)) throw error;
        unfinished.push(error.message);
      }
    }
    return unfinished;
  }

  /** Begins a preview. */
  open(workspace: string, on?: string): Promise<OpenLayer> {
    return this.store.open(workspace, on);
  }

  /** Gives up a preview of which nothing is to be kept. */
  async abandon(opened: OpenLayer): Promise<void> {
    opened[Symbol.dispose]();
    await this.store.remove(opened.id);
  }

  /** Removes what the kernel had beside a layer, once that is mounted no more. */
  removeWork(id: string): Promise<void> {
    return this.store.removeWork(id);
  }

  /** Ends a preview: finds out what its command changed, and keeps it as its id. False: nothing, and the layer may go. */
  async close(
    opened: OpenLayer,
    about: Pick<StoredSet, 'workspace' | 'command' | 'atOnce'> & { readonly on?: string | undefined },
    copies: readonly NativeChangedCopy[],
    noted?: NotedIndex,
  ): Promise<boolean> {
    const { workspace, command, on, atOnce } = about;
    const { id, layer, beginning } = opened;
    const entries = await walkTree(this.addon, layer.upper, true);
    const below = new Below(this.addon, workspace, await this.#walked(layer.lower));
    const operations = await operationsOf(entries, {
      ...{ upper: layer.upper, below, workspace, startedNs: beginning.at, isReplaced: opened.isElsewhere() },
    });
    opened.makeRoom();
    const index = noted && keepIndex(this.store.directoryOf(id), noted);
    if (operations.length === 0 && copies.length === 0 && (index === undefined || index.isMoved === true))
      return false;
    const set: StoredSet = {
      ...{
        id,
        at: Date.now(),
        workspace,
        command,
        ...(on === undefined ? {} : { on }),
        ...(atOnce && { atOnce }),
      },
      ...{ state: 'waiting', operations, placed: [] },
      copies: copies.map(({ source, before, after }) => ({
        ...{ source, before: before.toString('base64') },
        ...(after === undefined ? {} : { after: after.toString('base64') }),
      })),
      ...(index && { index }),
    };
    this.store.save(set);
    opened[Symbol.dispose]();
    return true;
  }

  async #walked(directories: readonly string[]): Promise<readonly LowerLayer[]> {
    const layers: LowerLayer[] = [];
    for (const directory of directories) {
      const entries = await walkTree(this.addon, directory, true);
      layers.push({ directory, entries: new Map(entries.map((entry) => [entry.path, entry])) });
    }
    return layers;
  }

  /** @throws {SandboxError} `changes.state`: it lies on one that waits. */
  #toApply(id: string, prepared: PreparedSandbox): StoredSet {
    const set = this.#own(id, prepared);
    if (set.on !== undefined && this.store.find(set.on).state === 'waiting')
      throw new SandboxError(
        'changes.state',
        `the changes ${id} lie on ${set.on}, which waits; apply that first (sandbox-run changes apply ${set.on})`,
      );
    return set;
  }

  #own(id: string, { plan }: PreparedSandbox): StoredSet {
    const set = this.store.find(id);
    if (set.workspace === plan.workspace) return set;
    throw new SandboxError(
      'changes.state',
      `the changes ${id} are of the workspace ${set.workspace}, not of ${plan.workspace}`,
    );
  }

  async #settled(
    prepared: PreparedSandbox,
    work: (settle: Settle) => Promise<Applied>,
  ): Promise<AppliedChanges> {
    const leftBehind: LeftBehind[] = [];
    const { set, done, notPlaced } = await work((effects) => {
      for (const one of prepared.settle(effects)) leftBehind.push(one);
    });
    const notDone = notPlaced.map(({ path, why }: NotPlaced) => ({ path: shownPath(path), why }));
    return { id: set.id, state: set.state, done, notDone, leftBehind };
  }
}
