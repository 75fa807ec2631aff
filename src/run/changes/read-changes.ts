import { join } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { bytesOfPath, textOfPath } from '../../base/path-text.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { loadAddon } from '../../confine/native/load.ts';
import type { Lost, Taken } from '../../judge/index.ts';
import type { Change, ChangeCounts, ChangeSet, ChangeSetDetail, Gone } from '../../model/index.ts';
import { joined, lookAt } from '../change-sets/below.ts';
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
import { haveSameBytes, type Operation } from '../change-sets/operations.ts';
import { ChangeStore, type Keep, type StoredCopy, type StoredSet } from '../change-sets/store.ts';
import {
  aroundPath,
  bytesOf,
  isSameObject,
  isWithin,
  type RawPath,
  type Stamp,
} from '../change-sets/tree.ts';
import { stateDirectory } from '../state.ts';

/** The copies at and beneath paths, or all. */
function allCopiesAt({ copies, workspace }: StoredSet, paths: readonly string[]): readonly StoredCopy[] {
  const wanted = paths.map((path) => `${workspace}/${path.replace(/\/+$/, '')}`);
  return copies.filter(({ source }) => paths.length === 0 || wanted.some((path) => isWithin(source, path)));
}

/** Sources of the copies at these paths that have not been taken over. */
export const copiesAt = (set: StoredSet, paths: readonly string[]): readonly string[] =>
  allCopiesAt(set, paths).flatMap(({ source, isTaken }) => (isTaken ? [] : [source]));

/** A path as the change set has it, from one that a person wrote: absolute, or with a leading `./`. */
export const inSet = ({ workspace }: StoredSet, path: string): string =>
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
export const isPlaced = (set: StoredSet): boolean =>
  set.placed.length > 0 ||
  set.copies.some(({ isTaken }) => isTaken) ||
  (isOfIndex(set) && set.state === 'applied');

/** Its command changed the index of a repository outside of the workspace, and nothing else. */
export const isOfIndex = ({ operations, copies, index }: StoredSet): boolean =>
  index !== undefined && operations.length + copies.length === 0;

/** The numbers of all that was not discarded. */
export const keptNumbers = ({ operations }: StoredSet): readonly number[] =>
  operations.flatMap(({ discarded }, number) => (discarded === true ? [] : [number]));

/** Places where removed content is stored, by its former path. */
type KeptPlaces = ReadonlyMap<RawPath, readonly string[]>;

/** Reads the stored change sets of previews. */
export class ReadChanges {
  protected readonly addon: NativeAddon;
  protected readonly store: ChangeStore;

  /** `keep`: how much of what does not wait is kept when a layer is made; default: as much as `workspace.undo_keep` says by itself. */
  constructor(addon: NativeAddon = loadAddon(), directory: string = stateDirectory(), keep?: Keep) {
    this.addon = addon;
    this.store = new ChangeStore(addon, directory, keep);
  }

