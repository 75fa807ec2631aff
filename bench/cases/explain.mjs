// What it costs to tell what was denied (sandbox.explain).
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inProcess, inTurns, summarize } from '../measure.mjs';
import { milliseconds, printTable, times } from '../table.mjs';
import { makeRepository } from './files.mjs';

const LEVELS = ['never', 'auto', 'always'];

export async function measureExplain({ createSandbox, directory, counts }) {
  const workspace = join(directory, 'explained');
  makeRepository(workspace, counts.files);
  writeFileSync(join(workspace, 'main.c'), '#include <stdio.h>\nint main(void) { return puts("x") < 0; }\n');
  const commands = {
    '/bin/true': ['/bin/true'],
    [`git status, ${counts.files} files`]: ['git', 'status', '--short'],
    'npm --version': ['npm', '--version'],
    [`find ${counts.tree} -type f`]: ['sh', '-c', `find ${counts.tree} -xdev -type f > /dev/null 2>&1; true`],
    'gcc -O1 -c': ['gcc', '-O1', '-c', '-o', '/dev/null', 'main.c'],
    [`grep -r in ${counts.files} files`]: ['sh', '-c', 'grep -r nothing-like-it . ; true'],
    '100 files made and removed': ['bash', '-c', 'for i in {1..100}; do : > f$i; done; rm f*'],
  };
  const sandboxes = {};
  for (const explain of LEVELS) sandboxes[explain] = await createSandbox({ workspace, explain });
  const results = {};
  for (const [name, argv] of Object.entries(commands)) {
    const contenders = LEVELS.map((explain) =>
      inProcess(explain, async () => {
        const result = await sandboxes[explain].run(argv);
        if (result.exitCode !== 0) throw new Error(`${name}: ${result.stderr || result.error?.message}`);
      }),
    );
    const samples = await inTurns(contenders, { rounds: counts.rounds, perTurn: 1 });
    results[name] = Object.fromEntries(LEVELS.map((level) => [level, summarize(samples.get(level)).median]));
  }
  for (const sandbox of Object.values(sandboxes)) await sandbox.close();
  return results;
}

export function printExplain(results) {
  printTable(
    'What telling what was denied costs (milliseconds, medians; in turns)',
    ['command', ...LEVELS, 'auto', 'always'],
    Object.entries(results).map(([name, of]) => [
      name,
      ...LEVELS.map((level) => milliseconds(of[level], 2)),
      times(of.auto / of.never),
      times(of.always / of.never),
    ]),
  );
}

export function explainGoals(results) {
  return Object.entries(results).map(([name, { never, auto }]) => ({
    what: `${name}, explain auto : never`,
    value: auto / never,
    limit: 1.05,
    unit: ' x',
  }));
}
