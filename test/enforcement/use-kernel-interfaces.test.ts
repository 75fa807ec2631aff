import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { HOST, OLDEST_TIERS, stateOf, TIERS } from '../support/tiers.ts';

const interfaces = compile(
  'kernel-interfaces',
  `
  #include <linux/bpf.h>
  #include <linux/keyctl.h>
  #include <linux/perf_event.h>
  int main() {
    char bytes[256] = {0};
    TRY("io-uring-setup", syscall(SYS_io_uring_setup, 1, bytes));
    TRY("io-uring-enter", syscall(SYS_io_uring_enter, 0, 0, 0, 0, 0, 0));
    TRY("io-uring-register", syscall(SYS_io_uring_register, 0, 0, 0, 0));
    TRY("add-key", syscall(SYS_add_key, "user", "enforcement", "x", 1, KEY_SPEC_PROCESS_KEYRING));
    TRY("request-key", syscall(SYS_request_key, "user", "enforcement", 0, KEY_SPEC_PROCESS_KEYRING));
    TRY("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1));
    TRY("bpf", syscall(SYS_bpf, BPF_MAP_CREATE, &(union bpf_attr){.map_type = 2, .key_size = 4, .value_size = 4, .max_entries = 1}, 64));
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1};
    TRY("perf", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
    TRY("userfaultfd", syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */));
    TRY("fanotify", syscall(SYS_fanotify_init, 0x200, 0));
    TRY("personality", syscall(SYS_personality, 0x0100000 /* MMAP_PAGE_ZERO */));
    TRY("kernel-log", syscall(SYS_syslog, 3, bytes, 10));
    TRY("hostname", syscall(SYS_sethostname, 0, 1000));
    TRY("clock", syscall(SYS_clock_settime, 0, 0));
    TRY("reboot", syscall(SYS_reboot, 0, 0, 0, 0));
    TRY("swap", syscall(SYS_swapoff, "/none"));
    TRY("kexec", syscall(SYS_kexec_load, 0, 0, 0, -1L));
    TRY("init-module", syscall(SYS_init_module, 0, 0, ""));
    TRY("finit-module", syscall(SYS_finit_module, -1, "", 0));
    TRY("delete-module", syscall(SYS_delete_module, "enforcement-none", 0));
    TRY("quota", syscall(SYS_quotactl, 0x800001 << 8, 0, 0, bytes));
    TRY("acct", syscall(SYS_acct, "/none"));
    TRY("vhangup", getuid() ? syscall(SYS_vhangup) : (errno = EPERM, -1));
    TRY("clone3", ({ long r = syscall(SYS_clone3, &(uint64_t[8]){0, 0, 0, 0, SIGCHLD}, 64); if (r == 0) _exit(0); r; }));
  #ifdef SYS_modify_ldt
    TRY("modify-ldt", syscall(SYS_modify_ldt, 0, bytes, 16));
    TRY("ioperm", syscall(SYS_ioperm, 0x80, 1, 1));
    TRY("iopl", syscall(SYS_iopl, 3));
  #endif
    TRY("too-new", syscall(5000));
    TRY("negative", syscall(-1));
    return 0;
  }`,
);

const foreign = compile(
  'foreign-calls',
  `
  int main(int argc, char **argv) {
  #ifdef __x86_64__
    long result;
    if (argc > 1) {
      // 32-bit getpid.
      __asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory");
      printf("int80=%s\\n", result > 0 ? "ok" : "38");
      return 0;
    }
    TRY("x32-getpid", syscall(0x40000000 | 39));
    TRY("x32-open", syscall(0x40000000 | 2, "/etc/passwd", 0));
    TRY("x32-ioctl", syscall(0x40000000 | 514, 0, 0x5412, ""));
    TRY("x32-execve", syscall(0x40000000 | 520, "/bin/true", 0, 0));
  #endif
    return 0;
  }`,
);

/** Calls of which an ordinary user without a sandbox can make use on any kernel. */
const FREE = ['add-key', 'keyctl', 'personality', 'clone3'];
/** What the kernel refuses in other ways; everything else must say EPERM. */
const NOT_EPERM: Readonly<Record<string, string>> = {
  'io-uring-setup': 'ENOSYS',
  'io-uring-enter': 'ENOSYS',
  'io-uring-register': 'ENOSYS',
  clone3: 'ENOSYS',
  'modify-ldt': 'ENOSYS',
  'too-new': 'ENOSYS',
  negative: 'ENOSYS',
};

describe('using kernel interfaces that work does not need', () => {
  const arena = makeArena();

  it.runIf(HOST.filtered)(
    'is filtered already without a sandbox (Seccomp: 2 in /proc/self/status)',
    async () => {
      const trace = await unconfined([interfaces]);
      expect(Object.keys(trace.results).length).toBeGreaterThanOrEqual(26);
    },
  );

  it.runIf(!HOST.filtered)('works without a sandbox', async () => {
    const trace = await unconfined([interfaces]);
    expect(worked(trace)).toEqual(expect.arrayContaining(FREE));
    // The kernel's own answers differ from the filter's: so the filter is seen at work below.
    expect(trace.results['io-uring-register']).not.toBe('ENOSYS');
  });

  describe.each([...TIERS, ...OLDEST_TIERS])('$name', (tier) => {
    it('fails with the error that makes libraries do without', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [interfaces]);
      for (const [name, outcome] of Object.entries(trace.results)) {
        expect([name, outcome]).toEqual([name, NOT_EPERM[name] ?? 'EPERM']);
      }
      expect(Object.keys(trace.results).length).toBeGreaterThanOrEqual(26);
      expect(stateOf(sandbox, 'syscalls')).toBe('enforced');
    });
  });

  describe.runIf(process.arch === 'x64')('by the call tables of other architectures (x64 has them)', () => {
    it.each(TIERS)('x32 calls do not exist: $name', async (tier) => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [foreign]);
      expect(Object.values(trace.results)).toEqual(['ENOSYS', 'ENOSYS', 'ENOSYS', 'ENOSYS']);
    });

    it.each(TIERS)('a 32-bit call ends the process: $name', async (tier) => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [foreign, 'int80']);
      expect([trace.signal === 'SIGSYS' || trace.signal === 'SIGSEGV', trace.stdout]).toEqual([true, '']);
    });
  });

  it.runIf(process.arch !== 'x64')('other call tables do not exist (not x64)', async () => {
    const trace = await unconfined([foreign]);
    expect(trace.results).toEqual({});
  });

  it.runIf(HOST.root)('root cannot write what controls the kernel (as root)', async () => {
    for (const tier of TIERS) {
      const sandbox = await arena.sandbox(tier);
      // Opened only, never written: were there a hole, nothing would happen.
      const result = await sandbox.run(
        `for f in /proc/sysrq-trigger /proc/sys/kernel/core_pattern /proc/sys/vm/drop_caches /proc/sys/kernel/hostname /sys/devices/system/cpu/cpu1/online /proc/irq/default_smp_affinity /proc/kcore /proc/kmsg; do ( exec 3<>"$f" ) 2>/dev/null && echo "$f"; ( exec 3>>"$f" ) 2>/dev/null && echo "$f"; done; true`,
      );
      expect(result.stdout).toBe('');
    }
  });

  it.runIf(!HOST.root)('an ordinary user cannot write what controls the kernel (not root)', async () => {
    for (const tier of TIERS) {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(
        '( exec 3>>/proc/sysrq-trigger ) 2>/dev/null && echo open; ( exec 3>>/proc/self/oom_score_adj ) 2>/dev/null && echo open; true',
      );
      expect(result.stdout).toBe('');
    }
  });
});
