import { describe, expect, it } from 'vitest';
import { isSyscallName } from '../../../../../src/confine/kernel/seccomp/architecture.ts';
import { assembleFilter } from '../../../../../src/confine/kernel/seccomp/assemble.ts';
import { buildFilter, seccompGroupsFor } from '../../../../../src/confine/kernel/seccomp/filter.ts';
import { SECCOMP_GROUP_NAMES, SECCOMP_GROUPS } from '../../../../../src/confine/kernel/seccomp/groups.ts';
import {
  equals,
  KILL_PROCESS,
  refuseWith,
  type SeccompLayer,
} from '../../../../../src/confine/kernel/seccomp/ir.ts';
import { judge, programOf } from './judge.ts';

const GARBAGE = 0xdead_beef_0000_0000n;
const [UNIX, INET, NETLINK, INET6] = [1, 2, 16, 10];
const [STREAM, DGRAM, RAW] = [1, 2, 3];
const FLAGS = 0x80800; // SOCK_CLOEXEC | SOCK_NONBLOCK

describe('seccomp groups', () => {
  it.each(SECCOMP_GROUP_NAMES)('%s names existing system calls and says what it is for', (name) => {
    const group = SECCOMP_GROUPS[name];
    expect(group.rules.map((rule) => rule.syscall).filter((syscall) => !isSyscallName(syscall))).toEqual([]);
    expect(group.rules.length).toBeGreaterThan(0);
    expect(group.help).toMatch(/^Stops .*\.$/);
    expect(name).toMatch(/^@[a-z]+(-[a-z]+)*$/);
  });

  it('have rules for x64 and arm64 that assemble one by one', () => {
    for (const name of SECCOMP_GROUP_NAMES) {
      for (const architecture of ['x64', 'arm64'] as const) {
        expect(assembleFilter(buildFilter([name]), architecture).length, name).toBeLessThan(200);
      }
    }
  });

  it('leave alone what everyday tools call', () => {
    const program = programOf(
      ...seccompGroupsFor({ network: 'refused', unixSockets: 'refused', tracing: 'own', ipcObjects: 'own' }),
    );
    const calls =
      'execve execveat vfork fork wait4 kill futex epoll_wait mmap mprotect memfd_create get_mempolicy mbind'
        .concat(
          ' set_mempolicy prctl seccomp landlock_restrict_self pidfd_open pidfd_send_signal inotify_init1 flock',
        )
        .concat(
          ' rseq getrandom copy_file_range sched_setaffinity adjtimex clock_adjtime name_to_handle_at statmount',
        )
        .concat(
          ' setsid setpgid setrlimit prlimit64 shmget mq_open sendmsg recvmsg statx open openat mkdir chmod fcntl close_range',
        );
    for (const call of calls.split(' ')) expect(judge(program, call), call).toBe('ALLOW');
  });
});

