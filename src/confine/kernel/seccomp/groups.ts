import { SET_GROUP_ID, SET_USER_ID } from '../mode-bits.ts';
import {
  ALLOW,
  type ArgumentCondition,
  type ArgumentIndex,
  differs,
  equals,
  equals64,
  hasAnyBit,
  maskedEquals,
  refuseWith,
  type SeccompErrno,
  type SeccompRule,
} from './ir.ts';
import {
  HOST_INTERFACE_RULES,
  NETWORK_OFF_RULES,
  SOCKET_DIAGNOSTICS_RULES,
  SOCKET_FAMILY_RULES,
  SOURCE_ROUTE_RULES,
  TCP_FAST_OPEN_RULES,
  UNIX_DATAGRAMS_RULES,
  UNIX_SOCKETS_OFF_RULES,
} from './socket-rules.ts';

/** A set of system calls that are refused for one reason. */
interface SeccompGroup {
  /** What the group keeps from happening, in one sentence for people. */
  readonly help: string;
  readonly rules: readonly SeccompRule[];
}

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET. NEWTIME lies in clone's signal byte: clone3 only. */
const CLONE_NEW_MASK = 0x7e02_0000;

/** CLONE_PARENT: the child would be the launcher's, which knows nothing of it and never reaps it. */
const CLONE_PARENT = 0x8000;

/** Linux, Linux32, each with UNAME26; ADDR_NO_RANDOMIZE (setarch -R, debuggers); 0xffffffff asks for the current one. */
const HARMLESS_PERSONALITIES = [0, 8, 0x2_0000, 0x2_0008, 0x4_0000, 0xffff_ffff];

/** ptrace: PTRACE_SETOPTIONS, its older number and PTRACE_SEIZE, which takes options as well (linux/ptrace.h). */
const SETS_TRACE_OPTIONS = [0x4200, 21, 0x4206];
const PTRACE_O_TRACEEXIT = 0x40;

const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
const TIOCSETD = 0x5423;

const S_IFMT = 0o170000;
const S_IFCHR = 0o020000;
const S_IFBLK = 0o060000;

/** O_CREAT and O_TMPFILE's own bit: without one of them the kernel does not look at a mode (WILL_CREATE in fs/internal.h). */
const MAKES_FILE = 0o100 | 0o2000_0000;

/** fcntl: F_SETLEASE, F_NOTIFY and, since 6.19, F_SETDELEG (linux/fcntl.h). */
const HOLDS_UP_OTHERS = [1024, 1026, 1040];

/** ioctl requests of linux/fs.h, fscrypt.h, fsverity.h, ext4.h and btrfs.h that change a file which its owner opened only for reading. */
const INODE_REQUESTS = {
  FS_IOC_SETFLAGS: 0x4008_6602,
  FS_IOC_FSSETXATTR: 0x401c_5820,
  FS_IOC_SETVERSION: 0x4008_7602,
  EXT4_IOC_SETVERSION: 0x4008_6604,
  FS_IOC_ENABLE_VERITY: 0x4080_6685,
  FS_IOC_SET_ENCRYPTION_POLICY: 0x800c_6613,
  // Before Linux 6.9 any file of one's own named the whole subvolume that it lies in.
  BTRFS_IOC_SNAP_CREATE: 0x5000_9401,
  BTRFS_IOC_SNAP_CREATE_V2: 0x5000_9417,
  BTRFS_IOC_SUBVOL_SETFLAGS: 0x4008_941a,
};

