// Builds the C++ unit tests and runs them, several processes at once: most of the tests wait most of the time.
//   node scripts/test-native.mjs [--core] [--sanitize address,undefined | thread] [--processes N] [--times] [PART OF A TEST'S NAME]
// --core builds native/core alone, and its tests. --times prints what the slowest tests took.
// Some tests end process trees by a signal to everybody. Each process has a process and mount namespace of its own, so
// that a bug cannot end the machine; where none is to be had, such tests say that they were not run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { buildNativeTarget } from './build-native.mjs';
import { run } from './step.mjs';

const { values, positionals } = parseArgs({
  options: {
    core: { type: 'boolean', default: false },
    sanitize: { type: 'string', default: '' },
    processes: { type: 'string' },
    times: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const root = fileURLToPath(new URL('..', import.meta.url));
const isSanitized = values.sanitize !== '';
const processes = Number(values.processes ?? Math.min(8, Math.max(4, 2 * availableParallelism())));

const target = values.core ? 'sandbox_run_core_tests' : 'sandbox_run_tests';
let program;
try {
  program = isSanitized ? buildSanitized() : await buildNativeTarget(target);
} catch (error) {
  console.error(`test-native: the tests cannot be built:\n${error.message}`);
  process.exit(1);
}
process.exitCode = await runTests();

/** In a directory of its own: everything is compiled with the sanitizers, and each file alone. */
function buildSanitized() {
  const directory = join(root, 'build-tests-san');
  const cmake = (...args) => {
    const done = spawnSync('cmake', args, { cwd: root, encoding: 'utf8' });
    if (done.status === 0) return;
    throw new Error(`${done.error?.message ?? ''}${done.stdout ?? ''}${done.stderr ?? ''}`);
  };
  cmake(
    ...['-S', root, '-B', directory, '-DSANDBOX_RUN_TESTS=ON', '-DSANDBOX_RUN_ALONE=ON'],
    ...[`-DSANDBOX_RUN_SANITIZE=${values.sanitize}`, '-DCMAKE_BUILD_TYPE=RelWithDebInfo'],
  );
  cmake('--build', directory, '--target', target, '--parallel', String(availableParallelism()));
  return join(directory, target);
}

/** Returns the exit status. */
async function runTests() {
  const namespaces = ['--pid', '--fork', '--kill-child', '--mount-proc'];
  const attempts = [namespaces, ['--user', '--map-root-user', ...namespaces]];
  const usable = attempts.find((options) => spawnSync('unshare', [...options, '--', 'true']).status === 0);
  // The shell stays as process 1 of the namespace: the tests have to have somebody outside of themselves.
  const inNamespace =
    usable === undefined ? [] : ['unshare', ...usable, '--', 'sh', '-c', '"$@"; exit $?', 'sh'];
  // ThreadSanitizer of GCC 12 cannot live with the address space layout of new kernels.
  const fixedLayout = values.sanitize.includes('thread') ? ['setarch', '-R'] : [];
  const share = mkdtempSync(join(tmpdir(), 'sandbox-run-native-tests-'));
  const [first, ...args] = [...fixedLayout, ...inNamespace, program, '--share', share, ...positionals];
  const env = {
    ...(usable === undefined ? {} : { SANDBOX_RUN_TEST_PID_NAMESPACE: '1' }),
    ASAN_OPTIONS: 'detect_stack_use_after_return=0:abort_on_error=0',
    UBSAN_OPTIONS: 'halt_on_error=1:print_stacktrace=1',
    TSAN_OPTIONS: 'halt_on_error=0:exitcode=66',
  };
  try {
    const listing = [...fixedLayout, program, '--list', ...positionals];
    const listed = await run(listing[0], listing.slice(1));
    const names = listed.stdout.split('\n').filter((name) => name !== '');
    const ended = await Promise.all(
      Array.from({ length: processes }, async () => {
        const end = await run(first, args, { env, fails: true });
        // At once when a process has ended, so that what belongs together stays together.
        process.stdout.write(`${end.stdout}${end.stderr}`);
        return end;
      }),
    );
    return summary(names, share, ended);
  } finally {
    rmSync(share, { recursive: true, force: true });
  }
}

/** Prints how the tests ended, all in all, and returns the exit status. */
function summary(names, share, ended) {
  const begun = new Set(readdirSync(share));
  const results = names.map((name) => {
    const [result, ms] = begun.has(name) ? readFileSync(join(share, name), 'utf8').trim().split(' ') : [];
    return { name, result, ms: Number(ms) };
  });
  const count = (wanted) => results.filter(({ result }) => result === wanted).length;
  // A test that was begun and says nothing ended its process.
  for (const { name, result } of results) {
    if (result === '') console.log(`FAILED ${name}: the process that ran it ended`);
    if (result === undefined) console.log(`FAILED ${name}: no process was left to run it`);
  }
  const unwell = ended.filter(({ status }) => status !== 0);
  for (const { status, endedBy } of unwell)
    console.log(`test-native: a process of tests ended with ${endedBy ?? `exit status ${status}`}`);
  if (values.times) {
    const slowest = results.filter(({ ms }) => ms >= 0).sort((a, b) => b.ms - a.ms);
    for (const { name, ms } of slowest.slice(0, 25)) console.log(`${String(ms).padStart(6)} ms ${name}`);
  }
  const [passed, skipped] = [count('passed'), count('not-run')];
  const failed = names.length - passed - skipped;
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} not run` : ''}`);
  // A filter that matches nothing is a mistake, not a success.
  return failed === 0 && unwell.length === 0 && passed > 0 ? 0 : 1;
}
