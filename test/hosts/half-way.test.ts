import { readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tryCommand } from '../../src/confine/index.ts';
import type { ControlId, SandboxOptions } from '../../src/index.ts';
import { probeFirejail } from '../../src/run/index.ts';
import { leftIn } from '../support/leftovers.ts';
import { HOST } from '../support/tiers.ts';
import {
  buildFaultTracer,
  ownRowsOf,
  type Row,
  rowsOf,
  sampleOf,
  spread,
  spreadOverProcesses,
  type Traced,
} from './support/fault-tracer.ts';
import { buildOuterFilter } from './support/outer-filter.ts';
import {
  type Answer,
  type AttackOptions,
  brokenControls,
  expectHonest,
  makeWorld,
  type World,
} from './support/world.ts';

/**
 * A process that sets a command up is killed, or one of its system calls fails, or one of the launcher’s own: every call of
 * every such process, one at a time. Then nothing was run, or what the report says holds. `npm run test:faults` tries all,
 * which takes hours; everything else a sample, always the same one: of each launcher others, from its first call to its last.
 */
const ALL = process.env.SANDBOX_RUN_FAULTS === 'all';
const LANES = 2;

const FIREJAIL = !('reason' in (await probeFirejail(tryCommand)));

interface Launcher {
  readonly name: string;
  readonly options: SandboxOptions;
  /** Words before `node`. */
  readonly host?: readonly string[];
  readonly argv?: readonly string[];
  /** So many faults are in the sample: of processes that set a command up, and of its own threads. */
  readonly sample: readonly [children: number, own: number];
}

const filter = buildOuterFilter();
const trace = buildFaultTracer();
const worlds = Array.from({ length: LANES }, () => makeWorld());
for (const { workspace } of worlds) writeFileSync(join(workspace, 'marks.txt'), 'started\n');

const LAUNCHERS: readonly Launcher[] = [
  ...(HOST.landlockAbi > 0 && HOST.namespaces
    ? [{ name: 'landlock with a view', options: {}, sample: [16, 6] as const }]
    : []),
  ...(HOST.landlockAbi > 0
    ? [
        {
          name: 'landlock without namespaces',
          options: {},
          host: filter({ unshare: 'EPERM', setns: 'EPERM', 'clone[0&0x7e020000]': 'EPERM' }),
          sample: [12, 5] as const,
        },
      ]
    : []),
  ...(HOST.namespaces
    ? [
        {
          name: 'namespaces without Landlock',
          options: { backend: 'namespaces' as const },
          sample: [10, 4] as const,
        },
      ]
    : []),
  ...(FIREJAIL
    ? [{ name: 'Firejail', options: { backend: 'firejail' as const }, sample: [6, 1] as const }]
    : []),
  // No shell, and so no attack either.
  {
    name: 'the application layer',
    options: { backend: 'application' as const },
    argv: ['cat', 'marks.txt'],
    sample: [6, 3],
  },
];

const under = ({ options, host = [], argv }: Launcher, words: readonly string[]): AttackOptions => ({
  host: [...words, ...host],
  options,
  env: { FAULT_TRACER: '1' },
  ...(argv && { argv }),
});

/** By what the kernel says of a command's process a control shows not to hold. */
function brokenFacts({ states, backend }: Answer, { commands }: Traced): readonly string[] {
  const isEnforced = (id: ControlId) => states?.[id] === 'enforced';
  const ofHost = (name: string) => readlinkSync(`/proc/self/ns/${name}`);
  const { dev, ino } = statSync('/');
  // What Firejail is tried with is not yet the command.
  return commands
    .filter(({ program }) => program !== '/usr/bin/true')
    .flatMap((facts) => [
      ...(isEnforced('privileges') && facts.NoNewPrivs !== '1' ? ['may gain privileges'] : []),
      ...(isEnforced('privileges') && /[^0]/.test(facts.CapEff + facts.CapPrm) ? ['has capabilities'] : []),
      ...(isEnforced('syscalls') && facts.Seccomp !== '2' ? ['has no filter'] : []),
      ...(isEnforced('descriptors') && facts.fds !== '0 1 2' ? [`has descriptors ${facts.fds}`] : []),
      ...(isEnforced('filesystem-view') && (facts.mnt === ofHost('mnt') || facts.root === `${dev}:${ino}`)
        ? ['stands on the root of the host']
        : []),
      ...(isEnforced('filesystem-view') && facts.ipc === ofHost('ipc') ? ['shares IPC'] : []),
      ...(isEnforced('network') && isEnforced('filesystem-view') && facts.net === ofHost('net')
        ? ['shares the network']
        : []),
      ...(backend === 'firejail' && facts.mnt === ofHost('mnt') ? ['is not in Firejail’s mounts'] : []),
      ...(/[^0]/.test(facts.SigIgn + facts.SigBlk) ? ['ignores or blocks signals'] : []),
    ]);
}

/** What is wrong with what came of it. */
function wrongWith(answer: Answer, traced: Traced, world: World): readonly string[] {
  const started = (answer.stdout ?? '').includes('started');
  const why = answer.refused ?? answer.error;
  const left = leftIn(join(world.root, 'tmp'));
  return [
    ...(answer.crashed === undefined ? [] : [`the launcher crashed: ${answer.crashed} ${answer.stderr}`]),
    ...(answer.left && (answer.treeEnded !== false || answer.states?.['process-tree'] === 'enforced')
      ? ['a process is left']
      : []),
    ...(left.length > 0 ? [`left in the temporary directory: ${left.join(' ')}`] : []),
    ...(why === undefined || !/\n|undefined/.test(why.message) ? [] : [`unclear: ${why.message}`]),
    ...brokenControls(answer),
    ...brokenFacts(answer, traced),
    // A kill right after execve is the end of a command that did nothing yet.
    ...(!started && why === undefined && answer.signal !== 'SIGKILL' && answer.crashed === undefined
      ? [`nothing was run, and nothing says why: ${JSON.stringify(answer)}`]
      : []),
  ];
}

