import { randomBytes } from 'node:crypto';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { textOfPath } from '../../base/path-text.ts';
import type { NativeAddon, NativeEffects } from '../../confine/native/contract.ts';
import {
  CONFIG_BYTES,
  inDirectoryOf,
  type NativeChangedCopy,
  type NativeChangedEntry,
  readRegular,
} from '../../workspace/index.ts';
import { joined, lookAt } from './below.ts';
import { gitDirectoriesThatStay, gitDirectoryOf, type PlacedAt, withListed } from './git-directories.ts';
import type { Operation } from './operations.ts';
import { Placer } from './place.ts';
import type { Begun } from './places.ts';
import { settingsNow, settingsToTake } from './settings.ts';
import type { ChangeStore, PlacedStamp, StoredCopy, StoredSet } from './store.ts';
import { TakerBack } from './take-back.ts';
import { bytesOf, isSameObject, type RawPath, rawPath, shownPath } from './tree.ts';

/** An operation that was not carried out, and why. */
export interface NotPlaced {
  readonly path: RawPath;
  readonly why: string;
}

/** What came of applying or taking back. */
export interface Applied {
  readonly set: StoredSet;
  /** How many changes were carried out, as a person counts them. */
  readonly done: number;
  readonly notPlaced: readonly NotPlaced[];
}

/** What is to be done, and is noted before the first step of it. */
export interface Intent {
  readonly doing: 'apply' | 'undo';
  readonly numbers: readonly number[];
  /** Those that a person named one by one. */
  readonly named: readonly number[];
  /** Part of the names of what is being made, which a command must not know beforehand: it would take them. */
  readonly token: string;
  /** Paths of the copies that are taken over, too. */
  readonly copies: readonly string[];
  /** Of files that were renamed: the numbers of what is taken away, and of what is to be in its place. */
  readonly renames?: readonly (readonly [from: number, to: number])[];
  /** Nothing else needs the files of the layer: they are moved where they can be. */
  readonly moves?: true;
  /** It was in the workspace before, and a person has it come again. */
  readonly again?: true;
}

/** What of a change set is to be applied: the same, before it is noted. */
interface Wanted extends Pick<Intent, 'numbers' | 'copies' | 'moves' | 'again'> {
  readonly named: ReadonlySet<number>;
  readonly renames: Renames;
}

/** As `renamesAmong` finds them. */
type Renames = ReadonlyMap<number, number>;

/** Why a file cannot be applied again that the layer did not get back. */
const NOT_LEFT = 'what the command left went or changed after it was applied, and is not kept';

/** Looks at what came into the workspace, as after a command. */
export type Settle = (effects: NativeEffects) => void;

/**
 * Applies change sets and takes them back. Each step is noted in a journal, so that what a crash cut short is finished by
 * whoever looks next.
 */
export class Applier {
  readonly #store: ChangeStore;
  readonly #addon: NativeAddon;

  constructor(addon: NativeAddon, store: ChangeStore) {
    this.#addon = addon;
    this.#store = store;
  }

  /** Whether a crash cut something short. */
  isUnfinished(id: string): boolean {
    return existsSync(this.#store.journalOf(id));
  }

  async apply(set: StoredSet, wanted: Wanted, settle: Settle): Promise<Applied> {
    const { numbers, named, copies, moves, again } = wanted;
    const begun = await this.resume(set, settle);
    const now = begun?.set ?? set;
    const placed = new Set(now.placed.map(({ number }) => number));
    const left = numbers.filter((number) => !placed.has(number));
    return this.#begin(
      now,
      begun,
      {
        ...{ doing: 'apply', named: [...named], token: newToken(), copies },
        ...together(left, wanted.renames),
        ...(moves === true ? { moves } : {}),
        ...(again === true ? { again } : {}),
      },
      settle,
    );
  }

