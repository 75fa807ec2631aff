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

    it('leaves limits, priority and processors of its own', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(
        'ulimit -n 100 && ulimit -n && nice -n 5 true && taskset -p $$ >&2 && prlimit --nofile=50 sh -c "ulimit -n"',
      );
      expect(result.stdout).toBe('100\n50\n');
    });
  });
});
