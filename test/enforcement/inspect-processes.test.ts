import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/index.ts';
import { makeArena, SECRET } from '../support/arena.ts';
import { startBystander } from '../support/bystander.ts';
import { compile, confined, type Trace, unconfined, worked } from '../support/sandboxee.ts';
import { HOST, OLDEST_TIERS, stateOf, TIERS } from '../support/tiers.ts';

const sleeper = compile('sleeper', `int main() { printf("ready\\n"); fflush(stdout); for (;;) pause(); }`);

const inspector = compile(
  'inspect',
  `
  #include <dirent.h>
  #include <sys/ptrace.h>
  #include <sys/uio.h>
  int first(const char *path) {
    DIR *directory = opendir(path);
    struct dirent *entry;
    char link[600], target[8];
    errno = ENOENT;
    while (directory && (entry = readdir(directory))) {
      sprintf(link, "%s/%s", path, entry->d_name);
      if (entry->d_name[0] != '.') return readlink(link, target, 8);
    }
    return -1;
  }
  int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
      int pid = atoi(argv[i]), fd;
      char name[64], path[64], buffer[65536];
      ssize_t n;
      #define NAME(what) (sprintf(name, what ":%s", argv[i]), name)
      #define PROC(what) (sprintf(path, "/proc/%d/" what, pid), path)
      unsigned long address = 0;
      TRY(NAME("environ"), (fd = open(PROC("environ"), O_RDONLY)) < 0 || (n = read(fd, buffer, sizeof buffer)) <= 0 ? -1 : (fwrite(buffer, 1, n, stderr), 0));
      TRY(NAME("maps"), (fd = open(PROC("maps"), O_RDONLY)) < 0 || (n = read(fd, buffer, 4096)) <= 0 ? -1 : (sscanf(buffer, "%lx", &address), 0));
      if (!address) address = 0x400000;
      TRY(NAME("mem-read"), (fd = open(PROC("mem"), O_RDONLY)) < 0 || pread(fd, buffer, 8, address) <= 0 ? -1 : 0);
      TRY(NAME("mem-write"), open(PROC("mem"), O_RDWR));
      struct iovec mine = {buffer, 8}, theirs = {(void *)address, 8};
      TRY(NAME("process-vm-read"), process_vm_readv(pid, &mine, 1, &theirs, 1, 0));
      // Nothing can be there, and EFAULT is the answer to who may write.
      struct iovec nowhere = {(void *)16, 8};
      TRY(NAME("process-vm-write"), process_vm_writev(pid, &mine, 1, &nowhere, 1, 0) < 0 && errno != EFAULT ? -1 : 0);
      TRY(NAME("cwd"), readlink(PROC("cwd"), buffer, 100));
      TRY(NAME("root"), readlink(PROC("root"), buffer, 100));
      TRY(NAME("exe"), readlink(PROC("exe"), buffer, 100));
      TRY(NAME("exe-open"), open(PROC("exe"), O_RDONLY));
      // How many descriptors there are is no secret; what they are is.
      TRY(NAME("fd-list"), first(PROC("fd")));
      TRY(NAME("fd-0"), readlink(PROC("fd/0"), buffer, 100));
      TRY(NAME("fd-1-open"), open(PROC("fd/1"), O_WRONLY));
      TRY(NAME("fdinfo"), open(PROC("fdinfo/0"), O_RDONLY));
      TRY(NAME("map-files"), first(PROC("map_files")));
      // Linux 5.10 refuses it with an empty text.
      TRY(NAME("namespace"), readlink(PROC("ns/mnt"), buffer, 100) > 0 ? 0 : -1);
      TRY(NAME("auxv"), (fd = open(PROC("auxv"), O_RDONLY)) < 0 || read(fd, buffer, 16) <= 0 ? -1 : 0);
      TRY(NAME("syscall"), (fd = open(PROC("syscall"), O_RDONLY)) < 0 || read(fd, buffer, 16) <= 0 ? -1 : 0);
      TRY(NAME("io"), (fd = open(PROC("io"), O_RDONLY)) < 0 || read(fd, buffer, 16) <= 0 ? -1 : 0);
      TRY(NAME("kcmp"), syscall(SYS_kcmp, getpid(), pid, 0, 0, 0));
      TRY(NAME("pidfd-getfd"), (fd = syscall(SYS_pidfd_open, pid, 0)) < 0 ? -1 : syscall(SYS_pidfd_getfd, fd, 1, 0));
      TRY(NAME("clear-refs"), open(PROC("clear_refs"), O_WRONLY));
      TRY(NAME("oom-score"), open(PROC("oom_score_adj"), O_WRONLY));
      TRY(NAME("timer-slack"), open(PROC("timerslack_ns"), O_RDWR));
      TRY(NAME("coredump-filter"), open(PROC("coredump_filter"), O_WRONLY));
      TRY(NAME("robust-list"), ({ void *head; size_t size; syscall(SYS_get_robust_list, pid, &head, &size); }));
      TRY(NAME("move-pages"), ({ int status; void *page = (void *)address; syscall(SYS_move_pages, pid, 1, &page, 0, &status, 0); }));
      TRY(NAME("seize"), ptrace(PTRACE_SEIZE, pid, 0, 0));
      TRY(NAME("attach"), ptrace(PTRACE_ATTACH, pid, 0, 0) < 0 && errno != EPERM ? 0 : errno ? -1 : 0);
    }
    return 0;
  }`,
);

