import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { bytesOfPath, textOfPath } from '../../base/path-text.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { loadAddon } from '../../confine/native/load.ts';
import type { Lost, Taken } from '../../judge/index.ts';
import type {
  AppliedChanges,
  Change,
  ChangeCounts,
  ChangeSet,
  ChangeSetDetail,
  Gone,
  LeftBehind,
} from '../../model/index.ts';
import type { NativeChangedCopy } from '../../workspace/index.ts';
import { type Applied, Applier, type Intent, type NotPlaced, type Settle } from '../change-sets/apply.ts';
import { Below, joined, type LowerLayer, lookAt } from '../change-sets/below.ts';
import {
  type Contents,
  chosenNumbers,
  type DescribedChange,
  describeOperations,
  renamesAmong,
} from '../change-sets/describe.ts';
import {
  contentKindOf,
  diffOf,
  diffOfCopy,
  diffWithin,
  MOST_DIFF,
  MOST_WITHIN,
} from '../change-sets/diff.ts';
import { HeldPaths } from '../change-sets/held-paths.ts';
import { keepIndex, type NotedIndex, putIndex } from '../change-sets/index-outside.ts';
import { haveSameBytes, type Operation, operationsOf } from '../change-sets/operations.ts';
import {
  ChangeStore,
  type Keep,
  type OpenLayer,
  type StoredCopy,
  type StoredSet,
} from '../change-sets/store.ts';
import {
  aroundPath,
  bytesOf,
  isSameObject,
  isWithin,
  type RawPath,
  rawPath,
  type Stamp,
  shownPath,
  walkTree,
} from '../change-sets/tree.ts';
import { unfinishedIn } from '../change-sets/unfinished.ts';
import type { PreparedSandbox } from '../resolve/prepare-sandbox.ts';
import { stateDirectory } from '../state.ts';

/** The copies at and beneath paths, or all. */
function allCopiesAt({ copies, workspace }: StoredSet, paths: readonly string[]): readonly StoredCopy[] {
  const wanted = paths.map((path) => `${workspace}/${path.replace(/\/+$/, '')}`);
  return copies.filter(({ source }) => paths.length === 0 || wanted.some((path) => isWithin(source, path)));
}

/** The same, of what is not taken over: where they belong. */
const copiesAt = (set: StoredSet, paths: readonly string[]): readonly string[] =>
  allCopiesAt(set, paths).flatMap(({ source, isTaken }) => (isTaken ? [] : [source]));

/** As its changes have it, of a path that a person may have written in full or with a dot before it. */
const inSet = ({ workspace }: StoredSet, path: string): string =>
  (path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : path).replace(/^(\.\/+)+(?=.)/, '');

/** Where an operation is, as text from which its bytes come back. */
const absoluteIn = ({ workspace }: StoredSet, { path = '' }: Partial<Operation> = {}): string =>
  `${workspace}/${textOfPath(bytesOf(path))}`;

/** Without those of which a file of the same name has the content now: a directory that is moved is copied and removed. */
function notMoved(
  files: readonly string[],
  { operations }: StoredSet,
  contents: Contents,
): readonly string[] {
  const keyOf = (path: RawPath, bytes: number) => `${bytes} ${path.slice(path.lastIndexOf('/') + 1)}`;
  const made = new Map<string, number[]>();
  operations.forEach(({ path, after, before }, number) => {
    if (after?.kind !== 'file' || before !== undefined) return;
    const key = keyOf(path, after.bytes);
    made.set(key, [...(made.get(key) ?? []), number]);
  });
  return files.filter((file) => {
    const at = bytesOfPath(file);
    const candidates = made.get(keyOf(at.toString('latin1'), lookAt(at)?.bytes ?? 0)) ?? [];
    const found = candidates.findIndex((number) => {
      const left = contents.left(number);
      return left !== undefined && haveSameBytes(left.at, at);
    });
    if (found !== -1) candidates.splice(found, 1);
    return found === -1;
  });
}