  async undo(set: StoredSet, renames: Renames, settle: Settle): Promise<Applied> {
    const begun = await this.resume(set, settle);
    const now = begun?.set ?? set;
    const { id, workspace } = now;
    const placed = placedOf(now);
    const others = () =>
      this.#store
        .list()
        .flatMap((one) => (one.id === id || one.workspace !== workspace ? [] : placedOf(one)));
    const stay = await gitDirectoriesThatStay(this.#addon, workspace, placed, others);
    const stays = (path: RawPath) => stay.has(path) || stay.has(gitDirectoryOf(path) ?? '');
    const numbers = placed.filter(({ path }) => !stays(path)).map(({ number }) => number);
    const copies = now.copies.filter(({ isTaken }) => isTaken).map(({ source }) => source);
    const intent = { doing: 'undo', named: [], token: newToken(), copies } as const;
    const undone = await this.#begin(now, begun, { ...intent, ...together(numbers, renames) }, settle);
    const notPlaced = [...[...stay].map(([path, why]) => ({ path, why })), ...undone.notPlaced];
    return { ...undone, notPlaced };
  }

  /** Finishes what a crash cut short; `undefined`: nothing was. */
  async resume(set: StoredSet, settle: Settle): Promise<Applied | undefined> {
    if (!this.isUnfinished(set.id)) return undefined;
    const { intent, ...found } = this.#readJournal(set.id);
    return this.#carryOut(set, intent, found, settle);
  }

  /** `begun`: what was finished just now of what had stopped in the middle. */
  async #begin(set: StoredSet, begun: Applied | undefined, intent: Intent, settle: Settle): Promise<Applied> {
    const already = begun?.done ?? 0;
    if (intent.numbers.length === 0 && intent.copies.length === 0)
      return { set, done: already, notPlaced: [] };
    try {
      this.#noteIntent(set.id, intent);
    } catch (error) {
      throw new SandboxError(
        'state.unusable',
        `what is to be done with the changes ${set.id} cannot be noted, so nothing was (${errorMessage(error)})`,
        { cause: error },
      );
    }
    const applied = await this.#carryOut(set, intent, undefined, settle);
    return { ...applied, done: already + applied.done };
  }

