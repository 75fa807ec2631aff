import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Attack,
  attacksOn,
  freshName,
  getsSecret,
  IN_PART,
  type Move,
  onlyIf,
  type Place,
  SECRET_VARIABLE,
  type Stage,
  says,
} from './attack.ts';

/** Somebody else than root. */
const ANOTHER = 65534;
/** Devices that programs of users have no part in; opening one of them does nothing by itself. */
const OTHER_DEVICES = ['/dev/net/tun', '/dev/kvm', '/dev/fuse', '/dev/loop-control', '/dev/kmsg', '/dev/mem'];
/** How long more than the limit is used: long enough for a limit that is sampled. */
const HELD_MS = '500';
/** Long enough for a busy machine to look. */
const HELD_IN_SANDBOX_MS = '4000';

/** With a new empty directory of the workspace. */
const inDirectory =
  (move: (directory: string) => Move): Stage =>
  ({ workspace }) => {
    const path = join(workspace, freshName());
    mkdirSync(path);
    return { move: move(path) };
  };

const asRoot =
  (move: (place: Place) => Move): Stage =>
  (place) => {
    onlyIf(process.getuid?.() === 0, 'only root could do it in the first place');
    return { move: move(place) };
  };

/** A program in the workspace that belongs to another user and is set-uid. */
function setUidProgram({ workspace, program }: Place): string {
  const path = join(workspace, freshName());
  copyFileSync(program, path);
  chownSync(path, ANOTHER, ANOTHER);
  chmodSync(path, 0o4755);
  return path;
}

const opensDevice: Stage = (place) => {
  const device = OTHER_DEVICES.find((path) => existsSync(path) && !place.isGranted(path));
  onlyIf(device !== undefined, 'this machine has none, or the policy grants them');
  return { move: ['open-device', device] };
};

const types =
  (move: string): Stage =>
  ({ inSandbox }) => ({ move: [move, inSandbox ? 'standard-input' : 'own'] });

/** Uses more than the limits, and keeps it. */
const uses =
  (...what: readonly [string, string]): Stage =>
  ({ inSandbox }) => ({ move: [...what, inSandbox ? HELD_IN_SANDBOX_MS : HELD_MS] });

const fillsTemporary: Stage = ({ files, inSandbox }) => {
  onlyIf(files.tmp !== 'host', 'the policy shares the temporary directory, in which nothing is counted');
  return { move: ['files', '16', inSandbox ? HELD_IN_SANDBOX_MS : HELD_MS] };
};

/**
 * Parts of the kernel that work does not need; devices; and what the launcher has: rights, descriptors, variables, its
 * terminal, the machine’s resources.
 */
export const KERNEL_ATTACKS: readonly Attack[] = [
  ...attacksOn('syscalls', [
    ['io-uring', 'makes a ring for io_uring', says('io-uring')],
    ['add-key', 'puts a key into a kernel keyring', says('add-key')],
    ['user-keyring', 'asks for the keyring of the user', says('user-keyring')],
    ['userfaultfd', 'asks to handle page faults', says('user-faults')],
    ['bpf', 'makes a BPF map', says('bpf')],
    ['perf', 'opens a performance event', says('perf')],
    ['fanotify', 'watches a whole file system', says('fanotify')],
    ['kernel-log', 'reads the kernel log', says('kernel-log')],
    ['personality', 'makes readable memory executable', says('read-implies-execute')],
    [
      'halt-exits',
      'halts processes as they exit, two at once, by which they could make each other unendable',
      says('halt-exits'),
    ],
    [
      'limit-other',
      'changes a resource limit of a process outside',
      ({ victim }) => ({ move: ['limit-other', String(victim.pid)] }),
    ],
    [
      'attach-shared-memory',
      'attaches the shared memory of a process outside (System V)',
      getsSecret(({ victim }) => ['attach-shared-memory', victim.sharedMemory]),
    ],
    ['unshare-user', 'makes a user namespace by unshare', says('new-user-namespace')],
    ['clone-user', 'makes a user namespace by clone', says('new-user-namespace-by-clone')],
    ['clone3-user', 'makes a user namespace by clone3', says('new-user-namespace-by-clone3')],
    ['mount', 'mounts a file system', inDirectory((path) => ['mount', path])],
    ['fsopen', 'prepares a mount', says('new-mount-context')],
    ['chroot', 'changes its root', inDirectory((path) => ['change-root', path])],
    ['set-user-id', 'leaves a program that runs as its owner', inDirectory((path) => ['set-user-id', path])],
    ['lease', 'makes others wait who open a file', inDirectory((path) => ['lease', join(path, 'file')])],
    [
      'open-by-handle',
      'opens a file by its number',
      ({ workspace }) => ({ move: ['open-by-number', workspace] }),
    ],
  ]),
  ...attacksOn(
    'syscalls',
    process.arch !== 'x64'
      ? []
      : [
          ['x32-call', 'makes a call by the numbers of x32', says('other-table')],
          ['int80-call', 'makes a call by the numbers of 32-bit programs', says('old-table')],
        ],
  ),
  ...attacksOn('devices', [
    ['open-device', 'opens a device that is not listed', opensDevice, IN_PART],
    [
      'control-device',
      'sends an ioctl to a device that may only be read (/dev/urandom)',
      says('control-device', '/dev/urandom'),
    ],
    [
      'make-device',
      'makes a device file',
      asRoot(({ workspace }) => ['make-device', join(workspace, freshName())]),
      IN_PART,
    ],
  ]),
  ...attacksOn('terminal-injection', [
    ['type-into-terminal', 'types into its terminal (TIOCSTI)', types('type'), { manner: 'terminal' }],
    [
      'type-with-high-bits',
      'the same with bits that filters may overlook',
      types('type-with-high-bits'),
      { manner: 'terminal' },
    ],
    ['open-terminal', 'opens the terminal of the user (/dev/tty)', says('open-terminal'), IN_PART],
  ]),
  ...attacksOn('privileges', [
    ['has-capabilities', 'looks for capabilities that it was left', says('has-capabilities')],
    [
      'gain-by-execve',
      'looks whether set-uid programs would give it rights (no_new_privs)',
      says('can-gain-privileges'),
    ],
    [
      'run-set-uid',
      'runs a set-uid program of another user',
      asRoot((place) => ['become-owner', setUidProgram(place)]),
    ],
    ['become-another', 'becomes another user', asRoot(() => ['become-another'])],
  ]),
  ...attacksOn('descriptors', [
    ['find-descriptors', 'looks for open descriptors besides the standard ones', says('open-descriptors')],
    [
      'read-through-descriptor',
      'reads a file outside through a directory that the launcher has open',
      getsSecret(() => ['read-through-descriptors', 'open-by-launcher']),
    ],
  ]),
  ...attacksOn('environment', [
    [
      'read-variable',
      'reads a secret variable of the launcher',
      getsSecret(() => ['variable', SECRET_VARIABLE]),
    ],
  ]),
  ...attacksOn(
    'resource-limits',
    [
      ['many-processes', 'starts three times as many processes as it may', uses('processes', '150')],
      ['much-memory', 'uses three times the memory that it may', uses('memory', '96')],
      ['large-files', 'writes four times the temporary files that it may', fillsTemporary],
    ],
    // Where no cgroup holds them, they are looked at from time to time.
    { manner: 'limited', ...IN_PART, letsNothingOut: ['degraded'] },
  ),
];
