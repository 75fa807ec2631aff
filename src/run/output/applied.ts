import type { AppliedChanges } from '../../model/change-set.ts';
import { visibleLine } from '../../util/visible-text.ts';
import { warningsOfLeftBehind } from './result-warnings.ts';

const LONGEST = 4096;

/** What came of applying a change set or of taking it back, for a person: a line each. `done`: a participle. */
export function linesOfApplied(
  { done: steps, notDone, leftBehind }: AppliedChanges,
  done: string,
  workspace: string,
): readonly string[] {
  return [
    `${steps.toLocaleString('en-US')} ${steps === 1 ? 'change is' : 'changes are'} ${done}`,
    ...notDone.map(({ path, why }) => `stays as it is: ${visibleLine(path, LONGEST)}: ${why}`),
    ...warningsOfLeftBehind(leftBehind, workspace).map((warning) => `warning: ${warning}`),
  ];
}
