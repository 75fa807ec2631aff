import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { startBystander } from '../support/bystander.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { stateOf, TIERS } from '../support/tiers.ts';

const sleeper = compile('sleeper', `int main() { printf("ready\\n"); fflush(stdout); for (;;) pause(); }`);

const tamperer = compile(
  'tamper',
  `
  int main(int argc, char **argv) {
    int pid = atoi(argv[1]);
    struct rlimit limit;
    struct sched_param parameter = {0};
    cpu_set_t processors;
    TRY("limit-files", prlimit(pid, RLIMIT_NOFILE, 0, &limit) ? -1 : (limit.rlim_cur = 100, prlimit(pid, RLIMIT_NOFILE, &limit, 0)));
    TRY("limit-cpu", prlimit(pid, RLIMIT_CPU, 0, &limit) ? -1 : (limit.rlim_cur = 600, prlimit(pid, RLIMIT_CPU, &limit, 0)));
    // A pointer whose low half is zero, for filters that look at no more.
    struct rlimit *aligned = mmap((void *)0x500000000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    TRY("limit-files-aligned", prlimit(pid, RLIMIT_NOFILE, 0, aligned) ? -1 : (aligned->rlim_cur = 90, syscall(SYS_prlimit64, pid, RLIMIT_NOFILE, aligned, 0)));
    TRY("limit-files-high-pid", (*aligned = (struct rlimit){80, 80}, syscall(SYS_prlimit64, 1ull << 32 | pid, RLIMIT_NOFILE, aligned, 0)));
    TRY("nice", setpriority(PRIO_PROCESS, pid, 19));
    TRY("scheduler", sched_setscheduler(pid, SCHED_BATCH, &parameter));
    TRY("affinity", sched_getaffinity(pid, sizeof processors, &processors) < 0 ? -1 : sched_setaffinity(pid, sizeof processors, &processors));
    TRY("io-priority", syscall(SYS_ioprio_set, 1, pid, (3 << 13) | 0));
    TRY("group", setpgid(pid, 0));
    return 0;
  }`,
);

/**
 * Asks for what every process outside of its session has already, threads included: it does no harm where it works. Prints how many
 * it named, and how many let it.
 */
const meddler = compile(
  'meddle-with-all',
  `
  #include <dirent.h>
  static int named, let;
  static void try(int pid) {
    struct sched_param parameter = {0};
    cpu_set_t processors;
    if (getsid(pid) == getsid(0) || getsid(pid) < 0) return;
    named++;
    if (sched_getscheduler(pid) == SCHED_OTHER && sched_setscheduler(pid, SCHED_OTHER, &parameter) == 0) let++;
    if (getpriority(PRIO_PROCESS, pid) == 0 && setpriority(PRIO_PROCESS, pid, 0) == 0) let++;
  }
  int main() {
    DIR *all = opendir("/proc");
    for (struct dirent *one; (one = readdir(all)) != 0;) {
      int pid = atoi(one->d_name);
      char path[64];
      if (pid <= 1) continue;
      snprintf(path, sizeof path, "/proc/%d/task", pid);
      DIR *threads = opendir(path);
      if (threads == 0) try(pid);
      else for (struct dirent *thread; (thread = readdir(threads)) != 0;) if (atoi(thread->d_name) > 1) try(atoi(thread->d_name));
      if (threads) closedir(threads);
    }
    SAY("named", named > 0 ? "some" : "none");
    SAY("let", let > 0 ? "some" : "none");
    return 0;
  }`,
);

