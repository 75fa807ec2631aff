import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { describeShortage } from '../../base/errors/shortage.ts';
import { orElse } from '../../base/or-else.ts';
import { CHANGE_SET_STATES } from '../../base/words.ts';
import { PERMISSIONS } from '../../confine/kernel/mode-bits.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import type { PlannedLayer } from '../../confine/plan/launch-plan.ts';
import type { ChangeSetState, Policy } from '../../model/index.ts';
import { ensureStateDirectory, isTimedId, timedId } from '../../workspace/index.ts';
import { type Beginning, beginningIn } from './file-clock.ts';
import type { StoredIndex } from './index-outside.ts';
import type { Operation } from './operations.ts';
import type { Stamp } from './tree.ts';
import { journalsIn } from './unfinished.ts';

/** What was put in place, by the number of its operation. */
export interface PlacedStamp {
  readonly number: number;
  /** Missing: nothing, it was taken away. */
  readonly stamp?: Stamp;
  /** What was there before can be put back. */
  readonly isKept: boolean;
  /** It is the file of the layer itself, and no copy: the layer has it no more. */
  readonly isMoved?: true;
  /** Of such a file that was taken back: when it changed last, now that the layer has it again. */
  readonly changed?: string;
  /** And its size: what it lists may have been written anew. */
  readonly bytes?: number;
}

/** A file of which the command had a copy of its own: git's configuration. Contents in base64. */
export interface StoredCopy {
  readonly source: string;
  readonly before: string;
  readonly after?: string;
  /** It was taken over. */
  readonly isTaken?: true;
  /** Nothing of it was: commands may not make such settings. */
  readonly isRefused?: true;
  /** It was taken over and taken back. */
  readonly undone?: true;
}

/** A change set as it is stored. */
export interface StoredSet {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly workspace: string;
  readonly command: string;
  readonly on?: string;
  readonly state: ChangeSetState;
  /** When something of it was applied the last time, in milliseconds since 1970; missing: it was not, or an older version did it. */
  readonly appliedAt?: number | undefined;
  /**
   * When it was taken back, or a part of it, in milliseconds since 1970; missing: it was not, or it was applied since, or an
   * older version did it.
   */
  readonly undoneAt?: number | undefined;
  /** It was applied when its command ended. Missing: it was a preview, or an older version did it. */
  readonly atOnce?: true;
  /** A person named it to take it back. */
  readonly rejected?: true | undefined;
  /** Redo applied it the last time: what can be applied again is not older for that. */
  readonly again?: true | undefined;
  readonly operations: readonly Operation[];
  readonly copies: readonly StoredCopy[];
  /** The index of a repository that lies outside of the workspace, if the command changed it; it changed at once. */
  readonly index?: StoredIndex;
  readonly placed: readonly PlacedStamp[];
}

/** A change set whose command runs, or will. */
export interface OpenLayer extends Disposable {
  readonly id: string;
  readonly layer: PlannedLayer;
  /** @throws {TypeError} before `begin`. */
  readonly beginning: Beginning;
  /**
   * To be called before the command begins. False: the workspace is not the directory that it was, and the layer is of no
   * use.
   */
  begin(): Promise<boolean>;
  /** Another directory is in the place of the workspace. */
  isElsewhere(): boolean;
  /** The command changed nothing. */
  isUntouched(): boolean;
  /** Gives back what was kept free for its description. */
  makeRoom(): void;
}

/** How long change sets that wait are kept, in milliseconds, and how many of those that do not wait, or in vain: the oldest go first. */
const HISTORY = { waitingMs: 30 * 86_400_000, sets: 200 };

/**
 * How long change sets that do not wait are kept (`workspace.undo_keep`), in milliseconds, and how much of what they hold, in bytes: the
 * oldest go first, the last one never for that.
 */
export type Keep = Policy['workspace']['undoKeep'];
const USUAL_KEEP: Keep = { ms: 7 * 86_400_000, bytes: 2 * 1024 ** 3 };

/** What an object takes besides its content, about: an inode, and its lines in the description. */
const OBJECT_BYTES = 4_096;

/** A change set from later than this was made before the clock was set back. */
const SKEW_MS = 86_400_000;

/** How often it is looked for what is too old: every set has to be read for that. */
const TRIM_MS = 60_000;

/** What the name of a directory ends in that is no change set any more, and is about to be removed. */
const GONE = '.gone';

const LOCK_MS = 30_000;
/** A process that is just being started has our descriptors for a moment, and the locks with them. */
const MOMENT_MS = 500;
const LOOK_MS = 10;