  /** `found`: what a process had noted that was cut short; `undefined`: it was not begun before. */
  async #carryOut(
    set: StoredSet,
    intent: Intent,
    found: Noted | undefined,
    settle: Settle,
  ): Promise<Applied> {
    const notPlaced: NotPlaced[] = [];
    const steps = [...(found?.steps ?? [])];
    const done = new Map(steps.map((step) => [step.number, step]));
    let touched: ReadonlyMap<number, string>;
    const kept = join(this.#store.directoryOf(set.id), 'kept');
    mkdirSync(kept, { recursive: true, mode: 0o700 });
    const { workspace, operations } = set;
    const upper = this.#store.upperOf(set.id);
    const placedBefore = new Map(set.placed.map((one) => [one.number, one]));
    try {
      using journal = this.#openJournal(set.id);
      const { token, moves = false } = intent;
      const begun = found?.begun;
      const note = (line: PlacedStamp | Begun) => {
        journal.note(line);
        if (!isStep(line)) begun?.set(line.number, line);
      };
      const parts = { addon: this.#addon, workspace, upper, kept, token, moves, begun, note };
      using places = intent.doing === 'apply' ? new Placer(parts) : new TakerBack(parts);
      touched = places.touched;
      for (const { number } of set.placed) places.noteLost(operations[number]);
      const last = steps.at(-1)?.number ?? -1;
      if (operations[last] !== undefined) await places.tidyAfter(operations[last], last);
      const failed = new Set<number>();
      const otherHalves = otherHalvesOf(intent);
      for (const number of intent.doing === 'apply' ? intent.numbers : intent.numbers.toReversed()) {
        const operation = operations[number];
        if (operation === undefined) continue;
        if (done.has(number)) {
          places.noteDone(operation, done.get(number)?.stamp);
          continue;
        }
        const was = placedBefore.get(number);
        const other = otherHalves.get(number) ?? -1;
        const placed = failed.has(other)
          ? { conflict: halfOf(intent, operations[other]) }
          : places instanceof Placer
            ? await places.put(operation, number, intent.named.includes(number))
            : await places.takeBack(operation, was ?? { number, isKept: false });
        if ('conflict' in placed) {
          failed.add(number);
          notPlaced.push({ path: operation.path, why: placed.conflict });
          continue;
        }
        const { path } = operation;
        const stamp = placed.stamp && withListed(path, placed.stamp, joined(workspace, path));
        const step = { number, ...placed, ...(stamp && { stamp }) };
        steps.push(step);
        note(step);
        await places.tidy();
      }
      places.finish();
    } catch (error) {
      // It may be long until this goes on.
      if (intent.doing === 'apply') settle(effectsOf(set, steps, []));
      throw incomplete(set.id, intent, error);
    }
    const copies: NativeChangedCopy[] = [];
    for (const stored of set.copies.filter(({ source }) => intent.copies.includes(source))) {
      const { copy, changed } = settingsToTake(workspace, stored, intent.doing === 'undo');
      copies.push(copy);
      const path = rawPath(stored.source.slice(workspace.length + 1));
      for (const key of changed) notPlaced.push({ path, why: `${key} changed` });
    }
    // What comes back was there before this program looked at anything, but for settings, which are changed one by one.
    if (intent.doing === 'undo' && copies.length > 0) settle({ copies });
    const placed =
      intent.doing === 'undo' ? steps : stampedAnew(set, steps, () => settle(effectsOf(set, steps, copies)));
    const came = copies.filter(
      ({ source, before, after }) => after !== undefined && !settingsNow(workspace, source).equals(before),
    );
    const refused = copies.filter((one) => one.after?.equals(one.before) !== true && !came.includes(one));
    const after = this.#after(withTouched(set, touched), intent, placed, refused);
    try {
      this.#store.save(after);
    } catch (error) {
      throw incomplete(set.id, intent, error);
    }
    rmSync(this.#store.journalOf(set.id), { force: true });
    return { set: after, done: changesMade(set, steps, intent) + came.length, notPlaced };
  }

  #after(
    set: StoredSet,
    { doing, copies, again }: Intent,
    steps: readonly PlacedStamp[],
    refused: readonly NativeChangedCopy[],
  ): StoredSet {
    if (doing === 'apply') {
      const taken = set.copies.map((one): StoredCopy => {
        if (!copies.includes(one.source)) return one;
        const { isRefused: _, undone: __, ...wanted } = one;
        const isRefused = refused.some(({ source }) => source === one.source);
        return { ...wanted, ...(isRefused ? { isRefused } : { isTaken: true }) };
      });
      // A crash may have come just after they were stored.
      const known = new Set(set.placed.map(({ number }) => number));
      const all = [...set.placed, ...steps.filter(({ number }) => !known.has(number))];
      // Of what nothing came nothing can be taken back.
      if (all.length === 0 && !taken.some(({ isTaken }) => isTaken)) return { ...set, copies: taken };
      return {
        ...{
          ...set,
          state: 'applied',
          appliedAt: Date.now(),
          undoneAt: undefined,
          rejected: undefined,
          again,
        },
        ...{ placed: all, copies: taken, operations: set.operations.map(withoutUndone(all)) },
      };
    }
    const wasMoved = new Set(set.placed.flatMap(({ number, isMoved }) => (isMoved ? [number] : [])));
    const back = new Map(steps.map((step) => [step.number, step]));
    const placed = set.placed.filter(({ number }) => !back.has(number));
    // What was put back may be taken back and put back again by others before this is applied again: it is known by its
    // content from now on, and not by its number.
    const operations = set.operations.map((operation, number) => {
      const step = back.get(number);
      if (step === undefined) return operation;
      const { stamp, changed, bytes = operation.after?.bytes ?? 0 } = step;
      // It had been there by somebody's will.
      const { refused: _, ...wanted } = operation;
      const { before, after } = wanted;
      return {
        ...{ ...wanted, undone: true as const },
        ...(wanted.tree === undefined ? {} : { tree: { ...wanted.tree, identity: undefined } }),
        ...(stamp === undefined || before === undefined || before.kind === 'directory'
          ? {}
          : { before: stamp, isOwn: false }),
        ...(after === undefined || changed === undefined ? {} : { after: { ...after, changed, bytes } }),
        ...(wasMoved.has(number) && changed === undefined ? { conflict: NOT_LEFT } : {}),
      };
    });
    const left = set.copies.map(({ isTaken, ...one }) => (isTaken ? { ...one, undone: true as const } : one));
    const isAny = steps.length > 0 || copies.length > 0;
    const now = { ...set, placed, operations, copies: left, ...(isAny ? { undoneAt: Date.now() } : {}) };
    return placed.length > 0 ? now : { ...now, state: 'undone' };
  }

  /**
   * A step that cannot be read counts as not noted: whoever does it again finds that it is done. Cuts off the last one where
   * only a part of it was written, because the next one comes behind it.
   * @throws {SandboxError} `state.unusable`: nobody knows what was to be done.
   */
  #readJournal(id: string): Noted & { readonly intent: Intent } {
    const path = this.#store.journalOf(id);
    try {
      const text = readFileSync(path, 'utf8');
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      if (whole.length < text.length) truncateSync(path, Buffer.byteLength(whole));
      const [intent, ...noted] = whole.split('\n').map((line) => orElse(() => JSON.parse(line), undefined));
      if (!isIntent(intent)) throw new TypeError('it is damaged');
      const begun = noted.filter((one) => Number.isSafeInteger(one?.number) && !isStep(one));
      return {
        intent,
        steps: noted.filter(isStep),
        begun: new Map(begun.map((one: Begun) => [one.number, one])),
      };
    } catch (error) {
      throw new SandboxError(
        'state.unusable',
        `the changes ${id} cannot be finished, because the journal ${path} cannot be used (${errorMessage(error)}); look at them (sandbox-run changes show ${id}), and remove that file to leave the workspace as it is`,
        { cause: error },
      );
    }
  }

  /** Whole or not at all: a journal that is there says what is to be done. */
  #noteIntent(id: string, intent: Intent): void {
    const path = this.#store.journalOf(id);
    writeFileSync(`${path}.new`, `${JSON.stringify(intent)}\n`, { mode: 0o600, flush: true });
    renameSync(`${path}.new`, path);
  }

  #openJournal(id: string): Disposable & { readonly note: (line: PlacedStamp | Begun) => void } {
    const file = openSync(this.#store.journalOf(id), 'a', 0o600);
    return {
      note: (line) => writeFileSync(file, `${JSON.stringify(line)}\n`),
      [Symbol.dispose]: () => closeSync(file),
    };
  }
}

