import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { isAlive, startBystander, until } from '../support/bystander.ts';
import { compile, confined, type Trace, unconfined, worked } from '../support/sandboxee.ts';
import { patience } from '../support/slow-host.ts';
import { HOST, OLDEST_TIERS, SUBREAPER_TIERS, stateOf, TIERS } from '../support/tiers.ts';
import { untilTimeOut } from '../support/time-out.ts';

const sleeper = compile('sleeper', `int main() { printf("ready\\n"); fflush(stdout); for (;;) pause(); }`);

/** Takes over, looks into and steers processes; each move by itself, so that one does not help another. */
const tracer = compile(
  'tracer',
  `
  #include <elf.h>
  #include <linux/audit.h>
  #include <linux/filter.h>
  #include <linux/seccomp.h>
  #include <sys/ptrace.h>
  #include <sys/uio.h>
  #include <sys/user.h>
  static char word[] = "of its own";
  static pid_t idle(void) { pid_t child = fork(); if (child == 0) for (;;) pause(); return child; }
  static void done(pid_t child) { int e = errno; kill(child, SIGKILL); waitpid(child, 0, __WALL); errno = e; }
  static void others(const char *number) {
    int pid = atoi(number), fd;
    char name[64], path[64], bytes[64];
    #define NAME(what) (sprintf(name, what ":%s", number), name)
    TRY(NAME("seize"), ptrace(PTRACE_SEIZE, pid, 0, 0));
    TRY(NAME("attach"), ptrace(PTRACE_ATTACH, pid, 0, 0));
    // Where nothing can be: EFAULT tells the right to ask.
    struct iovec mine = {bytes, 8}, theirs = {(void *)16, 8};
    TRY(NAME("vm-read"), process_vm_readv(pid, &mine, 1, &theirs, 1, 0) < 0 && errno != EFAULT ? -1 : 0);
    TRY(NAME("vm-write"), process_vm_writev(pid, &mine, 1, &theirs, 1, 0) < 0 && errno != EFAULT ? -1 : 0);
    sprintf(path, "/proc/%d/mem", pid);
    TRY(NAME("mem"), open(path, O_RDWR));
    TRY(NAME("descriptor"), (fd = syscall(SYS_pidfd_open, pid, 0)) < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 0, 0));
    TRY(NAME("kcmp"), syscall(SYS_kcmp, getpid(), pid, 0, 0, 0));
  }
  // A child that leaves its system calls to its tracer, and exits with what it got for them.
  static int child_of_filter(int by_filter) {
    if (by_filter) {
      struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
      struct sock_fprog program = {4, code};
      prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
      if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) return 250;
    }
    raise(SIGSTOP);
    errno = 0;
    // keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 1), as far as the arguments go.
    return syscall(SYS_getppid, 0, -4, 1) < 0 ? errno : 0;
  }
  static long swap(int by_filter, long number) {
    pid_t child = fork();
    int status;
    if (child == 0) _exit(child_of_filter(by_filter));
    // Not by PTRACE_TRACEME: the child has a right to one tracer, and this is it.
    if (waitpid(child, &status, WUNTRACED) < 0 || !WIFSTOPPED(status)) { done(child); return errno = ECHILD, -1; }
    if (ptrace(PTRACE_SEIZE, child, 0, by_filter ? PTRACE_O_TRACESECCOMP : PTRACE_O_TRACESYSGOOD)) { done(child); return -1; }
    kill(child, SIGCONT);
    int request = by_filter ? PTRACE_CONT : PTRACE_SYSCALL, swapped = 0;
    while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) {
      struct user_regs_struct registers;
      struct iovec all = {&registers, sizeof registers};
      int event = status >> 16, at_call = by_filter ? event == PTRACE_EVENT_SECCOMP : WSTOPSIG(status) == (SIGTRAP | 0x80);
      if (at_call && !swapped && ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &all) == 0) {
  #ifdef __x86_64__
        if (registers.orig_rax == SYS_getppid) {
          registers.orig_rax = number;
          swapped = ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &all) == 0;
        }
  #else
        int call = number;
        struct iovec one = {&call, sizeof call};
        if (registers.regs[8] == SYS_getppid) swapped = ptrace(PTRACE_SETREGSET, child, NT_ARM_SYSTEM_CALL, &one) == 0;
  #endif
      }
      int number_of_signal = at_call || event ? 0 : WSTOPSIG(status);
      if (number_of_signal == SIGSTOP || number_of_signal == SIGTRAP) number_of_signal = 0;
      ptrace(request, child, 0, number_of_signal);
    }
    if (!swapped || !WIFEXITED(status)) return errno = ENOTSUP, -1;
    return (errno = WEXITSTATUS(status)) ? -1 : 0;
  }
  int main(int argc, char **argv) {
    int status, fd;
    pid_t child;
    if (argc > 2 && !strcmp(argv[1], "others")) {
      for (int i = 2; i < argc; i++) others(argv[i]);
      return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "first")) {
      // The parent of the first process is who started it, and becomes its tracer.
      TRY("trace-me", ptrace(PTRACE_TRACEME, 0, 0, 0));
      if (argc > 2) raise(SIGUSR1);
      return 7;
    }
    if (argc > 1 && !strcmp(argv[1], "orphan")) {
      if (fork() == 0) {
        while (getppid() != 1 && getppid() == atoi(argv[2])) usleep(1000);
        usleep(50000);
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        for (int i = 0; i < 3; i++) raise(SIGUSR1);
        for (;;) pause();
      }
      usleep(200000);
      return 9;
    }
    if (argc > 1 && !strcmp(argv[1], "withhold")) {
      // Somebody further down traces the first process, and never takes notice of its end.
      int told[2];
      pipe(told);
      if (fork() == 0) {
        setsid();
        long r = ptrace(PTRACE_SEIZE, getppid(), 0, 0);
        printf("withheld=%s\\n", r ? "no" : "ok"); fflush(stdout);
        if (argc == 2) { close(1); close(2); }
        write(told[1], "x", 1);
        for (;;) pause();
      }
      char byte;
      read(told[0], &byte, 1);
      return 5;
    }
    if (argc > 1 && !strcmp(argv[1], "ring")) {
      // Two that trace each other, of which one holds others stopped.
      enum { count = 3 };
      pid_t ring[count];
      for (int i = 0; i < count; i++) ring[i] = idle();
      // A signal would stop it, as nobody lets it go on.
      sigset_t all;
      sigfillset(&all);
      sigprocmask(SIG_BLOCK, &all, 0);
      pid_t mine = getpid(), other = fork();
      if (other == 0) {
        long r = ptrace(PTRACE_SEIZE, mine, 0, 0);
        printf("up=%s\\n", r ? "no" : "ok"); fflush(stdout);
        for (;;) pause();
      }
      usleep(100000);
      TRY("down", ptrace(PTRACE_SEIZE, other, 0, PTRACE_O_EXITKILL));
      for (int i = 0; i < count; i++) ptrace(PTRACE_ATTACH, ring[i], 0, 0);
      printf("ready\\n"); fflush(stdout);
      for (;;) pause();
    }
    TRY("seize", ({ child = idle(); long r = ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL); done(child); r; }));
    TRY("attach", ({ child = idle(); long r = ptrace(PTRACE_ATTACH, child, 0, 0); done(child); r; }));
    TRY("trace-me", ({ child = fork(); if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) ? errno : 0); waitpid(child, &status, 0); (errno = WEXITSTATUS(status)) ? -1 : 0; }));
    // As leak checkers do.
    TRY("trace-parent", ({ prctl(PR_SET_PTRACER, -1L, 0, 0, 0); child = fork(); if (child == 0) { long r = ptrace(PTRACE_ATTACH, getppid(), 0, 0); if (r == 0) { waitpid(getppid(), 0, __WALL); ptrace(PTRACE_DETACH, getppid(), 0, 0); } _exit(r ? errno : 0); } waitpid(child, &status, 0); (errno = WEXITSTATUS(status)) ? -1 : 0; }));
    char copy[sizeof word] = "";
    struct iovec mine = {copy, sizeof copy}, theirs = {word, sizeof word};
    TRY("vm-read", ({ child = idle(); long r = process_vm_readv(child, &mine, 1, &theirs, 1, 0); done(child); r; }));
    TRY("vm-write", ({ child = idle(); long r = process_vm_writev(child, &mine, 1, &theirs, 1, 0); done(child); r; }));
    TRY("descriptor", ({ child = idle(); fd = syscall(SYS_pidfd_open, child, 0); long r = syscall(SYS_pidfd_getfd, fd, 1, 0); done(child); r; }));
    TRY("kcmp", ({ child = idle(); long r = syscall(SYS_kcmp, getpid(), child, 0, 1, 1); done(child); r; }));
    // It shows that the two ways of changing a call work, with one that anybody may make.
    TRY("swap-for-getuid", swap(0, SYS_getuid));
    TRY("swap-by-filter-for-getuid", swap(1, SYS_getuid));
    TRY("swap-for-keyctl", swap(0, SYS_keyctl));
    TRY("swap-by-filter-for-keyctl", swap(1, SYS_keyctl));
    TRY("suspend-filter", ({ child = idle(); long r = ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_SUSPEND_SECCOMP); done(child); r; }));
    TRY("read-filter", ({ child = idle(); long r = ptrace(PTRACE_ATTACH, child, 0, 0) ?: (waitpid(child, 0, __WALL), ptrace(PTRACE_SECCOMP_GET_FILTER, child, 0, 0)); done(child); r; }));
    return 0;
  }`,
);

