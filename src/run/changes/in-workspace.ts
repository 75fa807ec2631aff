import { visibleLine } from '../../base/visible-text.ts';
import type { AppliedChanges } from '../../model/index.ts';
import type { Surroundings } from '../../workspace/index.ts';
import { warningsOfLeftBehind } from '../output/result-warnings.ts';
import { closePrepared, type PreparedSandbox, prepareSandbox } from '../resolve/prepare-sandbox.ts';
import { ChangeSets } from './change-sets.ts';

/** What came of it, and in which workspace. */
interface DoneInWorkspace {
  readonly applied: AppliedChanges;
  readonly workspace: string;
}

/**
 * Does something in the workspace of a change set, under the policy there: what comes is looked at as after a command.
 * @throws {SandboxError} what `work` throws, or that this policy cannot be enforced.
 */
export async function inItsWorkspace(
  id: string,
  around: Surroundings,
  work: (sets: ChangeSets, prepared: PreparedSandbox) => Promise<AppliedChanges>,
): Promise<DoneInWorkspace> {
  const sets = new ChangeSets();
  const workspace = sets.workspaceOf(id);
  const prepared = await prepareSandbox({ workspace }, around);
  try {
    // What is done goes on with that one itself, and says how much of it there was.
    await sets.finish(prepared, id);
    return { applied: await work(sets, prepared), workspace };
  } finally {
    closePrepared(prepared);
  }
}

const LONGEST = 4096;

/** What came of applying a change set or of taking it back, for a person: a line each. `done`: a participle. */
export function linesOfApplied(
  { done: changes, notDone, leftBehind }: AppliedChanges,
  done: string,
  workspace: string,
): readonly string[] {
  return [
    `${changes.toLocaleString('en-US')} ${changes === 1 ? 'change is' : 'changes are'} ${done}`,
    ...notDone.map(({ path, why }) => `stays as it is: ${visibleLine(path, LONGEST)}: ${why}`),
    ...warningsOfLeftBehind(leftBehind, workspace).map((warning) => `warning: ${warning}`),
  ];
}