  /** All, the oldest first; of one workspace if it is named. */
  list(workspace?: string): readonly ChangeSet[] {
    return this.store
      .list()
      .filter((set) => workspace === undefined || set.workspace === workspace)
      .map((set) => this.#summaryOf(set, this.#allChanges(set)));
  }

  /** Why change sets cannot be read: one sentence for each. */
  damaged(): readonly string[] {
    return [...this.store.damaged().values()];
  }

  /** By id: a text that changes whenever anything in the change set does. */
  versions(): ReadonlyMap<string, string> {
    return this.store.versions();
  }

  /** Whether anything of it may wait to be applied. @throws {SandboxError} `changes.unknown`. */
  mayWait(id: string): boolean {
    const set = this.store.find(id);
    if (set.state !== 'applied') return set.state === 'waiting';
    if (copiesAt(set, []).length > 0) return true;
    const placed = new Set(set.placed.map(({ number }) => number));
    return keptNumbers(set).some((number) => !placed.has(number));
  }

  /** @throws {SandboxError} `changes.unknown`. */
  workspaceOf(id: string): string {
    return this.store.find(id).workspace;
  }

  /** @throws {SandboxError} `changes.unknown`. */
  show(id: string, most: number = Number.POSITIVE_INFINITY): ChangeSetDetail {
    return this.#detailOf(this.store.find(id), most);
  }

  /**
   * What changed, as a unified diff: of all text files, or of those at or beneath a path. `itself`: not of what is beneath,
   * which may be very much.
   * @throws {SandboxError} `changes.unknown`.
   */
  diff(id: string, asked?: string, itself = false): string {
    const set = this.store.find(id);
    const path = asked === undefined ? undefined : inSet(set, asked);
    const described = this.described(set);
    const chosen = path === undefined ? undefined : new Set(this.chosen(set, described, [path]).numbers);
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
        const text = diffOf(one, set, this.addon, contents, isEnough());
        const { objects = 0 } = one.change;
        const isShort = objects <= MOST_WITHIN || (path !== undefined && !itself);
        return isEnough(text) || !isShort || !this.#isWhole(set, one)
          ? text
          : `${text}${diffWithin(one, set, this.addon, contents, isEnough)}`;
      });
    return [...ofCopies, ...ofFiles].join('');
  }

  /**
   * Of what a command took away or put something older in the place of, what nothing else brings back, before that is in the
   * workspace; not what has another name or place now.
   */
  lostIn(id: string, lostAmong: (taken: Taken) => Lost | undefined): Lost | undefined {
    const set = this.store.find(id);
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
    const set = this.store.find(id);
    const placed = new Set(set.placed.map(({ number }) => absoluteIn(set, set.operations[number])));
    const gone = {
      files: deleted.filter((path) => lookAt(bytesOfPath(path)) === undefined).length,
      changes: changed.filter((path) => placed.has(path)).length,
      history: history && placed.size > 0,
    };
    return gone.files + gone.changes > 0 || gone.history ? gone : undefined;
  }

  protected chosen(set: StoredSet, described: readonly DescribedChange[], paths: readonly string[]) {
    const chosen = chosenNumbers(described, set.operations, paths);
    const unknown = chosen.unknown.filter((path) => allCopiesAt(set, [path]).length === 0);
    if (unknown.length === 0) return chosen;
    throw new SandboxError(
      'changes.unknown',
      `nothing of the changes ${set.id} is at ${unknown.join(', ')}; see sandbox-run changes show ${set.id}`,
    );
  }

  /** Whether all content of a removed directory is in one place, not spread over several layers. */
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
      if (kept.get(number) === true) return Buffer.from(`${this.store.directoryOf(set.id)}/kept/${number}`);
      const { path, before, isOwn } = operation;
      uppers ??= this.#uppersBelow(set);
      const layered = isOwn ? [] : uppers.map((upper) => joined(upper, path));
      return layered.find((at) => lookAt(at)?.kind === before.kind) ?? held.nameOf(path);
    };
  }

  /** What a change set lies on and is not in the workspace, the topmost first. */
  #uppersBelow({ on }: StoredSet): readonly string[] {
    const below = on === undefined ? undefined : orElse(() => this.store.find(on), undefined);
    return below?.state === 'waiting' ? [this.store.upperOf(below.id), ...this.#uppersBelow(below)] : [];
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
      if (stamp === undefined) return { at: joined(this.store.upperOf(set.id), path), isMoved: false };
      const name = held.nameOf(path);
      const isThere = name !== undefined && isSameObject(stamp, lookAt(name));
      if (isThere) return { at: name, isMoved: true };
      kept ??= this.#keptSince(set);
      const at = keptAmong(kept, path, stamp);
      return at && { at, isMoved: true };
    };
  }

  /** Places of the content that this command and later ones removed. */
  #keptSince({ workspace, at }: StoredSet): KeptPlaces {
    const found = new Map<RawPath, string[]>();
    for (const set of this.store.list()) {
      if (set.workspace !== workspace || set.at < at) continue;
      for (const { number, isKept } of set.placed) {
        const path = set.operations[number]?.path;
        if (!isKept || path === undefined) continue;
        const kept = join(this.store.directoryOf(set.id), 'kept', String(number));
        found.set(path, [...(found.get(path) ?? []), kept]);
      }
    }
    return found;
  }

  protected renames(set: StoredSet): ReadonlyMap<number, number> {
    using contents = this.#contentsOf(set);
    return renamesAmong(set.operations, contents);
  }

  protected described(set: StoredSet): readonly DescribedChange[] {
    using contents = this.#contentsOf(set);
    const placed = new Set(set.placed.map(({ number }) => number));
    return describeOperations(set.operations, contents).map(({ change, numbers }) =>
      numbers.every((number) => placed.has(number))
        ? { change: { ...change, applied: true }, numbers }
        : { change, numbers },
    );
  }

  /** All changes of a set: those of its operations, and those of git's configuration, which has copies and no operations. */
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
    return [...ofCopies, ...this.described(set)];
  }

  #summaryOf(set: StoredSet, described: readonly DescribedChange[]): ChangeSet {
    const changes = described.map(({ change }) => change);
    const { id, at, workspace, command, appliedAt, undoneAt, on } = set;
    // Older versions also wrote `applied` for a set of which nothing could be placed.
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
