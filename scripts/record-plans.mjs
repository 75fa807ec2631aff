#!/usr/bin/env node
// Writes what 200 policies become on 14 kinds of hosts under each backend: the launch plan and what the addon gets of it, a line
// of JSON each. For changes that are to change nothing: record before, record after, compare the two files.
//
//   node scripts/record-plans.mjs FILE
import { createHash } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { textImports } from './text-imports.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const [output] = process.argv.slice(2);
if (output === undefined) {
  console.error('usage: node scripts/record-plans.mjs FILE');
  process.exit(2);
}

// In node_modules: the packages that the bundle imports are found from there.
const directory = mkdtempSync(join(ROOT, 'node_modules/.record-plans-'));
try {
  const outfile = join(directory, 'plans.mjs');
  await build({
    entryPoints: [join(ROOT, 'test/support/recorded-plans.ts')],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
    plugins: [textImports],
  });
  const { recordedPlans } = await import(pathToFileURL(outfile).href);
  const file = openSync(output, 'w');
  const sum = createHash('sha256');
  const counts = { plans: 0, refused: 0 };
  for await (const recorded of recordedPlans()) {
    const line = `${JSON.stringify(recorded, plain)}\n`;
    writeSync(file, line);
    sum.update(line);
    counts['code' in recorded.became ? 'refused' : 'plans'] += 1;
  }
  closeSync(file);
  console.log(`${counts.plans} plans, ${counts.refused} refused, sha256 ${sum.digest('hex')}`);
} finally {
  rmSync(directory, { recursive: true });
}

function plain(_, value) {
  if (typeof value === 'bigint') return `${value}n`;
  // A program of the filter: as bytes it would be most of the record.
  if (value instanceof Uint8Array) return `sha256 ${createHash('sha256').update(value).digest('hex')}`;
  if (value instanceof Map || value instanceof Set) return [...value];
  return value;
}