/** Whether anything of it is in the workspace. */
const isPlaced = (set: StoredSet): boolean =>
  set.placed.length > 0 ||
  set.copies.some(({ isTaken }) => isTaken) ||
  (isOfIndex(set) && set.state === 'applied');

/** Its command changed the index of a repository outside of the workspace, and nothing else. */
const isOfIndex = ({ operations, copies, index }: StoredSet): boolean =>
  index !== undefined && operations.length + copies.length === 0;

/** The numbers of all that was not discarded. */
const keptNumbers = ({ operations }: StoredSet): readonly number[] =>
  operations.flatMap(({ discarded }, number) => (discarded === true ? [] : [number]));

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

/** Where what was done away with is kept, by where it was. */
type KeptPlaces = ReadonlyMap<RawPath, readonly string[]>;

/** What commands changed in previews: to be looked at, applied, taken back and discarded. */
export class ChangeSets {
  readonly #addon: NativeAddon;
  readonly #store: ChangeStore;
  readonly #applier: Applier;

  /** `keep`: how much of what does not wait is kept when a layer is made; default: as much as `workspace.undo_keep` says by itself. */
  constructor(addon: NativeAddon = loadAddon(), directory: string = stateDirectory(), keep?: Keep) {
    this.#addon = addon;
    this.#store = new ChangeStore(addon, directory, keep);
    this.#applier = new Applier(addon, this.#store);
  }

