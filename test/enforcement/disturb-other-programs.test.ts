import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena, snapshot } from '../support/arena.ts';
import { startBystander } from '../support/bystander.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { HOST, OLDEST_TIERS, stateOf, TIERS } from '../support/tiers.ts';

/** What who may only read a file, and owns it, can do to those who open it. */
const reader = compile(
  'disturb-by-reading',
  `
  struct deleg { unsigned flags; unsigned short type, pad; };
  int main(int argc, char **argv) {
    const char *file = argv[1], *directory = argv[2];
    int fd = open(file, O_RDONLY), top = open(directory, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || top < 0) return 2;
    TRY("lease-write", fcntl(fd, F_SETLEASE, F_WRLCK));
    fcntl(fd, F_SETLEASE, F_UNLCK);
    TRY("lease-read", fcntl(fd, F_SETLEASE, F_RDLCK));
    TRY("lease-high", syscall(SYS_fcntl, fd, 0x700000000ull | F_SETLEASE, F_RDLCK));
    TRY("delegation", fcntl(fd, 1040, &(struct deleg){0, F_RDLCK, 0}));
    TRY("delegation-directory", fcntl(top, 1040, &(struct deleg){0, F_RDLCK, 0}));
    TRY("notify", fcntl(top, F_NOTIFY, 1 | 0x80000000u));
    long flags = 0;
    ioctl(fd, 0x80086601, &flags);
    int changed = flags ^ 0x40 /* FS_NODUMP_FL */;
    TRY("flags", ioctl(fd, 0x40086602, &changed));
    TRY("flags-high", syscall(SYS_ioctl, fd, 0x900000000ull | 0x40086602, &changed));
    TRY("immutable", ioctl(fd, 0x40086602, &(int){flags | 0x10}));
    TRY("append-only", ioctl(fd, 0x40086602, &(int){flags | 0x20}));
    // Without a sandbox root may, and nobody could take the file away.
    ioctl(fd, 0x40086602, &flags);
    unsigned attributes[7] = {0};
    ioctl(fd, 0x801c581f, attributes);
    attributes[3] = 4242;
    TRY("project", ioctl(fd, 0x401c5820, attributes));
    TRY("attributes-call", syscall(469, AT_FDCWD, file, attributes, 24, 0));
    TRY("version", ioctl(fd, 0x40087602, &(int){7}));
    TRY("version-ext4", ioctl(fd, 0x40086604, &(int){7}));
    unsigned verity[32] = {1, 1, 4096};
    TRY("verity", ioctl(fd, 0x40806685, verity));
    TRY("encryption", ioctl(top, 0x800c6613, (unsigned char[12]){0}));
    TRY("snapshot", ioctl(top, 0x50009401, (char[4096]){0}));
    TRY("snapshot-2", ioctl(top, 0x50009417, (char[4096]){0}));
    TRY("subvolume-flags", ioctl(top, 0x4008941a, &(uint64_t){2}));
    // What is wrong about these a privileged caller is told after the check of its privilege: they change nothing.
    TRY("thaw", ioctl(top, 0xc0045878, 0));
    TRY("trim", ioctl(top, 0xc0185879, (uint64_t[3]){0, 0, 0}));
    return 0;
  }`,
);

/** Another process opens what this one holds a lease of: EAGAIN means that it would have waited. */
const holder = compile(
  'hold-a-lease',
  `
  int main(int argc, char **argv) {
    signal(SIGIO, SIG_IGN);
    int fd = open(argv[1], O_RDONLY);
    fcntl(fd, F_SETLEASE, F_WRLCK);
    if (fork() == 0) {
      TRY("opener", open(argv[1], O_RDONLY | O_NONBLOCK));
      _exit(0);
    }
    wait(0);
    return 0;
  }`,
);

