import type { ControlId, ControlState } from '../model/enforcement-report.ts';
import type { Attack } from './attack.ts';

/**
 * What came of an attack: `held`; `not-covered`: it worked, and the report does not claim otherwise; `escaped`: it
 * worked although the report claims that it cannot; `failed`: it could not be carried out in the sandbox, which says
 * nothing; `not-tried`: it does not work on this machine without a sandbox either, or cannot be tried.
 */
export const ATTACK_RESULTS = ['escaped', 'not-covered', 'failed', 'held', 'not-tried'] as const;

/** One of {@link ATTACK_RESULTS}, which go from the worst to the one that counts least. */
export type AttackResult = (typeof ATTACK_RESULTS)[number];

/** One attack of the report. */
export interface AttackOutcome {
  readonly id: Attack['id'];
  readonly result: AttackResult;
  /** One sentence: what was done, and what came of it. */
  readonly detail: string;
}

/** One control of the report. */
export interface AttackedControl {
  readonly id: ControlId;
  /** What the enforcement report says. */
  readonly claimed: ControlState;
  /** The worst of its attacks. */
  readonly result: AttackResult;
  readonly attacks: readonly AttackOutcome[];
  /** What to do about it: a line of a setting, a package, a kernel; null: nothing is to be done. */
  readonly improve: string | null;
}

/** What `sandbox-run doctor --attack` found. The shape is stable: every key is always there, `null` where unknown. */
export interface AttackReport {
  readonly version: string;
  /** A sandbox could be made, what was tried in it could be carried out, and nothing escaped. */
  readonly ok: boolean;
  /** Why no sandbox could be made: commands are refused here, and nothing was attacked. */
  readonly problem: { readonly code: string; readonly message: string } | null;
  readonly profile: string | null;
  readonly backend: string | null;
  /** Stronger backends that were not used, and why. */
  readonly passedOver: readonly { readonly backend: string; readonly reason: string }[];
  readonly landlockAbi: number | null;
  readonly controls: readonly AttackedControl[];
}

/** The worst. */
export function worstOf(attacks: readonly Pick<AttackOutcome, 'result'>[]): AttackResult {
  return ATTACK_RESULTS.find((result) => attacks.some((attack) => attack.result === result)) ?? 'not-tried';
}
