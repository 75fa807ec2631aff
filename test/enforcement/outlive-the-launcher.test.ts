import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadAddon } from '../../src/confine/native/index.ts';
import { makeArena } from '../support/arena.ts';
import { isAlive, until } from '../support/bystander.ts';
import { bundleLauncher, DOOMED, type DoomedTask } from '../support/launcher.ts';
import {
  compileRunaway,
  endIfThere,
  endRunaways,
  pidsIn,
  survivors,
  TRICKS,
  wardensOf,
} from '../support/runaway.ts';
import { PROGRAMS, unconfined } from '../support/sandboxee.ts';
import { SLOW_HOST } from '../support/slow-host.ts';
import { atAbi, HOST, HOST_TIERS, ONLY_STRONGEST, rowsFor, STANDS_IN } from '../support/tiers.ts';

const runaway = compileRunaway();

/** How a launcher can end, and the signal that makes ours do so. */
const ENDINGS: Readonly<Record<string, NodeJS.Signals>> = {
  SIGKILL: 'SIGKILL',
  // To the kernel the same; these minutes are saved where a processor is emulated.
  ...(SLOW_HOST ? {} : ({ 'a crash (SIGSEGV)': 'SIGSEGV', 'abort (SIGABRT)': 'SIGABRT' } as const)),
  'an exception that nobody catches': 'SIGHUP',
  'process.exit()': 'SIGUSR2',
  'close of the sandbox': 'SIGTERM',
};

/** True if every thread of the process is stopped. */
function isStopped(pid: number): boolean {
  const threads = `/proc/${pid}/task`;
  return readdirSync(threads).every((thread) =>
    /^State:\s+T/m.test(readFileSync(join(threads, thread, 'status'), 'utf8')),
  );
}

