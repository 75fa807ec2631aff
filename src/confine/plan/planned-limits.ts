import type { FullGrant, GrantedLimits } from './grant.ts';
import type { HostFeatures } from './host-features.ts';
import type { LaunchPlan, PlannedTreeLimits, ResourceLimitName } from './launch-plan.ts';

import type { Judge, Mechanisms } from './mechanisms.ts';

/** The finding for limits: what enforces each of them. */
export const resourceLimits: Judge = ({ cgroup }, { limits, tmp: ofTmp, home }, features, { tmp }) => {
  const sharesTmp = ofTmp === 'host' || (tmp !== undefined && 'granted' in tmp);
  const shared = sharesTmp || home === 'host';
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
        ? `${named} of the tree are looked at, every 100 ms while the host’s memory shrinks and else twice a second, so that a burst can overshoot: ${noGroup}`
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
};

/** Default limit, as a share of the host's memory: beyond it the kernel's OOM killer may end another process instead. */
const MEMORY_SHARE = 0.8;

/** What all processes of a command together may use. */
export function treeLimitsOf(
  { limits }: FullGrant,
  used: Mechanisms,
  features: HostFeatures,
): PlannedTreeLimits {
  return {
    memoryBytes: limits.memory ?? Math.floor(features.memoryBytes * MEMORY_SHARE),
    processes: limits.processes,
    cpuSeconds: limits.cpuSeconds,
    tmpBytes: limits.tmpBytes,
    idleTimeoutMs: limits.idleTimeoutMs === 0 ? undefined : limits.idleTimeoutMs,
    cgroup: used.cgroup,
  };
}

const LIMIT_NAMES = {
  userProcesses: 'nproc',
  openFiles: 'nofile',
  fileSize: 'fsize',
  addressSpace: 'as',
} as const satisfies Partial<Record<keyof GrantedLimits, ResourceLimitName>>;

/** What each process may use (rlimits). */
export function processLimitsOf(limits: GrantedLimits): LaunchPlan['limits'] {
  const said = (Object.keys(LIMIT_NAMES) as (keyof typeof LIMIT_NAMES)[]).flatMap((key) => {
    const value = limits[key];
    return value === undefined ? [] : [{ name: LIMIT_NAMES[key], value }];
  });
  // A core file would hold what the command had in its memory, and stay in a place that the user does not know.
  const own: LaunchPlan['limits'] = [{ name: 'core', value: 0 }, ...said];
  // What the whole tree may use no process may use alone. A second more, so that the watcher of the tree is first.
  return limits.cpuSeconds === undefined ? own : [...own, { name: 'cpu', value: limits.cpuSeconds + 1 }];
}
