import type { Change, ChangeCounts, Gone } from '../../model/index.ts';

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
  const { path, from, kind, kindBefore, bytes, bytesBefore, mode, modeBefore, objects } = change;
  const { content, sameFileAs, target, targetBefore } = change;
  const [size = bytesBefore, before = size] = [bytes, bytesBefore];
  const facts = [
    ...(kindBefore !== undefined
      ? [`${kind} in the place of a ${kindBefore}`]
      : kind === 'file'
        ? []
        : [kind]),
    ...(objects === undefined ? [] : [`${numberOf(objects, 'object')} in it`]),
    ...(size === undefined || before === undefined
      ? []
      : [size === before ? numberOf(size, 'byte') : `${inFigures(before)} -> ${numberOf(size, 'byte')}`]),
    ...(content === 'binary' ? [content] : []),
    ...(sameFileAs === undefined ? [] : [`the same file as ${sameFileAs}`]),
    ...(change.change === 'times' && sameFileAs === undefined ? ['only its time'] : []),
    ...(modeBefore === undefined || kindBefore !== undefined ? [] : [`mode ${modeBefore} -> ${mode}`]),
    ...(targetBefore === undefined ? [] : [`led to ${targetBefore}`]),
    ...(target === undefined ? [] : [`leads to ${target}`]),
    ...(change.note === undefined ? [] : [change.note]),
    ...(change.applied === true
      ? ['is in the workspace']
      : [change.refused, change.conflict].flatMap((why) =>
          why === undefined ? [] : [`not applied: ${why}`],
        )),
  ];
  return `${from === undefined ? '' : `${from} -> `}${path}${facts.length === 0 ? '' : ` (${facts.join('; ')})`}`;
}

const inFigures = (count: number): string => count.toLocaleString('en-US');

/** `1 object`, `50,000 objects`. */
export const numberOf = (count: number, what: string): string =>
  `${inFigures(count)} ${what}${count === 1 ? '' : 's'}`;

/** `3 created, 1 changed, 2 deleted`. */
export function countsInWords({ created, changed, deleted, renamed }: ChangeCounts): string {
  return Object.entries({ created, changed, deleted, renamed })
    .filter(([, number]) => number > 0)
    .map(([name, number]) => `${number.toLocaleString('en-US')} ${name}`)
    .join(', ');
}

/** What version control does not bring back, with what does: `2 files and the changes of 1 file gone`. */
export function goneInWords({ files, changes, history }: Gone): string {
  const parts = [
    ...(files > 0 ? [numberOf(files, 'file')] : []),
    ...(changes > 0 ? [`changes of ${numberOf(changes, 'file')}`] : []),
    ...(history ? ['commits or stashes of git'] : []),
  ];
  return `${parts.join(' and ')} gone`;
}

/** Whether nothing of it can be applied as it is. */
export function isAllHeldUp({ counts, notApplied }: { counts: ChangeCounts; notApplied: number }): boolean {
  return notApplied === Object.values(counts).reduce((sum, number) => sum + number, 0);
}
