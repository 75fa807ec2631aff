import { NEWEST_KNOWN_ABI } from '../kernel/landlock/rights.ts';
import type { BackendId } from '../model/backend.ts';
import type { ProcessTreeTier } from '../model/enforcement-report.ts';
import type { HostFeatures } from '../model/host-features.ts';
import type { CgroupPlace } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import { assertNever } from '../util/assert-never.ts';

/** The mechanisms that a plan uses on this host. One decision, taken here; everything else follows from it. */
export interface Mechanisms {
  readonly backend: BackendId;
  /** ABI whose rights are used; 0: Landlock is not used. */
  readonly landlockAbi: number;
  readonly seccomp: boolean;
  /** A root, a /tmp and devices of its own, in a mount namespace. */
  readonly view: boolean;
  /** Something can be shut or hidden inside a writable path: by mounts, ours or those of a launcher. */
  readonly shutsInside: boolean;
  /** Message queues, semaphores and shared memory of its own. */
  readonly ownIpc: boolean;
  /** A user namespace around it. */
  readonly ownUser: boolean;
  /** A network of its own with nothing but a loopback interface. */
  readonly networkNamespace: boolean;
  /** What seccomp does with sockets. */
  readonly inetSockets: 'refused' | 'isolated' | 'open';
  readonly unixSockets: 'allowed' | 'refused';
  /** Sockets by path that processes outside made may be used in paths that may be written. */
  readonly socketsOfOthers: boolean;
  /**
   * Whether processes of a command may trace each other: where a domain keeps them from all others. And whether one of
   * them at a time may halt others as they exit.
   */
  readonly tracing: 'own' | 'own-but-exits' | 'refused';
  readonly processTree: ProcessTreeTier;
  /** Where control groups for commands are made. */
  readonly cgroup: CgroupPlace | undefined;
}

/** Picks the strongest mechanisms that the host offers for the policy under a backend. */
export function chooseMechanisms(policy: Policy, features: HostFeatures, backend: BackendId): Mechanisms {
  switch (backend) {
    case 'landlock':
      return ofKernel(policy, features, backend, Math.min(features.landlockAbi, NEWEST_KNOWN_ABI));
    case 'namespaces':
      return ofKernel(policy, features, backend, 0);
    case 'firejail':
      return ofFirejail(policy, features);
    case 'application':
      // Defence in depth: what the kernel has is used, also where nothing is built on it.
      return {
        backend,
        landlockAbi: 0,
        seccomp: features.seccomp.available,
        view: false,
        shutsInside: false,
        ownIpc: false,
        ownUser: false,
        networkNamespace: false,
        inetSockets: policy.network.mode === 'off' ? 'refused' : 'open',
        unixSockets: policy.network.unixSockets === 'allowed' ? 'allowed' : 'refused',
        socketsOfOthers: policy.network.unixSockets === 'allowed',
        tracing: 'refused',
        processTree: 'subreaper',
        cgroup: cgroupOf(features),
      };
    default:
      return assertNever(backend);
  }
}

/** It makes mounts and namespaces by itself; the filter is ours. */
function ofFirejail(policy: Policy, features: HostFeatures): Mechanisms {
  const off = policy.network.mode === 'off';
  return {
    backend: 'firejail',
    landlockAbi: 0,
    seccomp: features.seccomp.available,
    view: false,
    shutsInside: true,
    ownIpc: true,
    ownUser: false,
    networkNamespace: off,
    inetSockets: off ? 'isolated' : 'open',
    unixSockets: 'allowed',
    socketsOfOthers: true,
    tracing: 'refused',
    processTree: 'subreaper',
    cgroup: cgroupOf(features),
  };
}

function ofKernel(
  policy: Policy,
  features: HostFeatures,
  backend: BackendId,
  landlockAbi: number,
): Mechanisms {
  const view = features.namespaces.available;
  const off = policy.network.mode === 'off';
  const pathSocketsContained = view || landlockAbi >= 9 || policy.network.unixSockets === 'allowed';
  return {
    backend,
    landlockAbi,
    seccomp: features.seccomp.available,
    view,
    shutsInside: view,
    ownIpc: view,
    // Without Landlock it is what keeps /proc/PID/root of others shut: that is refused across user namespaces.
    ownUser: view && (features.needsUserNamespace || landlockAbi === 0),
    networkNamespace: view && off,
    inetSockets: off ? (view ? 'isolated' : 'refused') : 'open',
    unixSockets: pathSocketsContained ? 'allowed' : 'refused',
    socketsOfOthers: policy.network.unixSockets === 'allowed',
    // Each command has a domain of its own, which reaches no other (security/landlock/task.c, since ABI 1).
    tracing:
      landlockAbi === 0
        ? 'refused'
        : features.seccomp.available && features.seccompListener
          ? 'own'
          : 'own-but-exits',
    // Without a domain of its own the command would be in the launcher's scope and could signal it.
    processTree: features.signalScope && landlockAbi > 0 ? 'signal-scope' : 'subreaper',
    cgroup: cgroupOf(features),
  };
}

function cgroupOf({ cgroup }: HostFeatures): CgroupPlace | undefined {
  return cgroup.path === undefined ? undefined : cgroup;
}
