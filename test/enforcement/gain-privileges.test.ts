import { chmodSync, chownSync, copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { HOST, OLDEST_TIERS, stateOf, TIERS } from '../support/tiers.ts';

const NOBODY = 65534;

const status = compile(
  'show-privileges',
  `
  int main(int argc, char **argv) {
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, file)) {
      if (strncmp(line, "Cap", 3) && strncmp(line, "NoNewPrivs", 10) && strncmp(line, "Seccomp:", 8)) continue;
      char *colon = strchr(line, ':');
      *colon = 0;
      printf("%s=V%s", line, strtok(colon + 1, " \\t"));
    }
    printf("uid=V%d\\neuid=V%d\\negid=V%d\\n", getuid(), geteuid(), getegid());
    fflush(stdout);
    if (argc > 1) execv(argv[1], (char *[]){argv[1], 0});
    return 0;
  }`,
);

const climber = compile(
  'climb',
  `
  #include <linux/capability.h>
  int main(int argc, char **argv) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    syscall(SYS_capget, &header, data);
    data[0].effective |= 1u << 21;
    data[0].permitted |= 1u << 21;
    TRY("capset", syscall(SYS_capset, &header, data));
    TRY("ambient", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0));
    TRY("keep-caps", prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
    TRY("securebits", prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
    TRY("bounding-set", prctl(PR_CAPBSET_READ, 21, 0, 0, 0) == 1 ? 0 : -1);
    TRY("no-new-privs-off", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    TRY("setuid", setuid(getuid() + 1));
    TRY("setgid", setgid(getgid() + 1));
    TRY("setgroups", setgroups(0, 0));
    TRY("setreuid", setreuid(-1, getuid() + 1));
    TRY("setfsuid", (setfsuid(getuid() + 1), setfsuid(-1) == getuid() + 1) ? 0 : -1);
    TRY("read-root-only", open("/etc/shadow", O_RDONLY));
    TRY("dac-override", ({ int fd; close(open("no-access", O_CREAT | O_WRONLY, 0)); fd = open("no-access", O_RDONLY); unlink("no-access"); fd; }));
    TRY("chown", ({ close(open("own", O_CREAT | O_WRONLY, 0600)); int r = chown("own", getuid() + 1, -1); unlink("own"); r; }));
    TRY("rlimit-up", ({ struct rlimit l; getrlimit(RLIMIT_NOFILE, &l); l.rlim_max++; setrlimit(RLIMIT_NOFILE, &l); }));
    TRY("core-up", setrlimit(RLIMIT_CORE, &(struct rlimit){1, 1}));
    TRY("niceness", setpriority(PRIO_PROCESS, 0, -5));
    TRY("real-time", sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}));
    TRY("lock-memory", ({ struct rlimit l; getrlimit(RLIMIT_MEMLOCK, &l); l.rlim_max == RLIM_INFINITY ? (errno = EPERM, -1) : mlockall(MCL_FUTURE) < 0 ? -1 : mmap(0, l.rlim_max + 65536, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0; }));
    return 0;
  }`,
  ['-include', 'grp.h', '-include', 'sys/fsuid.h'],
);

const NOTHING = 'V0000000000000000';

describe('gaining privileges', () => {
  const arena = makeArena();

  describe.each([...TIERS, ...OLDEST_TIERS])('$name', (tier) => {
    it('finds no capabilities in any set, no_new_privs and a filter, and keeps them so over exec', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [status, status]);
      for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'])
        expect([set, trace.results[set]]).toEqual([set, NOTHING]);
      // The bounding set bounds what execve could give; with no_new_privs and nothing permitted that is nothing.
      expect(trace.results.NoNewPrivs).toBe('V1');
      expect(trace.results.Seccomp).toBe('V2');
      expect(trace.stdout.match(/^CapEff=V0{16}$/gm)).toHaveLength(2);
      expect(stateOf(sandbox, 'privileges')).toBe('enforced');
    });

    it('gains none by asking', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [climber]);
      // Both mean nothing to a process that has no capabilities and cannot get any.
      const meaningless = ['keep-caps', 'bounding-set'];
      expect(worked(trace).filter((name) => !meaningless.includes(name))).toEqual([]);
      expect(Object.keys(trace.results)).toHaveLength(19);
    });
  });

  it.runIf(HOST.root)('works without a sandbox (as root)', async () => {
    const trace = await unconfined([climber], { cwd: arena.workspace });
    expect(worked(trace)).toEqual(
      expect.arrayContaining(['capset', 'keep-caps', 'securebits', 'setuid', 'bounding-set']),
    );
  });

  it.runIf(!HOST.root)('an ordinary user has none to begin with (not root)', async () => {
    const trace = await unconfined([status]);
    expect(trace.results.CapEff).toBe(NOTHING);
    // Already set in a container with --security-opt no-new-privileges.
    const own = /^NoNewPrivs:\s+(\d)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
    expect(trace.results.NoNewPrivs).toBe(`V${own}`);
  });

  describe.runIf(HOST.root)('set-uid and set-gid programs (making them needs root)', () => {
    const places = [arena.workspace, arena.outside].map((directory) => {
      const program = join(directory, 'set-uid');
      copyFileSync(status, program);
      return program;
    });
    if (HOST.root) {
      for (const program of places) {
        chownSync(program, NOBODY, NOBODY);
        chmodSync(program, 0o6755);
      }
    }
    const [inside = '', outside = ''] = places;

    it('change the user without a sandbox', async () => {
      const trace = await unconfined([inside]);
      expect([trace.results.euid, trace.results.egid]).toEqual([`V${NOBODY}`, `V${NOBODY}`]);
    });

    it.each(TIERS)('do nothing: $name', async (tier) => {
      const sandbox = await arena.sandbox(tier, { readable: [arena.outside] });
      for (const program of [inside, outside]) {
        const trace = await confined(sandbox, [program]);
        expect([trace.results.euid, trace.results.egid]).toEqual(['V0', 'V0']);
        expect(trace.results.CapEff).toBe(NOTHING);
      }
    });

    it.each(TIERS)('that the command makes itself do nothing outside either: $name', async (tier) => {
      const sandbox = await arena.sandbox(tier);
      const corner = arena.freshCorner();
      await sandbox.run(
        `cp "${status}" "${corner}/made"; chown ${NOBODY} "${corner}/made"; chmod 4755 "${corner}/made"; true`,
      );
      const trace = await unconfined([join(corner, 'made')]);
      // Owned by root, who started it: it must not have become another user's.
      expect(trace.results.euid).toBe('V0');
    });
  });

  it.runIf(!HOST.root && existsSync('/usr/bin/su'))('su gains nothing (not root)', async () => {
    for (const tier of TIERS) {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run('echo | su root -c id');
      expect(result.exitCode).not.toBe(0);
      expect(result.stdout).not.toContain('uid=0');
    }
  });
});
