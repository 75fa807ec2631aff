import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { ExecutionResult, Sandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { isAlive, startBystander, until } from '../support/bystander.ts';
import { compile } from '../support/sandboxee.ts';
import { atAbi, HOST, stateOf, TIERS } from '../support/tiers.ts';

/** Starts descendants that try to outlive the command; each writes its pid to a file named after its trick. */
const runaway = compile(
  'run-away',
  `
  void record(const char *name) {
    char text[32], tmp[64];
    sprintf(tmp, ".%s", name);
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    write(fd, text, sprintf(text, "%d", getpid()));
    close(fd);
    rename(tmp, name);
  }
  void stay(const char *name) {
    record(name);
    for (;;) pause();
  }
  int main(int argc, char **argv) {
    int ready[2];
    char byte;
    pipe(ready);
    if (fork() == 0) stay("child");
    if (fork() == 0) { setsid(); stay("session"); }
    if (fork() == 0) { setpgid(0, 0); stay("group"); }
    if (fork() == 0) {
      setsid();
      if (fork()) _exit(0);
      setsid(); chdir(".");
      stay("daemon");
    }
    if (fork() == 0) { for (int i = 1; i < 65; i++) signal(i, SIG_IGN); setsid(); stay("deaf"); }
    if (fork() == 0) { sigset_t all; sigfillset(&all); sigprocmask(SIG_BLOCK, &all, 0); setsid(); stay("blocked"); }
    if (fork() == 0) { setsid(); record("stopped"); raise(SIGSTOP); for (;;) pause(); }
    if (fork() == 0) { close(0); close(1); close(2); setsid(); if (fork()) _exit(0); stay("silent"); }
    if (fork() == 0) { prctl(PR_SET_PDEATHSIG, 0); prctl(PR_SET_CHILD_SUBREAPER, 1); setsid(); if (fork() == 0) { setsid(); stay("adopted"); } stay("adopter"); }
    if (fork() == 0) { setsid(); vfork() == 0 ? stay("vforked") : _exit(0); }
    if (fork() == 0) {
      // Always on the move: a new process before the old one goes.
      setsid();
      for (int i = 0; access("stop", F_OK); i++) {
        if (i % 50 == 0) record("moving");
        if (fork()) _exit(0);
        setsid();
        usleep(1000);
      }
      _exit(0);
    }
    for (;;) {
      int missing = 0;
      char *names[] = {"child", "session", "group", "daemon", "deaf", "blocked", "stopped", "silent", "adopted", "adopter", "vforked", "moving"};
      for (int i = 0; i < 12; i++) missing += access(names[i], F_OK) != 0;
      if (!missing) break;
      usleep(2000);
    }
    SAY("ready", "yes");
    if (argc > 1) { if (argc > 2) signal(SIGTERM, SIG_IGN); for (;;) pause(); }
    return 0;
  }`,
);

const TRICKS = [
  ...['adopted', 'adopter', 'blocked', 'child', 'daemon', 'deaf', 'group', 'moving', 'session', 'silent'],
  ...['stopped', 'vforked'],
];

function pidsIn(directory: string): Readonly<Record<string, number>> {
  return Object.fromEntries(
    readdirSync(directory).map((name) => [name, Number(readFileSync(join(directory, name), 'utf8'))]),
  );
}

/** Everything whose program is the one above, in whatever process it is now. */
function survivors(marker: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(marker) && isAlive(pid);
      } catch {
        return false;
      }
    });
}

const bystanderProgram = compile(
  'bystander',
  `int main() { printf("ready\\n"); fflush(stdout); for (;;) pause(); }`,
);

