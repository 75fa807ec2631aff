// What scripts/docker-test runs in the container: the suite, and what the host offers there.
//   node scripts/docker/inside.mjs [--results FILE] [TEST FILE OR DIRECTORY ...]
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values, positionals: tests } = parseArgs({
  options: { results: { type: 'string' } },
  allowPositionals: true,
});
const root = fileURLToPath(new URL('../..', import.meta.url));
const isRoot = process.getuid() === 0;
const place = mkdtempSync(join(tmpdir(), 'sandbox-run-results-'));
// The ordinary user of the second run writes there too.
chmodSync(place, 0o1777);

const doctor = answerOf(['doctor', '--json']);
const attack = hasAttacks() ? answerOf(['doctor', '--attack', '--json']) : null;
const suites = [];
if (tests.length === 0) suites.push(await nativeSuite());
suites.push(
  await vitestSuite(isRoot ? 'as root' : 'tests', 'node_modules/vitest/vitest.mjs', ['run', ...tests]),
);
if (isRoot) suites.push(await vitestSuite('as nobody', 'scripts/test-as-user.mjs', [...tests, '--']));

const answer = { suites, doctor, attack };
if (values.results !== undefined) writeFileSync(values.results, JSON.stringify(answer));
process.exitCode = suites.every(({ ok }) => ok) ? 0 : 1;

function node(args) {
  return new Promise((done) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] });
    let said = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text;
      process.stdout.write(text);
    });
    child.once('close', (status) => done({ said, status }));
  });
}

async function nativeSuite() {
  const { said, status } = await node(['scripts/test-native.mjs']);
  const figures = /(\d+) passed, (\d+) failed(?:, (\d+) not run)?/.exec(said);
  const [passed, failed, skipped] = (figures ?? []).slice(1).map((figure) => Number(figure ?? 0));
  const failures = said.split('\n').filter((line) => /^FAIL/i.test(line));
  return {
    ...{ name: 'C++', ok: status === 0 && figures !== null },
    ...{ passed: passed ?? 0, failed: failed ?? 1, skipped: skipped ?? 0, failures },
  };
}

/** `script` is vitest itself, or passes its arguments on to it. */
async function vitestSuite(name, script, args) {
  const file = join(place, `${name.replace(' ', '-')}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`];
  const { status } = await node([script, ...args, ...reporters]);
  if (!existsSync(file))
    return { name, ok: false, passed: 0, failed: 1, skipped: 0, failures: ['vitest wrote no results'] };
  const results = JSON.parse(readFileSync(file, 'utf8'));
  const failures = results.testResults.flatMap((testFile) => {
    const path = testFile.name.replace(/^.*?\/(?=test\/)/, '');
    const failed = testFile.assertionResults.filter((test) => test.status === 'failed');
    if (failed.length === 0 && testFile.status === 'failed')
      return [`${path}: ${firstLine(testFile.message)}`];
    return failed.map((test) => `${path} > ${test.fullName}: ${firstLine(test.failureMessages[0])}`);
  });
  return {
    ...{ name, ok: status === 0, passed: results.numPassedTests, failed: results.numFailedTests },
    ...{ skipped: results.numPendingTests + results.numTodoTests, failures },
  };
}

function firstLine(message = '') {
  return message.split('\n')[0].slice(0, 300);
}

function cli(args) {
  return spawnSync(process.execPath, [join(root, 'dist/cli.cjs'), ...args], { cwd: root, encoding: 'utf8' });
}

function hasAttacks() {
  return cli(['doctor', '--help']).stdout.includes('--attack');
}

/** An answer even where it says that something is wrong. */
function answerOf(args) {
  const { stdout, stderr, status } = cli(args);
  try {
    return JSON.parse(stdout);
  } catch {
    return { ok: false, problem: `${args.join(' ')}: exit status ${status}: ${stderr.trim()}`, controls: [] };
  }
}
