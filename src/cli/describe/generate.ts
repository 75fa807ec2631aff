// Run by the build: node generate.mjs DIRECTORY_OF_THIS_SOURCE DIRECTORY_TO_WRITE_TO
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { packageVersion } from '../../version.ts';
import { collectPrograms, describeAll } from './collect-programs.ts';
import { COMPLETED_SHELLS, type CompletedShell, completionScript } from './completion.ts';
import { manPage } from './man-page.ts';

const [sources = '', target = ''] = process.argv.slice(2);

function write(name: string, text: string): void {
  const path = join(target, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

/** SOURCE_DATE_EPOCH makes builds of the same sources the same. */
function buildDate(): string {
  const epoch = process.env.SOURCE_DATE_EPOCH;
  const date = epoch === undefined ? new Date() : new Date(Number(epoch) * 1000);
  return date.toISOString().slice(0, 10);
}

void collectPrograms().then((programs) => {
  const root = describeAll(programs);
  for (const shell of Object.keys(COMPLETED_SHELLS) as CompletedShell[])
    write(`completions/sandbox-run.${shell}`, completionScript(shell, root, sources));
  write('man/sandbox-run.1', manPage(root, { date: buildDate(), version: packageVersion }));
});
