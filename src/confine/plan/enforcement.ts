import { assertNever } from '../../base/assert-never.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { CONTROL_IDS, isAtLeast } from '../../base/words.ts';
import { NEWEST_KNOWN_ABI } from '../kernel/landlock/rights.ts';
import { emptyAndShut, named, notTold, otherNames, workspaceChanges } from './controls-in-words.ts';
import type {
  Control,
  ControlId,
  ControlState,
  Demand,
  EnforcementReport,
  PassedOver,
} from './enforcement-report.ts';
import type { Demands, FullGrant } from './grant.ts';
import type { HostFeatures } from './host-features.ts';
import {
  type Judge,
  type Mechanisms,
  REOPENED,
  supervisesModes,
  supervisesProcesses,
  type Way,
  type WorkspaceFindings,
} from './mechanisms.ts';
import { resourceLimits } from './planned-limits.ts';

/** Allowed by a rule, these bring the host's temporary files along. */
const PLACES_OVER_TEMPORARY = ['/', '/tmp', '/var/tmp', '/dev', '/dev/shm'];

const reasonAgainst = (facility: HostFeatures['landlock']): string =>
  facility.available ? '' : facility.reason;

/** Before 5.14 /proc/PID/fdinfo asked for nothing but the same user. */
const hidesFdinfo = (release: string): boolean => {
  const [major = 0, minor = 0] = release.split('.').map((part) => Number.parseInt(part, 10));
  return major > 5 || (major === 5 && minor >= 14);
};

/** What the report says about processes of a command that trace each other. */
function tracing({ tracing, seccomp }: Mechanisms): string {
  switch (tracing) {
    case 'own':
      return 'a command can trace its own processes (halt them as they exit, as strace does: one tracer at a time), but not in shell sessions';
    case 'own-but-exits':
      return `a command can trace its own processes${seccomp ? ', but not halt them as they exit (strace), because a seccomp listener was refused (an outer sandbox may have the only one), and not in shell sessions' : ''}`;
    case 'refused':
      return seccomp
        ? 'tracing is refused altogether, debuggers and leak checkers do not run: needs Landlock'
        : 'commands of one sandbox can trace each other';
    default:
      return assertNever(tracing);
  }
}

const newerThanKnown = (features: HostFeatures): string =>
  features.landlockAbi > NEWEST_KNOWN_ABI
    ? `; the kernel has ${features.landlockAbi}, newer than this version of sandbox-run knows`
    : '';

const sinceAbi = (abi: number, kernel: string, held: string, missing: string): Judge => {
  return (used) =>
    used.landlockAbi >= abi
      ? ['enforced', `${held} (Landlock ABI ${abi})`]
      : [
          'degraded',
          `${missing}: needs Landlock ABI ${abi} (Linux ${kernel}), ${used.landlockAbi === 0 ? 'which this backend does without' : `this host has ${used.landlockAbi}`}`,
        ];
};

const NO_LISTENER = 'a seccomp listener, which was refused (an outer sandbox may have the only one)';

/** Nothing takes its place: with less a command would reach what nobody listed. */
function listedNetwork(
  used: Mechanisms,
  { network }: FullGrant,
  features: HostFeatures,
): readonly [ControlState, string] {
  if (!used.seccomp) return ['unsupported', reasonAgainst(features.seccomp)];
  if (!features.seccompListener) return ['unsupported', `it needs ${NO_LISTENER}`];
  const floor = [
    ...(used.networkNamespace ? ['own network namespace'] : []),
    ...(used.landlockAbi >= 4 ? ['Landlock'] : []),
  ];
  const carried = [
    ...(network.verify === 'sni' ? ['to names at 443 and 80'] : []),
    ...(network.allow.some((entry) => /\/(?:tls|http)$/.test(entry))
      ? ['of entries with /tls or /http']
      : []),
  ];
  const inside =
    carried.length === 0
      ? ''
      : `; connections ${carried.join(' and ')} pass through it, and must themselves name a host that may be reached`;
  const [beside, others] =
    network.unlisted === 'ask'
      ? [', and what somebody allows when asked,', 'an unlisted one only after a yes']
      : ['', 'and others do not exist'];
  return [
    'enforced',
    `only what network.allow lists${beside} can be connected to, by sockets that a supervisor makes; names are looked up by it, ${others}${inside} (seccomp listener${floor.length === 0 ? '' : `; beneath it ${floor.join(' and ')}`})`,
  ];
}

/** Denials that are not reported, and uses that are, by the value of `observed`. */
const BUT: Readonly<Record<Exclude<Mechanisms['observed'], 'nothing'>, string>> = {
  changes: '; not what it only reads (sandbox.explain = "always")',
  everything: '',
  uses: '; and what another policy would deny',
};

