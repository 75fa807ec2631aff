import type { ControlState } from '../model/enforcement-report.ts';
import type { HostFeatures } from '../model/host-features.ts';
import type { CgroupPlace } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import type { WorkspaceFindings } from './judge-control.ts';

/** What the judgement depends on besides the policy. */
interface Means {
  readonly cgroup: CgroupPlace | undefined;
}

/** By what each limit of the policy is held. */
export function resourceLimits(
  { cgroup }: Means,
  { limits, filesystem }: Policy,
  features: HostFeatures,
  { tmp }: Pick<WorkspaceFindings, 'tmp'>,
): readonly [ControlState, string] {
  const sharesTmp = filesystem.tmp === 'host' || (tmp !== undefined && 'granted' in tmp);
  const shared = sharesTmp || filesystem.home === 'host';
  const noGroup = features.cgroup.path === undefined ? features.cgroup.reason : '';
  const named = [
    'memory',
    ...(limits.processes === undefined ? [] : ['processes']),
    ...(limits.cpuSeconds === undefined ? [] : ['cpu']),
  ].join(', ');
  const parts = [
    cgroup !== undefined
      ? `${named} of the tree by control group`
      : features.processList.available
        ? `${named} of the tree are looked at every 100 ms, so that a burst can overshoot: ${noGroup}`
        : `${named} of the tree do not hold, as it cannot be looked at: ${features.processList.reason}, and ${noGroup}`,
    ...(limits.tmpBytes === undefined
      ? []
      : [
          `private files are added up every 100 ms, except what is deleted and still open or in directories that their owner shut${
            shared ? '; shared directories are not' : ''
          }`,
        ]),
    ...(limits.idleTimeoutMs === 0 ? [] : ['idle time where output is captured']),
    `each process by rlimits${limits.userProcesses === undefined ? '' : ' (user_processes does not hold against root)'}`,
  ];
  const sampled = cgroup === undefined || limits.tmpBytes !== undefined;
  if (cgroup === undefined && !features.processList.available) return ['unsupported', parts.join('; ')];
  return [sampled ? 'degraded' : 'enforced', parts.join('; ')];
}
