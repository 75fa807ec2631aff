import type { CommandEffects } from '../checks/effects.ts';
import type { Decision, Taint } from '../model/decision.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import { secretAmong } from './judgement.ts';

/** Something that a command shows to the session that runs it. */
export interface Exposure {
  readonly taint: Taint;
  readonly reason: string;
}

/**
 * What a session is exposed to by a command: secret files that its words name, and what comes from outside where it can
 * reach there. What a program reads without being told to is not seen. Without a plan nothing is enforced by us.
 */
export function exposuresOf(
  policy: Policy,
  plan: LaunchPlan | undefined,
  decision: Decision,
  effects: CommandEffects,
): readonly Exposure[] {
  const exposures: Exposure[] = [];
  const secret = secretAmong(effects, policy.filesystem.secret);
  if (secret !== undefined)
    exposures.push({ taint: 'secret', reason: `a command reads ${secret} (filesystem.secret)` });
  const network = plan?.report.controls.find(({ id }) => id === 'network');
  if (decision.reach === 'network' && network?.state !== 'enforced')
    exposures.push({ taint: 'corruption', reason: 'a command fetches from outside' });
  return exposures;
}
