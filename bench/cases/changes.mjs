// What it costs to be able to take changes of the workspace back (workspace.undo), and to apply many of them.
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inProcess, inTurns, median, summarize } from '../measure.mjs';
import { milliseconds, printTable, times } from '../table.mjs';
import { makeRepository } from './files.mjs';

/** An agent thinks between two commands; meanwhile the next layer is made. */
const PAUSE_MS = 150;

export async function measureChanges({ createSandbox, directory, counts }) {
  process.env.XDG_STATE_HOME = join(directory, 'state');
  const results = { commands: {} };
  const contenders = async (name, workspace, argv, { rounds, pause }) => {
    const sandboxes = {
      direct: await createSandbox({ workspace }),
      undo: await createSandbox({ workspace, undo: 'always' }),
    };
    const one = (kind) => {
      const { turn, ...contender } = inProcess(kind, async () => {
        const result = await sandboxes[kind].run(argv);
        if (result.exitCode !== 0 || result.warnings.length > 0)
          throw new Error(`${name}: ${[result.stderr, result.error?.message, ...result.warnings].join(' ')}`);
      });
      return {
        ...contender,
        async turn(count) {
          const samples = [];
          for (let i = 0; i < count; ++i) {
            if (pause) await sleep(PAUSE_MS);
            samples.push(...(await turn(1)));
          }
          return samples;
        },
      };
    };
    const samples = await inTurns([one('direct'), one('undo')], { rounds, perTurn: 1 });
    for (const sandbox of Object.values(sandboxes)) await sandbox.close();
    results.commands[name] = {
      direct: summarize(samples.get('direct')).median,
      undo: summarize(samples.get('undo')).median,
    };
  };

  const repository = join(directory, 'undone-repository');
  makeRepository(repository, counts.files);
  for (const pause of [true, false]) {
    const how = pause ? `, ${PAUSE_MS} ms apart` : ', one after the other';
    await contenders(`/bin/true${how}`, repository, ['/bin/true'], { rounds: counts.rounds, pause });
    await contenders(`git status, ${counts.files} files${how}`, repository, ['git', 'status'], {
      rounds: counts.rounds,
      pause,
    });
  }
  await contenders('cp of one file', repository, ['cp', '.git/HEAD', 'copied'], {
    rounds: counts.rounds,
    pause: true,
  });
  const packages = join(directory, 'packages');
  makePackages(packages, counts.packages);
  const install = 'npm ci --offline --ignore-scripts --no-audit --no-fund --loglevel=error';
  await contenders(`npm ci, ${counts.packages} packages`, packages, ['bash', '-c', install], {
    rounds: counts.installs,
    pause: true,
  });
  Object.assign(results, await measureMany({ createSandbox, directory, counts }));
  return results;
}

/** How long it takes to apply a change set of many files, and to take that back. */
async function measureMany({ createSandbox, directory, counts: { many, installs } }) {
  const workspace = join(directory, 'many');
  mkdirSync(workspace);
  const make = `for d in {1..100}; do mkdir d$d; for ((f = 0; f < ${many / 100}; f++)); do echo $f > d$d/f$f; done; done`;
  const sandbox = await createSandbox({ workspace });
  const changes = await sandbox.changes();
  const [apply, undo] = [[], []];
  for (let round = 0; round < installs; ++round) {
    const { changes: found } = await sandbox.run(make, { effect: 'preview' });
    for (const [samples, work] of [
      [apply, () => changes.apply(found.id)],
      [undo, () => changes.undo(found.id)],
    ]) {
      const begin = performance.now();
      const { notDone } = await work();
      if (notDone.length > 0) throw new Error(notDone[0].why);
      samples.push(performance.now() - begin);
    }
    await changes.discard(found.id);
  }
  await sandbox.close();
  return { many, apply: median(apply), undo: median(undo) };
}

/** A project of packages in files beside it, with a lock file. */
function makePackages(directory, count) {
  const files = join(directory, 'files');
  const made = join(directory, 'package');
  mkdirSync(files, { recursive: true });
  const dependencies = {};
  for (let i = 0; i < count; ++i) {
    mkdirSync(join(made, 'lib'), { recursive: true });
    writeFileSync(join(made, 'package.json'), JSON.stringify({ name: `p${i}`, version: '1.0.0' }));
    for (let file = 0; file < 10; ++file)
      writeFileSync(join(made, `lib/${file}.js`), `exports.of = ${i};\n`.repeat(20));
    execFileSync('tar', ['-czf', join(files, `p${i}.tgz`), '-C', directory, 'package']);
    dependencies[`p${i}`] = `file:files/p${i}.tgz`;
  }
  rmSync(made, { recursive: true });
  writeFileSync(
    join(directory, 'package.json'),
    JSON.stringify({ name: 'bench', version: '1.0.0', dependencies }),
  );
  execFileSync('npm', ['install', '--offline', '--package-lock-only', '--ignore-scripts', '--no-audit'], {
    cwd: directory,
    stdio: 'ignore',
  });
}

export function printChanges({ commands, many, apply, undo }) {
  printTable(
    'What it costs that changes can be taken back (milliseconds, medians; in turns)',
    ['command', 'direct', 'undo', 'undo : direct'],
    Object.entries(commands).map(([name, of]) => [
      name,
      milliseconds(of.direct, 2),
      milliseconds(of.undo, 2),
      times(of.undo / of.direct),
    ]),
  );
  printTable(
    `A change set of ${many} files (milliseconds, medians)`,
    ['apply', 'undo'],
    [[milliseconds(apply, 0), milliseconds(undo, 0)]],
  );
}

export function changesGoals({ commands }) {
  return (
    Object.entries(commands)
      // One that writes is measured, and has no goal.
      .filter(([name]) => !/one after the other$|^cp /.test(name))
      .map(([name, { direct, undo }]) => ({
        what: `${name}, undo : direct`,
        value: undo / direct,
        limit: name.startsWith('npm ci') ? 1.15 : 1.1,
        unit: ' x',
      }))
  );
}
