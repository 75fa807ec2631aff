import { FILE_RIGHTS, maskOf, NETWORK_RIGHTS, SCOPES, validOnFiles } from '../kernel/landlock/rights.ts';
import { RLIMIT_NUMBERS } from '../kernel/rlimits.ts';
import { seccompProgram } from '../kernel/seccomp/program.ts';
import type { NativeAddressRow, NativeConfinementSpec, NativeViewStep } from '../native/contract.ts';
import type { HostFeatures } from '../plan/host-features.ts';
import type { LaunchPlan, PlannedViewStep } from '../plan/launch-plan.ts';
import type { AddressRow, NetworkRules } from '../plan/network-rules.ts';

/** The plan in the addon's terms: names become masks and bytes here. */
export async function confinementSpec(
  plan: LaunchPlan,
  { architecture }: Pick<HostFeatures, 'architecture'>,
): Promise<NativeConfinementSpec> {
  const { landlock } = plan;
  return {
    landlock: {
      handledFs: maskOf(FILE_RIGHTS, landlock.handledFile),
      handledNet: maskOf(NETWORK_RIGHTS, landlock.handledNetwork),
      scoped: maskOf(SCOPES, landlock.scoped),
    },
    rules: landlock.rules.map((rule) => ({
      path: rule.path,
      directoryAccess: maskOf(FILE_RIGHTS, rule.rights),
      fileAccess: maskOf(FILE_RIGHTS, validOnFiles(rule.rights)),
      required: rule.required,
      inView: rule.inView,
    })),
    filter:
      plan.seccompGroups.length === 0
        ? new Uint8Array()
        : (await seccompProgram(plan.seccompGroups, architecture)).bytes,
    namespaces:
      plan.namespaces === undefined
        ? undefined
        : { ...plan.namespaces, view: plan.namespaces.view.map(nativeStep) },
    treeLimits: {
      memoryBytes: plan.treeLimits.memoryBytes ?? 0,
      processes: plan.treeLimits.processes ?? 0,
      cpuMs: (plan.treeLimits.cpuSeconds ?? 0) * 1000,
      tmpBytes: plan.treeLimits.tmpBytes ?? 0,
      idleTimeoutMs: plan.treeLimits.idleTimeoutMs ?? 0,
      cgroupParent: plan.treeLimits.cgroup?.path ?? '',
      cgroupClone: plan.treeLimits.cgroup?.cloneInto ?? false,
    },
    limits: plan.limits.map(({ name, value }) => ({ resource: RLIMIT_NUMBERS[name], value: BigInt(value) })),
    umask: plan.umask ?? -1,
    temporaryParent: plan.temporaryParent,
    memoryParent: plan.memoryParent ?? '',
    slotDirectories: plan.slotDirectories,
    toldDirectories: plan.toldDirectories,
    seedFiles: plan.seedFiles,
    cache: cacheSpec(plan),
    copies: plan.copies.map(({ source, path, hooksPath }) => ({
      source,
      path,
      preface: hooksPath === undefined ? undefined : { file: hooksPath, unless: 'hookspath' },
    })),
    slotVariables: [
      { name: 'HOME', path: plan.home },
      { name: 'TMPDIR', path: plan.tmp },
    ].filter((variable) => variable.path.startsWith('slot:')),
    network: plan.networkRules === undefined ? undefined : nativeNetwork(plan.networkRules),
    exitTracing: plan.exitTracing,
    groupModes: plan.seccompGroups.includes('@set-id-of-files'),
    ownProcesses: plan.seccompGroups.includes('@other-process-groups'),
    refusedSockets: socketsToRefuse(plan),
    observed: plan.observed,
    processTree: plan.report.processTree === 'signal-scope' ? 'signal-scope' : 'subreaper',
  };
}

/** Sockets that the plan's filter leaves to a supervisor, so that refusals are reported. */
function socketsToRefuse({
  observed,
  network,
  seccompGroups,
}: LaunchPlan): NativeConfinementSpec['refusedSockets'] {
  const isTold = observed !== 'nothing' && seccompGroups.length > 0;
  return {
    inet: isTold && network === 'refused',
    unix: isTold && network !== 'listed' && seccompGroups.includes('@unix-datagrams'),
  };
}

type Range = NetworkRules['apart'][number];

function nativeNetwork({
  addresses,
  apart,
  looksInside,
  placeholders,
  sockets = [],
}: NetworkRules): NativeConfinementSpec['network'] {
  const nativeRange = ({ bytes, bits }: Range) => ({ bytes: Uint8Array.from(bytes), bits });
  return {
    addresses: addresses.map(nativeRow),
    apart: apart.map(nativeRange),
    looksInside,
    sockets: sockets.map(({ path, named, rule }) => ({ path, named, rule })),
    ...(placeholders === undefined ? {} : { placeholders: nativeRange(placeholders) }),
  };
}

/** A row in the addon's terms. */
export function nativeRow({ bytes, verdict, inside, protocol, ...row }: AddressRow): NativeAddressRow {
  const [allows, udp] = [verdict === 'allow', protocol === 'udp'];
  return { ...row, bytes: Uint8Array.from(bytes), udp, allows, inside: inside ?? '' };
}

/** The shared cache for the addon; `undefined`: each command has its own. */
function cacheSpec({ cache }: LaunchPlan): NativeConfinementSpec['cache'] {
  if (cache.kind === 'private') return undefined;
  return {
    directory: `${cache.directory}/places`,
    lock: `${cache.directory}/lock`,
    links: cache.links,
  };
}

function nativeStep(step: PlannedViewStep): NativeViewStep {
  const base = {
    ...{ source: '', readOnly: false, allowDevices: false, required: false, watched: false },
    ...{ fromView: false, refused: false },
  };
  switch (step.kind) {
    case 'bind':
      return {
        kind: 'bind',
        source: step.source,
        target: step.target,
        readOnly: !step.writable,
        allowDevices: step.device,
        required: step.required,
        watched: step.watched,
        fromView: step.fromView,
        refused: false,
      };
    case 'layer':
      return { ...base, kind: step.kind, source: step.source, target: step.target, layer: step.layer };
    case 'emptied':
      return { ...base, ...step };
    case 'symlink':
    case 'bind-link':
      return { ...base, kind: step.kind, source: step.content, target: step.target };
    default:
      return { ...base, kind: step.kind, target: step.target };
  }
}
