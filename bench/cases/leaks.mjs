// Whether anything is left behind after many runs. In a process of its own, whose memory nothing else disturbs.
//   node --expose-gc bench/cases/leaks.mjs DIST WORKSPACE RUNS    prints one JSON object
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { printTable } from '../table.mjs';

const IN_FLIGHT = 8;
const WARM_UP = 1000;
/** Resident memory may move by this much without anything being lost: the allocators keep some. */
const MEMORY_ALLOWANCE_MB = 4;

function zombies() {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const [state, parent] = readFileSync(`/proc/${name}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      return state === 'Z' && Number(parent) === process.pid;
    } catch {
      return false;
    }
  }).length;
}

function state() {
  globalThis.gc();
  globalThis.gc();
  const status = readFileSync('/proc/self/status', 'utf8');
  return {
    descriptors: readdirSync('/proc/self/fd').length,
    zombies: zombies(),
    threads: readdirSync('/proc/self/task').length,
    directories: readdirSync(tmpdir()).length,
    residentMb: Number(/^VmRSS:\s+(\d+)/m.exec(status)[1]) / 1024,
  };
}

async function runAndReport(dist, workspace, runs) {
  const { createSandbox } = await import(new URL('index.js', dist));
  const sandbox = await createSandbox({ workspace });
  const run = async (total) => {
    let left = total;
    const lane = async () => {
      while (left-- > 0) await sandbox.run(['/bin/true']);
    };
    await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
    // Command threads clean up a moment after their result has arrived.
    await new Promise((done) => setTimeout(done, 200));
  };
  await run(Math.min(WARM_UP, runs));
  const before = state();
  await run(runs);
  const after = state();
  await sandbox.close();
  console.log(JSON.stringify({ runs, before, after }));
}

export function measureLeaks({ dist, directory, workspace, counts }) {
  // Of its own: others may use the usual one.
  const temporary = join(directory, 'tmp');
  mkdirSync(temporary);
  const self = fileURLToPath(import.meta.url);
  // V8 lets its young generation grow for some ten thousand runs; kept small, what grows is a leak.
  const flags = ['--expose-gc', '--max-semi-space-size=1'];
  const child = spawnSync(process.execPath, [...flags, self, dist, workspace, String(counts.runs)], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: temporary },
  });
  if (child.status !== 0) throw new Error(`the leak test ended with ${child.status ?? child.signal}`);
  return JSON.parse(child.stdout);
}

export function printLeaks({ runs, before, after }) {
  printTable(
    `${runs} runs, ${IN_FLIGHT} in flight`,
    ['what', 'before', 'after'],
    Object.keys(before).map((name) => [
      name,
      ...[before[name], after[name]].map((value) => (name === 'residentMb' ? value.toFixed(1) : value)),
    ]),
  );
}

export function leakGoals({ runs, before, after }) {
  return [
    {
      what: `descriptors more after ${runs} runs`,
      value: after.descriptors - before.descriptors,
      limit: 0,
      unit: '',
    },
    { what: `zombies after ${runs} runs`, value: after.zombies, limit: 0, unit: '' },
    {
      what: `memory more after ${runs} runs`,
      value: after.residentMb - before.residentMb,
      limit: MEMORY_ALLOWANCE_MB,
      unit: ' MB',
    },
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , dist, workspace, runs] = process.argv;
  await runAndReport(dist, workspace, Number(runs));
}
