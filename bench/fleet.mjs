// What dispatch by a fleet costs: medians, all in one run, on servers and workers of this machine.
//   npm run bench:fleet [-- JOBS]
// Needs nats-server, and dist/ (npm run build:ts).
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createFleet, createSandbox } from '../dist/index.js';

const JOBS = Number(process.argv[2] ?? 10_000);
/**
 * Commands that the local loop, and each worker, has run before it is measured: V8 goes on compiling what is hot until then,
 * which the loop, having all commands to itself, has behind it much sooner.
 */
const WARM = 2000;
/** Loop and fleet take turns, so that both have the same machine. */
const ROUNDS = 5;
const CLI = fileURLToPath(new URL('../dist/cli.cjs', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'sandbox-run-bench-fleet-'));
const children = [];
const ended = (child) => new Promise((done) => child.once('exit', done));
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

async function startServers(count) {
  const ports = [];
  for (let at = 0; at < 2 * count; at += 1) ports.push(await freePort());
  const routes = ports
    .slice(count)
    .map((port) => `nats://127.0.0.1:${port}`)
    .join(',');
  for (let at = 0; at < count; at += 1) {
    const cluster = [
      '--cluster_name',
      'bench',
      '--cluster',
      `nats://127.0.0.1:${ports[count + at]}`,
      '--routes',
      routes,
    ];
    const args = [
      '--addr',
      '127.0.0.1',
      '--port',
      ports[at],
      '--name',
      `n${at}`,
      '--jetstream',
      '--store_dir',
      join(root, `${count}-${at}`),
    ];
    children.push(
      spawn('nats-server', [...args, ...(count > 1 ? cluster : [])].map(String), { stdio: 'ignore' }),
    );
  }
  await new Promise((done) => setTimeout(done, count > 1 ? 5000 : 1000));
  return ports
    .slice(0, count)
    .map((port) => `nats://127.0.0.1:${port}`)
    .join(',');
}

async function startWorker(url, queue, workspace, slots) {
  mkdirSync(workspace, { recursive: true });
  const args = [
    'worker',
    '--queue',
    queue,
    '--url',
    url,
    '--workspace',
    workspace,
    '--slots',
    slots,
    '--grace',
    '0',
    '--autonomy',
    'autonomous',
  ];
  const child = spawn(process.execPath, [CLI, ...args.map(String)], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  await new Promise((done) => child.stdout.once('data', done));
  return child;
}

/** Jobs per second with so many at once. */
async function rate(run, jobs, atOnce) {
  let left = jobs;
  const from = performance.now();
  const one = async () => {
    while (left-- > 0) if (!(await run()).ok) throw new Error('a job failed');
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  return jobs / ((performance.now() - from) / 1000);
}

/** Milliseconds of processor time of processes, and of those that they have waited for. */
function processorTime(pids) {
  let ticks = 0;
  for (const pid of pids) {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // utime, stime, cutime, cstime: see proc_pid_stat(5).
    for (const field of fields.slice(11, 15)) ticks += Number(field);
  }
  return ticks * 10;
}

/** Both in turns: medians of jobs a second, of their ratio, and of the ratio of the processor time of a job. */
async function compare(local, run, atOnce, pids) {
  const rounds = [];
  const jobs = Math.ceil(JOBS / ROUNDS);
  for (let at = 0; at < ROUNDS; at += 1) {
    const start = processorTime(pids);
    const loop = await rate(local, jobs, 1);
    const between = processorTime(pids);
    const dispatched = await rate(run, jobs, atOnce);
    const processor = (processorTime(pids) - between) / (between - start);
    rounds.push({ loop, dispatched, part: dispatched / loop, processor });
  }
  const of = (name) => median(rounds.map((round) => round[name]));
  return { loop: of('loop'), dispatched: of('dispatched'), part: of('part'), processor: of('processor') };
}

async function latency(run, times) {
  const values = [];
  for (let at = 0; at < times; at += 1) {
    const from = performance.now();
    await run();
    values.push(performance.now() - from);
  }
  return median(values);
}

async function stopWorkers(workers) {
  for (const worker of workers) {
    worker.kill('SIGTERM');
    await ended(worker);
  }
}

try {
  const workspace = join(root, 'local');
  mkdirSync(workspace);
  const sandbox = await createSandbox({ workspace, autonomy: 'autonomous' });
  const local = () => sandbox.run(['true']);
  await rate(local, WARM, 1);
  for (const count of [1, 3]) {
    const url = await startServers(count);
    console.log(`${count} server${count > 1 ? 's' : ''}`);
    for (const workers of [1, 2, 5, 10]) {
      const queue = `bench-${count}-${workers}`;
      const started = [];
      for (let at = 0; at < workers; at += 1)
        started.push(await startWorker(url, queue, join(root, `w${at}`), 1));
      const fleet = await createFleet({ url, queue });
      const run = () => fleet.run(['true']);
      await rate(run, WARM * workers, 2 * workers);
      const pids = [
        process.pid,
        ...children
          .filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
          .map(({ pid }) => pid),
      ];
      const { loop, dispatched, part, processor } = await compare(local, run, 4 * workers, pids);
      const [alone, away] = [await latency(local, 200), await latency(run, 200)];
      console.log(
        `  ${workers} workers: ${dispatched.toFixed(0)} jobs/s, ${part.toFixed(2)} of one local loop (${loop.toFixed(0)}/s), with ${processor.toFixed(1)} times the processor time; one at a time ${away.toFixed(2)} ms, local ${alone.toFixed(2)} ms`,
      );
      if (count === 1 && workers === 1) {
        for (const bytes of [1e3, 1e5, 1e6, 1e7, 1e8]) {
          const command = ['head', '-c', String(bytes), '/dev/zero'];
          let seen = 0;
          const count = (chunk) => {
            seen += chunk.bytes.length;
          };
          const options = { maxOutput: 1000, onOutput: count };
          const here = await latency(() => sandbox.run(command, options), 5);
          seen = 0;
          const there = await latency(() => fleet.run(command, options), 5);
          console.log(
            `  ${bytes} bytes of live output: ${there.toFixed(1)} ms, local ${here.toFixed(1)} ms${seen === 5 * bytes ? '' : ', INCOMPLETE'}`,
          );
        }
      }
      await fleet.close();
      await stopWorkers(started);
    }
  }
  await sandbox.close();
} finally {
  for (const child of children) child.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
}
