import type { AttackOutcome } from '../model/attack-report.ts';
import type { Control, EnforcementReport } from '../model/enforcement-report.ts';
import { BACKEND_IDS } from '../model/words.ts';
import type { Attack } from './attack.ts';

/** What came of an attack in the sandbox. */
export type Observation =
  | { readonly kind: 'worked' }
  | { readonly kind: 'held' | 'failed' | 'not-tried'; readonly reason: string }
  /** It failed for want of descriptors or memory, which says nothing at all. */
  | { readonly kind: 'short'; readonly reason: string };

/** The backends whose degraded controls are those of this program's own mechanisms. */
const OWN_BACKENDS: readonly EnforcementReport['backend'][] = BACKEND_IDS.slice(0, 2);

/** Whether the report says that this attack cannot work. */
export function isClaimed(
  { claimedInPart }: Pick<Attack, 'claimedInPart'>,
  { state }: Pick<Control, 'state'>,
  backend: EnforcementReport['backend'],
): boolean {
  if (state === 'enforced') return true;
  return state === 'degraded' && claimedInPart === true && OWN_BACKENDS.includes(backend);
}

/** An attack and what was seen, made into a line of the report. Pure. */
export function judgeAttack(
  attack: Pick<Attack, 'id' | 'does' | 'claimedInPart'>,
  seen: Observation,
  control: Pick<Control, 'state'>,
  backend: EnforcementReport['backend'],
): AttackOutcome {
  const { id, does } = attack;
  if (seen.kind !== 'worked')
    return {
      id,
      result: seen.kind === 'short' ? 'failed' : seen.kind,
      detail: `${does}: ${seen.reason}`,
    };
  return isClaimed(attack, control, backend)
    ? { id, result: 'escaped', detail: `${does}: IT WORKED, although the report says that it cannot` }
    : { id, result: 'not-covered', detail: `${does}: it worked, as the report says (${control.state})` };
}