/** Names itself, its threads, its child and its parent by number, as libc, renice and psutil do. */
const self = compile(
  'name-oneself',
  `
  #include <pthread.h>
  static const struct sched_param none = {0};
  static pid_t other;
  static int ends[2];
  static void *wait_for_end(void *unused) { char c; other = gettid(); write(ends[1], "x", 1); pause(); return 0; }
  static void *in_thread(void *unused) {
    TRY("thread-self", (errno = pthread_setschedparam(pthread_self(), SCHED_OTHER, &none)) ? -1 : 0);
    TRY("thread-other", sched_setscheduler(other, SCHED_BATCH, &none));
    SAY("thread-other-is", sched_getscheduler(other) == SCHED_BATCH ? "batch" : "as it was");
    TRY("thread-process", setpriority(PRIO_PROCESS, getpid(), 17));
    return 0;
  }
  static void of(const char *name, pid_t pid) {
    char say[64], attributes[48] = {48};
    struct rlimit limit = {90, 90}, old = {0, 0};
    cpu_set_t processors;
    #define NAMED(what) (snprintf(say, sizeof say, "%s-%s", name, what), say)
    *(unsigned *)(attributes + 4) = SCHED_BATCH;
    *(int *)(attributes + 16) = 19;
    TRY(NAMED("parameter"), sched_setparam(pid, &none));
    TRY(NAMED("nice"), setpriority(PRIO_PROCESS, pid, 18));
    SAY(NAMED("nice-is"), getpriority(PRIO_PROCESS, pid) == 18 ? "set" : "other");
    TRY(NAMED("attributes"), syscall(SYS_sched_setattr, pid, attributes, 0));
    SAY(NAMED("attributes-are"), getpriority(PRIO_PROCESS, pid) == 19 ? "set" : "other");
    TRY(NAMED("scheduler"), sched_setscheduler(pid, SCHED_BATCH, &none));
    TRY(NAMED("io"), syscall(SYS_ioprio_set, 1, pid, 3 << 13));
    SAY(NAMED("io-is"), syscall(SYS_ioprio_get, 1, pid) == 3 << 13 ? "idle" : "other");
    TRY(NAMED("limit"), prlimit(pid, RLIMIT_CORE, &(struct rlimit){0, 0}, &old));
    TRY(NAMED("limit-files"), prlimit(pid, RLIMIT_NOFILE, &limit, &old));
    SAY(NAMED("limit-before"), old.rlim_cur > 90 ? "read" : "not read");
    SAY(NAMED("limit-is"), prlimit(pid, RLIMIT_NOFILE, 0, &limit) == 0 && limit.rlim_cur == 90 ? "90" : "other");
    TRY(NAMED("affinity"), sched_getaffinity(pid, sizeof processors, &processors) < 0 ? -1 : sched_setaffinity(pid, sizeof processors, &processors));
    // More than a command may, whose launcher may be root.
    TRY(NAMED("more-nice"), setpriority(PRIO_PROCESS, pid, -5));
    TRY(NAMED("more-real-time"), sched_setscheduler(pid, SCHED_FIFO, &(struct sched_param){1}));
    TRY(NAMED("more-limit"), prlimit(pid, RLIMIT_NOFILE, &(struct rlimit){200, 200}, 0));
    TRY(NAMED("fault"), sched_setscheduler(pid, SCHED_BATCH, (void *)8));
  }
  int main(int argc, char **argv) {
    pthread_t threads[2];
    char c;
    pipe(ends);
    pthread_create(&threads[0], 0, wait_for_end, 0);
    read(ends[0], &c, 1);
    pthread_create(&threads[1], 0, in_thread, 0);
    pthread_join(threads[1], 0);
    pid_t child = fork();
    if (child == 0) for (;;) pause();
    of("child", child);
    kill(child, SIGKILL);
    waitpid(child, 0, 0);
    TRY("gone", setpriority(PRIO_PROCESS, child, 5));
    if ((child = fork()) == 0) {
      of("parent", getppid());
      _exit(0);
    }
    waitpid(child, 0, 0);
    return 0;
  }`,
  ['-pthread'],
);

/** RLIMIT_CPU lets the kernel kill, RLIMIT_NOFILE lets a launcher starve: as good as a signal. */
const LIMITS = ['limit-files', 'limit-cpu', 'limit-files-aligned', 'limit-files-high-pid'];
const SCHEDULING = ['nice', 'scheduler', 'affinity', 'io-priority'];

