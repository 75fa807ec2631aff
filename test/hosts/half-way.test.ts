import { readdirSync } from 'node:fs';
import { arch } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { SandboxOptions } from '../../src/index.ts';
import { HOST } from '../support/tiers.ts';
import { buildFaultTracer, FAULTS, type Row, rowsOf, sampleOf } from './support/fault-tracer.ts';
import { buildOuterFilter } from './support/outer-filter.ts';
import { type Answer, brokenControls, expectHonest, makeWorld, type World } from './support/world.ts';

/**
 * A process that sets a command up is killed, or one of its system calls fails: every call of every such process, one at a
 * time. Then nothing was run, or what the report says holds. `npm test` tries a part, `npm run test:faults` all.
 */
const ALL = process.env.SANDBOX_RUN_FAULTS === 'all';
const LANES = 2;

interface Launcher {
  readonly name: string;
  readonly options: SandboxOptions;
  /** Words before `node`. */
  readonly host?: readonly string[];
}

const filter = buildOuterFilter();
const trace = buildFaultTracer();
const worlds = Array.from({ length: LANES }, () => makeWorld());

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
];

/** What is wrong with what came of it. */
function wrongWith(answer: Answer, world: World): readonly string[] {
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
    ...(started ? brokenControls(answer) : []),
    // A kill right after execve is the end of a command that did nothing yet.
    ...(!started && why === undefined && answer.signal !== 'SIGKILL' && answer.crashed === undefined
      ? [`nothing was run, and nothing says why: ${JSON.stringify(answer)}`]
      : []),
  ];
}

describe.runIf(arch() === 'x64')('when something dies or fails half-way (x86-64)', () => {
  it.each(LAUNCHERS)('$name: a tracer that does nothing changes nothing', async ({ options, host = [] }) => {
    const { words, traced } = trace();
    const [world] = worlds as [World];
    const answer = await world.attack({ host: [...words, ...host], options });
    expectHonest(answer);
    expect(traced().children.flatMap(({ calls }) => calls).length).toBeGreaterThan(150);
  });

  it.each(LAUNCHERS)(
    '$name: nothing is run, or what the report says holds',
    async ({ name, options, host = [] }) => {
      const listed = trace();
      const [first] = worlds as [World];
      await first.attack({ host: [...listed.words, ...host], options });
      const children = listed.traced();
      const every = rowsOf(children);
      const rows = ALL ? every : sampleOf(children, every);
      const count = { tried: 0, ran: 0, refused: 0, 'not reached': 0 };
      const wrong: string[] = [];
      const next = rows.values();
      await Promise.all(
        worlds.map(async (world) => {
          for (const row of next) await tryRow(world, row);
        }),
      );
      async function tryRow(world: World, row: Row): Promise<void> {
        const { words, traced } = trace(row);
        const answer = await world.attack({ host: [...words, ...host], options });
        count.tried += 1;
        if (!traced().fired) count['not reached'] += 1;
        else if ((answer.stdout ?? '').includes('started')) count.ran += 1;
        else count.refused += 1;
        wrong.push(...wrongWith(answer, world).map((what) => `${row.name}: ${what}`));
      }
      process.stdout.write(`${name}: ${every.length / FAULTS.length} calls; ${JSON.stringify(count)}\n`);
      expect(wrong).toEqual([]);
      // Each kind of fault did happen, and commands were run in spite of some.
      expect(count.refused).toBeGreaterThan(20);
      expect(count.ran).toBeGreaterThan(5);
      expect(count['not reached']).toBeLessThan(count.tried / 10);
    },
    12 * 3600_000,
  );
});
