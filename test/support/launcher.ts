import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import type { RunOptions, SandboxOptions } from '../../src/index.ts';
import { PROGRAMS } from './sandboxee.ts';

/** What a launcher of its own does: one sandbox, one command, one result as JSON on descriptor 1 (or 3). */
export interface LauncherTask {
  readonly view: boolean;
  readonly options: SandboxOptions;
  readonly argv: readonly string[];
  readonly run?: RunOptions;
  /** Where the result goes; default 1. */
  readonly resultTo?: number;
}

const SOURCE = `
import { writeSync } from 'node:fs';
import { sandboxIn, WITH_VIEW, WITHOUT_VIEW } from './tiers.ts';
const task = JSON.parse(process.argv[2]);
const sandbox = await sandboxIn(task.view ? WITH_VIEW : WITHOUT_VIEW, task.options);
const result = await sandbox.run(task.argv, task.run);
await sandbox.close();
writeSync(task.resultTo ?? 1, JSON.stringify(result) + '\\n');
`;

/** Bundles a launcher that node can run as a process of its own; returns its path. */
export async function bundleLauncher(): Promise<string> {
  const here = dirname(fileURLToPath(import.meta.url));
  const base = join(PROGRAMS, 'launcher');
  mkdirSync(join(base, 'dist'), { recursive: true });
  // Where the loader looks for the addon, seen from dist/.
  symlinkSync(join(here, '../../build'), join(base, 'build'));
  const outfile = join(base, 'dist/launcher.mjs');
  await build({
    stdin: { contents: SOURCE, resolveDir: here, loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile,
    banner: { js: 'import { createRequire as cr } from "node:module"; const require = cr(import.meta.url);' },
    logLevel: 'error',
  });
  return outfile;
}
