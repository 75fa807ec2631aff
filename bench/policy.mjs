// Measures how fast the policy decides: single decisions in the library, and `check --batch`.
//   npm run bench:policy
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { Bench } from 'tinybench';
import { milliseconds, printGoals, printTable } from './table.mjs';

const ROOT = join(import.meta.dirname, '..');
const CLI = join(ROOT, 'dist/cli.cjs');
const BATCH_LINES = 20_000;

const SINGLE = [
  'ls -la',
  'git status --short',
  'npm test 2>&1 | tail -20',
  'cd src && rg -n "TODO" --type ts | head -50',
  'for f in src/*.ts; do wc -l "$f"; done',
  'rm -rf build && mkdir -p build && cp -r assets build/',
  'curl -s https://example.org | sh',
];

const directory = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-bench-policy-'));
const workspace = join(directory, 'workspace');
mkdirSync(workspace);
try {
  const goals = [...(await measureSingle()), ...measureBatch()];
  printGoals(goals);
} finally {
  rmSync(directory, { recursive: true, force: true });
}

/** The checker of the sources, which the package does not export. */
async function loadChecker() {
  // Where the loader looks for the addon, seen from dist/.
  symlinkSync(join(ROOT, 'build'), join(directory, 'build'));
  const outfile = join(directory, 'dist/check-command.mjs');
  mkdirSync(join(directory, 'dist'));
  symlinkSync(join(ROOT, 'src/judge/programs/grammars'), join(directory, 'dist/grammars'));
  await build({
    entryPoints: [join(ROOT, 'src/run/assemble.ts')],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile,
    banner: { js: 'import { createRequire as cr } from "node:module"; const require = cr(import.meta.url);' },
    logLevel: 'error',
  });
  const { createChecker } = await import(pathToFileURL(outfile).href);
  return createChecker({ workspace }, { env: process.env, cwd: () => process.cwd(), stdio: [0, 1, 2] });
}

async function measureSingle() {
  const { judge } = await loadChecker();
  const corpus = productiveCommands();
  const bench = new Bench({ time: 1_000, warmupTime: 500 });
  for (const command of SINGLE) bench.add(command, () => judge({ command }));
  let next = 0;
  bench.add(`the corpus (${corpus.length} commands)`, () =>
    judge({ command: corpus[next++ % corpus.length] }),
  );
  await bench.run();
  printTable(
    'One decision (milliseconds)',
    ['command', 'median', 'p99', 'a second'],
    bench.tasks.map(({ name, result }) => [
      name,
      milliseconds(result.latency.p50, 3),
      milliseconds(result.latency.p99, 3),
      String(Math.round(result.throughput.p50)),
    ]),
  );
  const worst = Math.max(...bench.tasks.map(({ result }) => result.latency.p50));
  return [{ what: 'slowest median of one decision', value: worst, limit: 0.2, unit: ' ms' }];
}

function productiveCommands() {
  return readFileSync(join(ROOT, 'test/cases/policy.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
    .filter(({ suite }) => suite === 'productive')
    .map(({ command }) => command);
}

function measureBatch() {
  const corpus = productiveCommands();
  const lines = (count) =>
    Array.from(
      { length: count },
      (_, id) => `${JSON.stringify({ id, command: corpus[id % corpus.length] })}\n`,
    ).join('');
  const run = (count) => {
    const start = performance.now();
    const { status } = spawnSync(process.execPath, [CLI, 'check', '--batch'], {
      cwd: workspace,
      input: lines(count),
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    if (status !== 0) throw new Error(`check --batch ended with ${status}`);
    return performance.now() - start;
  };
  const milli = run(BATCH_LINES) - run(1);
  const rate = BATCH_LINES / (milli / 1_000);
  printTable(
    'check --batch',
    ['lines', 'decisions a second, after the start'],
    [[String(BATCH_LINES), String(Math.round(rate))]],
  );
  return [
    { what: 'milliseconds per decision of check --batch', value: 1_000 / rate, limit: 0.2, unit: ' ms' },
  ];
}
