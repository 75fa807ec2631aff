import { z } from 'zod';
import { problem } from './doctor-report.ts';
import { ControlId, ControlState, PassedOver } from './enforcement-report.ts';
import { count, text, type Value } from './value.ts';
import { ATTACK_RESULTS } from './words.ts';

export const AttackResult = z.enum(ATTACK_RESULTS);
export type AttackResult = Value<typeof AttackResult>;

/** One attack of the report. */
export const AttackOutcome = z.strictObject({
  id: text,
  result: AttackResult,
  detail: text.describe('one sentence: what was done, and what came of it'),
});
export type AttackOutcome = Value<typeof AttackOutcome>;

/** One control of the report. */
export const AttackedControl = z.strictObject({
  id: ControlId,
  claimed: ControlState.describe('what the enforcement report says'),
  result: AttackResult.describe('the worst of its attacks'),
  attacks: z.array(AttackOutcome),
  improve: text
    .nullable()
    .describe('what to do about it: a setting, a package, a kernel; null: nothing is to be done'),
});
export type AttackedControl = Value<typeof AttackedControl>;

/** What `sandbox-run doctor --attack` found: every key is always there, null where unknown. */
export const AttackReport = z.strictObject({
  version: text,
  ok: z
    .boolean()
    .describe('a sandbox could be made, what was tried in it could be carried out, and nothing escaped'),
  problem: problem.describe(
    'why no sandbox could be made: commands are refused here, and nothing was attacked',
  ),
  profile: text.nullable(),
  backend: text.nullable(),
  passedOver: z.array(PassedOver).describe('stronger backends that were not used, and why'),
  landlockAbi: count.nullable(),
  controls: z.array(AttackedControl),
});
export type AttackReport = Value<typeof AttackReport>;
