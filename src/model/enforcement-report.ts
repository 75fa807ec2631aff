import { z } from 'zod';
import { BackendId, PassedOver } from './backend.ts';
import { count, text, type Value } from './value.ts';
import { CONTROL_IDS, CONTROL_STATES, DEMANDS, PROCESS_TREE_TIERS } from './words.ts';

/** The stable name of one control. */
export const ControlId = z.enum(CONTROL_IDS);
export type ControlId = Value<typeof ControlId>;

export const ControlState = z.enum(CONTROL_STATES);
export type ControlState = Value<typeof ControlState>;

export const Demand = z.enum(DEMANDS);
export type Demand = Value<typeof Demand>;

export const ProcessTreeTier = z.enum(PROCESS_TREE_TIERS);
export type ProcessTreeTier = Value<typeof ProcessTreeTier>;

/** One line of the report. */
export const Control = z.strictObject({
  id: ControlId,
  state: ControlState,
  demand: Demand,
  reason: text.describe('one sentence: by what it is held, or what is missing'),
});
export type Control = Value<typeof Control>;

/** What is really enforced for a command, control by control. */
export const EnforcementReport = z
  .strictObject({
    backend: z
      .union([BackendId, z.literal('none')])
      .describe('what runs the command; none: sandbox-run does not run it'),
    passedOver: z.array(PassedOver).describe('stronger backends that were not used, and why'),
    landlockAbi: count.describe('the Landlock ABI in use; 0: none'),
    processTree: ProcessTreeTier,
    controls: z.array(Control),
  })
  .describe('what is really enforced');
export type EnforcementReport = Value<typeof EnforcementReport>;