const GROUPS = {
  '@io-uring': {
    help: 'Stops file and network operations queued through io_uring, which run past this filter; ENOSYS makes libuv and others fall back.',
    rules: refuse('ENOSYS', 'io_uring_setup', 'io_uring_enter', 'io_uring_register'),
  },
  '@keyring': {
    help: 'Stops reading secrets from, or planting them in, the kernel keyrings of the user.',
    rules: refuse('EPERM', 'add_key', 'request_key', 'keyctl'),
  },
  '@ptrace': {
    help: 'Stops taking over other processes or reading their memory and descriptors, where nothing else keeps that inside the sandbox; debuggers and leak checkers do not run.',
    rules: refuse(
      'EPERM',
      ...['ptrace', 'process_vm_readv', 'process_vm_writev', 'pidfd_getfd', 'kcmp', 'process_madvise'],
    ),
  },
  '@trace-exit': {
    help: 'Stops tracers from halting processes on their way out: of two that trace each other so, neither can be ended any more, not even by SIGKILL (since Linux 6.5); strace does not run, gdb and leak checkers do.',
    rules: [
      {
        syscall: 'ptrace',
        when: [equals(0, ...SETS_TRACE_OPTIONS), hasAnyBit(3, PTRACE_O_TRACEEXIT)],
        action: refuseWith('EINVAL'),
      },
    ],
  },
  '@other-processes': {
    help: 'Stops changing resource limits and priorities of other processes of the user, which the kernel allows and which can end them.',
    rules: [
      { syscall: 'prlimit64', when: [equals(0, 0)], action: ALLOW },
      { syscall: 'prlimit64', when: [equals64(2, 0n)], action: ALLOW },
      ...refuse('EPERM', 'prlimit64'),
      // Oneself or, as a command has a session of its own, one's group.
      refuseIf('setpriority', differs(0, 0, 1)),
      refuseIf('setpriority', differs(1, 0)),
      refuseIf('ioprio_set', differs(0, 1, 2)),
      refuseIf('ioprio_set', differs(1, 0)),
      // Not sched_setaffinity: libc names even the calling thread by its number there, and a program whose threads are
      // pinned (OpenMP with OMP_PROC_BIND) would not start.
      refuseIf('sched_setscheduler', differs(0, 0)),
      refuseIf('sched_setparam', differs(0, 0)),
      refuseIf('sched_setattr', differs(0, 0)),
    ],
  },
  '@other-process-groups': {
    help: 'Stops changing priorities of process groups and of all processes of the user, and leaves single processes to a supervisor, which lets a command change its own and no other.',
    rules: [
      { syscall: 'setpriority', when: [equals(0, 0)], action: ALLOW },
      refuseIf('setpriority', differs(0, 1)),
      refuseIf('setpriority', differs(1, 0)),
      { syscall: 'ioprio_set', when: [equals(0, 1)], action: ALLOW },
      refuseIf('ioprio_set', differs(0, 2)),
      refuseIf('ioprio_set', differs(1, 0)),
    ],
  },
  '@mount': {
    help: 'Stops changing what file names mean by mounting, moving or replacing file systems or the root.',
    rules: refuse(
      'EPERM',
      ...['mount', 'umount2', 'pivot_root', 'chroot', 'open_tree', 'open_tree_attr', 'move_mount'],
      ...['fsopen', 'fsconfig', 'fsmount', 'fspick', 'mount_setattr'],
    ),
  },
  '@namespaces': {
    help: 'Stops entering namespaces, in which an ordinary user gets at kernel code meant for root; clone3 hides its flags from filters, and ENOSYS makes libc use clone. Stops giving children to the launcher.',
    rules: [
      ...refuse('EPERM', 'unshare', 'setns'),
      ...refuse('ENOSYS', 'clone3'),
      // The kernel takes the low half of clone's flags only (lower_32_bits in kernel/fork.c).
      refuseIf('clone', hasAnyBit(0, CLONE_NEW_MASK | CLONE_PARENT)),
    ],
  },
  '@bpf': {
    help: 'Stops loading programs into the kernel, the source of many privilege escalations.',
    rules: refuse('EPERM', 'bpf'),
  },
  '@perf': {
    help: 'Stops performance events, which observe other processes and have a long record of kernel bugs.',
    rules: refuse('EPERM', 'perf_event_open'),
  },
  '@userfaultfd': {
    help: 'Stops halting the kernel in the middle of a memory access, the usual help for winning kernel races.',
    rules: refuse('EPERM', 'userfaultfd'),
  },
  '@kexec': {
    help: 'Stops replacing the running kernel.',
    rules: refuse('EPERM', 'kexec_load', 'kexec_file_load'),
  },
  '@modules': {
    help: 'Stops loading code into the kernel as modules and unloading them.',
    rules: refuse('EPERM', 'init_module', 'finit_module', 'delete_module'),
  },
  '@reboot-swap': {
    help: 'Stops restarting the machine and changing its swap areas.',
    rules: refuse('EPERM', 'reboot', 'swapon', 'swapoff'),
  },
  '@clock': {
    help: 'Stops setting the clock of the machine; adjtimex and clock_adjtime stay because programs read with them, and setting needs a capability.',
    rules: refuse('EPERM', 'settimeofday', 'clock_settime'),
  },
  '@raw-io': {
    help: 'Stops talking to hardware through I/O ports.',
    rules: refuse('EPERM', 'iopl', 'ioperm'),
  },
  '@handles': {
    help: 'Stops opening files by inode number, past all directories on the way.',
    rules: refuse('EPERM', 'open_by_handle_at'),
  },
  '@fanotify': {
    help: 'Stops watching, and vetoing, file accesses of the whole file system; inotify stays.',
    rules: refuse('EPERM', 'fanotify_init', 'fanotify_mark'),
  },
  '@device-nodes': {
    help: 'Stops making device files, through which disks and memory can be reached.',
    rules: [
      refuseIf('mknod', maskedEquals(1, S_IFMT, S_IFCHR, S_IFBLK)),
      refuseIf('mknodat', maskedEquals(2, S_IFMT, S_IFCHR, S_IFBLK)),
    ],
  },
  '@set-id': {
    help: 'Stops making files that run with the rights of their owner or group when another user starts them: they would give the user’s rights to others after the command has ended. This also stops making set-group-ID directories by chmod; what is made in such a directory still gets the bit from the kernel. openat2 hides its mode from filters, and ENOSYS makes programs use openat.',
    rules: [...refuseMode(SET_USER_ID | SET_GROUP_ID), ...refuse('ENOSYS', 'openat2')],
  },
  '@set-id-of-files': {
    help: 'Stops the same, and leaves a set-group-ID mode of something that is there to a supervisor, which gives it to directories of the command’s own groups and to no file.',
    rules: [...refuseMode(SET_USER_ID | SET_GROUP_ID, SET_USER_ID), ...refuse('ENOSYS', 'openat2')],
  },
  '@set-user-id': {
    help: 'Stops the same but for groups, in workspaces that are shared by a set-group-ID directory, where git and cp set the bit again and fail if they cannot.',
    rules: [...refuseMode(SET_USER_ID), ...refuse('ENOSYS', 'openat2')],
  },
  '@leases': {
    help: 'Stops leases, delegations and directory notices, by which who may read a file stalls everybody who opens or changes it; locks stay.',
    rules: [refuseIf('fcntl', equals(1, ...HOLDS_UP_OTHERS))],
  },
  '@inode-flags': {
    help: 'Stops flags, project numbers, versions, verity and encryption of files (chattr) and btrfs snapshots, which leave files that their owner cannot write, delete or account for, or show what lies outside; reading them stays.',
    rules: [
      refuseIf('ioctl', equals(1, ...Object.values(INODE_REQUESTS))),
      // It takes its arguments by a pointer (Linux 6.17).
      ...refuse('EPERM', 'file_setattr'),
    ],
  },
  '@quota': {
    help: 'Stops reading and changing the disk quotas of users.',
    rules: refuse('EPERM', 'quotactl', 'quotactl_fd'),
  },
  '@hostname': {
    help: 'Stops renaming the machine.',
    rules: refuse('EPERM', 'sethostname', 'setdomainname'),
  },
  '@accounting': {
    help: 'Stops writing process accounting, reading the kernel log, which tells kernel addresses, and hanging up the terminal.',
    rules: refuse('EPERM', 'acct', 'syslog', 'lookup_dcookie', 'vhangup'),
  },
  '@obsolete': {
    help: 'Stops rarely run kernel code that only programs of the past used.',
    // Names without code behind them since before Landlock (nfsservctl, _sysctl, vserver, ...) need no row: the kernel
    // itself answers ENOSYS, and every row costs time at each start.
    rules: refuse('ENOSYS', 'modify_ldt', 'sysfs', 'uselib', 'ustat'),
  },
  '@personality': {
    help: 'Stops execution modes that weaken memory protection, such as executable data or a mapped page zero.',
    rules: [refuseIf('personality', differs(0, ...HARMLESS_PERSONALITIES))],
  },
  '@terminal-injection': {
    help: 'Stops typing into the terminal, from where the shell outside would run it as the user’s commands.',
    rules: [refuseIf('ioctl', equals(1, TIOCSTI, TIOCLINUX))],
  },
  '@line-discipline': {
    help: 'Stops loading rarely used terminal drivers into the kernel, which have a record of memory bugs.',
    rules: [refuseIf('ioctl', equals(1, TIOCSETD))],
  },
  '@network-off': {
    help: 'Stops all IPv4 and IPv6 sockets, loopback included.',
    rules: NETWORK_OFF_RULES,
  },
  '@unix-sockets-off': {
    help: 'Stops local sockets, and with them D-Bus, Docker and agents for keys, which act outside the sandbox; socketpair stays.',
    rules: UNIX_SOCKETS_OFF_RULES,
  },
  '@unix-datagrams': {
    help: 'Stops local datagram sockets, which name the receiver with each message, so that nobody could look where it goes; stream sockets stay.',
    rules: UNIX_DATAGRAMS_RULES,
  },
  '@tcp-fast-open': {
    help: 'Stops connecting by sending, which Linux before 7.2 does not hold against the allowed ports.',
    rules: TCP_FAST_OPEN_RULES,
  },
  '@source-routes': {
    help: 'Stops sending a connection to an allowed host by way of another one.',
    rules: SOURCE_ROUTE_RULES,
  },
  '@host-interfaces': {
    help: 'Stops asking a socket for the names and addresses of network interfaces, neighbours and wireless networks, which would be those of the host where a supervisor makes the sockets. Lists by netlink (getifaddrs) stay: they are of the command’s own network.',
    rules: HOST_INTERFACE_RULES,
  },
  '@socket-families': {
    help: 'Stops raw, packet, vsock, crypto, Bluetooth and other sockets, and MPTCP and SCTP, which network rules do not cover; TCP, UDP, local, route and diagnostic sockets stay.',
    rules: SOCKET_FAMILY_RULES,
  },
  '@socket-diagnostics': {
    help: 'Stops asking the kernel for the sockets of a network namespace (ss) that is not of the sandbox’s own, and so for those of the host.',
    rules: SOCKET_DIAGNOSTICS_RULES,
  },
  '@ipc-objects': {
    help: 'Stops System V shared memory, semaphores and queues and POSIX queues, which are shared with all programs of the user; PostgreSQL and fakeroot do not run.',
    rules: refuse('EPERM', 'shmget', 'shmat', 'shmctl', 'semget', 'semop', 'semtimedop', 'semctl').concat(
      refuse('EPERM', 'msgget', 'msgsnd', 'msgrcv', 'msgctl', 'mq_open', 'mq_unlink'),
    ),
  },
} as const satisfies Record<string, SeccompGroup>;