/** What libraries and tools do with files of their own. */
const worker = compile(
  'use-files',
  `
  #include <sys/file.h>
  int main() {
    int fd = open("own", O_CREAT | O_RDWR, 0644), other = open("own", O_RDWR);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    TRY("flock", flock(fd, LOCK_EX));
    TRY("flock-other", flock(other, LOCK_EX | LOCK_NB));
    TRY("posix-lock", fcntl(fd, F_SETLK, &all));
    TRY("ofd-lock", fcntl(open("second", O_CREAT | O_RDWR, 0644), F_OFD_SETLK, &all));
    TRY("get-lease", fcntl(fd, F_GETLEASE));
    TRY("non-blocking", fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
    TRY("duplicate", fcntl(fd, F_DUPFD_CLOEXEC, 20));
    TRY("pipe-size", ({ int ends[2]; pipe(ends); fcntl(ends[0], F_SETPIPE_SZ, 65536); }));
    TRY("seals", fcntl(memfd_create("m", 2), F_ADD_SEALS, 1));
    TRY("own-nice", setpriority(PRIO_PROCESS, 0, 19));
    TRY("own-batch", sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0}));
    TRY("own-processors", ({ cpu_set_t set; sched_getaffinity(0, sizeof set, &set); sched_setaffinity(getpid(), sizeof set, &set); }));
    return 0;
  }`,
);

const REFUSED_BY_NO_HOST = ['lease-write', 'lease-read', 'lease-high', 'notify'];

describe('disturbing who uses the same files', () => {
  const arena = makeArena();
  const file = (place: string, name: string) => {
    const path = join(place, name);
    writeFileSync(path, 'x');
    return path;
  };

  it('works without a sandbox', async () => {
    const trace = await unconfined([reader, file(arena.outside, 'free'), arena.outside]);
    expect(worked(trace)).toEqual(expect.arrayContaining(REFUSED_BY_NO_HOST));
    expect(Object.keys(trace.results)).toHaveLength(21);
    // What a file system does not have it says in other words than the filter.
    for (const name of ['verity', 'encryption', 'snapshot', 'subvolume-flags'])
      expect([name, trace.results[name]]).not.toEqual([name, 'EPERM']);
  });

  describe.each([...TIERS, ...OLDEST_TIERS])('$name', (tier) => {
    it('fails on files outside and on those of the workspace', async () => {
      const sandbox = await arena.sandbox(tier, { readable: [arena.outside] });
      const name = `used-${tier.landlockAbi}-${tier.view}`;
      for (const place of [arena.outside, arena.workspace]) {
        const path = file(place, name);
        const before = snapshot(path);
        const trace = await confined(sandbox, [reader, path, place]);
        expect(Object.keys(trace.results)).toHaveLength(21);
        for (const [move, outcome] of Object.entries(trace.results)) {
          // Landlock answers before the file system does, and both before they look for a privilege.
          const answers = /^(thaw|trim)$/.test(move) ? /^(EPERM|EACCES|EROFS|ENOTTY)$/ : /^EPERM$/;
          expect(outcome, move).toMatch(answers);
        }
        expect(snapshot(path)).toEqual(before);
      }
    });

    it('stalls nobody who opens what a command reads', async () => {
      const sandbox = await arena.sandbox(tier, { readable: [arena.outside] });
      const path = file(arena.outside, `opened-${tier.landlockAbi}-${tier.view}`);
      expect((await unconfined([holder, path])).results).toEqual({ opener: 'EAGAIN' });
      expect((await confined(sandbox, [holder, path])).results).toEqual({ opener: 'ok' });
    });

    it('leaves locks, descriptors and priorities of its own', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [worker], { cwd: arena.freshCorner() });
      expect(trace.results['flock-other']).toBe('EAGAIN');
      const others = Object.keys(trace.results).filter((name) => name !== 'flock-other');
      expect(others).toHaveLength(11);
      expect(worked(trace)).toEqual(others);
    });
  });
});

const sleeper = compile(
  'sleeper-owner',
  `int main() { printf("ready\\n"); fflush(stdout); for (;;) pause(); }`,
);