/** How each control is judged. THE place where a missing kernel feature is weighed. */
const JUDGES: Readonly<Record<ControlId, Judge>> = {
  filesystem: (used, _, features) => {
    if (used.landlockAbi > 0) {
      return [
        'enforced',
        `only the listed paths can be read, written or executed (Landlock ABI ${used.landlockAbi}${newerThanKnown(features)})`,
      ];
    }
    if (!used.view) return ['unsupported', reasonAgainst(features.landlock)];
    return used.ownUser && used.seccomp
      ? ['enforced', 'paths that are not listed are absent (mount and user namespaces, seccomp)']
      : ['degraded', 'paths that are not listed are absent, but seccomp is needed to keep it so'];
  },
  'filesystem-view': (used, _, features) =>
    used.view
      ? ['enforced', 'everything else is absent (mount namespace with a root of its own)']
      : ['unsupported', `other paths are refused but visible: ${reasonAgainst(features.namespaces)}`],
  rename: (used) => {
    if (used.landlockAbi >= 2)
      return ['enforced', 'rename and link cannot carry a file to wider rights (Landlock ABI 2)'];
    return used.landlockAbi === 0 && used.view
      ? ['enforced', 'rename and link cannot leave the mount of a path']
      : ['degraded', 'rename and link between directories always fail: needs Landlock ABI 2 (Linux 5.19)'];
  },
  truncate: (used) =>
    used.landlockAbi >= 3
      ? ['enforced', 'files outside cannot be truncated (Landlock ABI 3)']
      : used.view
        ? ['enforced', 'files outside are absent or on read-only mounts']
        : ['degraded', 'truncate(2) of files outside is not refused: needs Landlock ABI 3 (Linux 6.2)'],
  metadata: (used) =>
    used.view
      ? ['enforced', 'modes, owners and times outside cannot be changed (absent or on read-only mounts)']
      : [
          'unsupported',
          'chmod, chown, utime and setxattr on the user’s own files outside are not refused; needs namespaces',
        ],
  'protected-paths': (used, _, __, found) => {
    if (!used.view) {
      return [
        'degraded',
        '.git/hooks and its like can be written while a command runs, and are put back when it ends; needs namespaces, Landlock cannot deny inside the workspace',
      ];
    }
    if (found.shortfall !== undefined) return ['degraded', found.shortfall];
    if (found.replaceableLinks.length > 0) {
      return [
        'degraded',
        `symbolic links cannot be held in place, and are put back when a command ends: ${found.replaceableLinks.join(', ')}`,
      ];
    }
    return [
      'enforced',
      'existing ones are on read-only mounts (git’s configuration is a private copy); what commands leave behind is looked at when they end',
    ];
  },
  'hidden-paths': (used, _, features, { hidden }) => {
    const { paths = [], elsewhere = [] } = hidden ?? {};
    if (paths.length === 0) return ['enforced', 'nothing that matches is there'];
    if (!used.view)
      return ['unsupported', `${named(paths)} can be read: ${reasonAgainst(features.namespaces)}`];
    return elsewhere.length > 0 ? otherNames(elsewhere) : ['enforced', emptyAndShut(paths)];
  },
  'private-tmp': (used, grant, _, { tmp }) => {
    if (!used.view) {
      const shared = tmp !== undefined && 'granted' in tmp;
      return [
        'degraded',
        shared
          ? 'TMPDIR is private, but /tmp and /dev/shm are the host’s: commands can read and change what the user, and other commands, have there; needs namespaces'
          : `TMPDIR is private, but /tmp itself is refused${tmp === undefined ? '' : ` (${tmp.refused})`} and /dev/shm is the host’s; needs namespaces`,
      ];
    }
    const shared = PLACES_OVER_TEMPORARY.filter((place) => grant.paths.some(({ path }) => path === place));
    return shared.length > 0
      ? ['degraded', `the policy allows ${shared.join(', ')}, so that the host’s temporary files are seen`]
      : ['enforced', '/tmp and /dev/shm are private to the command'];
  },
  devices: sinceAbi(
    5,
    '6.10',
    'ioctl on device files is limited to the listed ones',
    'ioctl on readable devices is not limited',
  ),
  network: (used, grant, features) => {
    if (used.inetSockets === 'listed') return listedNetwork(used, grant, features);
    if (used.networkNamespace && used.seccomp) {
      return [
        'enforced',
        'own network namespace: nothing but its own loopback, raw and exotic sockets refused',
      ];
    }
    if (used.networkNamespace) {
      return ['degraded', 'own network namespace, but AF_VSOCK is not part of it: needs seccomp'];
    }
    if (used.seccomp)
      return ['enforced', 'seccomp refuses every socket but those of AF_UNIX and route queries'];
    return ['unsupported', reasonAgainst(features.seccomp)];
  },
  'unix-sockets': (used) => {
    if (used.unixSockets === 'supervised')
      return [
        'enforced',
        'a supervisor connects stream sockets: to those of network.unix and to the sandbox’s own; datagram sockets are refused',
      ];
    if (used.landlockAbi >= 9 && used.unixSockets === 'allowed')
      return ['enforced', 'sockets by path outside the sandbox are refused (Landlock ABI 9)'];
    if (used.view && used.unixSockets === 'allowed') {
      return [
        'degraded',
        'sockets of the host are absent, except those in the workspace and in allowed paths; these need Landlock ABI 9',
      ];
    }
    if (used.seccomp) {
      return [
        'enforced',
        'socket(AF_UNIX) is refused altogether; socketpair works (own sockets by path need namespaces or Landlock ABI 9)',
      ];
    }
    return [
      'unsupported',
      'D-Bus, Docker and other sockets by path can be reached; needs namespaces, seccomp or Landlock ABI 9',
    ];
  },
  'abstract-sockets': (used) => {
    if (used.unixSockets === 'supervised')
      return ['enforced', 'a supervisor connects them: to the sandbox’s own and to no other'];
    if (used.networkNamespace) return ['enforced', 'own network namespace'];
    if (used.landlockAbi >= 6) return ['enforced', 'abstract sockets outside are refused (Landlock ABI 6)'];
    if (used.seccomp && used.unixSockets === 'refused') return ['enforced', 'socket(AF_UNIX) is refused'];
    return ['unsupported', 'abstract sockets of the host can be reached: needs Landlock ABI 6 (Linux 6.12)'];
  },
  signals: (used) =>
    used.landlockAbi >= 6
      ? [
          'enforced',
          `processes outside cannot be signaled (Landlock ABI 6)${supervisesProcesses(used) ? '' : `; the ${used.seccomp ? 'processors' : 'scheduling'} of the user’s own can be changed`}`,
        ]
      : [
          'unsupported',
          'other processes of the same user can be signaled: needs Landlock ABI 6 (Linux 6.12)',
        ],
  'process-inspection': (used, _, { kernelRelease }) =>
    used.landlockAbi > 0 || used.ownUser
      ? [
          'enforced',
          `memory, environment and descriptors of processes outside are closed (${used.landlockAbi > 0 ? 'Landlock, no capabilities' : 'user namespace'}); their names and arguments in /proc are visible${hidesFdinfo(kernelRelease) ? '' : ', and the positions and flags of their descriptors (before Linux 5.14)'}; ${tracing(used)}`,
        ]
      : ['unsupported', 'other processes of the same user can be read through /proc'],
  syscalls: (used, _, features, found) =>
    used.seccomp
      ? [
          'enforced',
          `seccomp refuses kernel interfaces that work does not need (io_uring, keys, mounts, namespaces, leases, set-user-ID modes, …)${found.sharedByGroup === true && !supervisesModes(used) ? '; set-group-ID modes are left, because the workspace is shared by a set-group-ID directory' : ''}`,
        ]
      : ['unsupported', reasonAgainst(features.seccomp)],
  'terminal-injection': (used, _, features) =>
    used.seccomp
      ? ['enforced', 'own session, without the terminal of the user; TIOCSTI and TIOCLINUX refused']
      : ['degraded', `own session, but TIOCSTI is not refused: ${reasonAgainst(features.seccomp)}`],
  privileges: () => ['enforced', 'no_new_privs, no capabilities, set-uid programs gain nothing'],
  descriptors: (used) =>
    used.landlockAbi > 0 ? ['enforced', 'only standard input, output and error are handed over'] : REOPENED,
  environment: () => ['enforced', 'rebuilt from the listed names'],
  'process-tree': (used, _, features) =>
    used.processTree === 'signal-scope'
      ? [
          'enforced',
          'everything that the command started ends with it, also if the launcher is killed (tier signal-scope: Landlock ABI 6 and a warden)',
        ]
      : !features.processList.available
        ? [
            'unsupported',
            `only the command and its process group are sure to end, what it started beside them may run on: ${features.processList.reason}`,
          ]
        : [
            'degraded',
            'everything that the command started ends with it, also if the launcher is killed (tier subreaper: a warden), unless it kills the warden or forks faster than it is found: needs Landlock ABI 6 (Linux 6.12)',
          ],
  'resource-limits': resourceLimits,
  'workspace-changes': workspaceChanges,
  denials: (used, _, features) => {
    if (used.observed === 'nothing')
      return notTold(used.seccomp ? `it needs ${NO_LISTENER}` : reasonAgainst(features.seccomp));
    const told = `what a command is denied is told: a seccomp listener sees its calls, and lets every one go on${BUT[used.observed]}`;
    return [used.inetSockets, used.unixSockets].includes('refused')
      ? [
          'degraded',
          `${told}; of sockets, which are refused as they are made, not where they would lead: needs namespaces, or --net @own`,
        ]
      : ['enforced', told];
  },
};