/** Name of a group, as policies and messages write it. */
export type SeccompGroupName = keyof typeof GROUPS;

/**
 * Every group, in the order of the filter's layers: where two groups refuse the same call, the error of the one further
 * up is seen. A row whose system call an architecture lacks does not apply there.
 */
export const SECCOMP_GROUPS: Readonly<Record<SeccompGroupName, SeccompGroup>> = GROUPS;

/** The names in the order of {@link SECCOMP_GROUPS}. */
export const SECCOMP_GROUP_NAMES: readonly SeccompGroupName[] = Object.keys(GROUPS) as SeccompGroupName[];

function refuse(errno: SeccompErrno, ...syscalls: readonly string[]): readonly SeccompRule[] {
  return syscalls.map((syscall) => ({ syscall, when: [], action: refuseWith(errno) }));
}

function refuseIf(syscall: string, when: ArgumentCondition): SeccompRule {
  return { syscall, when: [when], action: refuseWith('EPERM') };
}

/** Refuses a mode with one of the bits in every call that gives a file one. `ofThere`: the bits for what is there already. */
function refuseMode(bits: number, ofThere = bits): readonly SeccompRule[] {
  const modeOf = (syscall: string, mode: ArgumentIndex, refused = bits): SeccompRule =>
    refuseIf(syscall, hasAnyBit(mode, refused));
  const opens = (syscall: string, flags: ArgumentIndex, mode: ArgumentIndex): SeccompRule => ({
    syscall,
    when: [hasAnyBit(flags, MAKES_FILE), hasAnyBit(mode, bits)],
    action: refuseWith('EPERM'),
  });
  return [
    modeOf('chmod', 1, ofThere),
    modeOf('fchmod', 1, ofThere),
    modeOf('fchmodat', 2, ofThere),
    modeOf('fchmodat2', 2, ofThere),
    modeOf('creat', 1),
    modeOf('mknod', 1),
    modeOf('mknodat', 2),
    // The kernel makes no directory with either bit (vfs_mkdir). cp -r asks for the group's of a directory that has it,
    // and does without; no program asks for the user's.
    modeOf('mkdir', 1, SET_USER_ID),
    modeOf('mkdirat', 2, SET_USER_ID),
    opens('open', 1, 2),
    opens('openat', 2, 3),
  ];
}
