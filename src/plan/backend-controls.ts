import type { ControlId } from '../model/enforcement-report.ts';
import { type Finding, type Judge, REOPENED } from './mechanisms.ts';
import { resourceLimits } from './planned-limits.ts';

/** Some of many paths. */
export const named = (paths: readonly string[]): string =>
  `${paths.slice(0, 3).join(', ')}${paths.length > 3 ? ` and ${paths.length - 3} more` : ''}`;

/** Of the control `hidden-paths`. */
export const emptyAndShut = (paths: readonly string[]): string =>
  `${paths.length === 1 ? '1 path is' : `${paths.length} paths are`} empty and shut (mounts): what matched when the command started`;

/** A hidden file that can perhaps be read by another name. */
export const otherNames = (elsewhere: readonly string[]): Finding => [
  'degraded',
  `${named(elsewhere)} has other names (hard links) that were not found where commands can read; remove them, or make it a file of its own (cp)`,
];

const CHECKED = 'checked before a command runs, and nothing holds it while it runs';

/** What is to be said of controls where words are judged and nothing else keeps a command in. */
export const APPLICATION_JUDGES: Partial<Readonly<Record<ControlId, Judge>>> = {
  filesystem: () => [
    'unsupported',
    `programs, options and paths are ${CHECKED}: what others put in the way of a path meanwhile is followed (not by redirects, which follow no links)`,
  ],
  'filesystem-view': () => ['unsupported', 'the whole file system of the host is there'],
  rename: () => ['unsupported', `paths are ${CHECKED}`],
  truncate: () => ['unsupported', `paths are ${CHECKED}`],
  metadata: () => ['unsupported', `paths are ${CHECKED}`],
  'protected-paths': () => [
    'unsupported',
    `.git/hooks and its like are ${CHECKED}; they are put back when it ends`,
  ],
  'hidden-paths': (_used, _policy, _features, { hidden }) =>
    hidden === undefined || hidden.paths.length === 0
      ? ['enforced', 'nothing that matches is there']
      : ['unsupported', `${named(hidden.paths)} can be read by a program that finds it`],
  'private-tmp': () => [
    'degraded',
    'TMPDIR is private; that /tmp and /dev/shm are left alone is only checked',
  ],
  devices: () => ['unsupported', `paths are ${CHECKED}`],
  network: (used) =>
    used.seccomp
      ? [
          'degraded',
          'seccomp refuses sockets, but files are not held, and so not what may be reached through them',
        ]
      : ['unsupported', `programs are ${CHECKED}: none that uses the network is let through`],
  'unix-sockets': (used) =>
    used.seccomp
      ? ['enforced', 'socket(AF_UNIX) is refused altogether; socketpair works']
      : ['unsupported', `programs are ${CHECKED}`],
  denials: () => notTold('what is refused is said before a command runs, and nobody looks while it runs'),
};

/** Of the control `denials`. */
export const notTold = (why: string): Finding => [
  'unsupported',
  `what a command is denied is not known: ${why}`,
];

/** Of the control `workspace-changes`, which is off unless a preview is asked for. */
export const workspaceChanges: Judge = (
  { view, backend },
  _,
  { namespaces, layersRefused },
  { layer, onlyReads },
) => {
  const why = namespaces.available ? `not with ${backend}` : namespaces.reason;
  const impossible = view
    ? layersRefused && `a preview needs a layer: ${layersRefused}`
    : `a preview needs a mount namespace of ours (${why})`;
  if (onlyReads === true)
    return ['enforced', 'the command only reads, as far as its words tell, so it cannot write the workspace'];
  if (layer === undefined)
    return ['off', `commands change the workspace at once; ${impossible ?? '--preview holds changes back'}`];
  if (impossible !== undefined)
    return [
      'unsupported',
      `changes cannot be held back: ${impossible}; see sandbox-run doctor; a copy of the workspace serves the same end`,
    ];
  const shut = layer.shut.length === 0 ? '' : `; ${named(layer.shut)} can only be read`;
  return ['enforced', `changes wait in a layer over the workspace until they are applied (overlayfs)${shut}`];
};

/** Allowed by a rule, these bring the host's temporary files along. */
const PLACES_OVER_TEMPORARY = ['/', '/tmp', '/dev/shm'];

/**
 * How each control is judged where Firejail does the confining. What it holds was measured against 0.9.72, as root and as
 * an ordinary user (test/backends/).
 */