describe('tampering with processes outside', () => {
  const arena = makeArena();

  it('works without a sandbox', async () => {
    const { pid } = await startBystander([sleeper]);
    const trace = await unconfined([tamperer, String(pid)]);
    expect(worked(trace)).toEqual([...LIMITS, ...SCHEDULING]);
  });

  describe.each(TIERS)('$name', (tier) => {
    it('fails for their resource limits, by which they could be killed', async () => {
      const { pid } = await startBystander([sleeper]);
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [tamperer, String(pid)]);
      expect(worked(trace).filter((name) => LIMITS.includes(name))).toEqual([]);
    });

    it('fails for their scheduling, or the report says that it does not', async () => {
      const { pid } = await startBystander([sleeper]);
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [tamperer, String(pid)]);
      const reason = sandbox.plan.report.controls.find((control) => control.id === 'signals')?.reason ?? '';
      expect(stateOf(sandbox, 'signals')).toBe(tier.landlockAbi >= 6 ? 'enforced' : 'unsupported');
      if (tier.landlockAbi < 6) return;
      const told = /scheduling/.test(reason) ? SCHEDULING : /processors/.test(reason) ? ['affinity'] : [];
      expect(worked(trace).filter((name) => SCHEDULING.includes(name) && !told.includes(name))).toEqual([]);
    });

    it('fails for every process of the machine, the launcher and its helpers included', async () => {
      const sandbox = await arena.sandbox(tier);
      expect((await unconfined([meddler])).results).toEqual({ named: 'some', let: 'some' });
      const trace = await confined(sandbox, [meddler]);
      expect(trace.results).toEqual({ named: 'some', let: 'none' });
      expect(worked(await confined(sandbox, [tamperer, String(process.pid)]))).not.toEqual(
        expect.arrayContaining(LIMITS),
      );
    });

    it('leaves what names its own threads and processes by number, and no more than it may do to itself', async () => {
      const sandbox = await arena.sandbox(tier);
      const outside = await unconfined([self]);
      const trace = await confined(sandbox, [self]);
      if (sandbox.plan.observed === 'nothing') {
        expect(trace.results['thread-self']).toBe('EPERM');
        return;
      }
      const own = ['thread-self', 'thread-process'];
      const expected = Object.entries(outside.results).map(([name, outcome]) => {
        if (name.includes('more-'))
          return [name, name.endsWith('nice') && tier.landlockAbi >= 6 ? 'EACCES' : 'EPERM'];
        // Without a scope of signals nothing says which process is one of the command.
        if (tier.landlockAbi >= 6 || own.includes(name)) return [name, outcome];
        return [name, name.endsWith('-affinity') ? outcome : trace.results[name]];
      });
      const wrong = expected.filter(([name = '', outcome]) => trace.results[name] !== outcome);
      expect(wrong.map(([name = '', outcome]) => `${name}: ${trace.results[name]}, not ${outcome}`)).toEqual(
        [],
      );
      expect(Object.keys(trace.results)).toEqual(Object.keys(outside.results));
      if (tier.landlockAbi < 6) expect(trace.results).toMatchObject({ 'child-nice': 'EPERM', gone: 'EPERM' });
    });

    it('leaves renice, chrt, ionice, taskset and prlimit of the shell that they were started by', async () => {
      const sandbox = await arena.sandbox(tier);
      const line = `(bash -c 'renice -n 19 -p $$ && nice && chrt -b -p 0 $$ && chrt -p $$ && ionice -c3 -p $$ && ionice -p $$ &&
        taskset -p 1 $$ && prlimit --pid $$ --nofile=80:80 && ulimit -n' 2>&1 | sed 's/[0-9]*//'; exit \${PIPESTATUS[0]})`;
      const result = await sandbox.run(line);
      if (tier.landlockAbi < 6 || sandbox.plan.observed === 'nothing') {
        expect(result.stdout).toMatch(/Permission denied|Operation not permitted/);
        return;
      }
      const outside = execFileSync('bash', ['-c', line], { encoding: 'utf8' });
      expect(result.stdout.replaceAll(/\d+/g, 'N')).toBe(outside.replaceAll(/\d+/g, 'N'));
      expect(result.exitCode).toBe(0);
    });

    it('leaves limits, priority and processors of its own', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(
        'ulimit -n 100 && ulimit -n && nice -n 5 true && taskset -p $$ >&2 && prlimit --nofile=50 sh -c "ulimit -n"',
      );
      expect(result.stdout).toBe('100\n50\n');
    });
  });
});
