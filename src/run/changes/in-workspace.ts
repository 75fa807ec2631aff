import type { AppliedChanges } from '../../model/change-set.ts';
import type { PreparedSandbox } from '../resolve/prepare-sandbox.ts';
import { openSandbox } from '../sandbox.ts';
import { ChangeSets } from './change-sets.ts';

/** What came of it, and in which workspace. */
export interface DoneInWorkspace {
  readonly applied: AppliedChanges;
  readonly workspace: string;
}

/**
 * Does something in the workspace of a change set, under the policy there: what comes is looked at as after a command.
 * @throws {SandboxError} what `work` throws, or that this policy cannot be enforced.
 */
export async function inItsWorkspace(
  id: string,
  work: (sets: ChangeSets, prepared: PreparedSandbox) => Promise<AppliedChanges>,
): Promise<DoneInWorkspace> {
  const sets = new ChangeSets();
  const workspace = sets.workspaceOf(id);
  await using sandbox = await openSandbox({ workspace });
  return { applied: await work(sets, sandbox.prepared), workspace };
}
