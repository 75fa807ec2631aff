import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { release } from 'node:os';
import { describe, expect, it } from 'vitest';
import type { ExecutionResult, PolicyFile, Sandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { until } from '../support/bystander.ts';
import { eventually } from '../support/eventually.ts';
import { compile } from '../support/sandboxee.ts';
import { patience, SLOW_HOST } from '../support/slow-host.ts';
import { HOST_TIERS } from '../support/tiers.ts';

/** Forks without end, each time into a session of its own; a thousand, so that a bug cannot end the machine; these stay to be seen. */
const forkBomb = compile(
  'fork-bomb',
  `int main(void) {
    int *count = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (;;) {
      if (__sync_fetch_and_add(count, 1) > 1000) { sleep(30); _exit(0); }
      if (fork() == 0) setsid();
    }
  }`,
);
/** Doubles ten times: a thousand processes, where a real one would take the machine from a launcher that comes too late. */
const BASH_BOMB =
  'bomb() { if [ "$1" -gt 9 ]; then exec sleep 30; else bomb $(($1 + 1)) | bomb $(($1 + 1)) & fi; }; bomb 0; sleep 30';
const threadBomb = compile(
  'thread-bomb',
  `#include <pthread.h>
  static void *rest(void *unused) { sleep(30); return 0; }
  int main(void) {
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    for (int i = 0; i < 2000; i++) { pthread_t t; if (pthread_create(&t, &small, rest, 0)) break; }
    sleep(30);
    return 0;
  }`,
  ['-pthread'],
);
/** Takes 50 MB each 50 ms, up to 3 GB. */
const memoryBomb = compile(
  'memory-bomb',
  `int main(int argc, char **argv) {
    for (int i = 0; i < 60; i++) {
      memset(malloc(50000000), 1, 50000000);
      if (argc > 1 && fork() == 0) { sleep(30); _exit(0); }
      usleep(argc > 1 ? 5000 : 50000);
    }
    sleep(30);
    return 0;
  }`,
);
/** Leaves two processes that turn in circles, each in a session of its own, and waits. */
const spinners = compile(
  'spinners',
  `int main(void) {
    for (int i = 0; i < 2; i++) if (fork() == 0) { setsid(); if (fork() == 0) for (;;); _exit(0); }
    sleep(30);
    return 0;
  }`,
);
/** Directories in directories, each with a long name. */
const nester = compile(
  'nester',
  `int main(void) {
    char name[201];
    memset(name, 'd', 200);
    name[200] = 0;
    chdir(getenv("TMPDIR"));
    for (int i = 0; i < 100000; i++) { mkdir(name, 0700); chdir(name); }
    sleep(30);
    return 0;
  }`,
);
const sharedMemory = compile(
  'shared-memory',
  `int main(void) {
    for (int i = 0; i < 30; i++) {
      char *p = mmap(0, 50000000, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      memset(p, 1, 50000000);
      usleep(30000);
    }
    sleep(30);
    return 0;
  }`,
);

/** What it is, the command, and the limit that it exceeds. */
type Bomb = [string, string | readonly [string, ...string[]], number];

const MEMORY = 300_000_000;
const TIME_MS = SLOW_HOST ? 90_000 : 20_000;

/** Control groups have memory.peak since Linux 5.19 and pids.peak since 6.1; older ones hold a limit without saying how much it was. */
const peaksAreCounted = !/^(5\.|6\.0\.)/.test(release());

describe('using more than a limit of the whole tree', () => {
  const arena = makeArena();

  // The limits are held by the same means with and without a view: one of them will do where a processor is emulated.
  describe.each(SLOW_HOST ? HOST_TIERS.slice(0, 1) : HOST_TIERS)('$name', (tier) => {
    const sandboxWith = (limits: PolicyFile['limits']) => arena.sandbox(tier, { policy: { limits } });

    async function attack(
      limits: PolicyFile['limits'],
      command: string | readonly [string, ...string[]],
    ): Promise<ExecutionResult> {
      const sandbox = await sandboxWith(limits);
      return sandbox.run(command, { timeout: TIME_MS });
    }

    it.each([
      ['a fork bomb in sessions of their own', [forkBomb]],
      ['a fork bomb of bash', BASH_BOMB],
      ['a thread bomb', [threadBomb]],
    ] as const)('ends %s', async (_, command) => {
      const result = await attack({ processes: 200 }, command);
      expect([result.status, result.limit?.name, result.limit?.value]).toEqual([
        'limit-exceeded',
        'processes',
        200,
      ]);
      expect(result.treeEnded).toBe(true);
      expect(result.durationMs).toBeLessThan(SLOW_HOST ? 80_000 : 15_000);
      expect(result.error?.message).toMatch(/more than 200 processes and threads.*limits\.processes/);
    });

    it.each<Bomb>([
      ['in one process', [memoryBomb], MEMORY],
      ['in many', [memoryBomb, 'fork'], MEMORY],
      ['in memory that is shared', [sharedMemory], MEMORY],
      // Without a view it is the host's, and shut. Containers have 64 MiB of it.
      ...(tier.view
        ? [
            [
              'in files of /dev/shm',
              'head -c 2000000000 /dev/zero > /dev/shm/x; sleep 30',
              40_000_000,
            ] satisfies Bomb,
          ]
        : []),
    ])('ends a memory bomb %s', async (_, command, memory) => {
      const result = await attack({ memory }, command);
      expect([result.status, result.limit?.name, result.limit?.value]).toEqual([
        'limit-exceeded',
        'memory',
        memory,
      ]);
      if (peaksAreCounted) expect(result.usage.peakMemoryBytes).toBeGreaterThan(memory * 0.9);
      expect(result.treeEnded).toBe(true);
    });

    it('does not take for a bomb what forks share', async () => {
      const script =
        'import os, time\na = bytearray(150_000_000)\nfor i in range(6):\n  if os.fork() == 0: time.sleep(0.6); os._exit(0)\ntime.sleep(0.8)';
      const result = await attack({ memory: MEMORY }, ['/usr/bin/python3', '-c', script]);
      expect([result.status, result.stderr]).toEqual(['exited', '']);
      if (peaksAreCounted) expect(result.usage.peakProcesses).toBeGreaterThan(1);
    });

    it('ends processes that use processor time behind its back', async () => {
      const result = await attack({ cpu_seconds: 1 }, [spinners]);
      expect([result.status, result.limit?.name, result.limit?.value]).toEqual(['limit-exceeded', 'cpu', 1]);
      // It is looked at every tenth of a second, of a clock that an emulated processor is late by.
      expect(result.limit?.used).toBeLessThan(SLOW_HOST ? 20 : 3);
    });

    it.each([
      ['one file that grows', 'cat /dev/zero > $TMPDIR/x'],
      ['many empty files', 'cd $TMPDIR; for ((i = 0; i < 200000; i++)); do : > $i; done; sleep 30'],
      ['in the home', 'cat /dev/zero > ~/x'],
      ['nested without end', [nester]],
    ] as const)('ends a command that fills its private directories: %s', async (_, command) => {
      // Where making a directory takes a millisecond, it is a limit that is reached within the time of a command.
      const result = await attack({ tmp_bytes: SLOW_HOST ? 1_000_000 : 4_000_000 }, command);
      expect([result.status, result.limit?.name]).toEqual(['limit-exceeded', 'tmp']);
      expect(result.treeEnded).toBe(true);
    });

    it('counts neither what links lead to nor the workspace', async () => {
      const result = await attack(
        { tmp_bytes: 1_000_000 },
        'head -c 5000000 /dev/zero > big && ln -s $PWD $TMPDIR/link && ln -s / $TMPDIR/root && sleep 0.5',
      );
      expect([result.status, result.stderr]).toEqual(['exited', '']);
    });

    it('ends a command that is silent for too long, and only then', async () => {
      // On a machine that does other things, `sleep 0.3` may take a second.
      const idleMs = SLOW_HOST ? 6_000 : 2_000;
      const sandbox = await sandboxWith({ idle_timeout_seconds: idleMs / 1000 });
      const [silent, talking, own] = await Promise.all([
        sandbox.run('echo a; sleep 30'),
        sandbox.run('for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3; echo $i >&2; done'),
        sandbox.run('sleep 2.5; echo late', { idleTimeout: patience(10_000) }),
      ]);
      expect([silent.status, silent.limit]).toMatchObject([
        'limit-exceeded',
        { name: 'idle', value: idleMs / 1000, by: 'clock' },
      ]);
      expect([silent.signal, silent.stdout]).toEqual(['SIGTERM', 'a\n']);
      expect([talking.status, own.status, own.stdout]).toEqual(['exited', 'exited', 'late\n']);
    });

    it('is not silent for having a slow reader', async () => {
      const sandbox = await sandboxWith({});
      const result = await sandbox.run('head -c 3000000 /dev/zero; head -c 3000000 /dev/zero', {
        idleTimeout: patience(300),
        onOutput: () => new Promise((done) => setTimeout(done, 25)),
      });
      expect(result.status).toBe('exited');
      expect(result.durationMs).toBeGreaterThan(600);
    });

    it('says which limit a file that is too large met', async () => {
      const result = await attack({ file_size: 1_000_000 }, 'exec cat /dev/zero > big');
      expect([result.status, result.limit]).toEqual([
        'limit-exceeded',
        { name: 'file-size', value: 1_000_000, used: undefined, by: 'rlimit' },
      ]);
      const forged = await attack({ file_size: 1_000_000 }, 'exit 153');
      expect([forged.status, forged.limit]).toEqual(['exited', undefined]);
    });

    it('leaves others alone', async () => {
      const [one, other] = await Promise.all([
        sandboxWith({ processes: 150, memory: MEMORY }),
        sandboxWith({ processes: 150, memory: MEMORY }),
      ]);
      const steady = (sandbox: Sandbox) =>
        sandbox.run('for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; echo $i; done', { timeout: TIME_MS });
      const results = await Promise.all([
        steady(one),
        steady(other),
        one.run([forkBomb], { timeout: TIME_MS }),
        one.run([memoryBomb], { timeout: TIME_MS }),
        steady(one),
      ]);
      expect(results.map(({ status }) => status)).toEqual([
        'exited',
        'exited',
        'limit-exceeded',
        'limit-exceeded',
        'exited',
      ]);
    });

    it('leaves nothing behind', async () => {
      const sandbox = await sandboxWith({ processes: 150 });
      const result = await sandbox.run([forkBomb], { timeout: TIME_MS });
      expect([result.status, result.treeEnded]).toEqual(['limit-exceeded', true]);
      const left = () =>
        readdirSync('/proc')
          .filter((name) => /^\d+$/.test(name))
          .filter((pid) => commandOf(pid).endsWith(forkBomb));
      await until(() => left().length === 0);
      expect(left().map(describeProcess).join('\n')).toBe('');
      await sandbox.close();
      const { cgroup } = sandbox.plan.treeLimits;
      if (cgroup === undefined) return;
      // Others may have theirs there; ours go once the results are out, as that costs nobody time.
      const own = new RegExp(`^sandbox-run-\\d+-${process.pid}-`);
      const groups = () => readdirSync(cgroup.path).filter((name) => own.test(name));
      await eventually(async () => {
        if (groups().length === 0) return;
        // That of a later command takes along one whose processes were too slow to end.
        const next = await sandboxWith({ processes: 150 });
        await next.run(['/bin/true']);
        await next.close();
        expect(groups().join()).toBe('');
      });
    });

    it('says by what the limits are held', async () => {
      const sandbox = await sandboxWith({ tmp_bytes: 1_000_000 });
      const control = sandbox.plan.report.controls.find(({ id }) => id === 'resource-limits');
      expect(control?.state).toBe('degraded');
      expect(control?.reason).toMatch(/memory, processes.*private files are added up/);
    });
  });
});

/** What one wants to know of a process that should not be there. */
function describeProcess(pid: string): string {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const known = status.match(/^(State|PPid|NSpid|ShdPnd|SigPnd|SigBlk):.*$/gm) ?? [];
    return [pid, ...known, readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim()].join('; ');
  } catch {
    return `${pid}: gone by now`;
  }
}

/** The program that a process runs; '' if it is gone or a zombie. */
function commandOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return '';
  }
}
