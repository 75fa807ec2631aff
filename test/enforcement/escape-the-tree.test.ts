import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ExecutionResult, Sandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { isAlive, startBystander, until } from '../support/bystander.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { compileRunaway, endRunaways, pidsIn, survivors, TRICKS } from '../support/runaway.ts';
import { type Argv, compile } from '../support/sandboxee.ts';
import { SLOW_HOST } from '../support/slow-host.ts';
import { HOST, HOST_TIERS, SUBREAPER_TIERS, stateOf, type Tier } from '../support/tiers.ts';
import { untilTimeOut } from '../support/time-out.ts';

const runaway = compileRunaway();
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
    const ended = await endRunaways(runaway, corner);
    expect(alive.length).toBeGreaterThanOrEqual(TRICKS.length - 1);
    expect(ended).toBe(true);
  });

  const timedOut = (sandbox: Sandbox, cwd: string, command: Argv) =>
    untilTimeOut(
      400,
      (timeout) => sandbox.run(command, { cwd, timeout }),
      () => Object.keys(pidsIn(cwd)).length === TRICKS.length,
    );
  const ENDINGS: Readonly<Record<string, (sandbox: Sandbox, cwd: string) => Promise<ExecutionResult>>> = {
    exit: (sandbox, cwd) => sandbox.run([runaway], { cwd }),
    'a time-out': (sandbox, cwd) => timedOut(sandbox, cwd, [runaway, 'stay']),
    'a time-out that it ignores': (sandbox, cwd) => timedOut(sandbox, cwd, [runaway, 'stay', 'deaf']),
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

  const isScoped = (tier: Tier) => HOST.signalScope && tier.landlockAbi >= 6;

  describe.each([...HOST_TIERS, ...SUBREAPER_TIERS])('$name', (tier) => {
    it.each(Object.entries(ENDINGS))('fails at %s, and bystanders live on', async (_, end) => {
      const bystander = await startBystander([bystanderProgram]);
      const corner = arena.freshCorner();
      const sandbox = await arena.sandbox(tier, { policy: { limits: { kill_grace_seconds: 0.2 } } });
      expect(stateOf(sandbox, 'process-tree')).toBe(isScoped(tier) ? 'enforced' : 'degraded');
      const result = await end(sandbox, corner);
      expect(result.treeEnded).toBe(true);
      expect(result.processTree).toEqual({
        tier: isScoped(tier) ? 'signal-scope' : 'subreaper',
        ended: true,
      });
      const pids = pidsIn(corner);
      expect(Object.keys(pids)).toEqual(TRICKS);
      const alive = () => Object.keys(pids).filter((name) => isAlive(pids[name] ?? 0));
      await until(() => survivors(runaway).length + alive().length === 0);
      expect([survivors(runaway), alive()]).toEqual([[], []]);
      expect(bystander.alive()).toBe(true);
    });

    it('with the output open has a quarter of a second, and the result says so', async () => {
      const sandbox = await arena.sandbox(tier);
      const held = await sandbox.run('setsid sleep 60 & echo started');
      expect(held).toMatchObject({ status: 'exited', exitCode: 0, stdout: 'started\n', outputHeld: true });
      expect(held.warnings.join()).toContain('kept its output open');
      expect(held.durationMs).toBeGreaterThanOrEqual(240);
      // A busy machine has more than one try; one that needs that quarter for the sleep's own start has none.
      if (!SLOW_HOST)
        await eventually(async () => {
          const late = await sandbox.run('(sleep 0.05; echo late) & echo early');
          expect(late).toMatchObject({ stdout: 'early\nlate\n', outputHeld: false, warnings: [] });
        });
      const daemon = await sandbox.run(
        'setsid sleep 60 > /dev/null 2>&1 & disown; nohup sleep 61 &> /dev/null &',
      );
      expect(daemon).toMatchObject({ status: 'exited', outputHeld: false, treeEnded: true });
    });

    it('fails for a storm of forks', async () => {
      const corner = arena.freshCorner();
      const sandbox = await arena.sandbox(tier, { policy: { limits: { kill_grace_seconds: 0 } } });
      const command = [
        '/usr/bin/perl',
        '-MPOSIX',
        '-e',
        `for my $i (1 .. ${SLOW_HOST ? 6 : 7}) { fork; POSIX::setsid() if $i % 2 == 0 } open my $seen, ">", $$; sleep 60`,
      ] as const;
      const result = await untilTimeOut(
        1000,
        (timeout) => sandbox.run(command, { cwd: corner, timeout }),
        () => readdirSync(corner).length > 20,
      );
      expect([result.status, result.treeEnded]).toEqual(['timed-out', true]);
      expect(readdirSync(corner).length).toBeGreaterThan(20);
      const alive = () => readdirSync(corner).filter((pid) => isAlive(Number(pid)));
      await until(() => alive().length === 0);
      expect(alive()).toEqual([]);
    });

    it('the tree of one command is not ended with that of another', async () => {
      const sandbox = await arena.sandbox(tier);
      const hold = makeHold(arena.workspace);
      const long = sandbox.run(`${hold.words}; echo finished`);
      for (let round = 0; round < 5; round++) await sandbox.run(['/bin/true']);
      hold.letGo();
      expect((await long).stdout).toBe('finished\n');
    });
  });
});
