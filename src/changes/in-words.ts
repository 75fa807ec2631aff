import type { Change, ChangeCounts } from '../model/change-set.ts';

const MARKS: Readonly<Record<Change['change'], string>> = {
  created: '+',
  changed: '~',
  deleted: '-',
  renamed: '>',
  mode: 'm',
  times: 't',
};

/** What kind of change it is, in one character. */
export const markOf = ({ change }: Change): string => MARKS[change];

/** The rest of it in a line: `a (4 -> 8 bytes)`. Names in it are as they are, whatever a terminal would make of them. */
export function changeLine(change: Change): string {
  const { path, from, kind, bytes, bytesBefore, mode, modeBefore, target, objects } = change;
  const sizes = [bytesBefore, bytes]
    .filter((size) => size !== undefined)
    .map((size) => size.toLocaleString('en-US'));
  const facts = [
    ...(sizes.length > 0 ? [`${[...new Set(sizes)].join(' -> ')} bytes`] : kind === 'file' ? [] : [kind]),
    ...(modeBefore === undefined ? [] : [`mode ${modeBefore} -> ${mode}`]),
    ...(target === undefined ? [] : [`leads to ${target}`]),
    ...(objects === undefined ? [] : [`${objects.toLocaleString('en-US')} objects in it`]),
    ...(change.note === undefined ? [] : [change.note]),
    ...(change.applied === true
      ? ['is in the workspace']
      : [change.refused, change.conflict].flatMap((why) =>
          why === undefined ? [] : [`not applied: ${why}`],
        )),
  ];
  return `${from === undefined ? '' : `${from} -> `}${path}${facts.length === 0 ? '' : ` (${facts.join('; ')})`}`;
}

/** `3 created, 1 changed, 2 deleted`. */
export function countsInWords({ created, changed, deleted, renamed }: ChangeCounts): string {
  return Object.entries({ created, changed, deleted, renamed })
    .filter(([, number]) => number > 0)
    .map(([name, number]) => `${number.toLocaleString('en-US')} ${name}`)
    .join(', ');
}

/** Whether nothing of it can be applied as it is. */
export function isAllHeldUp({ counts, notApplied }: { counts: ChangeCounts; notApplied: number }): boolean {
  return notApplied === Object.values(counts).reduce((sum, number) => sum + number, 0);
}