  /** All, the oldest first; of one workspace if it is named. */
  list(workspace?: string): readonly ChangeSet[] {
    return this.#store
      .list()
      .filter((set) => workspace === undefined || set.workspace === workspace)
      .map((set) => this.#summaryOf(set, this.#allChanges(set)));
  }

  /** Why some cannot be read: a sentence each. */
  damaged(): readonly string[] {
    return [...this.#store.damaged().values()];
  }

  /** Of each change set a text that is another one as soon as something in it is. */
  versions(): ReadonlyMap<string, string> {
    return this.#store.versions();
  }

  /** Whether anything of it may wait to be applied. @throws {SandboxError} `changes.unknown`. */
  mayWait(id: string): boolean {
    const set = this.#store.find(id);
    if (set.state !== 'applied') return set.state === 'waiting';
    if (copiesAt(set, []).length > 0) return true;
    const placed = new Set(set.placed.map(({ number }) => number));
    return keptNumbers(set).some((number) => !placed.has(number));
  }

  /** @throws {SandboxError} `changes.unknown`. */
  workspaceOf(id: string): string {
    return this.#store.find(id).workspace;
  }

  /** @throws {SandboxError} `changes.unknown`. */
  show(id: string, most: number = Number.POSITIVE_INFINITY): ChangeSetDetail {
    return this.#detailOf(this.#store.find(id), most);
  }

  /**
   * What changed, as a unified diff: of all text files, or of those at or beneath a path. `itself`: not of what is beneath,
   * which may be very much.
   * @throws {SandboxError} `changes.unknown`.
   */
  diff(id: string, asked?: string, itself = false): string {
    const set = this.#store.find(id);
    const path = asked === undefined ? undefined : inSet(set, asked);
    const described = this.#described(set);
    const chosen = path === undefined ? undefined : new Set(this.#chosen(set, described, [path]).numbers);
    using contents = this.#contentsOf(set);
    const until = performance.now() + MOST_DIFF.ms;
    let length = 0;
    const ofCopies = allCopiesAt(set, path === undefined ? [] : [path])
      .filter(({ source }) => !itself || source === `${set.workspace}/${path}`)
      .map((copy) => diffOfCopy(copy, set.workspace));
    const ofFiles = described
      .filter(({ numbers }) => chosen === undefined || numbers.some((number) => chosen.has(number)))
      .filter(({ change }) => !itself || change.path === path)
      .map((one) => {
        const isEnough = (text = '') => {
          length += text.length;
          return length > MOST_DIFF.characters || performance.now() > until;
        };
        const text = diffOf(one, set, this.#addon, contents, isEnough());
        const { objects = 0 } = one.change;
        const isShort = objects <= MOST_WITHIN || (path !== undefined && !itself);
        return isEnough(text) || !isShort || !this.#isWhole(set, one)
          ? text
          : `${text}${diffWithin(one, set, this.#addon, contents, isEnough)}`;
      });
    return [...ofCopies, ...ofFiles].join('');
  }

  /**
   * Puts changes into the workspace of the sandbox: all that can be, or those at and beneath paths. A path that is named
   * itself is applied although it is a link that leads out.
   * @throws {SandboxError} `changes.unknown`, `changes.state`, `changes.busy`, `changes.incomplete`.
   */
  async apply(prepared: PreparedSandbox, id: string, asked: readonly string[] = []): Promise<AppliedChanges> {
    // Held until all is done: what is returned is waited for.
    using _lock = await this.#store.waitForLock();
    const set = this.#toApply(id, prepared);
    const paths = asked.map((path) => inSet(set, path));
    const { numbers, named } =
      paths.length === 0
        ? { numbers: keptNumbers(set), named: new Set<number>() }
        : this.#chosen(set, this.#described(set), paths);
    const copies = copiesAt(set, paths);
    return await this.#settled(prepared, (settle) =>
      this.#applier.apply(set, { numbers, named, copies, renames: this.#renames(set) }, settle),
    );
  }

  /**
   * Of what a command took away or put something older in the place of, what nothing else brings back, before that is in the
   * workspace; not what has another name or place now.
   */
  lostIn(id: string, lostAmong: (taken: Taken) => Lost | undefined): Lost | undefined {
    const set = this.#store.find(id);
    using contents = this.#contentsOf(set);
    const described = describeOperations(set.operations, contents);
    const pathsOf = (...kinds: readonly Change['change'][]) =>
      described.flatMap(({ change, numbers: [number = -1] }) =>
        kinds.includes(change.change) ? [absoluteIn(set, set.operations[number])] : [],
      );
    const lost = lostAmong({ deleted: pathsOf('deleted'), changed: pathsOf('changed', 'mode') });
    return lost && { ...lost, deleted: notMoved(lost.deleted, set, contents) };
  }

  /** How much of what would be lost is in no other place of the workspace; `undefined`: nothing. */
  goneOf({ deleted, changed, history }: Lost, id: string): Gone | undefined {
    const set = this.#store.find(id);
    const placed = new Set(set.placed.map(({ number }) => absoluteIn(set, set.operations[number])));
    const gone = {
      files: deleted.filter((path) => lookAt(bytesOfPath(path)) === undefined).length,
      changes: changed.filter((path) => placed.has(path)).length,
      history: history && placed.size > 0,
    };
    return gone.files + gone.changes > 0 || gone.history ? gone : undefined;
  }

  /**
   * Puts all that a command changed just now into the workspace, links that lead out as well: as if it had changed that
   * itself. Unless something runs on it by now, its files are moved.
   */
  async applyAll(prepared: PreparedSandbox, id: string): Promise<AppliedChanges> {
    using _lock = await this.#store.waitForLock();
    using own = this.#store.claim(id);
    const set = this.#own(id, prepared);
    const numbers = keptNumbers(set);
    const copies = copiesAt(set, []);
    if (isOfIndex(set)) {
      this.#store.save({ ...set, state: 'applied', appliedAt: Date.now() });
      return { id, state: 'applied', done: 1, notDone: [], leftBehind: [] };
    }
    const wanted = { numbers, named: new Set(numbers), copies, renames: this.#renames(set) };
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
    using _lock = await this.#store.waitForLock();
    const set = this.#toApply(id, prepared);
    const { numbers, copies } = takenBack(set);
    if (numbers.length + copies.length === 0 && !isOfIndex(set) && !this.#applier.isUnfinished(id))
      throw new SandboxError('changes.state', `nothing of the changes ${id} was taken back`);
    const again = true as const;
    const wanted = { numbers, named: new Set<number>(), copies, renames: this.#renames(set), again };
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
    const sets = this.#store.list().filter((set) => set.workspace === workspace);
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
    using _lock = await this.#store.waitForLock();
    let set = this.#own(id, prepared);
    if (!isPlaced(set) && !this.#applier.isUnfinished(id))
      throw new SandboxError('changes.state', `nothing of the changes ${id} is in the workspace`);
    if (isRejected && set.atOnce !== true) {
      set = { ...set, rejected: true };
      this.#store.save(set);
    }
    return await this.#settled(prepared, (settle) =>
      this.#withIndex(prepared, set, 'before', () => this.#applier.undo(set, this.#renames(set), settle)),
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
      ? putIndex(this.#store.directoryOf(set.id), index, which)
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
    this.#store.save(now);
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
    using _lock = await this.#store.waitForLock();
    const isDamaged = paths.length === 0 && this.#store.damaged().has(id);
    const set = isDamaged ? undefined : this.#store.find(id);
    using own = await this.#store.claimSoon(id);
    if (own === undefined)
      throw new SandboxError(
        'changes.state',
        `the changes ${id} cannot be discarded while a command runs on them`,
      );
    if (set === undefined) return await this.#store.remove(id);
    const upon = this.#store.list().find((set) => set.on === id && set.state === 'waiting');
    if (upon !== undefined)
      throw new SandboxError(
        'changes.state',
        `the changes ${upon.id} lie on ${id}, and could not be applied without it; discard them first`,
      );
    const left = this.#without(
      set,
      paths.map((path) => inSet(set, path)),
    );
    if (left === undefined) await this.#store.remove(id);
    else this.#store.save(left);
  }

  /** What is left of a change set when paths, or all that is not applied, are discarded; `undefined`: nothing. */
  #without(set: StoredSet, paths: readonly string[]): StoredSet | undefined {
    // Of what is in place by then nothing could be taken back. Without its workspace nobody can finish it.
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
    const within =
      paths.length === 0 ? new Set(waits) : this.#chosen(set, this.#described(set), paths).within;
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
      const damaged = this.#store.damaged().get(id);
      if (damaged !== undefined) unfinished.push(damaged);
      const set = this.#store.list().find((one) => one.id === id);
      if (set?.workspace !== prepared.plan.workspace) continue;
      // Another process may be in the middle of it.
      using lock = this.#store.tryLock();
      if (lock === undefined) continue;
      try {
        await this.#applier.resume(set, (effects) => void prepared.settle(effects));
      } catch (error) {
        // A full disk is no reason to run nothing more: what waits is finished by whoever looks next.
        if (!(error instanceof SandboxError)) throw error;
        unfinished.push(error.message);
      }
    }
    return unfinished;
  }

  /** Begins a preview. */
  open(workspace: string, on?: string): Promise<OpenLayer> {
    return this.#store.open(workspace, on);
  }

  /** Gives up a preview of which nothing is to be kept. */
  async abandon(opened: OpenLayer): Promise<void> {
    opened[Symbol.dispose]();
    await this.#store.remove(opened.id);
  }

  /** Removes what the kernel had beside a layer, once that is mounted no more. */
  removeWork(id: string): Promise<void> {
    return this.#store.removeWork(id);
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
    const entries = await walkTree(this.#addon, layer.upper, true);
    const below = new Below(this.#addon, workspace, await this.#walked(layer.lower));
    const operations = await operationsOf(entries, {
      ...{ upper: layer.upper, below, workspace, startedNs: beginning.at, isReplaced: opened.isElsewhere() },
    });
    opened.makeRoom();
    const index = noted && keepIndex(this.#store.directoryOf(id), noted);
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
    this.#store.save(set);
    opened[Symbol.dispose]();
    return true;
  }

  async #walked(directories: readonly string[]): Promise<readonly LowerLayer[]> {
    const layers: LowerLayer[] = [];
    for (const directory of directories) {
      const entries = await walkTree(this.#addon, directory, true);
      layers.push({ directory, entries: new Map(entries.map((entry) => [entry.path, entry])) });
    }
    return layers;
  }

  /** @throws {SandboxError} `changes.state`: it lies on one that waits. */
  #toApply(id: string, prepared: PreparedSandbox): StoredSet {
    const set = this.#own(id, prepared);
    if (set.on !== undefined && this.#store.find(set.on).state === 'waiting')
      throw new SandboxError(
        'changes.state',
        `the changes ${id} lie on ${set.on}, which waits; apply that first (sandbox-run changes apply ${set.on})`,
      );
    return set;
  }

  #own(id: string, { plan }: PreparedSandbox): StoredSet {
    const set = this.#store.find(id);
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

  #chosen(set: StoredSet, described: readonly DescribedChange[], paths: readonly string[]) {
    const chosen = chosenNumbers(described, set.operations, paths);
    const unknown = chosen.unknown.filter((path) => allCopiesAt(set, [path]).length === 0);
    if (unknown.length === 0) return chosen;
    throw new SandboxError(
      'changes.unknown',
      `nothing of the changes ${set.id} is at ${unknown.join(', ')}; see sandbox-run changes show ${set.id}`,
    );
  }

  /** Whether a directory that goes is in one place, and not in layers over each other. */
  #isWhole(set: StoredSet, { numbers: [number = -1] }: DescribedChange): boolean {
    const { isOwn, tree } = set.operations[number] ?? {};
    if (tree === undefined) return false;
    const isKept = set.placed.some((one) => one.number === number && one.isKept);
    return isOwn === true || isKept || this.#uppersBelow(set).length === 0;
  }

  /** What was there before, as far as it still is: the workspace, what was kept of it, or layers over it. */
  #belowNow(set: StoredSet, held: HeldPaths): (number: number) => Buffer | undefined {
    const kept = new Map(set.placed.map(({ number, isKept }) => [number, isKept]));
    let uppers: readonly string[] | undefined;
    return (number) => {
      const operation = set.operations[number];
      if (operation?.before === undefined) return undefined;
      if (kept.get(number) === true) return Buffer.from(`${this.#store.directoryOf(set.id)}/kept/${number}`);
      const { path, before, isOwn } = operation;
      uppers ??= this.#uppersBelow(set);
      const layered = isOwn ? [] : uppers.map((upper) => joined(upper, path));
      return layered.find((at) => lookAt(at)?.kind === before.kind) ?? held.nameOf(path);
    };
  }

  /** What a change set lies on and is not in the workspace, the topmost first. */
  #uppersBelow({ on }: StoredSet): readonly string[] {
    const below = on === undefined ? undefined : orElse(() => this.#store.find(on), undefined);
    return below?.state === 'waiting' ? [this.#store.upperOf(below.id), ...this.#uppersBelow(below)] : [];
  }

  #contentsOf(set: StoredSet): Contents & Disposable {
    const [below, above] = [new HeldPaths(set.workspace), new HeldPaths(set.workspace)];
    return {
      before: this.#belowNow(set, below),
      left: this.#leftNow(set, above),
      [Symbol.dispose]() {
        below[Symbol.dispose]();
        above[Symbol.dispose]();
      },
    };
  }

  /** What a command left, as far as it still is: in its layer, or where it was moved to. */
  #leftNow(set: StoredSet, held: HeldPaths): Contents['left'] {
    const moved = new Map(set.placed.map(({ number, isMoved, stamp }) => [number, isMoved && stamp]));
    // Most is where it was put. The sets are read once for all that is not.
    let kept: KeptPlaces | undefined;
    return (number) => {
      const { path = '' } = set.operations[number] ?? {};
      const stamp = moved.get(number);
      if (stamp === undefined) return { at: joined(this.#store.upperOf(set.id), path), isMoved: false };
      const name = held.nameOf(path);
      const isThere = name !== undefined && isSameObject(stamp, lookAt(name));
      if (isThere) return { at: name, isMoved: true };
      kept ??= this.#keptSince(set);
      const at = keptAmong(kept, path, stamp);
      return at && { at, isMoved: true };
    };
  }

  /** What this command and later ones did away with. */
  #keptSince({ workspace, at }: StoredSet): KeptPlaces {
    const found = new Map<RawPath, string[]>();
    for (const set of this.#store.list()) {
      if (set.workspace !== workspace || set.at < at) continue;
      for (const { number, isKept } of set.placed) {
        const path = set.operations[number]?.path;
        if (!isKept || path === undefined) continue;
        const kept = join(this.#store.directoryOf(set.id), 'kept', String(number));
        found.set(path, [...(found.get(path) ?? []), kept]);
      }
    }
    return found;
  }

  #renames(set: StoredSet): ReadonlyMap<number, number> {
    using contents = this.#contentsOf(set);
    return renamesAmong(set.operations, contents);
  }

  #described(set: StoredSet): readonly DescribedChange[] {
    using contents = this.#contentsOf(set);
    const placed = new Set(set.placed.map(({ number }) => number));
    return describeOperations(set.operations, contents).map(({ change, numbers }) =>
      numbers.every((number) => placed.has(number))
        ? { change: { ...change, applied: true }, numbers }
        : { change, numbers },
    );
  }

  /** Settings of git among them, of which there are no operations. */
  #allChanges(set: StoredSet): readonly DescribedChange[] {
    const ofCopies = set.copies.map(({ source, after, isTaken, isRefused }): DescribedChange => {
      const change: Change = {
        path: source.slice(set.workspace.length + 1),
        change: 'changed',
        kind: 'file',
        ...(isTaken === undefined ? {} : { applied: isTaken }),
        ...(isRefused === undefined ? {} : { refused: 'commands may not make these settings' }),
        ...(after === undefined ? { note: 'it is no configuration that can be taken over' } : {}),
      };
      return { change, numbers: [] };
    });
    return [...ofCopies, ...this.#described(set)];
  }

  #summaryOf(set: StoredSet, described: readonly DescribedChange[]): ChangeSet {
    const changes = described.map(({ change }) => change);
    const { id, at, workspace, command, appliedAt, undoneAt, on } = set;
    // Older versions said so of what came to nothing, too.
    const state = set.state === 'applied' && !isPlaced(set) ? 'waiting' : set.state;
    const missing = changes.filter(({ applied }) => applied !== true);
    const notApplied = missing.filter(isHeldUp).length;
    const left = missing.length - notApplied;
    const counts = countChanges(changes);
    return { id, at, workspace, command, state, appliedAt, undoneAt, on, counts, notApplied, left };
  }

  #detailOf(set: StoredSet, most: number): ChangeSetDetail {
    const all = this.#allChanges(set);
    using contents = this.#contentsOf(set);
    const changes = all.slice(0, most).map((one): Change => {
      const content = contentKindOf(one, set, contents);
      return content === undefined ? one.change : { ...one.change, content };
    });
    return { ...this.#summaryOf(set, all), changes, more: all.length - changes.length };
  }
}

const isHeldUp = ({ refused, conflict }: Change): boolean => refused !== undefined || conflict !== undefined;

/** How many of each kind. */
function countChanges(changes: readonly Change[]): ChangeCounts {
  const counts = { created: 0, changed: 0, deleted: 0, renamed: 0 };
  for (const { change } of changes) counts[change === 'mode' || change === 'times' ? 'changed' : change]++;
  return counts;
}

/** Where a file is kept itself, or with a directory around it. */
function keptAmong(kept: KeptPlaces, path: RawPath, stamp: Stamp): Buffer | undefined {
  for (let around = path; around !== ''; around = aroundPath(around)) {
    for (const at of kept.get(around) ?? []) {
      const found = joined(at, path.slice(around.length + 1));
      if (isSameObject(stamp, lookAt(found))) return found;
    }
  }
  return undefined;
}
