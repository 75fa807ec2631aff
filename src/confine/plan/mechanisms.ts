import { NEWEST_KNOWN_ABI } from '../kernel/landlock/rights.ts';
import type { BackendId, ControlId, ControlState, ProcessTreeTier } from './enforcement-report.ts';
import type { FullGrant, HiddenFiles } from './grant.ts';
import type { HostFeatures } from './host-features.ts';
import type { CgroupPlace, LaunchPlan, PlannedPath } from './launch-plan.ts';

/** What is done with the host's /tmp where commands cannot have their own. */
export type TmpOfHost =
  | { readonly granted: PlannedPath }
  /** Why it is not, in half a sentence. */
  | { readonly refused: string };

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

/** The state of a control, and the reason. */
export type Finding = readonly [state: ControlState, reason: string];
/** Says how a control is held. */
export type Judge = (
  used: Mechanisms,
  grant: FullGrant,
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

/** The mechanisms that a plan uses on this host. They are chosen only here; plan, filter and report follow from them. */
export interface Mechanisms {
  readonly backend: BackendId;
  /** ABI whose rights are used; 0: Landlock is not used. */
  readonly landlockAbi: number;
  readonly seccomp: boolean;
  /** Commands have their own root, /tmp and devices, in a mount namespace. */
  readonly view: boolean;
  /** Something can be shut or hidden inside a writable path: by mounts, ours or those of a launcher. */
  readonly shutsInside: boolean;
  /** Commands have their own message queues, semaphores and shared memory. */
  readonly ownIpc: boolean;
  /** Commands run in a user namespace of ours. */
  readonly ownUser: boolean;
  /** Commands have a network namespace with only a loopback interface. */
  readonly networkNamespace: boolean;
  /** What seccomp does with sockets; `listed`: a supervisor makes and connects them. */
  readonly inetSockets: LaunchPlan['network'];
  readonly unixSockets: 'allowed' | 'supervised' | 'refused';
  /** Commands may connect to sockets that processes outside made in writable paths. */
  readonly socketsOfOthers: boolean;
  /**
   * Whether processes of a command may trace each other, which needs a Landlock domain that keeps them from all others.
   * `own`: one of them at a time may also stop others as they exit (PTRACE_O_TRACEEXIT); `own-but-exits`: none may.
   */
  readonly tracing: 'own' | 'own-but-exits' | 'refused';
  /** Which system calls our seccomp listener observes. */
  readonly observed: LaunchPlan['observed'];
  readonly processTree: ProcessTreeTier;
  /** Where control groups for commands are made. */
  readonly cgroup: CgroupPlace | undefined;
}

/** The mechanisms that a backend chooses. */
export type Chosen = Omit<Mechanisms, 'backend' | 'seccomp' | 'cgroup'>;

/** The part of a backend on which plan and report depend. */
export interface Way {
  readonly id: BackendId;
  /** The mechanisms that it uses on a host, except seccomp and control groups. */
  readonly mechanisms: (grant: FullGrant, features: HostFeatures) => Chosen;
  /** The report on controls that it holds by other means than Landlock and namespaces of ours. */
  readonly judges?: Partial<Readonly<Record<ControlId, Judge>>>;
  /** Controls that it holds on no host. Naming it, in a policy or as an option, accepts that. */
  readonly givesUp?: readonly ControlId[];
  /** Why its commands share no cache; missing: they may. */
  readonly noCache?: string;
  /** Another program makes the mounts of each command: private directories lie directly in the temporary one, and none is shared. */
  readonly ownMounts?: boolean;
}

/** Mechanisms of a backend that uses neither Landlock nor namespaces of ours. */
export const WITHOUT_KERNEL = {
  landlockAbi: 0,
  view: false,
  ownUser: false,
  tracing: 'refused',
  observed: 'nothing',
  processTree: 'subreaper',
} as const;

/** Picks the strongest mechanisms that the host offers for a grant by a way. */
export function chooseMechanisms(grant: FullGrant, features: HostFeatures, way: Way): Mechanisms {
  return {
    backend: way.id,
    seccomp: features.seccomp.available,
    cgroup: features.cgroup.path === undefined ? undefined : features.cgroup,
    ...way.mechanisms(grant, features),
  };
}

/** The mechanisms with Landlock. */
export const ofLandlock: Way['mechanisms'] = (grant, features) =>
  ofKernel(grant, features, Math.min(features.landlockAbi, NEWEST_KNOWN_ABI));

/** The mechanisms with namespaces alone. */
export const ofNamespaces: Way['mechanisms'] = (grant, features) => ofKernel(grant, features, 0);

/** `auto` observes only calls whose observation has no measurable cost. */
const OBSERVED_BY_EXPLAIN = { auto: 'changes', always: 'everything', never: 'nothing' } as const;

function ofKernel({ network, explain }: FullGrant, features: HostFeatures, landlockAbi: number): Chosen {
  const view = features.namespaces.available;
  const listed = network.mode === 'listed';
  // A listed network is off for the command itself; our supervisor makes the allowed connections.
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
    // Without Landlock, only a user namespace keeps commands out of /proc/PID/root of other processes.
    ownUser: view && (features.needsUserNamespace || landlockAbi === 0),
    networkNamespace: view && off,
    socketsOfOthers: network.unixSockets === 'allowed',
    inetSockets: listed ? 'listed' : off ? (view ? 'isolated' : 'refused') : 'open',
    unixSockets: listed ? 'supervised' : pathSocketsContained ? 'allowed' : 'refused',
    // Since ABI 1, a process in a Landlock domain cannot trace processes outside it (security/landlock/task.c).
    tracing:
      landlockAbi === 0
        ? 'refused'
        : features.seccomp.available && features.seccompListener
          ? 'own'
          : 'own-but-exits',
    observed: canLook ? OBSERVED_BY_EXPLAIN[explain] : 'nothing',
    processTree,
  };
}

/**
 * Whether a supervisor answers `chmod` with the set-group-ID bit (allowed for directories only). It needs a seccomp listener that exists
 * anyway, and a way to keep out paths outside: the mounts of a view, or Landlock rules, which only the call observer knows.
 */
export const supervisesModes = (used: Mechanisms): boolean =>
  supervisesProcesses(used) && (used.view || (used.observed !== 'nothing' && used.landlockAbi > 0));

/** Whether a supervisor refuses forbidden sockets, so that they are reported: a filter that refuses by itself reports nothing. */
export const tellsRefusedSockets = ({ seccomp, observed }: Mechanisms): boolean =>
  seccomp && observed !== 'nothing';

/** Whether a supervisor checks that a process ID in a call belongs to the command itself. */
export const supervisesProcesses = ({ seccomp, observed, inetSockets }: Mechanisms): boolean =>
  seccomp && (observed !== 'nothing' || inetSockets === 'listed');
