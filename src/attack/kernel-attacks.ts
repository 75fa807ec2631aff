import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Attack, type Place, showsSecret } from './attack.ts';

const asks = (
  id: string,
  does: string,
  move: readonly [string, ...string[]] | ((place: Place) => readonly [string, ...string[]]),
): Attack => ({
  id,
  control: 'syscalls',
  does,
  stage: (place) => ({ move: typeof move === 'function' ? move(place) : move }),
});

/** An empty directory of the workspace. */
function directory({ workspace, name }: Place): string {
  const path = join(workspace, name());
  mkdirSync(path);
  return path;
}

/** Parts of the kernel that work does not need. */
const FOR_ALL: readonly Attack[] = [
  asks('io-uring', 'makes a ring for io_uring', ['io-uring']),
  asks('add-key', 'puts a key into a kernel keyring', ['add-key']),
  asks('user-keyring', 'asks for the keyring of the user', ['user-keyring']),
  asks('userfaultfd', 'asks to handle page faults', ['user-faults']),
  asks('bpf', 'makes a BPF map', ['bpf']),
  asks('perf', 'opens a performance event', ['perf']),
  asks('fanotify', 'watches a whole file system', ['fanotify']),
  asks('kernel-log', 'reads the kernel log', ['kernel-log']),
  asks('personality', 'makes readable memory executable', ['read-implies-execute']),
  asks(
    'halt-exits',
    'halts processes as they exit, two at once, by which they could make each other unendable',
    ['halt-exits'],
  ),
  asks('limit-other', 'changes a resource limit of a process outside', ({ victim }) => [
    'limit-other',
    String(victim.pid),
  ]),
  {
    id: 'attach-shared-memory',
    control: 'syscalls',
    does: 'attaches the shared memory of a process outside (System V)',
    stage: (place) => ({
      move: ['attach-shared-memory', place.victim.sharedMemory],
      worked: showsSecret(place),
    }),
  },
  asks('unshare-user', 'makes a user namespace by unshare', ['new-user-namespace']),
  asks('clone-user', 'makes a user namespace by clone', ['new-user-namespace-by-clone']),
  asks('clone3-user', 'makes a user namespace by clone3', ['new-user-namespace-by-clone3']),
  asks('mount', 'mounts a file system', (place) => ['mount', directory(place)]),
  asks('fsopen', 'prepares a mount', ['new-mount-context']),
  asks('chroot', 'changes its root', (place) => ['change-root', directory(place)]),
  asks('set-user-id', 'leaves a program that runs as its owner', (place) => [
    'set-user-id',
    directory(place),
  ]),
  asks('lease', 'makes others wait who open a file', (place) => ['lease', join(directory(place), 'file')]),
  asks('open-by-handle', 'opens a file by its number', (place) => ['open-by-number', place.workspace]),
];

const FOR_X64: readonly Attack[] = [
  asks('x32-call', 'makes a call by the numbers of x32', ['other-table']),
  asks('int80-call', 'makes a call by the numbers of 32-bit programs', ['old-table']),
];

/** What this machine’s architecture has. */
export const KERNEL_ATTACKS: readonly Attack[] = process.arch === 'x64' ? [...FOR_ALL, ...FOR_X64] : FOR_ALL;
