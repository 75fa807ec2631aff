import type { AttackOutcome, AttackResult } from '../model/attack-report.ts';
import type { Remedy } from '../model/doctor-report.ts';
import type { Control, ControlId, EnforcementReport } from '../model/enforcement-report.ts';
import { ATTACK_RESULTS, BACKEND_IDS } from '../model/words.ts';
import type { Attack } from './attack.ts';

/** The worst. */
export function worstOf(attacks: readonly Pick<AttackOutcome, 'result'>[]): AttackResult {
  return ATTACK_RESULTS.find((result) => attacks.some((attack) => attack.result === result)) ?? 'not-tried';
}

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

/** The controls that the advice of each topic completes. Of a newer kernel the advice names them itself. */
const CONTROLS_OF_TOPIC: Readonly<Record<string, readonly ControlId[]>> = {
  landlock: [
    ...(['filesystem', 'rename', 'truncate', 'devices', 'unix-sockets', 'abstract-sockets'] as const),
    ...(['signals', 'process-inspection', 'process-tree'] as const),
  ],
  namespaces: [
    ...(['filesystem', 'filesystem-view', 'truncate', 'metadata', 'protected-paths'] as const),
    ...(['private-tmp', 'unix-sockets', 'abstract-sockets', 'process-inspection'] as const),
  ],
  seccomp: ['syscalls', 'network', 'unix-sockets', 'abstract-sockets', 'terminal-injection'],
  cgroup: ['resource-limits'],
};

/**
 * What to do for a control, with the line to run where one line does; null: nothing is to be done. `stronger`: a backend
 * that this host has and that was not used. Pure.
 */
export function improvementFor(
  control: Pick<Control, 'id' | 'state' | 'reason'>,
  result: AttackResult,
  remedies: readonly Remedy[],
  stronger?: string,
): string | null {
  if (result === 'escaped') {
    return 'This is a defect of sandbox-run: report it as SECURITY.md says, with the output of sandbox-run doctor --attack --json. Until it is mended, do not count on this control.';
  }
  if (control.state === 'enforced') return null;
  if (control.state === 'off') return `It is the policy that leaves it off: ${control.reason}.`;
  if (stronger !== undefined)
    return `The backend ${stronger} can be used here and holds more: leave --backend out. $ sandbox-run doctor --attack`;
  const lines = remedies
    .filter((remedy) => isAbout(remedy, control.id))
    .map(({ text, command }) => (command === null ? text : `${text} $ ${command}`));
  return lines.length > 0 ? lines.join(' Or: ') : `Known: ${control.reason}.`;
}

function isAbout({ topic, text }: Remedy, id: ControlId): boolean {
  if (topic === 'kernel') return new RegExp(`[:,] ${id}[,.]`).test(text);
  return CONTROLS_OF_TOPIC[topic]?.includes(id) === true;
}
