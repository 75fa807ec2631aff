import type { Change, ChangeCounts } from '../model/change-set.ts';

/** How many of each kind. */
export function countChanges(changes: readonly Change[]): ChangeCounts {
  const counts = { created: 0, changed: 0, deleted: 0, renamed: 0 };
  for (const { change } of changes) counts[change === 'mode' || change === 'times' ? 'changed' : change]++;
  return counts;
}

/** `3 created, 1 changed, 2 deleted`; '': nothing. */
export function countsInWords({ created, changed, deleted, renamed }: ChangeCounts): string {
  return Object.entries({ created, changed, deleted, renamed })
    .filter(([, number]) => number > 0)
    .map(([name, number]) => `${number.toLocaleString('en-US')} ${name}`)
    .join(', ');
}