describe('@socket-families', () => {
  const program = programOf('@socket-families');
  it.each([
    ['stream', UNIX, STREAM, 0, 'ALLOW'],
    ['seqpacket', UNIX, 5, 0, 'ALLOW'],
    ['tcp', INET, STREAM, 0, 'ALLOW'],
    ['tcp by name', INET6, STREAM, 6, 'ALLOW'],
    ['udp', INET, DGRAM, 0, 'ALLOW'],
    ['udp by name', INET6, DGRAM, 17, 'ALLOW'],
    ['route', NETLINK, RAW, 0, 'ALLOW'],
    ['sctp raw', INET, RAW, 132, 'ERRNO EACCES'],
    ['lists of sockets', NETLINK, RAW, 4, 'ALLOW'],
    ['audit', NETLINK, RAW, 9, 'ERRNO EACCES'],
    ['netfilter', NETLINK, DGRAM, 12, 'ERRNO EACCES'],
    ['mptcp', INET, STREAM, 262, 'ERRNO EPROTONOSUPPORT'],
    ['sctp', INET, STREAM, 132, 'ERRNO EPROTONOSUPPORT'],
    ['sctp seqpacket', INET, 5, 132, 'ERRNO EPROTONOSUPPORT'],
    ['udplite', INET6, DGRAM, 136, 'ERRNO EPROTONOSUPPORT'],
    ['ping', INET, DGRAM, 1, 'ERRNO EACCES'],
    ['ping6', INET6, DGRAM, 58, 'ERRNO EACCES'],
    ['udp as stream', INET, STREAM, 17, 'ERRNO EACCES'],
    ['raw', INET, RAW, 255, 'ERRNO EACCES'],
    ['packet through inet', INET, 10, 3, 'ERRNO EACCES'],
    ['packet', 17, RAW, 3, 'ERRNO EAFNOSUPPORT'],
    ['bluetooth', 31, STREAM, 0, 'ERRNO EAFNOSUPPORT'],
    ['alg', 38, 5, 0, 'ERRNO EAFNOSUPPORT'],
    ['vsock', 40, STREAM, 0, 'ERRNO EAFNOSUPPORT'],
    ['smc', 43, STREAM, 0, 'ERRNO EAFNOSUPPORT'],
    ['xdp', 44, RAW, 0, 'ERRNO EAFNOSUPPORT'],
    ['unspecified', 0, STREAM, 0, 'ERRNO EAFNOSUPPORT'],
    ['negative family', 0xffff_ffff, STREAM, 0, 'ERRNO EAFNOSUPPORT'],
  ])('judges %s the same with flags and garbage', (_, domain, type, protocol, expected) => {
    expect(judge(program, 'socket', domain, type, protocol)).toBe(expected);
    expect(judge(program, 'socket', domain, type | FLAGS, protocol)).toBe(expected);
    const dirty = [domain, type | FLAGS, protocol].map((value) => BigInt(value) | GARBAGE);
    expect(judge(program, 'socket', ...dirty)).toBe(expected);
  });

  it('leaves socketpair to local sockets', () => {
    expect(judge(program, 'socketpair', GARBAGE | 1n, 1 | FLAGS, 0)).toBe('ALLOW');
    expect(judge(program, 'socketpair', 30, 1, 0)).toBe('ERRNO EAFNOSUPPORT');
  });
});