const OWN = ['seize', 'attach', 'trace-me', 'trace-parent', 'vm-read', 'vm-write', 'descriptor', 'kcmp'];
/** What the filter of a container takes away from that. */
const FILTERED = HOST.filtered ? ['vm-read', 'vm-write', 'descriptor', 'kcmp'] : [];
const SWAPS = ['swap-for-getuid', 'swap-by-filter-for-getuid'];
const REFUSED = ['swap-for-keyctl', 'swap-by-filter-for-keyctl', 'suspend-filter', 'read-filter'];
/** Where Landlock holds it; each command has a domain of its own. */
const TRACING = [...TIERS, ...OLDEST_TIERS].filter(({ landlockAbi }) => landlockAbi > 0);
const WITHOUT = TIERS.filter(({ landlockAbi }) => landlockAbi === 0);

const ofOthers = (trace: Trace) => worked(trace).filter((name) => name.includes(':'));
const inspection = ({ plan }: Sandbox): string =>
  plan.report.controls.find(({ id }) => id === 'process-inspection')?.reason ?? '';

/** Wardens that this process has started. */
function wardens(): readonly string[] {
  return readdirSync('/proc').filter((pid) => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      return /^Name:\tsandbox-warden$/m.test(status) && status.includes(`\nPPid:\t${process.pid}\n`);
    } catch {
      return false;
    }
  });
}

