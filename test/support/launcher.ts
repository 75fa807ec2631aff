import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { RunOptions, SandboxOptions } from '../../src/index.ts';
import { PROGRAMS } from './sandboxee.ts';

/** What a launcher of its own does: one sandbox, one command, one result as JSON on descriptor 1 (or 3). */
export interface LauncherTask {
  /** The name of one of TIERS. */
  readonly tier: string;
  readonly options: SandboxOptions;
  readonly argv: readonly string[];
  readonly run?: RunOptions;
  /** Where the result goes; default 1. */
  readonly resultTo?: number;
}

const SOURCE = `
import { writeSync } from 'node:fs';
import { sandboxIn, TIERS, WITHOUT_VIEW } from './tiers.ts';
const task = JSON.parse(process.argv[2]);
// A launcher inside a sandbox finds another host.
const tier = [...TIERS, WITHOUT_VIEW].find(({ name }) => name === task.tier);
const sandbox = await sandboxIn(tier, task.options);
const result = await sandbox.run(task.argv, task.run);
await sandbox.close();
writeSync(task.resultTo ?? 1, JSON.stringify(result) + '\\n');
`;

/** What a launcher that is to be ended by a test does. */
export interface DoomedTask {
  readonly view: boolean;
  /** As if Landlock were no newer than this. */
  readonly abi: number;
  readonly options: SandboxOptions;
  /** One that runs to its end before the others begin. */
  readonly first: readonly string[];
  /** How each command ended is printed, as JSON. */
  readonly tells?: boolean;
  /** All at once, until the launcher ends. */
  readonly commands: readonly { readonly argv: readonly string[]; readonly cwd: string }[];
}

/**
 * Starts children of its own with child_process, from the main thread and from a worker, and prints their pids as JSON
 * before the commands. SIGUSR2: process.exit(); SIGHUP: an exception that nobody catches; SIGTERM: close().
 */
export const DOOMED = `
import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { atAbi, sandboxIn, WITH_VIEW, WITHOUT_VIEW } from './tiers.ts';
// Not by an argument: the programs named there are looked for by their command line.
const task = JSON.parse(process.env.TASK);
const start = "require('node:child_process').spawn('/bin/sleep', ['60'], { stdio: 'ignore', detached: true })";
const worker = new Worker("require('node:worker_threads').parentPort.postMessage(" + start + ".pid); setInterval(() => {}, 1e6)", { eval: true });
const own = [spawn('/bin/sleep', ['60'], { stdio: 'ignore' }).pid, await new Promise((done) => worker.once('message', done))];
const tier = task.view ? WITH_VIEW : WITHOUT_VIEW;
const sandbox = await sandboxIn(atAbi(tier, task.abi), task.options);
process.on('SIGUSR2', () => process.exit(3));
process.on('SIGHUP', () => { throw new Error('nobody catches this'); });
process.on('SIGTERM', async () => { await sandbox.close(); writeSync(1, 'closed\\n'); setInterval(() => {}, 1e6); });
await sandbox.run(task.first);
writeSync(1, JSON.stringify({ own }) + '\\n');
const tell = ({ status, error, treeEnded }) => task.tells && writeSync(1, JSON.stringify({ status, stage: error?.stage, message: error?.message, treeEnded }) + '\\n');
for (const { argv, cwd } of task.commands) void sandbox.run(argv, { cwd }).then(tell);
`;

/** Publishes the port of a server that prints `listens`, prints where it is, and goes on until it is ended. */
export const PUBLISHER = `
import { sandboxIn, TIERS } from './tiers.ts';
const { tier, options, words } = JSON.parse(process.env.TASK);
const sandbox = await sandboxIn(TIERS.find(({ name }) => name === tier), options);
const job = await sandbox.run(words, { background: true });
for await (const line of job) if (line.includes('listens')) break;
console.log(job.published[0].port);
setInterval(() => {}, 1e6);
`;

/** Bundles a launcher that node can run as a process of its own; returns its path. */
export async function bundleLauncher(source = SOURCE, name = 'launcher'): Promise<string> {
  const here = dirname(fileURLToPath(import.meta.url));
  const base = join(PROGRAMS, name);
  mkdirSync(join(base, 'dist'), { recursive: true });
  // Where the loader looks for the addon, seen from dist/.
  if (!existsSync(join(base, 'build'))) symlinkSync(join(here, '../../build'), join(base, 'build'));
  // What is not used, as the clients of models, is not even read.
  const outdir = join(base, 'dist');
  await build({
    stdin: { contents: source, resolveDir: here, loader: 'ts' },
    bundle: true,
    splitting: true,
    minifySyntax: true,
    minifyWhitespace: true,
    // What Node 20 understands, as the package.
    target: 'node20',
    platform: 'node',
    format: 'esm',
    outdir,
    outExtension: { '.js': '.mjs' },
    banner: { js: 'import { createRequire as cr } from "node:module"; const require = cr(import.meta.url);' },
    logLevel: 'error',
  });
  // What is judged needs them beside the file that reads them.
  const grammars = join(outdir, 'grammars');
  if (!existsSync(grammars)) symlinkSync(join(here, '../../src/judge/programs/grammars'), grammars);
  return join(outdir, 'stdin.mjs');
}