/** What a grant can do without, under each backend; why it does, or false. */
const OFF: Partial<Readonly<Record<ControlId, (grant: FullGrant) => string | false>>> = {
  'protected-paths': ({ readOnlyInside }) =>
    readOnlyInside.length === 0 && 'the policy protects no paths inside the workspace',
  'hidden-paths': ({ hidden }) => hidden === undefined && 'the policy hides no files',
  'private-tmp': ({ tmp }) => tmp === 'host' && 'the policy shares the host’s /tmp',
  network: ({ network }) => network.mode === 'open' && 'the profile allows the network',
  denials: ({ explain }) => explain === 'never' && 'nobody looks (sandbox.explain = "never")',
  'unix-sockets': ({ network }) =>
    network.unixSockets === 'allowed' && 'the policy allows sockets of the host',
};

/** The report for a grant on a host, every control judged. Pure. */
export function enforcementReport(
  grant: FullGrant,
  demands: Demands,
  features: HostFeatures,
  way: Way,
  used: Mechanisms,
  found: WorkspaceFindings,
  passedOver: readonly PassedOver[],
): EnforcementReport {
  const controls = CONTROL_IDS.map((id): Control => {
    const judge = way.judges?.[id] ?? JUDGES[id];
    const isOff = OFF[id]?.(grant);
    const [state, reason] = isOff ? (['off', isOff] as const) : judge(used, grant, features, found);
    return { id, state, reason, demand: demandFor(demands, id, way) };
  });
  const { backend, landlockAbi, processTree } = used;
  return { backend, passedOver, landlockAbi, processTree, controls };
}

