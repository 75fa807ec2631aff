import { readdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { probeFirejail } from '../../src/backends/index.ts';
import type { ControlId, SandboxOptions } from '../../src/index.ts';
import { tryCommand } from '../../src/run/index.ts';
import { HOST } from '../support/tiers.ts';
import {
  buildFaultTracer,
  ownRowsOf,
  type Row,
  rowsOf,
  sampleOf,
  someOf,
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
 * every such process, one at a time. Then nothing was run, or what the report says holds. `npm test` tries a part, `npm run test:faults` all.
 */
const ALL = process.env.SANDBOX_RUN_FAULTS === 'all';
const LANES = 2;
const MOST_IN_A_PART = 160;
const MOST_OF_OWN = 80;

const FIREJAIL = !('reason' in (await probeFirejail(tryCommand)));

interface Launcher {
  readonly name: string;
  readonly options: SandboxOptions;
  /** Words before `node`. */
  readonly host?: readonly string[];
  readonly argv?: readonly string[];
}

const filter = buildOuterFilter();
const trace = buildFaultTracer();
const worlds = Array.from({ length: LANES }, () => makeWorld());
for (const { workspace } of worlds) writeFileSync(join(workspace, 'marks.txt'), 'started\n');

const LAUNCHERS: readonly Launcher[] = [
  ...(HOST.landlockAbi > 0 && HOST.namespaces ? [{ name: 'landlock with a view', options: {} }] : []),
  ...(HOST.landlockAbi > 0
    ? [
        {
          name: 'landlock without namespaces',
          options: {},
          host: filter({ unshare: 'EPERM', setns: 'EPERM', 'clone[0&0x7e020000]': 'EPERM' }),
        },
      ]
    : []),
  ...(HOST.namespaces
    ? [{ name: 'namespaces without Landlock', options: { backend: 'namespaces' as const } }]
    : []),
  ...(FIREJAIL ? [{ name: 'Firejail', options: { backend: 'firejail' as const } }] : []),
  // No shell, and so no attack either.
  {
    name: 'the application layer',
    options: { backend: 'application' as const },
    argv: ['cat', 'marks.txt'],
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
  const left = readdirSync(join(world.root, 'tmp'));
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

function rowsFor(traced: Traced): readonly Row[] {
  const every = rowsOf(traced);
  if (ALL) return every;
  const sample = sampleOf(traced, every);
  // Odd, as the faults of a call come in pairs.
  const step = Math.ceil(sample.length / MOST_IN_A_PART) | 1;
  return sample.filter((_, index) => index % step === 0);
}

describe.runIf(arch() === 'x64')('when something dies or fails half-way (x86-64)', () => {
  it.each(LAUNCHERS)('$name: a tracer that does nothing changes nothing', async (launcher) => {
    const { words, traced } = trace('list');
    const [world] = worlds as [World];
    const answer = await world.attack(under(launcher, words));
    if (launcher.argv === undefined) expectHonest(answer);
    expect(answer.stdout).toContain('started');
    const seen = traced();
    expect(wrongWith(answer, seen, world)).toEqual([]);
    expect(seen.children.flatMap(({ calls }) => calls).length).toBeGreaterThan(150);
    expect(seen.commands.length).toBeGreaterThan(0);
  });

  it.each(LAUNCHERS)(
    '$name: nothing is run, or what the report says holds',
    async (launcher) => {
      const listed = await list(launcher, 'list');
      const { count } = await tryAll(
        launcher,
        rowsFor(listed),
        listed.children.flatMap(({ calls }) => calls).length,
      );
      // The faults did happen; some were fatal, and some were not.
      expect(count.refused).toBeGreaterThan(count.tried / 20);
      expect(count.ran).toBeGreaterThan(count.tried / 100);
    },
    12 * 3600_000,
  );

  it.each(LAUNCHERS)(
    '$name: the same of the launcher’s own threads',
    async (launcher) => {
      // A thread that has to wait makes calls that it seldom makes: those of both are asked for.
      const [listed, again] = [await list(launcher, 'list-own'), await list(launcher, 'list-own')];
      const known = new Set(ownRowsOf(again).map(({ name }) => name));
      const every = ownRowsOf(listed).filter(({ name }) => known.has(name));
      const { count } = await tryAll(
        launcher,
        ALL ? every : someOf(every, launcher.options.backend === 'firejail' ? 12 : MOST_OF_OWN),
        Object.values(listed.own).reduce((sum, calls) => sum + calls, 0),
      );
      expect(count.refused).toBeGreaterThan(0);
    },
    12 * 3600_000,
  );
});

async function list(launcher: Launcher, what: 'list' | 'list-own'): Promise<Traced> {
  const { words, traced } = trace(what);
  const [world] = worlds as [World];
  await world.attack(under(launcher, words));
  return traced();
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
  expect(wrong).toEqual([]);
  expect(count['not reached']).toBeLessThan(count.tried / 10);
  return { count };
}
