import { dirname } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { hostAndPort } from '../../base/host-and-port.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { Connection, Denial } from '../../model/index.ts';
import { addressBytes, judgeAddress, judgeHost, type Protocol } from '../../policy/index.ts';
import type { Places } from '../proposals.ts';
import { denialOf } from './denials.ts';
import type { NativeDenial } from './native-denials.ts';

/**
 * What a command used that another plan would deny it, as far as paths and connections tell. `undefined`: nothing.
 */
export type WouldDeny = (
  uses: readonly NativeDenial[],
  connections: readonly Connection[] | undefined,
) => readonly Denial[] | undefined;

/** Tells what a plan would deny commands that run under another one. */
export const shadowOf =
  (plan: LaunchPlan, places: Places): WouldDeny =>
  (uses, connections) => {
    const denied = new Map<string, Denial>();
    for (const use of uses) {
      // What was denied already would not be new.
      if (use.control !== 'nothing') continue;
      const control = whatDenies(plan, use);
      if (control === undefined) continue;
      const one = denialOf({ ...use, control }, plan, places);
      const key = `${one.operation} ${one.object}`;
      denied.set(key, { ...one, count: one.count + (denied.get(key)?.count ?? 0) });
    }
    for (const { verdict, protocol, host, address, port, program, pid, at, count } of connections ?? []) {
      if (verdict === 'refused' || protocol === 'name' || port === undefined) continue;
      // A service of this machine is known by its address.
      const place = host === 'localhost' ? (address ?? host) : host;
      const kind = protocol === 'udp' ? 'udp' : 'tcp';
      if (mayReach(plan, place, port, kind)) continue;
      const path = `${hostAndPort(host, port)}${kind === 'udp' ? '/udp' : ''}`;
      const asked = { operation: 'connect', asked: host, path, named: path, program: program ?? '' } as const;
      const firstMs = Date.parse(at);
      const one = denialOf({ ...asked, control: 'network', pid: pid ?? 0, firstMs, count }, plan, places);
      denied.set(`connect ${path}`, one);
    }
    return denied.size === 0 ? undefined : [...denied.values()].slice(0, MOST_TOLD);
  };

/** Reported at most, like real denials. */
const MOST_TOLD = 64;

/** By what a plan denies a use; `undefined`: it does not. */
function whatDenies(
  plan: LaunchPlan,
  { operation, path }: NativeDenial,
): NativeDenial['control'] | undefined {
  if (operation === 'signal') return undefined;
  if (operation === 'connect') {
    const [, host = '', port = ''] = /^\[?(.*?)\]?:(\d+)$/.exec(path) ?? [];
    // On its own loopback it may talk to what it has started itself.
    const isOwn = /^(?:127\.|(?:0:){7}1$)/.test(host);
    if (path.startsWith('/') || isOwn || mayReach(plan, host, Number(port))) return undefined;
    return 'network';
  }
  const isIn = (paths: readonly string[]) => paths.some((above) => isBeneath(path, above));
  if (isIn(privateTo(plan))) return undefined;
  const alters = operation === 'write' || operation === 'create' || operation === 'remove';
  // Names come and go in directories.
  const place = operation === 'create' || operation === 'remove' ? dirname(path) : path;
  const around = plan.paths.filter((granted) => isBeneath(place, granted.path));
  if (around.length === 0) {
    const leadsThere = operation === 'read' && plan.paths.some((granted) => isBeneath(granted.path, path));
    return leadsThere ? undefined : plan.namespaces === undefined ? 'rights' : 'view';
  }
  if (isIn(plan.emptied)) return 'mount';
  if (operation === 'execute')
    return around.some(({ access }) => access === 'read' || access === 'write') ? undefined : 'rights';
  if (!alters) return undefined;
  if (plan.shutsInside && isIn(plan.protectedPaths)) return 'mount';
  const nearest = around.reduce((one, other) => (other.path.length > one.path.length ? other : one));
  return nearest.access === 'write' || nearest.access === 'device' ? undefined : 'rights';
}

/** Where commands have something of their own: whatever they use there, they have. */
function privateTo(plan: LaunchPlan): readonly string[] {
  const binds = (plan.namespaces?.view ?? []).flatMap((step) =>
    step.kind === 'bind' && /^(?:slot|cache|shm):/.test(step.source) ? [step.target] : [],
  );
  return [...binds, '/proc', '/dev/pts', '/dev/shm'];
}

/** Whether a plan lets commands connect to a host, by its name or its address. */
function mayReach(
  { network, networkRules }: LaunchPlan,
  host: string,
  port: number,
  protocol: Protocol = 'tcp',
): boolean {
  if (network === 'open') return true;
  if (networkRules === undefined) return false;
  const bytes = addressBytes(host);
  return bytes === undefined
    ? judgeHost(networkRules.names, host, port, protocol).allowed
    : judgeAddress(networkRules.addresses, bytes, port, protocol).allowed;
}
