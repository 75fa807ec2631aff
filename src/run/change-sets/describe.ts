import { orElse } from '../../base/or-else.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import type { Change } from '../../model/index.ts';
import { COMPARED_BYTES, haveSameBytes, type Operation } from './operations.ts';
import { aroundPath, type RawPath, shownPath } from './tree.ts';

/** Where contents can be read, by the number of an operation. */
export interface Contents {
  /** What was there before it. */
  before(number: number): Buffer | undefined;
  /** What the command left; it stays good while the other one is asked for. */
  left(number: number): LeftContent | undefined;
}

interface LeftContent {
  readonly at: Buffer;
  /** The workspace has it itself. */
  readonly isMoved: boolean;
}

/** The operations that make up one change, as a person sees it. */
export interface DescribedChange {
  readonly change: Change;
  /** Their numbers, which are applied together. */
  readonly numbers: readonly number[];
}

/** Of what a command took away and made anew elsewhere, so many pairs are compared. */
const COMPARED_PAIRS = 2_000;

/** So much of them is read altogether. */
const MOST_BYTES = 4 * COMPARED_BYTES;

/** What operations are for a person: a file that is elsewhere now was renamed. */
export function describeOperations(
  operations: readonly Operation[],
  contents: Contents,
): readonly DescribedChange[] {
  const isNew = ({ before }: Operation) => before === undefined;
  const renamedFrom = renamesAmong(operations, contents, isNew);
  const taken = new Set(renamedFrom.values());
  const namesOf = new Map<number, RawPath[]>();
  for (const { path, after, discarded } of operations) {
    if (after?.linked === undefined || discarded === true) continue;
    const names = namesOf.get(after.linked);
    if (names === undefined) namesOf.set(after.linked, [path]);
    // Any two are enough for each to name another one.
    else if (names.length < 2) names.push(path);
  }
  return operations.flatMap((operation, number) => {
    if (taken.has(number) || operation.discarded === true) return [];
    const from = renamedFrom.get(number);
    const source = from === undefined ? undefined : operations[from];
    return [
      {
        change: {
          ...describe(operation, source, () => linkBefore(operation, contents.before(number))),
          ...otherName(operation, namesOf),
        },
        numbers: from === undefined ? [number] : [from, number],
      },
    ];
  });
}

/** The numbers of removals by that of the file that has their content now, of those that can be what is looked for. */
export function renamesAmong(
  operations: readonly Operation[],
  contents: Contents,
  isPossible: (operation: Operation) => boolean = ({ sameContent }) => sameContent !== true,
): ReadonlyMap<number, number> {
  const removed = new Map<string, number[]>();
  operations.forEach(({ after, before, discarded }, number) => {
    if (after !== undefined || before?.kind !== 'file' || discarded === true) return;
    if (before.bytes === 0 || before.bytes > COMPARED_BYTES) return;
    const key = `${before.bytes}`;
    const same = removed.get(key);
    if (same === undefined) removed.set(key, [number]);
    else same.push(number);
  });
  const found = new Map<number, number>();
  let pairs = 0;
  let bytes = 0;
  operations.forEach((operation, number) => {
    const { after, discarded } = operation;
    if (after?.kind !== 'file' || discarded === true || !isPossible(operation)) return;
    const candidates = removed.get(`${after.bytes}`) ?? [];
    for (const candidate of candidates) {
      bytes += after.bytes;
      if (++pairs > COMPARED_PAIRS || bytes > MOST_BYTES) break;
      const left = contents.left(number);
      const at = contents.before(candidate);
      if (left === undefined || at === undefined) continue;
      if (!haveSameBytes(left.at, at)) continue;
      found.set(number, candidate);
      candidates.splice(candidates.indexOf(candidate), 1);
      break;
    }
  });
  return found;
}

/** Permissions as people write them. */
export const octal = (mode: number): string => mode.toString(8).padStart(4, '0');

function otherName(
  { path, after }: Operation,
  namesOf: ReadonlyMap<number, readonly RawPath[]>,
): Pick<Change, 'sameFileAs'> {
  const names = after?.linked === undefined ? [] : (namesOf.get(after.linked) ?? []);
  const other = names.find((name) => name !== path);
  return other === undefined ? {} : { sameFileAs: shownPath(other) };
}