/** What stands in a journal behind its first line: what was begun, by its number, and what was done. */
interface Noted {
  readonly steps: readonly PlacedStamp[];
  readonly begun: Map<number, Begun>;
}

/** What of a change set is in the workspace. */
const placedOf = ({ placed, operations }: StoredSet): readonly (PlacedAt & { readonly number: number })[] =>
  placed.map(({ number, stamp, isKept }) => {
    const { path = '', before, after } = operations[number] ?? {};
    const isMerged = before?.kind === 'directory' && after?.kind === 'directory';
    return { number, stamp, path, isLost: before !== undefined && !isMerged && !isKept };
  });

/** A file that was renamed is put in its new place before it is taken away from the old one. */
function together(numbers: readonly number[], found: Renames): Pick<Intent, 'numbers' | 'renames'> {
  const wanted = new Set(numbers);
  const renames = [...found].filter(([to, from]) => wanted.has(to) && wanted.has(from));
  const fromOf = new Map(renames);
  const later = new Set(fromOf.values());
  return {
    numbers: numbers
      .filter((number) => !later.has(number))
      .flatMap((number) => [number, fromOf.get(number) ?? []].flat()),
    renames: renames.map(([to, from]) => [from, to] as const),
  };
}

/** What has to be done first, so that nothing is nowhere: undo goes backwards. */
const otherHalvesOf = ({ renames = [], doing }: Intent): Renames =>
  new Map(doing === 'apply' ? renames : renames.map(([from, to]) => [to, from]));

function halfOf({ doing }: Intent, other: Operation | undefined): string {
  const path = shownPath(other?.path ?? '');
  return doing === 'apply'
    ? `it was renamed to ${path}, which is not in its place`
    : `it was renamed from ${path}, which does not come back`;
}

const incomplete = (id: string, { doing }: Intent, error: unknown): SandboxError =>
  new SandboxError(
    'changes.incomplete',
    `the changes ${id} are ${doing === 'apply' ? 'applied' : 'taken back'} in part (${errorMessage(error)}); make room or give way, and run sandbox-run changes ${doing} ${id} again: it goes on where this stopped`,
    { cause: error },
  );

