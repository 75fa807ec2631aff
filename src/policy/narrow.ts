import { type BackendId, isAtLeast } from '../model/backend.ts';
import { AUTONOMIES, type Autonomy } from '../model/decision.ts';
import type { Policy, ResourceLimits } from '../model/policy.ts';
import { commandRule, demandedBy, seconds } from './effective.ts';
import type { WorkspaceFile } from './schema.ts';

/**
 * A policy with what a file in the workspace takes away. Everything here is a minimum, an intersection or an addition of
 * something forbidden: whatever the file says, the result allows nothing that `policy` does not. Pure.
 */
export function narrowPolicy(policy: Policy, file: WorkspaceFile): Policy {
  const { security, commands, filesystem, network, limits } = file;
  const least = (key: keyof ResourceLimits, value: number | undefined) =>
    value === undefined ? {} : { [key]: Math.min(policy.limits[key] ?? value, value) };
  return {
    ...policy,
    security: {
      autonomy: strictestAutonomy(policy.security.autonomy, security?.autonomy),
      maxActionsPerHour: smaller(policy.security.maxActionsPerHour, security?.max_actions_per_hour),
    },
    commands: {
      ...policy.commands,
      allow: intersection(policy.commands.allow, commands?.allow),
      rules: [...policy.commands.rules, ...(commands?.rules ?? []).map(commandRule)],
    },
    filesystem: {
      ...policy.filesystem,
      protected: [...policy.filesystem.protected, ...(filesystem?.protect ?? [])],
      tmp: filesystem?.tmp ?? policy.filesystem.tmp,
      home: filesystem?.home ?? policy.filesystem.home,
      cache: filesystem?.cache ?? policy.filesystem.cache,
    },
    network: {
      mode: network?.mode ?? policy.network.mode,
      unixSockets: network?.unix_sockets ?? policy.network.unixSockets,
    },
    limits: {
      ...policy.limits,
      ...least('memory', limits?.memory),
      ...least('processes', limits?.processes),
      ...least('cpuSeconds', limits?.cpu_seconds),
      ...least('tmpBytes', limits?.tmp_bytes),
      ...least('userProcesses', limits?.user_processes),
      ...least('openFiles', limits?.open_files),
      ...least('fileSize', limits?.file_size),
      ...least('addressSpace', limits?.address_space),
      timeoutMs: shorterTimeout(policy.limits.timeoutMs, seconds(limits?.timeout_seconds)),
      idleTimeoutMs: shorterTimeout(policy.limits.idleTimeoutMs, seconds(limits?.idle_timeout_seconds)),
      killGraceMs: Math.min(policy.limits.killGraceMs, seconds(limits?.kill_grace_seconds) ?? Infinity),
      outputBytes: Math.min(policy.limits.outputBytes, limits?.output_bytes ?? Infinity),
    },
    demand: { ...policy.demand, ...file.demand },
    sandbox: {
      ...policy.sandbox,
      minimum: strongest(policy.sandbox.minimum, file.sandbox?.minimum),
      demandedByFiles: [...new Set([...policy.sandbox.demandedByFiles, ...demandedBy(file)])],
    },
  };
}

/** The stricter of two autonomies. */
export function strictestAutonomy(one: Autonomy, other: Autonomy | undefined): Autonomy {
  if (other === undefined) return one;
  return AUTONOMIES.indexOf(other) > AUTONOMIES.indexOf(one) ? other : one;
}

function strongest(one: BackendId | undefined, other: BackendId | undefined): BackendId | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return isAtLeast(other, one) ? other : one;
}

function smaller(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}

/** 0 means no time-out, which is the longest. */
function shorterTimeout(one: number, other: number | undefined): number {
  if (other === undefined || other === 0) return one;
  return one === 0 ? other : Math.min(one, other);
}

/** No list allows everything. */
function intersection(
  one: readonly string[] | undefined,
  other: readonly string[] | undefined,
): readonly string[] | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return one.filter((entry) => other.includes(entry));
}