/** Which of many the sample of a launcher has. */
const phaseOf = (launcher: Launcher) => LAUNCHERS.indexOf(launcher) / LAUNCHERS.length;

function rowsFor(launcher: Launcher, traced: Traced): readonly Row[] {
  const every = rowsOf(traced);
  if (ALL) return every;
  return spreadOverProcesses(sampleOf(traced, every), launcher.sample[0], phaseOf(launcher));
}

/** What the faults led to, of all launchers together where each has but a few. */
const counts = { tried: 0, ran: 0, refused: 0, 'not reached': 0 };

describe.runIf(arch() === 'x64')('when something dies or fails half-way (x86-64)', () => {
  it.each(LAUNCHERS)('$name: a tracer that does nothing changes nothing', async (launcher) => {
    const [world] = worlds as [World];
    const { answer, seen } = await listed(launcher);
    if (launcher.argv === undefined) expectHonest(answer);
    expect(answer.stdout).toContain('started');
    expect(wrongWith(answer, seen, world)).toEqual([]);
    expect(seen.children.flatMap(({ calls }) => calls).length).toBeGreaterThan(150);
    expect(seen.commands.length).toBeGreaterThan(0);
  });

  it.each(LAUNCHERS)(
    '$name: nothing is run, or what the report says holds',
    async (launcher) => {
      const { seen } = await listed(launcher);
      const calls = seen.children.flatMap((child) => child.calls).length;
      const count = await tryAll(launcher, rowsFor(launcher, seen), calls);
      if (ALL) expectBoth(count);
    },
    12 * 3600_000,
  );

  it.each(LAUNCHERS)(
    '$name: the same of the launcher’s own threads',
    async (launcher) => {
      // A thread that has to wait makes calls that it seldom makes: those of both are asked for.
      const [first, again] = [await list(launcher, 'list-own'), await list(launcher, 'list-own')];
      const known = new Set(ownRowsOf(again.seen).map(({ name }) => name));
      const every = ownRowsOf(first.seen).filter(({ name }) => known.has(name));
      const calls = Object.values(first.seen.own).reduce((sum, times) => sum + times, 0);
      const rows = ALL ? every : spread(every, launcher.sample[1], phaseOf(launcher));
      const count = await tryAll(launcher, rows, calls);
      if (ALL) expect(count.refused).toBeGreaterThan(0);
    },
    12 * 3600_000,
  );

  it('the faults did happen; some were fatal, and some were not', () => expectBoth(counts));
});

function expectBoth({ tried, ran, refused, 'not reached': missed }: typeof counts): void {
  // So many of each launcher that this host has.
  expect(tried).toBeGreaterThan(8 * LAUNCHERS.length);
  expect(refused).toBeGreaterThan(tried / 20);
  expect(ran).toBeGreaterThan(tried / 100);
  expect(missed).toBeLessThan(tried / 10);
}

const listings = new Map<Launcher, ReturnType<typeof list>>();

/** What a launcher does when nothing fails: the same for every test of it. */
function listed(launcher: Launcher): ReturnType<typeof list> {
  const found = listings.get(launcher) ?? list(launcher, 'list');
  listings.set(launcher, found);
  return found;
}

async function list(launcher: Launcher, what: 'list' | 'list-own') {
  const { words, traced } = trace(what);
  const [world] = worlds as [World];
  const answer = await world.attack(under(launcher, words));
  return { answer, seen: traced() };
}

async function tryAll(launcher: Launcher, rows: readonly Row[], calls: number) {
  const count = { tried: 0, ran: 0, refused: 0, 'not reached': 0 };
  const wrong: string[] = [];
  const next = rows.values();
  const tryOnce = async (world: World, row: Row): Promise<'ran' | 'refused' | 'not reached'> => {
    const { words, traced } = trace(row);
    const answer = await world.attack(under(launcher, words));
    const seen = traced();
    wrong.push(...wrongWith(answer, seen, world).map((what) => `${row.name}: ${what}`));
    // Said once.
    for (const left of readdirSync(join(world.root, 'tmp')))
      rmSync(join(world.root, 'tmp', left), { recursive: true, force: true });
    if (!seen.fired) return 'not reached';
    return (answer.stdout ?? '').includes('started') ? 'ran' : 'refused';
  };
  // How often a thread makes a call differs from run to run, the more the busier the machine is.
  const tryRow = async (world: World, row: Row) => {
    let outcome = await tryOnce(world, row);
    for (let again = 0; again < 2 && outcome === 'not reached'; again++) outcome = await tryOnce(world, row);
    count.tried += 1;
    count[outcome] += 1;
  };
  await Promise.all(
    worlds.map(async (world) => {
      for (const row of next) await tryRow(world, row);
    }),
  );
  process.stdout.write(`${launcher.name}: ${calls} calls; ${JSON.stringify(count)}\n`);
  for (const [what, times] of Object.entries(count)) counts[what as keyof typeof counts] += times;
  expect(wrong).toEqual([]);
  return count;
}