function isIntent(value: Intent | undefined): value is Intent {
  if (value?.doing !== 'apply' && value?.doing !== 'undo') return false;
  const { numbers, named, token, copies } = value;
  return [numbers, named, copies].every(Array.isArray) && /^[0-9a-f]{24}$/.test(token);
}

const isStep = (value: PlacedStamp | Begun | undefined): value is PlacedStamp =>
  value !== undefined &&
  Number.isSafeInteger(value.number) &&
  'isKept' in value &&
  typeof value.isKept === 'boolean';

/** A file that was renamed is one change. */
function changesMade({ operations }: StoredSet, steps: readonly PlacedStamp[], { renames = [] }: Intent) {
  const done = new Set(steps.map(({ number }) => number));
  const renamed = renames.filter(
    ([from, to]) => done.has(from) && done.has(to) && operations[to]?.before === undefined,
  );
  return done.size - renamed.length;
}

/** What is in place is not taken back any more. */
function withoutUndone(placed: readonly PlacedStamp[]): (operation: Operation, number: number) => Operation {
  const numbers = new Set(placed.map(({ number }) => number));
  return ({ undone, ...operation }, number) =>
    undone && !numbers.has(number) ? { ...operation, undone } : operation;
}

/** Files of its layer that were in the workspace for a moment are what their command left all the same. */
function withTouched(set: StoredSet, touched: ReadonlyMap<number, string>): StoredSet {
  if (touched.size === 0) return set;
  const operations = set.operations.map((operation, number) => {
    const [changed, after] = [touched.get(number), operation.after];
    return changed === undefined || after === undefined
      ? operation
      : { ...operation, after: { ...after, changed } };
  });
  return { ...set, operations };
}

const newToken = (): string => randomBytes(12).toString('hex');

/** Files of git's that are written anew where they are looked at: settings, and the list of a rebase. */
const REWRITTEN = /(^|\/)(config(\.worktree)?|git-rebase-todo)$/;

/** Whoever looks at a configuration of git puts another file with the same content in its place. */
function stampedAnew(
  { workspace, operations }: StoredSet,
  steps: readonly PlacedStamp[],
  look: () => void,
): readonly PlacedStamp[] {
  const inPlace = <T>(number: number, use: (at: Buffer) => T) =>
    orElse(
      () =>
        inDirectoryOf(workspace, `${workspace}/${textOfPath(bytesOf(operations[number]?.path ?? ''))}`, use),
      undefined,
    );
  const contentOf = (number: number) => inPlace(number, (at) => readRegular(at, CONFIG_BYTES));
  const stampOf = (number: number) => inPlace(number, (at) => lookAt(at));
  const found = new Map(
    steps
      .filter(({ number }) => REWRITTEN.test(operations[number]?.path ?? ''))
      // Since a crash somebody may have changed it.
      .filter(({ number, stamp }) => isSameObject(stamp, stampOf(number)))
      .map(({ number }) => [number, contentOf(number)]),
  );
  look();
  return steps.map((step) => {
    const content = found.get(step.number);
    const isSame = content !== undefined && contentOf(step.number)?.equals(content) === true;
    const stamp = isSame ? stampOf(step.number) : undefined;
    return stamp === undefined ? step : { ...step, stamp };
  });
}

/** What came into the workspace, as the addon says it of a command. */
function effectsOf(
  { workspace, operations }: StoredSet,
  steps: readonly PlacedStamp[],
  copies: readonly NativeChangedCopy[],
): NativeEffects {
  const entries = steps.flatMap(({ number }): readonly NativeChangedEntry[] => {
    const operation = operations[number];
    return operation === undefined ? [] : [changedEntry(workspace, operation)];
  });
  return {
    leftBehind: { entries, spent: false, unreadable: [] },
    ...(copies.length === 0 ? {} : { copies }),
  };
}

function changedEntry(workspace: string, { path, after, before }: Operation): NativeChangedEntry {
  const kind = after?.kind ?? before?.kind ?? 'file';
  return {
    path: `${workspace}/${textOfPath(bytesOf(path))}`,
    kind: kind === 'file' || kind === 'directory' || kind === 'link' ? kind : 'other',
    change: after === undefined ? 'vanished' : before === undefined ? 'appeared' : 'changed',
  };
}
