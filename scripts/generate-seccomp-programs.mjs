#!/usr/bin/env node
// Generates src/confine/kernel/seccomp/programs.gen.json: the seccomp programs of the group sets that commands get by default,
// assembled beforehand because loading and running the assembler takes longer than everything else before a command.
//
//   node scripts/generate-seccomp-programs.mjs           write the file
//   node scripts/generate-seccomp-programs.mjs --check   compare it with what the assembler makes now, write nothing
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const OUTPUT = join(ROOT, 'src/confine/kernel/seccomp/programs.gen.json');

/** The assembler's TypeScript as a module that this Node can load. */
async function loadAssembler() {
  const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-generate-'));
  try {
    const outfile = join(directory, 'assembler.mjs');
    await build({
      absWorkingDir: ROOT,
      stdin: {
        contents: `export { SECCOMP_ARCHITECTURES } from './architecture.ts';
          export { assembleFilter } from './assemble.ts';
          export { buildFilter, seccompGroupsFor, SHELL_GROUPS, USUAL_NEEDS } from './filter.ts';`,
        resolveDir: join(ROOT, 'src/confine/kernel/seccomp'),
      },
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      logLevel: 'warning',
    });
    return await import(pathToFileURL(outfile).href);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

const { SECCOMP_ARCHITECTURES, SHELL_GROUPS, USUAL_NEEDS, assembleFilter, buildFilter, seccompGroupsFor } =
  await loadAssembler();

const groupSets = new Map([[SHELL_GROUPS.join(' '), SHELL_GROUPS]]);
// Different needs may come to the same groups.
for (const groups of USUAL_NEEDS.map(seccompGroupsFor)) groupSets.set(groups.join(' '), groups);

const programs = [...groupSets.values()].map((groups) => {
  const filter = buildFilter(groups);
  const bytesFor = (architecture) =>
    Buffer.from(assembleFilter(filter, architecture).bytes).toString('base64');
  return {
    groups,
    ...Object.fromEntries(
      SECCOMP_ARCHITECTURES.map((architecture) => [architecture, bytesFor(architecture)]),
    ),
  };
});
const text = `${JSON.stringify(
  {
    generated:
      'by scripts/generate-seccomp-programs.mjs from the groups and the assembler: base64 of struct sock_filter[]',
    programs,
  },
  null,
  1,
)}\n`;

if (process.argv.includes('--check')) {
  if (readFileSync(OUTPUT, 'utf8') !== text) {
    console.error(`${OUTPUT} is out of date: run node scripts/generate-seccomp-programs.mjs`);
    process.exit(1);
  }
  console.log('seccomp programs: up to date');
} else {
  writeFileSync(OUTPUT, text);
  console.log(`${OUTPUT}: ${groupSets.size} group sets for ${SECCOMP_ARCHITECTURES.join(' and ')}`);
}
