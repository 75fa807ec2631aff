// Runs commands of every kind for long, undisturbed and under injected faults, and looks whether anything leaks or is
// left behind. Prints figures; exit status 1 if anything is wrong.
//   npm run soak [-- --runs 100000 --minutes 10 --workers 3 --seed 1]
// First `runs` undisturbed in one process, each checked: descriptors, threads and memory have to stay level. Then some
// minutes in which workers run the same while processes of theirs and they themselves are killed (SIGKILL) and stopped,
// descriptors (EMFILE) and memory (ENOMEM) run short, and the disk fills: every run has to end, and 1 s after the end
// of a worker nothing of it may be alive.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '100000' },
    minutes: { type: 'string', default: '10' },
    workers: { type: 'string', default: '3' },
    seed: { type: 'string', default: '1' },
  },
});
const WORKER = fileURLToPath(new URL('soak-worker.mjs', import.meta.url));
/** Resident memory may move by this much without anything being lost: the allocators keep some. */
const MEMORY_ALLOWANCE_MB = 16;
const DISK_MB = 24;

const root = mkdtempSync(join(tmpdir(), 'sandbox-run-soak-'));
const temporary = join(root, 'tmp');
const workspace = join(root, 'work');
const env = {
  ...process.env,
  TMPDIR: temporary,
  XDG_STATE_HOME: join(root, 'state'),
  XDG_CONFIG_HOME: join(root, 'config'),
};
mkdirSync(temporary);
mkdirSync(workspace);

const problems = [];
const expect = (holds, what) => {
  if (!holds) problems.push(what);
  console.log(`  ${holds ? 'ok  ' : 'FAIL'} ${what}`);
};

