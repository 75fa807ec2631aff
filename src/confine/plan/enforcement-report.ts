import { z } from 'zod';
import { count, text, type Value } from '../../base/value.ts';
import { BACKEND_IDS, CONTROL_IDS, DEMANDS } from '../../base/words.ts';

/** The stable name of one control. */
export const ControlId = z.enum(CONTROL_IDS);
export type ControlId = Value<typeof ControlId>;

/**
 * How a control is held: `enforced` as described; `degraded` in part, the reason says what is missing; `unsupported` not
 * at all on this host; `off` because the policy turned it off, or nobody asked for it.
 */
const CONTROL_STATES = ['enforced', 'degraded', 'unsupported', 'off'] as const;

/**
 * By what the process tree of a command is held together, so that everything that it started ends with it:
 * - `signal-scope` (Landlock ABI 6): the kernel; no process of the tree can leave it.
 * - `subreaper`: a helper process of ours, which finds what descends from it.
 * - `none`: it is not us who run it.
 */
const PROCESS_TREE_TIERS = ['signal-scope', 'subreaper', 'none'] as const;

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

/** The stable name of a backend. */
export const BackendId = z.enum(BACKEND_IDS);
export type BackendId = Value<typeof BackendId>;

/** A backend that was not used, although it is stronger than the one that was. */
export const PassedOver = z.strictObject({
  backend: BackendId,
  reason: text.describe('one sentence: what this host or the policy has against it'),
});
export type PassedOver = Value<typeof PassedOver>;

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