/** What a command leaves of a disk is enough to say what it did: this is given back when it has ended. */
const ROOM = Buffer.alloc(128 * 1024);

/** A directory without a set that is younger may be about to get one. */
const YOUNG_MS = 60_000;

/** Change sets in the state directory, where nothing is made before there is one. */
export class ChangeStore {
  readonly root: string;
  readonly #addon: NativeAddon;
  readonly #stateDirectory: string;
  readonly #keep: Keep;
  /** Milliseconds since 1970. */
  #trimmedAt = 0;
  /** What goes because it is too old. */
  #trimming: Promise<unknown> = Promise.resolve();

  constructor(addon: NativeAddon, stateDirectory: string, keep: Keep = USUAL_KEEP) {
    this.#addon = addon;
    this.#keep = keep;
    this.#stateDirectory = stateDirectory;
    this.root = join(stateDirectory, 'changes');
  }

  directoryOf(id: string): string {
    return join(this.root, id);
  }

  upperOf(id: string): string {
    return join(this.root, id, 'upper');
  }

  /**
   * Makes a layer for a command.
   * @throws {SandboxError} `changes.unknown`, `changes.state`, `state.unusable`, `policy.path_missing`: the workspace has gone.
   */
  async open(workspace: string, on?: string): Promise<OpenLayer> {
    ensureStateDirectory(this.#stateDirectory);
    const root = ensureStateDirectory(this.root);
    if (Date.now() - this.#trimmedAt > TRIM_MS) this.#trim();
    const below = on === undefined ? undefined : await this.#holdChain(on, workspace);
    try {
      const before = statSync(workspace, { throwIfNoEntry: false });
      if (before === undefined)
        throw new SandboxError('policy.path_missing', `the workspace ${workspace} is not there any more`);
      const id = timedId(Date.now());
      const directory = join(root, id);
      const lock = await this.#makeRoomFor(directory);
      const upper = join(directory, 'upper');
      const lower = below?.ids.map((one) => join(root, one, 'upper')) ?? [];
      const layer = { lower, upper, work: join(directory, 'work') };
      return openLayer({ id, lock, below, workspace, before, layer });
    } catch (error) {
      below?.[Symbol.dispose]();
      throw error;
    }
  }

  /** Makes the directory of a layer. Returns its lock. On a full disk it waits until what is too old has gone. */
  async #makeRoomFor(directory: string): Promise<number> {
    try {
      return this.#makeDirectory(directory);
    } catch {
      await this.#trimming;
      return this.#makeDirectory(directory);
    }
  }

  #makeDirectory(directory: string): number {
    let lock: number | undefined;
    try {
      for (const name of ['', 'upper', 'work', 'kept']) mkdirSync(join(directory, name), { mode: 0o700 });
      lock = openSync(join(directory, 'lock'), 'w', 0o600);
      // Who looks just now whether somebody left it takes it away.
      if (!this.#addon.tryLock(lock)) throw new Error('another process has its lock');
      writeFileSync(lock, ROOM);
      return lock;
    } catch (error) {
      if (lock !== undefined) closeSync(lock);
      rmSync(directory, { recursive: true, force: true });
      throw unusable(directory, error);
    }
  }

  /**
   * Keeps the change sets that a command is to run on, and those that they lie on, as far as they are not in the workspace.
   * @throws {SandboxError} as `open`, and `changes.busy`.
   */
  async #holdChain(id: string, workspace: string): Promise<HeldChain> {
    const ids: string[] = [];
    const locks: number[] = [];
    const letGo = () => locks.splice(0).forEach(closeSync);
    try {
      for (let next: string | undefined = id; next !== undefined; ) {
        this.find(next);
        const lock = this.#openLock(next);
        locks.push(lock);
        if (!(await patiently(() => this.#addon.tryLock(lock, true)))) throw busy();
        // By then it may be in the workspace, or gone.
        const set: StoredSet = this.find(next);
        if (!isBelow(set, workspace)) break;
        ids.push(next);
        next = set.on;
      }
      return { ids, [Symbol.dispose]: letGo };
    } catch (error) {
      letGo();
      throw error;
    }
  }

  /** Keeps commands from beginning on a change set. `undefined`: one runs on it. @throws {SandboxError} `state.unusable`. */
  claim(id: string): Disposable | undefined {
    let lock: number;
    try {
      lock = openSync(this.#lockOf(id), 'r');
    } catch (error) {
      // Without it no command can begin on it.
      if (errnoOf(error) === 'ENOENT') return { [Symbol.dispose]: () => {} };
      throw unusable(this.#lockOf(id), error);
    }
    if (this.#addon.tryLock(lock)) return { [Symbol.dispose]: () => closeSync(lock) };
    closeSync(lock);
    return undefined;
  }

  /** The same, once commands that have ended let go of it. */
  claimSoon(id: string): Promise<Disposable | undefined> {
    return patiently(() => this.claim(id), MOMENT_MS);
  }

  /** @throws {SandboxError} `changes.unknown`: it went just now; `state.unusable`. */
  #openLock(id: string): number {
    try {
      return openSync(this.#lockOf(id), 'r');
    } catch (error) {
      this.find(id);
      throw unusable(this.#lockOf(id), error);
    }
  }

  #lockOf(id: string): string {
    return join(this.directoryOf(id), 'lock');
  }

  save(set: StoredSet): void {
    const path = join(this.directoryOf(set.id), 'set.json');
    writeFileSync(`${path}.new`, JSON.stringify(set), { mode: 0o600, flush: true });
    renameSync(`${path}.new`, path);
  }

  /** Where each step of applying or taking back is noted until all of it is done. */
  journalOf(id: string): string {
    return join(journalsIn(this.#stateDirectory), id);
  }

  /**
   * Keeps other processes from applying or taking back meanwhile.
   * @throws {SandboxError} `changes.busy`.
   */
  lock(): Disposable {
    const lock = this.tryLock();
    if (lock !== undefined) return lock;
    throw busy();
  }

  /** The same, once nobody else does, for whom half a minute is enough. */
  async waitForLock(): Promise<Disposable> {
    const lock = await patiently(() => this.tryLock());
    if (lock !== undefined) return lock;
    throw busy();
  }

  /** The same; `undefined`: another process does. */
  tryLock(): Disposable | undefined {
    ensureStateDirectory(this.#stateDirectory);
    ensureStateDirectory(this.root);
    ensureStateDirectory(journalsIn(this.#stateDirectory));
    const lock = openSync(join(this.root, 'lock'), 'a', 0o600);
    if (this.#addon.tryLock(lock)) return { [Symbol.dispose]: () => closeSync(lock) };
    closeSync(lock);
    return undefined;
  }

  /** All that can be read, the oldest first. */
  list(): readonly StoredSet[] {
    const sets = this.#names().flatMap((id) => this.#readOrNot(id) ?? []);
    return sets.toSorted((one, other) => one.at - other.at);
  }

  /** Why some cannot be read, by id: a sentence each. */
  damaged(): ReadonlyMap<string, string> {
    const found = this.#names().flatMap((id): (readonly [string, string])[] => {
      try {
        this.#read(id);
        return [];
      } catch (error) {
        return [[id, errorMessage(error)]];
      }
    });
    return new Map(found);
  }

  /** By id, of each a text that is another one as soon as something in it is: nothing is read. */
  versions(): ReadonlyMap<string, string> {
    const found = this.#names().flatMap((id): (readonly [string, string])[] => {
      const info = statSync(join(this.directoryOf(id), 'set.json'), { bigint: true, throwIfNoEntry: false });
      return info === undefined ? [] : [[id, `${info.ino}:${info.ctimeNs}`]];
    });
    return new Map(found);
  }

  /** @throws {SandboxError} `changes.unknown`. */
  find(id: string): StoredSet {
    const set = isTimedId(id) ? this.#read(id) : undefined;
    if (set !== undefined) return set;
    throw new SandboxError(
      'changes.unknown',
      `there are no changes ${JSON.stringify(id)}; see sandbox-run changes list`,
    );
  }

  remove(id: string): Promise<void> {
    rmSync(this.journalOf(id), { force: true });
    return this.#removeTree(this.directoryOf(id));
  }

  /** Removes what the kernel had beside a layer, which nothing uses any more. */
  removeWork(id: string): Promise<void> {
    return this.#removeTree(join(this.directoryOf(id), 'work'));
  }

  /** overlayfs leaves a directory of mode 0, and commands what they shut: both are made readable. */
  async #removeTree(directory: string): Promise<void> {
    await new Promise<void>((done) => this.#addon.emptyDirectory(directory, () => done()));
    rmSync(directory, { recursive: true, force: true });
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.root).filter(isTimedId).sort();
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return [];
      throw unusable(this.root, error);
    }
  }

  /** `undefined`: there is none, or it is damaged. */
  #readOrNot(id: string): StoredSet | undefined {
    return orElse(() => this.#read(id), undefined);
  }

  /** @throws {SandboxError} `state.unusable`. */
  #read(id: string): StoredSet | undefined {
    const path = join(this.directoryOf(id), 'set.json');
    try {
      return asSet(id, JSON.parse(readFileSync(path, 'utf8')));
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined;
      const why = errnoOf(error) ?? 'it is damaged';
      throw new SandboxError(
        'state.unusable',
        `the changes ${id} cannot be read: ${path} (${why}); what they hold is beside it in upper and kept, and sandbox-run changes discard ${id} removes them`,
        { cause: error },
      );
    }
  }

  /**
   * Forgets what is too old, and what a process left that was killed while its command ran. What somebody else applies or
   * takes back just now is in use; it is looked at again with the next command.
   */
  #trim(): void {
    using lock = this.tryLock();
    if (lock === undefined) return;
    const now = Date.now();
    this.#trimmedAt = now;
    const damaged = this.damaged();
    const sets = this.#names().flatMap((id) => (damaged.has(id) ? [] : { id, set: this.#readOrNot(id) }));
    const tooMany = beyondHistory(
      sets.flatMap(({ set }) => (set === undefined ? [] : [set])),
      now,
      this.#keep.bytes,
    );
    // Without them it could not be applied.
    const needed = new Set(sets.flatMap(({ set }) => (set?.state === 'waiting' ? set.on : undefined) ?? []));
    const old = sets.filter(({ id, set }) => {
      // It is being applied or taken back, or will be finished.
      if (existsSync(this.journalOf(id)) || needed.has(id)) return false;
      if (set === undefined) return this.#isAbandoned(id, now);
      return now - set.at > (set.state === 'waiting' ? HISTORY.waitingMs : this.#keep.ms) || tooMany.has(id);
    });
    for (const { id } of old) this.#setAside(id);
    // What cannot be removed now is tried again with the next one.
    const gone = readdirSync(this.root).filter((name) => name.endsWith(GONE));
    this.#trimming = Promise.allSettled(gone.map((name) => this.#removeTree(join(this.root, name))));
  }

  /** From now on it is no change set, which takes no time: to remove it does. */
  #setAside(id: string): void {
    const setAside = () => {
      using own = this.claim(id);
      if (own !== undefined) renameSync(this.directoryOf(id), `${this.directoryOf(id)}${GONE}`);
    };
    // What is in use, or cannot be had now, is tried again with the next one.
    orElse(setAside, undefined);
  }

  #isAbandoned(id: string, now: number): boolean {
    try {
      const lock = openSync(this.#lockOf(id), 'r');
      try {
        // Whoever made it lets go of it when it has its description, which may be since it was looked for.
        return this.#addon.tryLock(lock) && !existsSync(join(this.directoryOf(id), 'set.json'));
      } finally {
        closeSync(lock);
      }
    } catch {
      const made = statSync(this.directoryOf(id), { throwIfNoEntry: false })?.ctimeMs ?? now;
      return now - made > YOUNG_MS;
    }
  }
}

/** Change sets that stay for the command that runs on them, the topmost first. */
interface HeldChain extends Disposable {
  readonly ids: readonly string[];
}

const busy = (): SandboxError =>
  new SandboxError(
    'changes.busy',
    'another process applies changes or takes some back; try again when it is done',
  );

/** What is asked for again and again, for half a minute unless it is said; `undefined` or false: it is not to be had. */
async function patiently<T>(attempt: () => T, forMs = LOCK_MS): Promise<T> {
  for (let waited = 0; waited < forMs; waited += LOOK_MS) {
    const found = attempt();
    if (found) return found;
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
  return attempt();
}

/** Whether a command that is to run on it needs its layer: it is not in the workspace. @throws {SandboxError} `changes.state`. */
function isBelow({ id, workspace: itsOwn, state, operations }: StoredSet, workspace: string): boolean {
  if (itsOwn !== workspace)
    throw new SandboxError('changes.state', `the changes ${id} are of another workspace, ${itsOwn}`);
  if (state === 'undone')
    throw new SandboxError(
      'changes.state',
      `the changes ${id} were taken back; run the command without --on`,
    );
  if (state === 'applied') return false;
  // Its layer still has what was discarded.
  if (operations.some(({ discarded }) => discarded === true))
    throw new SandboxError(
      'changes.state',
      `a part of the changes ${id} was discarded; apply the rest, and run the command without --on`,
    );
  return true;
}

/** The latest time that a date can have. */
const LATEST_MS = 8.64e15;

/** By hand, because it is read before each sandbox. @throws {TypeError} where it is none. */
function asSet(id: string, value: StoredSet): StoredSet {
  const isOperation = ({ path, isOwn, after, before }: Operation) =>
    typeof path === 'string' &&
    typeof isOwn === 'boolean' &&
    [after, before].every((one) => one === undefined || typeof one?.kind === 'string');
  const isWhole =
    value.id === id &&
    [value.workspace, value.command].every((text) => typeof text === 'string') &&
    typeof value.at === 'number' &&
    Math.abs(value.at) <= LATEST_MS &&
    CHANGE_SET_STATES.includes(value.state) &&
    value.operations.every(isOperation) &&
    value.placed.every(({ number }) => value.operations[number] !== undefined) &&
    value.copies.every(({ source }) => typeof source === 'string') &&
    (value.index === undefined ||
      [value.index.directory, value.index.index].every((text) => typeof text === 'string'));
  if (isWhole) return value;
  throw new TypeError('it is not what sandbox-run wrote');
}

/** Which change sets go because newer ones are kept. */
function beyondHistory(sets: readonly StoredSet[], now: number, most: number): ReadonlySet<string> {
  const madeAt = ({ at }: StoredSet) => (at > now + SKEW_MS ? at - Number.MAX_SAFE_INTEGER : at);
  const newest = sets
    .filter((set) => set.state !== 'waiting' || isStuck(set))
    .toSorted((one, other) => madeAt(other) - madeAt(one));
  let bytes = 0;
  const beyond = newest.filter((set, at) => {
    bytes += heldBytes(set);
    return at >= HISTORY.sets || (at > 0 && bytes > most);
  });
  return new Set(beyond.map(({ id }) => id));
}

/** It waits for nobody: nothing of it can be applied. */
const isStuck = ({ operations, copies }: StoredSet): boolean =>
  copies.length === 0 &&
  operations.every(({ conflict, discarded }) => conflict !== undefined || discarded === true);

/** What a command left, and what was there before. */
function heldBytes({ operations, placed, index }: StoredSet): number {
  const left = operations.reduce(
    (sum, { after }) => sum + OBJECT_BYTES + (after?.bytes ?? 0),
    index?.bytes ?? 0,
  );
  const kept = placed.filter(({ isKept }) => isKept).map(({ number }) => operations[number]);
  return kept.reduce((sum, one) => sum + keptBytes(one), left);
}

const keptBytes = ({ tree, before }: Partial<Operation> = {}): number =>
  tree === undefined ? (before?.bytes ?? 0) : tree.bytes + tree.objects * OBJECT_BYTES;

function openLayer({
  lock,
  below,
  workspace,
  before: { mode, uid, gid, ino, dev },
  ...layer
}: Pick<OpenLayer, 'id' | 'layer'> & {
  readonly lock: number;
  readonly below: HeldChain | undefined;
  readonly workspace: string;
  readonly before: Stats;
}): OpenLayer {
  const { upper } = layer.layer;
  // What a command sees of the workspace's own directory comes from here.
  try {
    chownSync(upper, uid, gid);
  } catch (error) {
    if (errnoOf(error) !== 'EPERM') throw error;
  }
  chmodSync(upper, mode & PERMISSIONS);
  const isSame = (now: Stats | undefined): now is Stats => now?.ino === ino && now.dev === dev;
  let isOpen = true;
  let beginning: Beginning | undefined;
  let found = lstatSync(upper, { bigint: true });
  return {
    ...layer,
    get beginning() {
      if (beginning === undefined) throw new TypeError('its command has not begun');
      return beginning;
    },
    async begin() {
      beginning = await beginningIn(workspace, lock);
      if (beginning === undefined) throw unusable(upper, 'the clock of its file system stands still');
      found = lstatSync(upper, { bigint: true });
      const now = statSync(workspace, { throwIfNoEntry: false });
      return isSame(now) && now.mode === mode && now.uid === uid && now.gid === gid;
    },
    isElsewhere: () => !isSame(statSync(workspace, { throwIfNoEntry: false })),
    isUntouched() {
      const { mode, ctimeNs } = lstatSync(upper, { bigint: true });
      return mode === found.mode && ctimeNs === found.ctimeNs && readdirSync(upper).length === 0;
    },
    makeRoom() {
      ftruncateSync(lock);
    },
    [Symbol.dispose]() {
      if (isOpen) closeSync(lock);
      isOpen = false;
      below?.[Symbol.dispose]();
    },
  };
}

function unusable(path: string, error: unknown): SandboxError {
  const why = describeShortage(error) ?? `${path} cannot be used (${errnoOf(error) ?? String(error)})`;
  return new SandboxError('state.unusable', why, { cause: error });
}
