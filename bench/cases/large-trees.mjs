// What a tree costs a command by its directories: in a process of its own for each command, and in one that goes on.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fromC, inProcess, inTurns, summarize } from '../measure.mjs';
import { milliseconds, printTable } from '../table.mjs';

const PER_DIRECTORY = 12;

/** Directories in directories, as many in each as sources have. */
function makeTree(root, directories) {
  const made = [root];
  mkdirSync(root);
  for (let i = 0; i < directories; ++i) {
    const directory = join(made[Math.floor(i / PER_DIRECTORY)], `directory-${i % PER_DIRECTORY}`);
    mkdirSync(directory);
    made.push(directory);
  }
}

export async function measureLargeTrees({ dist, stopwatch, counts, directory, createSandbox }) {
  const cli = fileURLToPath(new URL('cli.cjs', dist));
  const state = join(directory, 'state-of-trees');
  const contenders = [];
  const sandboxes = [];
  const beside = join(directory, 'tree-beside');
  makeTree(beside, counts.beside);
  for (const count of counts.directories) {
    const workspace = join(directory, `tree-${count}`);
    makeTree(workspace, count);
    const argv = ['/usr/bin/env', `XDG_STATE_HOME=${state}`, process.execPath, cli];
    contenders.push(
      fromC(`sandbox-run, ${count}`, stopwatch, [...argv, '--workspace', workspace, '--', '/bin/true']),
    );
    const sandbox = await createSandbox({ workspace });
    sandboxes.push(sandbox);
    contenders.push(inProcess(`sandbox.run, ${count}`, () => sandbox.run(['/bin/true'])));
  }
  const granting = await createSandbox({
    workspace: join(directory, `tree-${counts.directories[0]}`),
    policy: { filesystem: { write: [beside] } },
  });
  sandboxes.push(granting);
  contenders.push(inProcess('sandbox.run, beside', () => granting.run(['/bin/true'])));
  // The first looks of a process find out what there is to be watched.
  for (const { turn } of contenders) await turn(counts.warmUp);
  const samples = await inTurns(contenders, counts);
  await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
  return {
    counts,
    of: Object.fromEntries([...samples].map(([name, list]) => [name, summarize(list)])),
  };
}

export function printLargeTrees({ counts, of }) {
  printTable(
    `/bin/true in a workspace of so many directories (milliseconds; beside: none in it, ${counts.beside} granted beside it)`,
    ['command', 'median', 'p95'],
    Object.entries(of).map(([name, { median, p95 }]) => [name, milliseconds(median), milliseconds(p95)]),
  );
}

export function largeTreesGoals({ counts, of }) {
  const [none, ...more] = counts.directories;
  const goal = (what, name, base, limit) => ({
    what,
    value: of[name].median - of[base].median,
    limit,
    unit: ' ms',
  });
  return [
    ...more.flatMap((count) => [
      goal(`command line, ${count} directories`, `sandbox-run, ${count}`, `sandbox-run, ${none}`, 50),
      goal(`library, ${count} directories`, `sandbox.run, ${count}`, `sandbox.run, ${none}`, 5),
    ]),
    goal(`library, ${counts.beside} directories beside`, 'sandbox.run, beside', `sandbox.run, ${none}`, 5),
  ];
}
