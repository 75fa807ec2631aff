import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { HOST, HOST_TIERS, stateOf } from '../support/tiers.ts';

const glutton = compile(
  'exceed-limits',
  `
  int main(int argc, char **argv) {
    signal(SIGXFSZ, SIG_IGN);
    int fd, count = 0;
    TRY("files", ({ while ((fd = dup(0)) >= 0) count++; count >= 200 ? 0 : -1; }));
    for (int i = 3; i < 300; i++) close(i);
    fd = open("big", O_WRONLY | O_CREAT, 0600);
    TRY("file-size", ftruncate(fd, 2000000));
    TRY("file-write", pwrite(fd, "x", 1, 2000000));
    unlink("big");
    TRY("address-space", mmap(0, 2000000000, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED ? -1 : 0);
    struct rlimit limit;
    getrlimit(RLIMIT_CORE, &limit);
    TRY("core", limit.rlim_max || limit.rlim_cur ? 0 : -1);
    if (argc > 1) TRY("processes", ({ pid_t pid = fork(); if (pid == 0) _exit(0); pid; }));
    return 0;
  }`,
);

const LIMITS = { open_files: 100, file_size: 1_000_000, address_space: 1_000_000_000 };

describe('using more than the limits of the policy', () => {
  const arena = makeArena();

  it('works without a sandbox', async () => {
    const trace = await unconfined([glutton, 'fork'], { cwd: arena.freshCorner() });
    expect(worked(trace)).toEqual(
      expect.arrayContaining(['files', 'file-size', 'file-write', 'address-space', 'processes']),
    );
  });

  describe.each(HOST_TIERS)('$name', (tier) => {
    it('fails', async () => {
      const sandbox = await arena.sandbox(tier, { policy: { limits: LIMITS } });
      const trace = await confined(sandbox, [glutton]);
      expect(worked(trace)).toEqual([]);
      expect(Object.keys(trace.results)).toHaveLength(5);
      expect(stateOf(sandbox, 'resource-limits')).toBe(
        sandbox.plan.treeLimits.cgroup === undefined ? 'degraded' : 'enforced',
      );
    });

    it('ends a command that uses more processor time', async () => {
      const sandbox = await arena.sandbox(tier, { policy: { limits: { cpu_seconds: 1 } } });
      const result = await sandbox.run('trap "" XCPU; while :; do :; done');
      expect([result.status, result.limit?.name, result.signal]).toEqual([
        'limit-exceeded',
        'cpu',
        'SIGKILL',
      ]);
      expect(result.cpu.userMs + result.cpu.systemMs).toBeLessThan(2500);
    });

    it('leaves no core dump of a crash', async () => {
      const sandbox = await arena.sandbox(tier);
      const corner = arena.freshCorner();
      const result = await sandbox.run('ulimit -c; kill -SEGV $$', { cwd: corner });
      expect([result.stdout, result.signal]).toEqual(['0\n', 'SIGSEGV']);
      expect(readdirSync(corner)).toEqual([]);
    });

    it('takes the umask of the policy, whatever that of the launcher', async () => {
      const sandbox = await arena.sandbox(tier, { policy: { limits: { umask: '077' } } });
      const corner = arena.freshCorner();
      await sandbox.run(': > made', { cwd: corner });
      expect(statSync(join(corner, 'made')).mode & 0o777).toBe(0o600);
    });

    it('never raises a limit that the launcher has lower', async () => {
      const sandbox = await arena.sandbox(tier, { policy: { limits: { open_files: 2 ** 30 } } });
      const result = await sandbox.run('ulimit -Hn');
      const own = (await unconfined(['/bin/bash', '-c', 'ulimit -Hn'])).stdout;
      expect(Number(result.stdout)).toBeLessThanOrEqual(Number(own));
    });

    it.runIf(!HOST.root)(
      'fails for processes (not root: the kernel does not count those of root)',
      async () => {
        const sandbox = await arena.sandbox(tier, { policy: { limits: { user_processes: 1 } } });
        const trace = await confined(sandbox, [glutton, 'fork']);
        expect(trace.results.processes).toBe('EAGAIN');
      },
    );

    it.runIf(HOST.root)(
      'sets the limit of processes, which the kernel does not hold against root (as root)',
      async () => {
        const sandbox = await arena.sandbox(tier, { policy: { limits: { user_processes: 7 } } });
        const result = await sandbox.run('ulimit -u; ulimit -Hu');
        expect(result.stdout).toBe('7\n7\n');
        expect(existsSync(arena.workspace)).toBe(true);
      },
    );
  });
});