/** Other ways to a process than by a signal to its number. */
const meddler = compile(
  'meddle',
  `
  int main(int argc, char **argv) {
    int pid = atoi(argv[1]), ends[2];
    unsigned long nodes = 1;
    char attributes[48] = {48};
    size_t size;
    void *head;
    *(unsigned *)attributes = 48;
    *(unsigned *)(attributes + 4) = SCHED_BATCH;
    // Nobody may make the tests nicer than they were started.
    *(int *)(attributes + 16) = getpriority(PRIO_PROCESS, 0);
    TRY("scheduler-parameter", sched_setparam(pid, &(struct sched_param){0}));
    TRY("scheduler-attributes", syscall(SYS_sched_setattr, pid, attributes, 0));
    TRY("scheduler-high", syscall(SYS_sched_setscheduler, 0x100000000ull | pid, SCHED_BATCH, &(struct sched_param){0}));
    TRY("nice-user", setpriority(PRIO_USER, getuid(), getpriority(PRIO_PROCESS, 0)));
    TRY("nice-group", setpriority(PRIO_PGRP, pid, getpriority(PRIO_PROCESS, 0)));
    TRY("io-user", syscall(SYS_ioprio_set, 3, getuid(), (2 << 13) | 4));
    TRY("robust-list", syscall(SYS_get_robust_list, pid, &head, &size));
    TRY("migrate-pages", syscall(SYS_migrate_pages, pid, 8, &nodes, &nodes));
    TRY("move-pages", syscall(SYS_move_pages, pid, 0, 0, 0, 0, 0));
    TRY("compare", syscall(SYS_kcmp, pid, getpid(), 0, 0, 0));
    TRY("release-memory", syscall(448, syscall(434, pid, 0), 0));
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK);
    fcntl(ends[0], F_SETSIG, SIGTERM);
    SAY("owner", fcntl(ends[0], F_SETOWN, pid) < 0 ? "refused" : "set");
    write(ends[1], "x", 1);
    return 0;
  }`,
);

/** Docker's profile keeps these from who has no CAP_SYS_NICE. */
const REFUSED_IN_CONTAINERS = ['migrate-pages', 'move-pages'];

const OPEN_TO_USERS = ['scheduler-parameter', 'scheduler-attributes', 'scheduler-high', 'io-user'];

describe('meddling with processes outside', () => {
  const arena = makeArena();

  it('works without a sandbox', async () => {
    const bystander = await startBystander([sleeper]);
    const trace = await unconfined([meddler, String(bystander.pid)]);
    const open = [...OPEN_TO_USERS, 'nice-group', 'robust-list'];
    // The second, where another process of the user was made nicer than this one meanwhile: the rest got it.
    expect(trace.results['nice-user']).toMatch(/^(ok|EACCES)$/);
    expect(worked(trace)).toEqual(
      expect.arrayContaining(HOST.filtered ? open : [...open, ...REFUSED_IN_CONTAINERS]),
    );
    await expect.poll(bystander.alive, { timeout: 10_000 }).toBe(false);
  });

  describe.each(TIERS)('$name', (tier) => {
    it('fails, and by a signal of a descriptor where signals are held', async () => {
      const bystander = await startBystander([sleeper]);
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [meddler, String(bystander.pid)]);
      expect(Object.keys(trace.results)).toHaveLength(12);
      expect(worked(trace)).toEqual([]);
      expect(trace.results['nice-user']).toBe('EPERM');
      if (stateOf(sandbox, 'signals') === 'enforced') expect(bystander.alive()).toBe(true);
    });

    it('fails by the files of the process in /proc', async () => {
      const { pid } = await startBystander([sleeper]);
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(
        `for f in oom_score_adj autogroup timerslack_ns coredump_filter clear_refs comm; do ( exec 3>>/proc/${pid}/$f ) 2>/dev/null && echo $f; done; true`,
      );
      expect(result.stdout).toBe('');
    });
  });
});

/** Takes so many places to wait for changes of files. */
const watcher = compile(
  'watch-files',
  `
  #include <sys/inotify.h>
  int main(int argc, char **argv) {
    int count = atoi(argv[1]), got = 0;
    while (got < count && inotify_init1(IN_CLOEXEC) >= 0) got++;
    SAY("got", got == count ? "all" : got == 0 ? "none" : "some");
    return 0;
  }`,
);

describe('using up what the user has to watch files with', () => {
  const arena = makeArena();
  const half = Math.floor(Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'utf8')) / 2);

  it('works without a sandbox', async () => {
    const trace = await unconfined([watcher, String(half + 1)]);
    expect(trace.results).toEqual({ got: 'all' });
  });

  it.each(TIERS)(
    'leaves the user half of it where the command is in a user namespace: $name',
    async (tier) => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [watcher, String(half + 1)]);
      // SECURITY.md: as root there is no user namespace, and nothing else that counts them apart.
      expect(trace.results).toEqual({ got: sandbox.plan.namespaces?.user === true ? 'some' : 'all' });
      expect((await confined(sandbox, [watcher, String(Math.floor(half / 2))])).results).toEqual({
        got: 'all',
      });
    },
  );
});