/** What works on an ordinary process of the same user without a sandbox. */
const FREE = [
  ...[
    'environ',
    'maps',
    'mem-read',
    'mem-write',
    'process-vm-read',
    'process-vm-write',
    'cwd',
    'root',
    'exe',
    'exe-open',
    'fd-list',
  ],
  ...['fd-0', 'fdinfo', 'namespace', 'auxv', 'io', 'kcmp', 'clear-refs', 'oom-score', 'seize'],
];

/** What the filter of a container takes away from that. */
const FILTERED = HOST.filtered ? ['process-vm-read', 'process-vm-write', 'kcmp'] : [];

/** What the report says can be seen besides names and arguments. */
const visibleIn = (sandbox: Sandbox): RegExp =>
  reasonOf(sandbox).includes('positions and flags of their descriptors') ? /^fdinfo:/ : /^$/;
const hidden = (trace: Trace, sandbox: Sandbox) =>
  worked(trace).filter((name) => !visibleIn(sandbox).test(name));
const reasonOf = ({ plan }: Sandbox): string =>
  plan.report.controls.find(({ id }) => id === 'process-inspection')?.reason ?? '';

describe('looking into processes outside', () => {
  const arena = makeArena();
  const start = () => startBystander([sleeper], { BYSTANDER_TOKEN: SECRET });

  it('works without a sandbox', async () => {
    const { pid } = await start();
    const trace = await unconfined([inspector, String(pid)]);
    expect(trace.stderr).toContain(SECRET);
    expect(worked(trace)).toEqual(
      expect.arrayContaining(FREE.filter((name) => !FILTERED.includes(name)).map((name) => `${name}:${pid}`)),
    );
  });

  describe.each([...TIERS, ...OLDEST_TIERS])('$name', (tier) => {
    it('fails for a process of the same user, the launcher, its parent and pid 1', async () => {
      const { pid } = await start();
      process.env.LAUNCHER_SECRET = SECRET;
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [inspector, ...[pid, process.pid, process.ppid, 1].map(String)]);
      delete process.env.LAUNCHER_SECRET;
      expect(trace.exitCode).toBe(0);
      expect(hidden(trace, sandbox)).toEqual([]);
      expect(trace.stderr).not.toContain(SECRET);
      expect(stateOf(sandbox, 'process-inspection')).toBe('enforced');
    });

    it('fails for a command of another sandbox', async () => {
      const [one, other] = [await arena.sandbox(tier), await arena.sandbox(tier)];
      let victim = 0;
      const running = one.start(['/bin/sh', '-c', 'echo $$; exec sleep 20'], {
        env: { ITS_TOKEN: SECRET },
        onOutput: ({ bytes }) => {
          victim = Number.parseInt(Buffer.from(bytes).toString(), 10);
        },
      });
      while (victim === 0) await new Promise((done) => setTimeout(done, 5));
      const trace = await confined(other, [inspector, String(victim)]);
      running.kill('SIGKILL');
      await running.result;
      expect(hidden(trace, other)).toEqual([]);
      expect(trace.stderr).not.toContain(SECRET);
    });

    it('shows names and arguments, as the report says', async () => {
      const sandbox = await arena.sandbox(tier);
      expect(reasonOf(sandbox)).toContain('names and arguments in /proc are visible');
    });
  });
});
