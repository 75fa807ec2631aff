import type { HostFeatures } from '../model/host-features.ts';
import type { LaunchPlan, PlannedTreeLimits, ResourceLimitName } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import type { Mechanisms } from './mechanisms.ts';

/** Of the host's memory, where the policy says nothing: beyond it the kernel would soon end something, perhaps not this. */
const MEMORY_SHARE = 0.8;

/** What all processes of a command together may use. */
export function treeLimitsOf(
  { limits }: Policy,
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
} as const satisfies Partial<Record<keyof Policy['limits'], ResourceLimitName>>;

/** What each process may use (rlimits). */
export function processLimitsOf(limits: Policy['limits']): LaunchPlan['limits'] {
  const said = (Object.keys(LIMIT_NAMES) as (keyof typeof LIMIT_NAMES)[]).flatMap((key) => {
    const value = limits[key];
    return value === undefined ? [] : [{ name: LIMIT_NAMES[key], value }];
  });
  // A core file would hold what the command had in its memory, and stay in a place that the user does not know.
  const own: LaunchPlan['limits'] = [{ name: 'core', value: 0 }, ...said];
  // What the whole tree may use no process may use alone. A second more, so that the watcher of the tree is first.
  return limits.cpuSeconds === undefined ? own : [...own, { name: 'cpu', value: limits.cpuSeconds + 1 }];
}
