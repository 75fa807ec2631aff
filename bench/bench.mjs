// Measures how fast commands start and how much confinement costs them, and compares it with the goals.
//   npm run bench [-- --quick] [--dist DIR] [--only launch,files,...]
// --quick: a few runs of everything, to see that the benchmark works; its numbers mean nothing.
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { cpus, loadavg, release, tmpdir, totalmem, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { callsGoals, measureCalls, printCalls } from './cases/calls.mjs';
import { captureGoals, measureCapture, printCapture } from './cases/capture.mjs';
import { changesGoals, measureChanges, printChanges } from './cases/changes.mjs';
import { commandLineGoals, measureCommandLine, printCommandLine } from './cases/command-line.mjs';
import { explainGoals, measureExplain, printExplain } from './cases/explain.mjs';
import { filesGoals, measureFiles, printFiles } from './cases/files.mjs';
import { gateGoals, measureGate, printGate } from './cases/gate.mjs';
import { largeTreesGoals, measureLargeTrees, printLargeTrees } from './cases/large-trees.mjs';
import { launchGoals, measureLaunch, printLaunch } from './cases/launch.mjs';
import { leakGoals, measureLeaks, printLeaks } from './cases/leaks.mjs';
import { measureNetwork, networkGoals, printNetwork } from './cases/network.mjs';
import { measureOutput, printOutput } from './cases/output.mjs';
import { measureSession, printSession, sessionGoals } from './cases/session.mjs';
import { measureThroughput, printThroughput, throughputGoals } from './cases/throughput.mjs';
import { startStopwatch } from './stopwatch.mjs';
import { printGoals } from './table.mjs';

const FULL = {
  launch: { rounds: 40, perTurn: 5 },
  gate: { rounds: 60, perTurn: 5 },
  session: { rounds: 60, perTurn: 5 },
  commandLine: { rounds: 100, perTurn: 2 },
  largeTrees: { rounds: 15, perTurn: 2, warmUp: 20, directories: [0, 13_000, 30_000], beside: 3_000 },
  throughput: { rounds: 5, total: 1000 },
  output: { rounds: 7, megabytes: 100 },
  network: { rounds: 5, connections: 500, megabytes: 500 },
  capture: { rounds: 9, megabytes: 1024 },
  files: { files: 5000, tree: '/usr', findRounds: 15, statusRounds: 100 },
  explain: { files: 2000, tree: '/usr', rounds: 15 },
  calls: { rounds: 7, connections: 100, entries: 5_000 },
  changes: { files: 5000, rounds: 30, packages: 300, installs: 5, many: 10_000 },
  leaks: { runs: 10_000 },
};
const QUICK = {
  launch: { rounds: 2, perTurn: 2 },
  gate: { rounds: 2, perTurn: 2 },
  session: { rounds: 2, perTurn: 2 },
  commandLine: { rounds: 1, perTurn: 2 },
  largeTrees: { rounds: 1, perTurn: 2, warmUp: 2, directories: [0, 600, 1_000], beside: 600 },
  throughput: { rounds: 1, total: 64 },
  output: { rounds: 1, megabytes: 10 },
  network: { rounds: 1, connections: 20, megabytes: 10 },
  capture: { rounds: 1, megabytes: 10 },
  files: { files: 100, tree: '/usr/include', findRounds: 2, statusRounds: 2 },
  explain: { files: 100, tree: '/usr/include', rounds: 2 },
  calls: { rounds: 1, connections: 5, entries: 100 },
  changes: { files: 100, rounds: 2, packages: 5, installs: 1, many: 100 },
  leaks: { runs: 100 },
};

const RESIDENT_MEGABYTES = 512;

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    dist: { type: 'string' },
    only: { type: 'string' },
  },
});
const counts = options.quick ? QUICK : FULL;
const dist = pathToFileURL(`${resolve(options.dist ?? join(import.meta.dirname, '../dist'))}/`).href;
if (!existsSync(new URL('index.js', dist))) throw new Error('nothing is built: run npm run build first');
const { createSandbox } = await import(new URL('index.js', dist));

const directory = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-bench-'));
const workspace = join(directory, 'workspace');
mkdirSync(workspace);
const notes = new Set();
const stopwatch = startStopwatch(directory, workspace);
const sandbox = await createSandbox({ workspace });
try {
  printMachine(sandbox);
  const goals = [];
  const context = { sandbox, createSandbox, dist, directory, workspace, stopwatch, notes };
  const only = options.only?.split(',');
  const step = async (name, measure, show, goalsOf, settings) => {
    if (only !== undefined && !only.includes(name)) return;
    const results = await measure({ ...context, ...settings });
    show(results);
    goals.push(...goalsOf(results));
  };
  const launch = (megabytes) =>
    step(megabytes === 0 ? 'launch' : 'launch-large', measureLaunch, printLaunch, launchGoals, {
      counts: counts.launch,
      megabytes,
    });
  await launch(0);
  await step('throughput', measureThroughput, printThroughput, throughputGoals, {
    counts: counts.throughput,
  });
  await step('gate', measureGate, printGate, gateGoals, { counts: counts.gate });
  await step('session', measureSession, printSession, sessionGoals, { counts: counts.session });
  await step('command-line', measureCommandLine, printCommandLine, commandLineGoals, {
    counts: counts.commandLine,
  });
  await step('large-trees', measureLargeTrees, printLargeTrees, largeTreesGoals, {
    counts: counts.largeTrees,
  });
  await step('files', measureFiles, printFiles, filesGoals, { counts: counts.files });
  await step('explain', measureExplain, printExplain, explainGoals, { counts: counts.explain });
  await step('calls', measureCalls, printCalls, callsGoals, { counts: counts.calls });
  await step('changes', measureChanges, printChanges, changesGoals, { counts: counts.changes });
  await step('leaks', measureLeaks, printLeaks, leakGoals, { counts: counts.leaks });
  await step('network', measureNetwork, printNetwork, networkGoals, { counts: counts.network });
  await step('output', measureOutput, printOutput, () => [], { counts: counts.output });
  await step('capture', measureCapture, printCapture, captureGoals, { counts: counts.capture });
  // Last, because memory is not always given back.
  await launch(RESIDENT_MEGABYTES);
  printGoals(goals);
  for (const note of notes) console.log(`\nNote: ${note}`);
} finally {
  await sandbox.close();
  stopwatch.stop();
  rmSync(directory, { recursive: true, force: true });
}

function printMachine({ plan }) {
  const [cpu] = cpus();
  const namespaces =
    plan.namespaces === undefined
      ? 'no namespaces'
      : plan.namespaces.user
        ? 'with a user namespace'
        : 'without a user namespace';
  console.log(
    `Machine: ${cpu?.model.trim() ?? process.arch}, ${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GB, load ${loadavg()[0].toFixed(1)}`,
  );
  console.log(`Kernel ${release()}, Landlock ABI ${plan.report.landlockAbi}, Node ${process.version}`);
  console.log(
    `User ${userInfo().username} (${userInfo().uid}), ${namespaces}${options.quick ? '; QUICK: these numbers mean nothing' : ''}`,
  );
}