describe('outliving the command', () => {
  const arena = makeArena();

  it('works without a sandbox', async () => {
    const { spawn } = await import('node:child_process');
    const corner = arena.freshCorner();
    const child = spawn(runaway, [], { cwd: corner, stdio: 'ignore' });
    await new Promise((done) => child.on('exit', done));
    const pids = pidsIn(corner);
    expect(Object.keys(pids)).toEqual(TRICKS);
    const alive = Object.keys(pids).filter((name) => isAlive(pids[name] ?? 0));
    writeFileSync(join(corner, 'stop'), '');
    for (let round = 0; round < 200 && survivors(runaway).length > 0; round++) {
      for (const pid of survivors(runaway)) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {
          // Gone by itself.
        }
      }
    }
    expect(alive.length).toBeGreaterThanOrEqual(TRICKS.length - 1);
    expect(survivors(runaway)).toEqual([]);
  });

  const ENDINGS: Readonly<Record<string, (sandbox: Sandbox, cwd: string) => Promise<ExecutionResult>>> = {
    exit: (sandbox, cwd) => sandbox.run([runaway], { cwd }),
    'a time-out': (sandbox, cwd) => sandbox.run([runaway, 'stay'], { cwd, timeout: 700 }),
    'a time-out that it ignores': (sandbox, cwd) =>
      sandbox.run([runaway, 'stay', 'deaf'], { cwd, timeout: 700 }),
    'being canceled': async (sandbox, cwd) => {
      const controller = new AbortController();
      const running = sandbox.run([runaway, 'stay'], {
        cwd,
        signal: controller.signal,
        onOutput: () => controller.abort(),
      });
      return running;
    },
    'a signal': async (sandbox, cwd) => {
      const running = sandbox.start([runaway, 'stay'], { cwd, onOutput: () => void running.kill('SIGKILL') });
      return running.result;
    },
    'close of the sandbox': async (sandbox, cwd) => {
      let close: Promise<void> | undefined;
      const running = sandbox.run([runaway, 'stay', 'deaf'], {
        cwd,
        onOutput: () => {
          close ??= sandbox.close();
        },
      });
      const result = await running;
      await close;
      return result;
    },
  };

  describe.each(TIERS)('$name', (tier) => {
    it.runIf(HOST.signalScope).each(Object.entries(ENDINGS))(
      'fails at %s, and bystanders live on (with a signal scope, Landlock ABI 6)',
      async (_, end) => {
        const bystander = await startBystander([bystanderProgram]);
        const corner = arena.freshCorner();
        const sandbox = await arena.sandbox(tier, { policy: { limits: { kill_grace_seconds: 0.2 } } });
        expect(stateOf(sandbox, 'process-tree')).toBe('enforced');
        const result = await end(sandbox, corner);
        expect(result.treeEnded).toBe(true);
        const pids = pidsIn(corner);
        expect(Object.keys(pids)).toEqual(TRICKS);
        const alive = () => Object.keys(pids).filter((name) => isAlive(pids[name] ?? 0));
        await until(() => survivors(runaway).length + alive().length === 0, 1000);
        expect([survivors(runaway), alive()]).toEqual([[], []]);
        expect(bystander.alive()).toBe(true);
      },
    );

    it.runIf(!HOST.signalScope)('is possible, and the report says so (no signal scope)', async () => {
      const sandbox = await arena.sandbox(tier);
      expect(stateOf(sandbox, 'process-tree')).toBe('degraded');
    });

    it('on an older kernel the report says that a daemon may', async () => {
      const sandbox = await arena.sandbox(atAbi(tier, 5));
      expect(stateOf(sandbox, 'process-tree')).toBe('degraded');
    });

    it.runIf(HOST.signalScope)('fails for a storm of forks (with a signal scope)', async () => {
      const corner = arena.freshCorner();
      const sandbox = await arena.sandbox(tier, { policy: { limits: { kill_grace_seconds: 0 } } });
      const result = await sandbox.run(
        [
          '/usr/bin/python3',
          '-c',
          'import os, time\nfor i in range(7):\n  os.fork()\n  os.setsid() if i % 2 and os.getpid() != os.getpgid(0) else 0\nopen(str(os.getpid()), "w")\ntime.sleep(60)',
        ],
        { cwd: corner, timeout: 1000 },
      );
      expect([result.status, result.treeEnded]).toEqual(['timed-out', true]);
      expect(readdirSync(corner).length).toBeGreaterThan(20);
      const alive = () => readdirSync(corner).filter((pid) => isAlive(Number(pid)));
      await until(() => alive().length === 0, 1000);
      expect(alive()).toEqual([]);
    });

    it('the tree of one command is not ended with that of another', async () => {
      const sandbox = await arena.sandbox(tier);
      const long = sandbox.run('sleep 0.5; echo finished');
      for (let round = 0; round < 5; round++) {
        await sandbox.run(['/bin/true']);
        await sleep(20);
      }
      expect((await long).stdout).toBe('finished\n');
    });
  });
});