export const FIREJAIL_JUDGES: Readonly<Record<ControlId, Judge>> = {
  filesystem: () => [
    'enforced',
    'only the listed paths can be read, written or executed; every other directory is covered (Firejail: whitelist, blacklist, read-only)',
  ],
  'filesystem-view': () => [
    'degraded',
    'other paths are absent or empty and shut, but the names in / and what is mounted on the host can be seen',
  ],
  rename: () => ['enforced', 'rename and link cannot leave the mount of a path'],
  truncate: () => ['enforced', 'files outside are absent or on read-only mounts'],
  metadata: () => [
    'enforced',
    'modes, owners and times outside cannot be changed (absent or on read-only mounts), but that the times of links in / can be set to now where commands do not run as root',
  ],
  'protected-paths': (_used, _policy, _features, found) => {
    if (found.replaceableLinks.length > 0)
      return ['degraded', `symbolic links cannot be held in place: ${found.replaceableLinks.join(', ')}`];
    if (found.shortfall !== undefined) return ['degraded', found.shortfall];
    return [
      'enforced',
      'existing ones are on read-only mounts; what commands leave behind is looked at when they end',
    ];
  },
  'hidden-paths': (_used, _policy, _features, { hidden }) => {
    const { paths = [], elsewhere = [] } = hidden ?? {};
    if (paths.length === 0) return ['enforced', 'nothing that matches is there'];
    return elsewhere.length > 0
      ? otherNames(elsewhere)
      : ['enforced', `${emptyAndShut(paths)}; they cannot be read at all (Firejail: blacklist)`];
  },
  'private-tmp': (_used, policy) => {
    const shared = PLACES_OVER_TEMPORARY.filter((place) =>
      policy.filesystem.rules.some((rule) => rule.path === place),
    );
    return shared.length > 0
      ? ['degraded', `the policy allows ${shared.join(', ')}, so that the host’s temporary files are seen`]
      : ['enforced', '/tmp and /dev/shm are private to the command'];
  },
  devices: () => [
    'degraded',
    'only null, zero, full, random, urandom, tty and own terminals are there, but ioctl on them is not limited',
  ],
  network: (used) =>
    used.seccomp
      ? [
          'enforced',
          'own network namespace: nothing but its own loopback, raw and exotic sockets refused (Firejail, seccomp)',
        ]
      : ['degraded', 'own network namespace, but AF_VSOCK is not part of it: needs seccomp'],
  'unix-sockets': () => [
    'degraded',
    'sockets of the host are absent, D-Bus too, except those in the workspace and in allowed paths',
  ],
  'abstract-sockets': (used) =>
    used.networkNamespace
      ? ['enforced', 'own network namespace']
      : ['unsupported', 'abstract sockets of the host can be reached where the network is open'],
  signals: () => ['enforced', 'processes outside have no number inside (own process namespace)'],
  'process-inspection': () => [
    'enforced',
    'processes outside cannot be seen (own process namespace with its own /proc)',
  ],
  syscalls: (used) =>
    used.seccomp
      ? [
          'enforced',
          'seccomp refuses kernel interfaces that work does not need (io_uring, keys, mounts, namespaces, tracing, …), by our filter and Firejail’s',
        ]
      : ['degraded', 'Firejail’s filter only, which refuses less than ours'],
  'terminal-injection': (used) =>
    used.seccomp
      ? ['enforced', 'own session, without the terminal of the user; TIOCSTI and TIOCLINUX refused']
      : ['degraded', 'own session, but TIOCSTI is not refused: needs seccomp'],
  privileges: () => [
    'enforced',
    'no_new_privs, no capabilities, set-uid programs gain nothing; Firejail itself is one that started as root',
  ],
  descriptors: () => REOPENED,
  environment: () => ['enforced', 'rebuilt from the listed names; of Firejail’s own variables none'],
  'process-tree': () => [
    'enforced',
    'everything that the command started ends with it, also if the launcher is killed (process namespace, and a warden that the command cannot reach)',
  ],
  'resource-limits': (used, policy, features, found) => {
    const [state, reason] = resourceLimits(used, policy, features, found);
    if (policy.filesystem.tmp === 'host') return [state, reason];
    return [
      'degraded',
      `${reason}; files in /tmp beside TMPDIR and in /dev/shm count as memory and have no limit of their own`,
    ];
  },
  'workspace-changes': workspaceChanges,
  denials: () =>
    notTold('Firejail gains its rights as it starts, and beneath a seccomp listener no program gains any'),
};
