import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isTimedId } from '../../workspace/index.ts';

/** Where each step of applying a change set, or of taking it back, is noted until all of it is done. */
export const journalsIn = (stateDirectory: string): string => join(stateDirectory, 'changes', 'journals');

/** Change sets of which a crash cut something short. It is looked at before each sandbox. */
export function unfinishedIn(stateDirectory: string): readonly string[] {
  try {
    return readdirSync(journalsIn(stateDirectory)).filter(isTimedId);
  } catch {
    // Nothing was ever applied; what else is wrong with it, whoever applies is told.
    return [];
  }
}