describe('outliving the launcher', () => {
  // Not in /tmp, where no private directories are made without a view.
  const arena = makeArena('/var/tmp');
  let launcher = '';
  const started: ChildProcess[] = [];
  const leftOver: number[] = [];
  beforeAll(async () => {
    launcher = await bundleLauncher(DOOMED, 'doomed');
  });
  afterAll(() => {
    for (const child of started) child.kill('SIGKILL');
    for (const pid of leftOver) endIfThere(pid);
  });

  async function startLauncher(
    task: Omit<DoomedTask, 'options' | 'first'>,
    place = mkdtempSync(join(arena.root, 'tmp-')),
  ) {
    const complete: DoomedTask = {
      ...task,
      first: ['/bin/true'],
      // All calls are looked at: when the launcher has died, there is nobody who does.
      options: { workspace: arena.workspace, readable: [PROGRAMS], explain: 'always' },
    };
    // In a group of its own, like a shell's job.
    const child = spawn(process.execPath, [launcher], {
      env: { ...process.env, TMPDIR: place, TASK: JSON.stringify(complete) },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    started.push(child);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const line = async () => String((await lines.next()).value);
    const { own } = JSON.parse(await line()) as { own: number[] };
    leftOver.push(...own);
    // Those that only start a command go when it has begun.
    const wardensWhen = async (count: number) => {
      await until(() => wardensOf(child.pid ?? 0).length === count);
      return wardensOf(child.pid ?? 0);
    };
    return { child, line, place, own, wardensWhen };
  }

  const ABIS = [HOST.landlockAbi, ...(HOST.signalScope && STANDS_IN && !ONLY_STRONGEST ? [5] : [])];
  const CASES = HOST_TIERS.flatMap((host) =>
    ABIS.map((abi) => ({
      name: `${host.name}, Landlock ABI ${abi}`,
      tier: abi === HOST.landlockAbi ? host : atAbi(host, abi),
      view: host.view,
      abi,
    })),
  );

  describe.each(CASES)('$name', ({ tier, view, abi }) => {
    // Without a signal scope other means end the tree; whether there is a view makes no difference to them.
    const endings = rowsFor(tier, Object.entries(ENDINGS), () => view);
    it.each(endings)('fails at %s: nothing is left', async (_, signal) => {
      const corners = [arena.freshCorner(), arena.freshCorner()];
      const { child, line, place, own, wardensWhen } = await startLauncher({
        view,
        abi,
        commands: corners.map((cwd) => ({ argv: [runaway, 'stay', 'deaf'], cwd })),
      });
      // All of it is there: the positive control.
      expect(await until(() => corners.every((corner) => readdirSync(corner).length === TRICKS.length))).toBe(
        true,
      );
      expect(survivors(runaway).length).toBeGreaterThan(2 * TRICKS.length - 2);
      const wardens = await wardensWhen(2);
      expect(wardens.length).toBe(2);
      const pids = corners.flatMap((corner) => Object.values(pidsIn(corner)));

      child.kill(signal);
      if (signal === 'SIGTERM') expect(await line()).toBe('closed');
      else await new Promise((done) => child.once('exit', done));
      const left = () => [...survivors(runaway), ...[...pids, ...wardens].filter(isAlive)];
      await until(() => left().length === 0);
      expect(left()).toEqual([]);
      // In one directory of the user's, which others do not see.
      const slots = join(place, `.sandbox-run-${process.getuid?.()}`);
      // Nobody keeps the private directories from being removed by the next launcher.
      for (const name of readdirSync(slots)) {
        const fd = openSync(join(slots, name), 'r');
        expect(loadAddon().tryLock(fd)).toBe(true);
        closeSync(fd);
      }
      if (signal === 'SIGKILL') {
        const abandoned = readdirSync(slots);
        expect(abandoned).toHaveLength(2);
        // The next launcher removes them with its first command, however young they are, and not those of one that runs.
        const next = await startLauncher({ view, abi, commands: [] }, place);
        const others = await startLauncher({ view, abi, commands: [] }, place);
        const there = readdirSync(slots);
        for (const one of [next, others]) {
          one.child.kill('SIGTERM');
          leftOver.push(...one.own);
        }
        expect(there.filter((name) => abandoned.includes(name))).toEqual([]);
        expect(there).toHaveLength(2);
      }
      // What the launcher started by other means is nobody's business here.
      expect(own.map(isAlive)).toEqual([true, true]);
    });

    it('works if the warden is ended first', async () => {
      const corner = arena.freshCorner();
      const { child, wardensWhen } = await startLauncher({
        view,
        abi,
        commands: [{ argv: [runaway, 'stay', 'deaf'], cwd: corner }],
      });
      expect(await until(() => readdirSync(corner).length === TRICKS.length)).toBe(true);
      const [warden = 0, ...others] = await wardensWhen(1);
      expect(others).toEqual([]);
      // It would see that it is gone, and end the tree itself. A signal stops a thread when that next leaves the kernel, not at once.
      child.kill('SIGSTOP');
      expect(await until(() => isStopped(child.pid ?? 0))).toBe(true);
      process.kill(warden, 'SIGKILL');
      child.kill('SIGKILL');
      await new Promise((done) => child.once('exit', done));
      // Whatever the two leave behind them has happened by the time that other processes have begun and ended.
      for (let i = 0; i < 10; i++) await unconfined(['true']);
      const left = survivors(runaway).length;
      expect(await endRunaways(runaway, corner)).toBe(true);
      expect(left).toBeGreaterThan(5);
    });

    it('fails if the warden is ended by somebody else first, and the launcher later', async () => {
      const corner = arena.freshCorner();
      const { child, line, wardensWhen } = await startLauncher({
        view,
        abi,
        tells: true,
        commands: [{ argv: [runaway, 'stay', 'deaf'], cwd: corner }],
      });
      expect(await until(() => readdirSync(corner).length === TRICKS.length)).toBe(true);
      const [warden = 0, ...others] = await wardensWhen(1);
      expect(others).toEqual([]);
      process.kill(warden, 'SIGKILL');
      const said = JSON.parse(await line());
      // A signal scope ends the tree in any case, a control group of its own where the host has one to give.
      const treeEnded = abi >= 6 || said.treeEnded === true;
      expect(said).toEqual({
        status: 'setup-failed',
        stage: 'warden_lost',
        message: expect.stringMatching(
          treeEnded ? /was ended, by the command itself or from outside$/ : /may still run$/,
        ),
        treeEnded,
      });
      child.kill('SIGKILL');
      await new Promise((done) => child.once('exit', done));
      // The command itself has ended in any case; else nobody finds what it started, and the result says so.
      if (treeEnded) await until(() => survivors(runaway).length === 0);
      const left = treeEnded ? survivors(runaway) : [];
      expect(await endRunaways(runaway, corner)).toBe(true);
      expect(left).toEqual([]);
    });

    it('fails at a Ctrl-C that ends the launcher', async () => {
      const corner = arena.freshCorner();
      const { child } = await startLauncher({
        view,
        abi,
        commands: [{ argv: [runaway, 'stay'], cwd: corner }],
      });
      expect(await until(() => readdirSync(corner).length === TRICKS.length)).toBe(true);
      const pids = Object.values(pidsIn(corner));
      // To the whole group, as a terminal does.
      process.kill(-(child.pid ?? 0), 'SIGINT');
      await new Promise((done) => child.once('exit', done));
      const left = () => [...survivors(runaway), ...pids.filter(isAlive)];
      await until(() => left().length === 0);
      expect(left()).toEqual([]);
    });
  });
});
