import { visibleLine } from '../../base/visible-text.ts';
import type { ChangeSet, ChangeSetDetail } from '../../model/index.ts';
import {
  ChangeSets,
  changeLine,
  countsInWords,
  inItsWorkspace,
  linesOfApplied,
  markOf,
} from '../../run/index.ts';
import { caller } from './caller.ts';
import { printError } from './print.ts';

/** Exit status where some changes were left as they are. */
const IN_PART = 1;

/** The most characters of a path that stands in a line with others. */
const LONGEST_NAME = 100;

/** A change set in a line. */
export function describeSet({ id, state, counts, command, on, left }: ChangeSet): string {
  const stands = state === 'applied' && left > 0 ? `applied, but for ${left}` : state;
  const over = on === undefined ? '' : ` (on ${on})`;
  return `${id}  ${stands.padEnd(8)}  ${countsInWords(counts)}${over}: ${visibleLine(command, 200)}`;
}

/** The same with the names of the first changes. */
export function describeSetByNames(set: ChangeSetDetail): string {
  const names = set.changes.map(({ path }) => visibleLine(path, LONGEST_NAME));
  const more = set.more === 0 ? [] : [`${set.more.toLocaleString('en-US')} more`];
  return `${describeSet(set)}  [${[...names, ...more].join(', ')}]`;
}

/** A change set with a line for each change. */
export function describeChanges(set: ChangeSetDetail): string {
  const lines = set.changes.map((change) => `${markOf(change)} ${visibleLine(changeLine(change), 8192)}`);
  if (set.more > 0)
    lines.push(`${set.more.toLocaleString('en-US')} more: sandbox-run changes show ${set.id}`);
  return `${describeSet(set)}\n${lines.join('\n')}\n`;
}

/** Does something in the workspace of a change set, under the policy there, and says what came of it: the exit status. */
export async function doInItsWorkspace(
  id: string,
  done: string,
  work: Parameters<typeof inItsWorkspace>[2],
): Promise<number> {
  const { applied, workspace } = await inItsWorkspace(id, caller(), work);
  for (const line of linesOfApplied(applied, done, workspace)) printError(line);
  return applied.notDone.length === 0 ? 0 : IN_PART;
}

/** Puts a change set into its workspace, or what is at and beneath paths of it: the exit status. */
export const applyChanges = (id: string, paths?: readonly string[]): Promise<number> =>
  doInItsWorkspace(id, 'applied', (sets, prepared) => sets.apply(prepared, id, paths));

/** Forgets it, or what is at and beneath paths of it, and says so. */
export async function discardChanges(id: string, paths: readonly string[] = []): Promise<string> {
  const sets = new ChangeSets();
  await sets.discard(id, paths);
  if (paths.length > 0) return `that part of ${id} is gone`;
  return sets.versions().has(id)
    ? `the rest of ${id} is gone; sandbox-run changes undo ${id} takes back what is applied`
    : `${id} is gone`;
}
