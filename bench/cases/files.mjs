// Commands that do little but open and look at files.
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inProcess, inTurns, summarize } from '../measure.mjs';
import { milliseconds, printTable, times } from '../table.mjs';
import { spawnAndCapture } from './launch.mjs';

const FILES_PER_DIRECTORY = 50;

/** A repository with so many files. */
export function makeRepository(directory, files) {
  for (let i = 0; i < files; ++i) {
    const parent = join(directory, `directory-${Math.floor(i / FILES_PER_DIRECTORY)}`);
    if (i % FILES_PER_DIRECTORY === 0) mkdirSync(parent, { recursive: true });
    writeFileSync(join(parent, `file-${i}.txt`), `content of file ${i}\n`);
  }
  const git = (...args) =>
    execFileSync('git', [
      '-C',
      directory,
      '-c',
      'user.name=bench',
      '-c',
      'user.email=bench@localhost',
      ...args,
    ]);
  git('init', '-q');
  git('add', '-A');
  git('commit', '-q', '-m', 'files');
}

export async function measureFiles({ createSandbox, directory, counts }) {
  const workspace = join(directory, 'repository');
  makeRepository(workspace, counts.files);
  const sandbox = await createSandbox({ workspace });
  const inside = (name, argv) =>
    inProcess(`${name}, inside`, async () => {
      const result = await sandbox.run(argv);
      if (result.exitCode !== 0)
        throw new Error(`${argv.join(' ')}: ${result.stderr || result.error?.message}`);
    });
  // Started by the same process and captured as inside, so that the confinement is all the difference.
  const outside = (name, [program, ...args]) =>
    inProcess(`${name}, outside`, () => spawnAndCapture(program, args, { cwd: workspace }));
  // Root without capabilities cannot list every directory: that find says so is no failure.
  const find = ['/bin/sh', '-c', `find ${counts.tree} -xdev > /dev/null 2>&1; true`];
  const status = ['git', '-C', workspace, 'status'];
  const results = {};
  for (const [name, argv, rounds] of [
    [`find ${counts.tree} -xdev`, find, counts.findRounds],
    [`git status, ${counts.files} files`, status, counts.statusRounds],
  ]) {
    // One run per turn: they are long, and the machine changes meanwhile.
    const samples = await inTurns([outside(name, argv), inside(name, argv)], {
      rounds,
      perTurn: 1,
    });
    results[name] = {
      outside: summarize(samples.get(`${name}, outside`)),
      inside: summarize(samples.get(`${name}, inside`)),
    };
  }
  await sandbox.close();
  return results;
}

export function printFiles(results) {
  printTable(
    'Commands that are all about files (milliseconds; outside: child_process.spawn, inside: sandbox.run)',
    ['command', 'outside', 'inside', 'ratio', 'runs'],
    Object.entries(results).map(([name, { outside, inside }]) => [
      name,
      milliseconds(outside.median, 1),
      milliseconds(inside.median, 1),
      times(inside.median / outside.median),
      outside.count,
    ]),
  );
}

export function filesGoals(results) {
  return Object.entries(results).map(([name, { outside, inside }]) => ({
    what: `${name}, inside : outside`,
    value: inside.median / outside.median,
    limit: 1.05,
    unit: ' x',
  }));
}