/** Whether a backend gives up controls on every host: it is used only where no other backend works. */
export const givesUpByNature = ({ givesUp = [] }: Way): boolean => givesUp.length > 0;

/** A policy file's own word holds under each backend, a profile's only where the operator did not accept less. */
function demandFor({ controls, accepted, always }: Demands, id: ControlId, way: Way): Demand {
  const isAccepted = accepted !== undefined && isAtLeast(way.id, accepted) && always?.includes(id) !== true;
  return isAccepted && way.givesUp?.includes(id) === true ? 'best-effort' : (controls?.[id] ?? 'best-effort');
}

/** The error for a demanded control that does not hold. */
class Unheld extends SandboxError {
  readonly #control: ControlId;

  constructor(control: ControlId, problem: string) {
    super('enforcement.unavailable', problem);
    this.#control = control;
  }

  static controlOf(error: unknown): ControlId | undefined {
    for (let at = error; at instanceof Error; at = at.cause) if (#control in at) return at.#control;
    return undefined;
  }
}

/** The control that an error, or its cause, is about; `undefined`: no single one. */
export const controlOf = (error: unknown): ControlId | undefined => Unheld.controlOf(error);

/**
 * Whatever the policy demands: a listed network is what it says, or there is none. Something wider would open what nobody
 * listed, and with nothing at all the work that it was listed for cannot be done.
 * @throws {SandboxError} `enforcement.unavailable`.
 */
export function requireSupervisor(used: Mechanisms, grant: FullGrant, features: HostFeatures): void {
  const refuse = (why: string) => new Unheld('network', `${why}; network.mode = "off" works`);
  if (used.inetSockets !== 'listed')
    throw refuse(
      `the backend ${used.backend} cannot hold network.mode = "listed", only landlock and namespaces can`,
    );
  const [state, reason] = listedNetwork(used, grant, features);
  if (state !== 'enforced') throw refuse(`network.mode = "listed" cannot be held here: ${reason}`);
}

/**
 * Fails closed: refuses a report in which a required control is not enforced.
 * @throws {SandboxError} `enforcement.unavailable`, naming the control, the reason and the way out.
 */
export function requireDemands(report: EnforcementReport): void {
  for (const control of report.controls) {
    if (control.demand !== 'required' || control.state === 'enforced' || control.state === 'off') continue;
    throw new Unheld(
      control.id,
      `${control.id} cannot be enforced here: ${control.reason}; to run without it, set demand.${control.id} = "best-effort" in the policy`,
    );
  }
}
