// One command after the other: /bin/true, its empty output captured.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { execa } from 'execa';
import { fromC, inProcess, inTurns, summarize } from '../measure.mjs';
import { milliseconds, printTable, times } from '../table.mjs';

const TRUE = '/bin/true';
const FLOOR = 'posix_spawn, from C (the floor)';
const OURS = 'sandbox.run';
const NODES = 'child_process.spawn';

/** Starts a program with child_process and collects its output until it and its pipes are closed. */
export function spawnAndCapture(program, args, options = {}) {
  return new Promise((done, failed) => {
    const child = spawn(program, args, options);
    const chunks = [];
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.stderr.on('data', () => {});
    child.on('error', failed);
    child.on('close', (code, signal) => {
      if (code !== 0) failed(new Error(`${program} ended with ${code ?? signal}`));
      else done(Buffer.concat(chunks).toString());
    });
  });
}

function bubblewrapArguments(workspace) {
  const links = ['bin', 'sbin', 'lib', 'lib64'].filter((name) => existsSync(`/${name}`));
  return [
    ...['--unshare-all', '--die-with-parent', '--new-session', '--clearenv', '--ro-bind', '/usr', '/usr'],
    ...links.flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    ...['--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--bind', workspace, workspace, TRUE],
  ];
}

const FIREJAIL_ARGUMENTS = [
  ...['--quiet', '--noprofile', '--net=none', '--seccomp', '--caps.drop=all', '--private-tmp', TRUE],
];

/** @param megabytes memory to hold resident meanwhile */
export async function measureLaunch({ sandbox, workspace, stopwatch, counts, notes, megabytes }) {
  const contenders = [
    fromC(FLOOR, stopwatch, [TRUE]),
    inProcess(OURS, async () => {
      const result = await sandbox.run([TRUE]);
      if (result.exitCode !== 0) throw new Error(result.error?.message ?? result.status);
    }),
    inProcess(NODES, () => spawnAndCapture(TRUE, [])),
    inProcess('execa', () => execa(TRUE)),
    // What the column of the blocked loop shows where there is nothing but waiting.
    inProcess('nothing: a timer of 1 ms', () => new Promise((done) => setTimeout(done, 1))),
  ];
  for (const [program, args] of [
    ['/usr/bin/bwrap', bubblewrapArguments(workspace)],
    ['/usr/bin/firejail', FIREJAIL_ARGUMENTS],
  ]) {
    if (!existsSync(program)) continue;
    const start = () => spawnAndCapture(program, args, { cwd: workspace });
    try {
      await start();
      contenders.push(inProcess(`${basename(program)}, by child_process.spawn`, start));
    } catch (error) {
      notes.add(`${error.message} and is left out`);
    }
  }
  const ballast = touchedMemory(megabytes);
  const samples = await inTurns(contenders, counts);
  // Used once more, so that it was there all the time.
  ballast.fill(0);
  return {
    megabytes,
    results: Object.fromEntries([...samples].map(([name, list]) => [name, summarize(list)])),
  };
}

/** Every page written, as in a process that uses what it has. */
function touchedMemory(megabytes) {
  return Buffer.alloc(megabytes * 1024 * 1024, 1);
}

export function printLaunch({ megabytes, results }) {
  const floor = results[FLOOR].median;
  const heap = megabytes === 0 ? 'small heap' : `${megabytes} MB resident`;
  printTable(
    `One command at a time, ${heap} (milliseconds; ${results[FLOOR].count} runs each)`,
    ['/bin/true by', 'median', 'p95', 'of the floor', 'loop blocked', 'p95'],
    Object.entries(results).map(([name, result]) => [
      name,
      milliseconds(result.median),
      milliseconds(result.p95),
      times(result.median / floor),
      milliseconds(result.blocked, 3),
      milliseconds(result.blockedP95, 3),
    ]),
  );
}

export function launchGoals({ megabytes, results }) {
  const heap = megabytes === 0 ? 'small heap' : `${megabytes} MB`;
  const ratio = (to) => results[OURS].median / results[to].median;
  return [
    { what: `event loop blocked per run, ${heap}`, value: results[OURS].blocked, limit: 0.1, unit: ' ms' },
    {
      what: `${OURS} : ${NODES}, ${heap}`,
      value: ratio(NODES),
      limit: megabytes === 0 ? 0.5 : 0.15,
      unit: ' x',
    },
    ...(megabytes === 0
      ? [{ what: `${OURS} : the floor`, value: ratio(FLOOR), limit: 1.6, unit: ' x' }]
      : []),
  ];
}
