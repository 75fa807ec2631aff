import type { ExecutionResult } from '../../model/execution-result.ts';
import type { LaunchPlan } from '../../model/launch-plan.ts';
import { messageForModel } from '../../run/model-message.ts';
import { printWarnings } from '../run/pass-through.ts';
import { printNote } from '../shared/print.ts';

/** Of what a shell ran: what was said to it, and what there is to say of that. */
export interface Remarks {
  readonly said: string | readonly string[];
  readonly plan: LaunchPlan;
  /** Nothing but that it was stopped. */
  readonly quiet: boolean;
}

/** Says on standard error, which a model may read, what was stopped and why. A status that is not 0 is no news. */
export function printRemarks(result: ExecutionResult, { said, plan, quiet }: Remarks): void {
  if (!quiet) printWarnings(result);
  const stopped = messageForModel(result, plan, { command: said });
  if (stopped !== undefined) printNote(`${stopped}\n`);
}
