import type { ControlId } from '../model/enforcement-report.ts';
import type { Judge } from './judge-control.ts';

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
  'protected-paths': (_, policy) =>
    policy.filesystem.protect.length === 0
      ? ['off', 'the policy protects no paths inside the workspace']
      : ['unsupported', `.git/hooks and its like are ${CHECKED}; they are put back when it ends`],
  'private-tmp': (_, policy) =>
    policy.filesystem.tmp === 'host'
      ? ['off', 'the policy shares the host’s /tmp']
      : ['degraded', 'TMPDIR is private; that /tmp and /dev/shm are left alone is only checked'],
  devices: () => ['unsupported', `paths are ${CHECKED}`],
  network: (used, policy) => {
    if (policy.network.mode === 'open') return ['off', 'the profile allows the network'];
    return used.seccomp
      ? [
          'degraded',
          'seccomp refuses sockets, but files are not held, and so not what may be reached through them',
        ]
      : ['unsupported', `programs are ${CHECKED}: none that uses the network is let through`];
  },
  'unix-sockets': (used, policy) => {
    if (policy.network.unixSockets === 'allowed') return ['off', 'the policy allows sockets of the host'];
    return used.seccomp
      ? ['enforced', 'socket(AF_UNIX) is refused altogether; socketpair works']
      : ['unsupported', `programs are ${CHECKED}`];
  },
};
