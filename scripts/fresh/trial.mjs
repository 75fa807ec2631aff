// A fresh clone, the README's two commands in it, and what is wrong with what they did.
import { cpSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../step.mjs';

const DIRECTORY = 'sandbox-run';

/** The README's command for tests. It has to do with the packages that the README names. */
export const TEST = 'npm test';

/** Answers with how long each command took, and what is wrong. `tests`: whether to run the tests, too. */
export async function tryAs(user, { root, inside, clone, commands, tests = false }) {
  const checkout = join(root, user.home, DIRECTORY);
  cpSync(clone, checkout, { recursive: true, verbatimSymlinks: true });
  await run('chown', ['-R', `${user.uid}:${user.uid}`, checkout]);
  const at = { user, directory: join(user.home, DIRECTORY), fails: true };
  const timed = async (command) => {
    const from = Date.now();
    const done = await inside(command, at);
    return { ...done, command, all: `${done.stdout}${done.stderr}`, seconds: (Date.now() - from) / 1000 };
  };
  const [setUp, first] = commands;
  const installed = await timed(setUp);
  const built = builtFiles(checkout);
  const ran = await timed(first);
  // The same once more, for the report of what held it.
  const asked = await timed(first.replace('sandbox-run --', 'sandbox-run --json=full --'));
  const clean = await inside('git status --porcelain --ignored=no', at);
  const problems = [
    ...wrongWithSetUp(installed),
    ...wrongWithRun(ran),
    ...wrongWithReport(asked),
    ...(builtFiles(checkout) === built ? [] : [`${first}: it was built a second time`]),
    ...(clean.status === 0 && clean.stdout === '' ? [] : [`git status: ${clean.stdout}${clean.stderr}`]),
  ];
  const tested = tests ? await timed(TEST) : undefined;
  if (tested !== undefined && tested.status !== 0) problems.push(`${TEST}: exit status ${tested.status}`);
  const said = [installed, ran, tested].map((one) =>
    one === undefined ? '' : `$ ${one.command}\n${one.all}`,
  );
  return {
    problems,
    said: problems.length === 0 ? '' : said.join(''),
    closing: tested?.all.trim().split('\n').slice(-3).join('\n'),
    seconds: [installed.seconds, ran.seconds, ...(tested === undefined ? [] : [tested.seconds])],
  };
}

function wrongWithSetUp({ command, status, all }) {
  const built = all.split('\n').filter((line) => line.includes('sandbox-run: addon built')).length;
  const warnings = all
    .split('\n')
    .filter((line) => /^npm (warn|err)|\bwarning\b|sandbox-run: .* not /i.test(line));
  return [
    ...(status === 0 ? [] : [`${command}: exit status ${status}`]),
    ...(built === 1 ? [] : [`${command}: the addon was built ${built} times`]),
    ...warnings.map((line) => `${command}: ${line}`),
  ];
}

/** What git says in a clone that nobody changed. */
function wrongWithRun({ command, status, stdout, stderr }) {
  return [
    ...(status === 0 ? [] : [`${command}: exit status ${status}: ${stderr.trim()}`]),
    ...(stdout.includes('working tree clean') ? [] : [`${command}: it printed ${JSON.stringify(stdout)}`]),
    ...(stderr === '' ? [] : [`${command}: it warned: ${stderr.trim()}`]),
  ];
}

function wrongWithReport({ command, stdout }) {
  try {
    const { status, exitCode, report } = JSON.parse(stdout);
    const files = report.controls.find(({ id }) => id === 'filesystem')?.state;
    const held = status === 'exited' && exitCode === 0 && files === 'enforced';
    return held ? [] : [`${command}: ${status} ${exitCode}, ${report.backend}, files ${files}`];
  } catch (error) {
    return [`${command}: ${error.message}: ${stdout.slice(0, 200)}`];
  }
}

/** Every file that a build makes, and when. */
function builtFiles(checkout) {
  const files = ['build/Release', 'dist'].flatMap((directory) => {
    try {
      return readdirSync(join(checkout, directory), { recursive: true }).map((name) => join(directory, name));
    } catch {
      return [];
    }
  });
  return files.map((file) => `${file} ${statSync(join(checkout, file)).mtimeMs}`).join('\n');
}
