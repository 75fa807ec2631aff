import type { AttackResult } from '../model/attack-report.ts';
import type { Remedy } from '../model/doctor-report.ts';
import type { Control, ControlId } from '../model/enforcement-report.ts';

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