/** Where a link led that leads elsewhere now, or is none any more. */
function linkBefore({ before, after, sameContent }: Operation, at: Buffer | undefined): RawPath | undefined {
  if (before?.kind !== 'link' || sameContent === true || at === undefined) return undefined;
  const target = orElse(() => linkBytes(at).toString('latin1'), undefined);
  return target === after?.target ? undefined : target;
}

function describe(
  operation: Operation,
  source: Operation | undefined,
  ledTo: () => RawPath | undefined,
): Change {
  const { path, after, before, tree, refused, conflict, note } = operation;
  const was = source?.before ?? before;
  const kind = (after ?? before)?.kind ?? 'file';
  const isNew = after !== undefined && was === undefined;
  const targetBefore = was?.kind === 'link' ? ledTo() : undefined;
  return {
    path: shownPath(path),
    change: source === undefined ? changeOf(operation) : 'renamed',
    kind,
    ...(was === undefined || was.kind === kind ? {} : { kindBefore: was.kind }),
    ...(source && { from: shownPath(source.path) }),
    ...(after?.kind === 'file' ? { bytes: after.bytes } : {}),
    ...(was?.kind === 'file' ? { bytesBefore: was.bytes } : {}),
    ...(after !== undefined && after.kind !== 'link' && (isNew || was?.mode !== after.mode)
      ? { mode: octal(after.mode), ...(was === undefined ? {} : { modeBefore: octal(was.mode) }) }
      : {}),
    ...(after?.target === undefined ? {} : { target: shownPath(after.target) }),
    ...(targetBefore === undefined ? {} : { targetBefore: shownPath(targetBefore) }),
    ...(tree === undefined ? {} : { objects: tree.objects }),
    ...(refused === undefined ? {} : { refused }),
    ...((conflict ?? source?.conflict) === undefined ? {} : { conflict: conflict ?? source?.conflict }),
    ...(note === undefined ? {} : { note }),
  };
}

function changeOf({ after, before, sameContent }: Operation): Change['change'] {
  if (after === undefined) return 'deleted';
  if (before === undefined) return 'created';
  if (sameContent !== true) return 'changed';
  return after.mode === before.mode ? 'times' : 'mode';
}

/**
 * The numbers of the operations that paths name: `numbers` with the directories that have to be there for them, `within`
 * without.
 */
export function chosenNumbers(
  described: readonly DescribedChange[],
  operations: readonly Operation[],
  paths: readonly string[],
): {
  readonly numbers: readonly number[];
  readonly within: ReadonlySet<number>;
  readonly named: ReadonlySet<number>;
  readonly unknown: readonly string[];
} {
  const plain = (path: string) => path.replace(/\/+$/, '');
  const wanted = new Set(paths.map(plain));
  const matched = new Set<string>();
  // Of each directory it is found out once: there may be very many changes, and very many paths.
  const known = new Map<string, boolean>();
  const isWanted = (path: string): boolean => {
    const before = known.get(path);
    if (before !== undefined) return before;
    const isBeneath = path !== '' && isWanted(aroundPath(path));
    const isItself = wanted.has(path);
    if (isItself) matched.add(path);
    known.set(path, isBeneath || isItself);
    return isBeneath || isItself;
  };
  const named = new Set<number>();
  const chosen = new Set<number>();
  for (const { change, numbers } of described) {
    const isFromThere = change.from !== undefined && isWanted(change.from);
    if (!isWanted(change.path) && !isFromThere) continue;
    for (const number of numbers) chosen.add(number);
    if (wanted.has(change.path)) for (const number of numbers) named.add(number);
  }
  const unknown = paths.filter((path) => !matched.has(plain(path)));
  const within = new Set(chosen);
  const needed = new Set<RawPath>();
  for (const number of within) {
    const operation = operations[number];
    if (operation?.after === undefined) continue;
    for (let above = aroundPath(operation.path); above !== '' && !needed.has(above); ) {
      needed.add(above);
      above = aroundPath(above);
    }
  }
  operations.forEach(({ path, after, before, discarded }, number) => {
    if (discarded === true) return;
    const isNewDirectory = after?.kind === 'directory' && before?.kind !== 'directory';
    if (isNewDirectory && needed.has(path)) chosen.add(number);
  });
  return { numbers: [...chosen].sort((a, b) => a - b), within, named, unknown };
}