/** A command of the sandbox that stays until it is told to end. */
async function staying(sandbox: Sandbox) {
  let text = '';
  const running = sandbox.start(['/bin/sh', '-c', 'echo $$; exec sleep 60'], {
    onOutput: ({ bytes }) => {
      text += Buffer.from(bytes).toString();
    },
  });
  await until(() => text.includes('\n'));
  const pid = text.trim();
  return {
    pid,
    async [Symbol.asyncDispose]() {
      running.kill('SIGKILL');
      await running.result;
    },
  };
}

describe('tracing processes', () => {
  const arena = makeArena();

  it('works without a sandbox, on its own and on others', async () => {
    const own = await unconfined([tracer]);
    expect(worked(own)).toEqual(
      expect.arrayContaining([...OWN.filter((name) => !FILTERED.includes(name)), ...SWAPS]),
    );
    const { pid } = await startBystander([sleeper]);
    const others = await unconfined([tracer, 'others', String(pid)]);
    expect(ofOthers(others)).toEqual(expect.arrayContaining([`seize:${pid}`, `mem:${pid}`]));
  });

  describe.each(TRACING)('$name', (tier) => {
    it('works for processes of the command itself', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [tracer]);
      expect([...worked(trace)].sort()).toEqual(
        [...OWN.filter((name) => !FILTERED.includes(name)), ...SWAPS].sort(),
      );
      expect(REFUSED.map((name) => trace.results[name])).not.toContain(undefined);
      expect(trace.results['swap-for-keyctl']).toBe('EPERM');
      expect(trace.results['swap-by-filter-for-keyctl']).toBe('EPERM');
    });

    it('fails for a process of the user, the launcher, its parent, pid 1, its wardens and other commands', async () => {
      const { pid } = await startBystander([sleeper]);
      const sandbox = await arena.sandbox(tier);
      await using same = await staying(sandbox);
      await using other = await staying(await arena.sandbox(tier));
      await until(() => wardens().length >= 2);
      const keepers = wardens();
      expect(keepers.length).toBeGreaterThanOrEqual(2);
      const named = [pid, process.pid, process.ppid, 1, same.pid, other.pid, ...keepers].map(String);
      // In a container the parent may be process 1.
      const victims = [...new Set(named)];
      const trace = await confined(sandbox, [tracer, 'others', ...victims]);
      expect(Object.keys(trace.results)).toHaveLength(victims.length * 7);
      expect(ofOthers(trace)).toEqual([]);
      expect(stateOf(sandbox, 'process-inspection')).toBe('enforced');
      expect(inspection(sandbox)).toContain('a command can trace its own processes');
    });
  });

  describe.each(WITHOUT)('$name', (tier) => {
    it('is refused altogether, and the report says so', async () => {
      const { pid } = await startBystander([sleeper]);
      const sandbox = await arena.sandbox(tier);
      expect(worked(await confined(sandbox, [tracer]))).toEqual([]);
      const trace = await confined(sandbox, [tracer, 'others', String(pid), String(process.pid)]);
      expect(ofOthers(trace)).toEqual([]);
      expect(inspection(sandbox)).toContain('debuggers and leak checkers do not run');
    });
  });

  describe.each([...TRACING, ...SUBREAPER_TIERS])('$name: the launcher as tracer', (tier) => {
    it('a command that makes it so ends as it would', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [tracer, 'first']);
      expect([trace.results['trace-me'], trace.exitCode]).toEqual(['ok', 7]);
    });

    it('one that stops then forges no end, and is ended by its time-out', async () => {
      const sandbox = await arena.sandbox(tier, { policy: { limits: { kill_grace_seconds: 0.2 } } });
      const result = await sandbox.run([tracer, 'first', 'stop'], { timeout: patience(700) });
      // A warden lets it go on, with its signal; a thread of the launcher leaves it as it stopped.
      const isLetGo = result.processTree.tier === 'subreaper';
      expect([result.status, result.signal, result.treeEnded]).toEqual(
        isLetGo ? ['signaled', 'SIGUSR1', true] : ['timed-out', 'SIGKILL', true],
      );
      expect((await sandbox.run('echo next')).stdout).toBe('next\n');
    });

    it('an orphan that does so leaves everything else as it is', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(['/bin/sh', '-c', `${tracer} orphan $$; echo $?; exit 3`]);
      expect([result.status, result.exitCode, result.stdout, result.treeEnded]).toEqual([
        'exited',
        3,
        '9\n',
        true,
      ]);
    });

    it('processes that trace each other end with the command', async () => {
      const sandbox = await arena.sandbox(tier, { policy: { limits: { kill_grace_seconds: 0.2 } } });
      const result = await untilTimeOut(
        1000,
        (timeout) => sandbox.run([tracer, 'ring'], { timeout }),
        ({ stdout }) => stdout.includes('ready'),
      );
      expect([result.status, result.stdout, result.treeEnded]).toEqual([
        'timed-out',
        'up=ok\ndown=ok\nready\n',
        true,
      ]);
      const left = readdirSync('/proc').filter((pid) => {
        try {
          return (
            readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(`${tracer}\0ring`) && isAlive(Number(pid))
          );
        } catch {
          return false;
        }
      });
      expect(left).toEqual([]);
    });

    // Also with the pipes open it is not taken for a command that only has output left to be read.
    it.each([
      ['', []],
      [', with the pipes open', ['open']],
    ])('a first process whose end its tracer withholds holds up nobody%s', async (_, open) => {
      const sandbox = await arena.sandbox(tier);
      const withhold = [tracer, 'withhold', ...open] as const;
      const plain = await sandbox.run(withhold, { timeout: patience(20_000) });
      expect([plain.exitCode, plain.stdout, plain.treeEnded]).toEqual([5, 'withheld=ok\n', true]);
      const job = sandbox.start(withhold, {
        ...{ background: true, timeout: patience(60_000) },
      });
      // One that is held up is ended by its time limit.
      expect((await job.wait()).status).toBe('exited');
      expect((await sandbox.run('echo next')).stdout).toBe('next\n');
    });
  });
});