describe('groups that look at arguments', () => {
  it('@namespaces refuses clone with any namespace flag and lets threads and processes through', () => {
    const program = programOf('@namespaces');
    for (const flags of [0x11, 0x3d0f00, 0x1200011, 0x4111, 0x7d0f00 & ~0x20000]) {
      expect(judge(program, 'clone', GARBAGE | BigInt(flags)), flags.toString(16)).toBe('ALLOW');
    }
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect(judge(program, 'clone', flag | 0x11), flag.toString(16)).toBe('ERRNO EPERM');
      expect(judge(program, 'clone', GARBAGE | BigInt(flag)), flag.toString(16)).toBe('ERRNO EPERM');
    }
    // CLONE_PARENT: the child would be the launcher's.
    expect(judge(program, 'clone', 0x8011)).toBe('ERRNO EPERM');
    expect(judge(program, 'clone3', 0, 88)).toBe('ERRNO ENOSYS');
    expect(judge(program, 'unshare', 0x10000000)).toBe('ERRNO EPERM');
  });

  it('@terminal-injection sees the request in spite of garbage above it', () => {
    const program = programOf('@terminal-injection');
    for (const request of [0x5412, 0x541c]) {
      expect(judge(program, 'ioctl', 0, request)).toBe('ERRNO EPERM');
      expect(judge(program, 'ioctl', 0, GARBAGE | BigInt(request))).toBe('ERRNO EPERM');
    }
    for (const request of [0x5401, 0x5413, 0x5421, 0x5450])
      expect(judge(program, 'ioctl', 0, request)).toBe('ALLOW');
  });

  it('@line-discipline and @terminal-injection share ioctl', () => {
    const program = programOf('@terminal-injection', '@line-discipline');
    expect([0x5412, 0x541c, 0x5423, 0x5424].map((request) => judge(program, 'ioctl', 0, request))).toEqual([
      'ERRNO EPERM',
      'ERRNO EPERM',
      'ERRNO EPERM',
      'ALLOW',
    ]);
  });

  it('@trace-exit refuses the one option, however it is given, and leaves tracing', () => {
    const program = programOf('@trace-exit');
    for (const request of [0x4200, 0x4206, 21]) {
      for (const options of [0x40, 0x51, 0x1000ff, GARBAGE | 0x40n]) {
        expect(judge(program, 'ptrace', request, 1, 0, options)).toBe('ERRNO EINVAL');
        expect(judge(program, 'ptrace', GARBAGE | BigInt(request), 1, 0, options)).toBe('ERRNO EINVAL');
      }
      for (const options of [0, 1, 0x3f, 0x80, 0x100001]) {
        expect(judge(program, 'ptrace', request, 1, 0, options)).toBe('ALLOW');
      }
    }
    // PTRACE_TRACEME, POKEDATA, CONT, ATTACH: the fourth argument is a word or a signal.
    for (const request of [0, 5, 7, 16]) expect(judge(program, 'ptrace', request, 1, 0, 0x40)).toBe('ALLOW');
    expect(judge(program, 'process_vm_readv', 1)).toBe('ALLOW');
  });

  it('tracing is refused altogether where nothing else holds it', () => {
    const needs = { network: 'refused', unixSockets: 'refused', ipcObjects: 'own' } as const;
    const refused = programOf(...seccompGroupsFor({ ...needs, tracing: 'refused' }));
    const own = programOf(...seccompGroupsFor({ ...needs, tracing: 'own' }));
    const withoutExits = programOf(...seccompGroupsFor({ ...needs, tracing: 'own-but-exits' }));
    expect([
      judge(own, 'ptrace', 0x4206, 1, 0, 0x40),
      judge(withoutExits, 'ptrace', 0x4206, 1, 0, 0x40),
    ]).toEqual(['ALLOW', 'ERRNO EINVAL']);
    for (const call of ['ptrace', 'process_vm_readv', 'process_vm_writev', 'pidfd_getfd', 'kcmp']) {
      expect([judge(refused, call, 0), judge(own, call, 0)], call).toEqual(['ERRNO EPERM', 'ALLOW']);
    }
  });

  it('sockets are listed in a network of the sandbox’s own only', () => {
    const program = (network: 'refused' | 'isolated' | 'open') =>
      programOf(...seccompGroupsFor({ network, unixSockets: 'allowed', tracing: 'own', ipcObjects: 'own' }));
    expect(judge(program('isolated'), 'socket', NETLINK, RAW, 4)).toBe('ALLOW');
    expect(judge(program('open'), 'socket', NETLINK, RAW, 4)).toBe('ERRNO EACCES');
    expect(judge(program('refused'), 'socket', GARBAGE | 16n, RAW | FLAGS, GARBAGE | 4n)).toBe(
      'ERRNO EACCES',
    );
  });

  it('@personality knows the harmless ones', () => {
    const program = programOf('@personality');
    for (const persona of [0, 8, 0x20000, 0x20008, 0x40000, 0xffffffff, GARBAGE, -1n]) {
      expect(judge(program, 'personality', persona), `${persona}`).toBe('ALLOW');
    }
    for (const persona of [1, 0x400000, 0x100000, 0x440000, 0x4000000, GARBAGE | 0x400000n]) {
      expect(judge(program, 'personality', persona), `${persona}`).toBe('ERRNO EPERM');
    }
  });

  it.each([
    ['@set-id', 0o4000],
    ['@set-id', 0o2000],
    ['@set-user-id', 0o4000],
  ] as const)('%s refuses %o in every mode, and nothing where no mode is looked at', (group, bit) => {
    const program = programOf(group);
    const [created, temporary, plain] = [0o101, 0o20200001, 0o1001];
    const modeAt: Readonly<Record<string, readonly (number | bigint)[]>> = {
      chmod: [0],
      fchmod: [0],
      fchmodat: [0, 0],
      fchmodat2: [0, 0],
      creat: [0],
      mknod: [0],
      mknodat: [0, 0],
      mkdir: [0],
      mkdirat: [0, 0],
      open: [0, created],
      openat: [0, 0, GARBAGE | BigInt(temporary)],
    };
    for (const [call, before] of Object.entries(modeAt)) {
      const refused = call.startsWith('mkdir') ? 0o4000 : bit;
      for (const mode of [refused, 0o755 | refused, 0o7777, GARBAGE | BigInt(0o100000 | refused)])
        expect(judge(program, call, ...before, mode), call).toBe('ERRNO EPERM');
      for (const mode of [0o777, 0o1777, 0o100644, GARBAGE])
        expect(judge(program, call, ...before, mode), call).toBe('ALLOW');
    }
    expect(judge(program, 'open', 0, plain, 0o7777)).toBe('ALLOW');
    expect(judge(program, 'openat', 0, 0, plain, 0o7777)).toBe('ALLOW');
    expect(judge(program, 'openat2', 0, 0, 0, 24)).toBe('ERRNO ENOSYS');
  });

  it('a set-group-ID bit passes only where the workspace is shared by it, a set-user-ID bit never', () => {
    const needs = { network: 'refused', unixSockets: 'refused', tracing: 'own', ipcObjects: 'own' } as const;
    const shared = programOf(...seccompGroupsFor({ ...needs, setGroupId: 'kept' }));
    expect(judge(shared, 'fchmodat', 0, 0, 0o2775)).toBe('ALLOW');
    expect(judge(shared, 'fchmodat', 0, 0, 0o6775)).toBe('ERRNO EPERM');
    expect(judge(programOf(...seccompGroupsFor(needs)), 'fchmodat', 0, 0, 0o2775)).toBe('ERRNO EPERM');
    const supervised = programOf(...seccompGroupsFor({ ...needs, setGroupId: 'supervised' }));
    expect(judge(supervised, 'fchmodat', 0, 0, 0o2775)).toBe('ALLOW');
    expect(judge(supervised, 'fchmod', 0, 0o6775)).toBe('ERRNO EPERM');
    expect(judge(supervised, 'mknod', 0, 0o102755)).toBe('ERRNO EPERM');
    expect(judge(supervised, 'openat', 0, 0, 0o101, 0o2755)).toBe('ERRNO EPERM');
    expect(judge(supervised, 'openat2', 0, 0, 0, 24)).toBe('ERRNO ENOSYS');
  });

  it('@leases leaves locks, signals and the other commands of fcntl', () => {
    const program = programOf('@leases');
    for (const command of [1024, 1026, 1040, GARBAGE | 1024n])
      expect(judge(program, 'fcntl', 3, command)).toBe('ERRNO EPERM');
    for (const command of [0, 1, 2, 3, 4, 6, 7, 37, 38, 1025, 1030, 1031, 1033, 1039])
      expect(judge(program, 'fcntl', 3, command), `${command}`).toBe('ALLOW');
  });

  it('@inode-flags refuses setting and leaves reading, cloning and the terminal', () => {
    const program = programOf('@inode-flags');
    for (const request of [0x40086602, 0x401c5820, 0x40087602, 0x40086604, 0x40806685, 0x800c6613])
      expect(judge(program, 'ioctl', 3, GARBAGE | BigInt(request))).toBe('ERRNO EPERM');
    for (const request of [0x80086601, 0x801c581f, 0x80087601, 0x40049409, 0xc0189436, 0x5401, 0x5413])
      expect(judge(program, 'ioctl', 3, request), request.toString(16)).toBe('ALLOW');
    expect(judge(program, 'file_setattr')).toBe('ERRNO EPERM');
    expect(judge(program, 'file_getattr')).toBe('ALLOW');
  });

  it('@device-nodes refuses devices only', () => {
    const program = programOf('@device-nodes');
    for (const mode of [0o644, 0o100644, 0o010600, 0o140600])
      expect(judge(program, 'mknod', 0, mode)).toBe('ALLOW');
    for (const mode of [0o020666, 0o060660, GARBAGE | 0o060660n]) {
      expect(judge(program, 'mknod', 0, mode)).toBe('ERRNO EPERM');
      expect(judge(program, 'mknodat', 3, 0, mode)).toBe('ERRNO EPERM');
    }
  });

  it('@tcp-fast-open leaves other message flags alone', () => {
    const program = programOf('@tcp-fast-open');
    expect(judge(program, 'sendto', 3, 0, 0, 0x20004000)).toBe('ERRNO EOPNOTSUPP');
    expect(judge(program, 'sendmsg', 3, 0, 0x20000000)).toBe('ERRNO EOPNOTSUPP');
    expect(judge(program, 'sendmmsg', 3, 0, 1, 0x20000000)).toBe('ERRNO EOPNOTSUPP');
    expect(judge(program, 'sendto', 3, 0, 0, 0x4040)).toBe('ALLOW');
  });
});

