import {
  emptyAndShut,
  notTold,
  otherNames,
  workspaceChanges,
} from '../../../confine/plan/controls-in-words.ts';
import type { ControlId } from '../../../confine/plan/enforcement-report.ts';
import { type Judge, REOPENED } from '../../../confine/plan/mechanisms.ts';
import { resourceLimits } from '../../../confine/plan/planned-limits.ts';

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
  'private-tmp': (_used, grant) => {
    const shared = PLACES_OVER_TEMPORARY.filter((place) => grant.paths.some(({ path }) => path === place));
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
  'resource-limits': (used, grant, features, found) => {
    const [state, reason] = resourceLimits(used, grant, features, found);
    if (grant.tmp === 'host') return [state, reason];
    return [
      'degraded',
      `${reason}; files in /tmp beside TMPDIR and in /dev/shm count as memory and have no limit of their own`,
    ];
  },
  'workspace-changes': workspaceChanges,
  denials: () =>
    notTold('Firejail gains its rights as it starts, and beneath a seccomp listener no program gains any'),
};
