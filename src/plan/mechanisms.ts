import { NEWEST_KNOWN_ABI } from '../kernel/landlock/rights.ts';
import type { BackendId, ControlState, ProcessTreeTier } from '../model/enforcement-report.ts';
import type { HostFeatures } from '../model/host-features.ts';
import type { CgroupPlace, LaunchPlan, PlannedPath } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import { assertNever } from '../util/assert-never.ts';

/** What is done with the host's /tmp where commands cannot have their own. */
export type TmpOfHost =
  | { readonly granted: PlannedPath }
  /** Why it is not, in half a sentence. */
  | { readonly refused: string };

/** What `filesystem.hide` matches at the time of a plan. */
export interface HiddenFiles {
  /** Canonical, none in another: files and directories in whose place commands find nothing. */
  readonly paths: readonly string[];
  /** Of those, files that have further names (hard links) which were not found. */
  readonly elsewhere: readonly string[];
  /** Of `paths`, files that git tracks. Commands cannot open them: git would take an empty file for a change and commit it. */
  readonly tracked?: readonly string[];
}

/** What a plan met in the workspace that weakens a control. */
export interface WorkspaceFindings {
  /** Symbolic links on the way to protected paths, which a command can replace. */
  readonly replaceableLinks: readonly string[];
  /** Why not all of it is known; `undefined`: it is. */
  readonly shortfall?: string | undefined;
  /** The workspace or its repository is a set-group-ID directory. */
  readonly sharedByGroup?: boolean;
  /** `undefined`: commands have their own, or it is theirs by policy. */
  readonly tmp?: TmpOfHost | undefined;
  /** `undefined`: the policy hides nothing. */
  readonly hidden?: HiddenFiles | undefined;
  /** Changes of the workspace wait in a layer; what could be written beside it, and is only read. */
  readonly layer?: { readonly shut: readonly string[] } | undefined;
  /** Commands are known to do nothing but read. */
  readonly onlyReads?: boolean | undefined;
}

/** What is said about a control. */
export type Finding = readonly [state: ControlState, reason: string];
/** Says how a control is held. */
export type Judge = (
  used: Mechanisms,
  policy: Policy,
  features: HostFeatures,
  found: WorkspaceFindings,
) => Finding;

/**
 * The control `descriptors` where Landlock is not used: /proc/self/fd leads to the file itself, outside of every view. A file
 * given as standard input is therefore read by the launcher and arrives through a pipe.
 */
export const REOPENED: Finding = [
  'enforced',
  'only standard input, output and error are handed over; a file given as output or error, not as input, can be opened anew, read and written elsewhere, as far as the user may (needs Landlock)',
];

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
  /** What seccomp does with sockets; `listed`: a supervisor makes and connects them. */
  readonly inetSockets: LaunchPlan['network'];
  readonly unixSockets: 'allowed' | 'supervised' | 'refused';
  /** Sockets by path that processes outside made may be used in paths that may be written. */
  readonly socketsOfOthers: boolean;
  /**
   * Whether processes of a command may trace each other: where a domain keeps them from all others. And whether one of
   * them at a time may halt others as they exit.
   */
  readonly tracing: 'own' | 'own-but-exits' | 'refused';
  /** Which calls are looked at on their way into the kernel, by a listener of ours. */
  readonly observed: LaunchPlan['observed'];
  readonly processTree: ProcessTreeTier;
  /** Where control groups for commands are made. */
  readonly cgroup: CgroupPlace | undefined;
}

/** Picks the strongest mechanisms that the host offers for the policy under a backend. */
export function chooseMechanisms(policy: Policy, features: HostFeatures, backend: BackendId): Mechanisms {
  const { network } = policy;
  // Where the network is listed the kernel backends have a supervisor, and others leave it off.
  const off = network.mode !== 'open';
  const common = {
    backend,
    seccomp: features.seccomp.available,
    socketsOfOthers: network.unixSockets === 'allowed',
    cgroup: features.cgroup.path === undefined ? undefined : features.cgroup,
  };
  /** Where neither Landlock nor namespaces are ours. */
  const withoutKernel = {
    landlockAbi: 0,
    view: false,
    ownUser: false,
    tracing: 'refused',
    observed: 'nothing',
    processTree: 'subreaper',
  } as const;
  switch (backend) {
    case 'landlock':
      return { ...common, ...ofKernel(policy, features, Math.min(features.landlockAbi, NEWEST_KNOWN_ABI)) };
    case 'namespaces':
      return { ...common, ...ofKernel(policy, features, 0) };
    case 'firejail':
      // It makes mounts and namespaces by itself; the filter is ours.
      return {
        ...{ ...common, ...withoutKernel },
        ...{ shutsInside: true, ownIpc: true, networkNamespace: off },
        inetSockets: off ? 'isolated' : 'open',
        unixSockets: 'allowed',
        socketsOfOthers: true,
      };
    case 'application':
      // Defence in depth: what the kernel has is used, also where nothing is built on it.
      return {
        ...{ ...common, ...withoutKernel },
        ...{ shutsInside: false, ownIpc: false, networkNamespace: false },
        inetSockets: off ? 'refused' : 'open',
        unixSockets: network.unixSockets === 'allowed' ? 'allowed' : 'refused',
      };
    default:
      return assertNever(backend);
  }
}

/** `auto`: what costs nothing that can be measured. */
const OBSERVED_BY_EXPLAIN = { auto: 'changes', always: 'everything', never: 'nothing' } as const;

function ofKernel(
  { network, sandbox }: Policy,
  features: HostFeatures,
  landlockAbi: number,
): Omit<Mechanisms, 'backend' | 'seccomp' | 'socketsOfOthers' | 'cgroup'> {
  const view = features.namespaces.available;
  const listed = network.mode === 'listed';
  const off = network.mode !== 'open';
  // Without a domain of its own the command would be in the launcher's scope and could signal it.
  const processTree = features.signalScope && landlockAbi > 0 ? 'signal-scope' : 'subreaper';
  const canLook = features.seccomp.available && features.seccompListener;
  const pathSocketsContained = view || landlockAbi >= 9 || network.unixSockets === 'allowed';
  return {
    landlockAbi,
    view,
    shutsInside: view,
    ownIpc: view,
    // Without Landlock it is what keeps /proc/PID/root of others shut: that is refused across user namespaces.
    ownUser: view && (features.needsUserNamespace || landlockAbi === 0),
    networkNamespace: view && off,
    inetSockets: listed ? 'listed' : off ? (view ? 'isolated' : 'refused') : 'open',
    unixSockets: listed ? 'supervised' : pathSocketsContained ? 'allowed' : 'refused',
    // Each command has a domain of its own, which reaches no other (security/landlock/task.c, since ABI 1).
    tracing:
      landlockAbi === 0
        ? 'refused'
        : features.seccomp.available && features.seccompListener
          ? 'own'
          : 'own-but-exits',
    observed: canLook ? OBSERVED_BY_EXPLAIN[sandbox.explain] : 'nothing',
    processTree,
  };
}

/**
 * Whether a supervisor tells directories from files where a mode is given: there is a listener for another reason, and a view,
 * whose mounts keep out modes of what lies outside.
 */
export const supervisesModes = ({ seccomp, view, observed, inetSockets }: Mechanisms): boolean =>
  seccomp && view && (observed !== 'nothing' || inetSockets === 'listed');