describe('seccompGroupsFor and buildFilter', () => {
  it('refuses inet sockets without network, whatever other groups allow', () => {
    const program = programOf(
      ...seccompGroupsFor({ network: 'refused', unixSockets: 'allowed', tracing: 'own', ipcObjects: 'own' }),
    );
    expect(judge(program, 'socket', INET, STREAM, 0)).toBe('ERRNO EACCES');
    expect(judge(program, 'socket', INET6, DGRAM, 17)).toBe('ERRNO EACCES');
    expect(judge(program, 'socket', UNIX, STREAM, 0)).toBe('ALLOW');
    expect(judge(program, 'socket', NETLINK, RAW, 0)).toBe('ALLOW');
    expect(judge(program, 'socket', 40, STREAM, 0)).toBe('ERRNO EAFNOSUPPORT');
  });

  it.each(['isolated', 'open'] as const)('keeps TCP and UDP and nothing else with network %s', (network) => {
    const program = programOf(
      ...seccompGroupsFor({ network, unixSockets: 'refused', tracing: 'own', ipcObjects: 'own' }),
    );
    expect(judge(program, 'socket', INET, STREAM, 6)).toBe('ALLOW');
    expect(judge(program, 'socket', INET, DGRAM, 0)).toBe('ALLOW');
    expect(judge(program, 'socket', INET, STREAM, 262)).toBe('ERRNO EPROTONOSUPPORT');
    expect(judge(program, 'socket', UNIX, STREAM, 0)).toBe('ERRNO EACCES');
    expect(judge(program, 'socketpair', UNIX, STREAM, 0)).toBe('ALLOW');
    const fastOpen = judge(program, 'sendto', 3, 0, 0, 0x20000000);
    expect(fastOpen).toBe('ALLOW');
  });

  it('does not depend on the order or repetition of names', () => {
    const forth = programOf('@network-off', '@socket-families', '@unix-sockets-off');
    const back = programOf('@unix-sockets-off', '@socket-families', '@network-off', '@network-off');
    expect(back.bytes).toEqual(forth.bytes);
  });

  it('refuses an unknown name', () => {
    expect(() => buildFilter(['@nothing' as '@bpf'])).toThrow(RangeError);
    expect(() => buildFilter(['constructor' as '@bpf'])).toThrow(RangeError);
  });

  it('lets no layer open what another closes; the first refusal decides', () => {
    const layer = (name: string, errno: 'EPERM' | 'EACCES', ...values: number[]): SeccompLayer => ({
      name,
      rules: [
        { syscall: 'dup', when: [equals(0, 9)], action: { kind: 'allow' } },
        { syscall: 'dup', when: [equals(0, ...values)], action: refuseWith(errno) },
      ],
    });
    const program = assembleFilter(
      {
        layers: [
          { name: 'welcoming', rules: [{ syscall: 'dup', when: [], action: { kind: 'allow' } }] },
          layer('first', 'EPERM', 1, 2, 9),
          layer('second', 'EACCES', 2, 3, 9),
          { name: 'last', rules: [{ syscall: 'dup', when: [equals(0, 4)], action: KILL_PROCESS }] },
        ],
        foreignArchitecture: KILL_PROCESS,
        unknownSyscall: refuseWith('ENOSYS'),
      },
      'x64',
    );
    expect([1, 2, 3, 4, 5, 9].map((descriptor) => judge(program, 'dup', descriptor))).toEqual([
      'ERRNO EPERM',
      'ERRNO EPERM',
      'ERRNO EACCES',
      'KILL_PROCESS',
      'ALLOW',
      'ALLOW',
    ]);
  });
});
