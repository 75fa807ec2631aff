import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { makeRoot } from './support.ts';

/** What a process is to append. */
interface Task {
  readonly directory: string;
  readonly name: string;
  /** Decisions, each of them with a result. */
  readonly count: number;
  /** So many at the same time. */
  readonly together: number;
}

/** A process that appends. */
interface Writer {
  readonly child: ChildProcess;
  readonly ended: Promise<number | NodeJS.Signals | null>;
  /** Requests whose decision was acknowledged. */
  acknowledged(): readonly string[];
}

const HERE = dirname(fileURLToPath(import.meta.url));
const SQLITE = join(HERE, '../../../../node_modules/@photostructure/sqlite/dist/index.mjs');
const ADDON = join(HERE, '../../../../build/Release/sandbox_run.node');

/** Bundles the program once and starts as many of it as are asked for. */
export async function createWriters(): Promise<(task: Task) => Writer> {
  const root = makeRoot();
  const outfile = join(root, 'writer.mjs');
  await build({
    entryPoints: [join(HERE, 'writer-process.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    // Its addon is found from its own place.
    alias: { '@photostructure/sqlite': SQLITE },
    external: [SQLITE],
  });
  return (task) => {
    const output = join(root, `${task.name}.txt`);
    const fd = openSync(output, 'a');
    const child = spawn(process.execPath, [outfile, JSON.stringify({ ...task, addon: ADDON })], {
      stdio: ['ignore', fd, 'inherit'],
    });
    closeSync(fd);
    return {
      child,
      ended: new Promise((done) => child.once('exit', (code, signal) => done(code ?? signal))),
      acknowledged: () => readFileSync(output, 'utf8').split('\n').slice(0, -1),
    };
  };
}