/** The same sequence for the same seed (mulberry32). */
function randomNumbers(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

/** Processes that carry the mark in their environment: those of the trees, as the worker itself has none. */
function marked(mark) {
  const wanted = `SOAK_MARK=${mark}\0`;
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/environ`, 'latin1').includes(wanted);
    } catch {
      return false;
    }
  });
}

function startWorker(task) {
  const child = spawn(
    process.execPath,
    ['--expose-gc', '--max-semi-space-size=1', WORKER, JSON.stringify(task)],
    {
      cwd: workspace,
      env,
      // What Node says when memory runs short is long.
      stdio: ['ignore', 'pipe', task.disturbed ? 'ignore' : 'inherit'],
    },
  );
  const said = [];
  createInterface({ input: child.stdout }).on('line', (line) => said.push(JSON.parse(line)));
  const ended = new Promise((done) => {
    child.once('close', (code, signal) => done({ code, signal }));
  });
  return { child, task, said, ended };
}

const kill = (pid, signal) => {
  try {
    process.kill(Number(pid), signal);
  } catch {
    // It has ended meanwhile.
  }
};

async function expectNothingLeft(mark, when) {
  await sleep(1000);
  const left = marked(mark);
  if (left.length === 0) return;
  const names = left.map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' '));
  problems.push(`alive 1 s after ${when}: ${names.join('| ')}`);
  for (const pid of left) kill(pid, 'SIGKILL');
}

async function undisturbed(runs) {
  console.log(`${runs} runs, 16 in flight`);
  const begun = Date.now();
  const worker = startWorker({ mark: 'calm', runs, lanes: 16, disturbed: false, workspace });
  const { code, signal } = await worker.ended;
  await expectNothingLeft('calm', 'the undisturbed runs');
  const failed = worker.said.find((line) => line.failed !== undefined);
  const laps = worker.said.filter((line) => line.failed === undefined);
  console.table(laps.filter((_, index) => index % 4 === 3 || index === 0));
  const seconds = (Date.now() - begun) / 1000;
  console.log(`  ${seconds.toFixed(0)} s, ${(runs / seconds).toFixed(0)} runs a second`);
  expect(code === 0, `it ended well (${failed?.failed ?? signal ?? code})`);
  const last = laps.at(-2);
  expect(laps.at(-1)?.done === runs, 'all were run');
  // The first quarter warms up: threads, allocators, compiled code.
  const warm = laps[Math.floor(laps.length / 4)];
  if (last === undefined || warm === undefined) return;
  expect(last.descriptors <= warm.descriptors, `descriptors: ${warm.descriptors}, then ${last.descriptors}`);
  expect(last.threads <= warm.threads, `threads: ${warm.threads}, then ${last.threads}`);
  const grown = last.residentMb - warm.residentMb;
  expect(grown <= MEMORY_ALLOWANCE_MB, `memory grew by ${grown.toFixed(1)} MB`);
}

/** The faults: each happens to one worker, and is over when it returns. */
function faultsOf(random) {
  const limited = (name, value) => async (worker) => {
    const set = (to) => spawnSync('prlimit', ['--pid', String(worker.child.pid), `--${name}=${to}`]);
    set(`${value(worker)}:unlimited`);
    await sleep(100 + random(400));
    set('unlimited:unlimited');
  };
  const sizeOf = (worker) => {
    try {
      return (
        Number(/^VmSize:\s+(\d+)/m.exec(readFileSync(`/proc/${worker.child.pid}/status`, 'utf8'))[1]) * 1024
      );
    } catch {
      return 1 << 30;
    }
  };
  const oneOf = (list) => list[random(list.length)];
  return {
    'a process is killed': async ({ task }) => {
      const pid = oneOf(marked(task.mark));
      if (pid !== undefined) kill(pid, 'SIGKILL');
    },
    'a process is stopped': async ({ task }) => {
      const pid = oneOf(marked(task.mark));
      if (pid !== undefined) kill(pid, 'SIGSTOP');
    },
    'the launcher is stopped': async ({ child }) => {
      kill(child.pid, 'SIGSTOP');
      await sleep(random(300));
      kill(child.pid, 'SIGCONT');
    },
    'the launcher is killed': async (worker) => {
      kill(worker.child.pid, 'SIGKILL');
      await worker.ended;
    },
    'descriptors run short': limited('nofile', ({ child }) => {
      try {
        return readdirSync(`/proc/${child.pid}/fd`).length + random(8);
      } catch {
        return 64;
      }
    }),
    'memory runs short': limited('as', (worker) => sizeOf(worker) + random(4) * 1024 * 1024),
    'the disk is full': async () => {
      const file = join(temporary, 'filler');
      try {
        writeFileSync(file, Buffer.alloc(DISK_MB * 1024 * 1024));
      } catch {
        // As intended.
      }
      await sleep(100 + random(300));
      rmSync(file, { force: true });
    },
  };
}

async function disturbed(minutes, workers, seed) {
  console.log(`${minutes} minutes with faults, ${workers} workers, seed ${seed}`);
  const random = randomNumbers(seed);
  const faults = faultsOf(random);
  const names = Object.keys(faults);
  const counts = Object.fromEntries(names.map((name) => [name, 0]));
  const totals = { runs: 0, unexpected: 0, restarts: 0 };
  let generation = 0;
  const start = () =>
    startWorker({ mark: `worker-${generation++}`, runs: 1e9, lanes: 6, disturbed: true, workspace });
  const all = Array.from({ length: workers }, start);
  const until = Date.now() + minutes * 60_000;
  while (Date.now() < until) {
    const index = random(all.length);
    const worker = all[index];
    if (worker.child.exitCode !== null || worker.child.signalCode !== null) {
      // Killed by us, or out of memory: its trees have to be gone all the same.
      await expectNothingLeft(
        worker.task.mark,
        `the end of a launcher (${worker.child.signalCode ?? worker.child.exitCode})`,
      );
      const failed = worker.said.find((line) => line.failed !== undefined);
      if (failed !== undefined) problems.push(failed.failed);
      totals.restarts++;
      all[index] = start();
      continue;
    }
    // Killing a launcher costs a second of looking.
    const name = random(8) === 0 ? names[random(names.length)] : names[random(2)];
    counts[name]++;
    await faults[name](worker);
    await sleep(random(60));
  }
  for (const { child } of all) {
    kill(child.pid, 'SIGCONT');
    kill(child.pid, 'SIGTERM');
  }
  for (const worker of all) {
    const ended = await Promise.race([worker.ended, sleep(60_000)]);
    if (ended === undefined) problems.push('a worker did not end within 60 s: a run hangs');
    kill(worker.child.pid, 'SIGKILL');
    await expectNothingLeft(worker.task.mark, 'the end of a worker');
    const last = worker.said.at(-1);
    if (last?.failed !== undefined) problems.push(last.failed);
    totals.runs += last?.done ?? 0;
    totals.unexpected += last?.unexpected ?? 0;
    if (last?.closed) console.log(`  a worker at its end: ${JSON.stringify(last)}`);
  }
  console.table(counts);
  console.log(
    `  workers that lived to the end made ${totals.runs} runs, ${totals.unexpected} of them ended otherwise than undisturbed; ${totals.restarts} launchers ended and were started anew`,
  );
  // The next sandbox sweeps what killed launchers left, once it is a minute old.
  await sleep(61_000);
  const last = startWorker({ mark: 'last', runs: 100, lanes: 2, disturbed: false, workspace });
  const { code } = await last.ended;
  expect(code === 0, 'a new sandbox works afterwards');
  const directories = readdirSync(temporary);
  expect(directories.length === 0, `directories left: ${directories.length} ${directories.slice(0, 3)}`);
}

const isRoot = process.getuid() === 0;
const onDisk =
  isRoot && spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'soak', temporary]).status === 0;
if (!onDisk) console.log('not root: the disk is not filled');
try {
  if (Number(values.runs) > 0) await undisturbed(Number(values.runs));
  if (Number(values.minutes) > 0)
    await disturbed(Number(values.minutes), Number(values.workers), Number(values.seed));
} finally {
  // Where processes run short, as they may here, it takes another attempt.
  for (let attempt = 0; onDisk && attempt < 50; attempt++) {
    if (spawnSync('umount', ['-l', temporary]).status === 0) break;
    await sleep(200);
  }
  rmSync(root, { recursive: true, force: true });
}
for (const problem of problems) console.log(`PROBLEM ${problem}`);
console.log(problems.length === 0 ? 'nothing leaked, nothing was left' : `${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;
