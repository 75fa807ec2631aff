// Builds the C++ unit tests and runs them.
//   node scripts/test-native.mjs [--sanitize address,undefined | thread] [PART OF A TEST'S NAME]
// Some tests end process trees by a signal to everybody. They run in a process and mount namespace of their own, so
// that a bug cannot end the machine; where none is to be had, they say that they were not run.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  options: { sanitize: { type: 'string', default: '' } },
  allowPositionals: true,
});
const root = fileURLToPath(new URL('..', import.meta.url));
const directory = join(root, values.sanitize === '' ? 'build-tests' : 'build-tests-san');

function step(command, args) {
  const done = spawnSync(command, args, { cwd: root, encoding: 'utf8' });
  if (done.status === 0) return;
  console.error(`${done.error?.message ?? ''}${done.stdout ?? ''}${done.stderr ?? ''}`);
  console.error(`test-native: ${command} ${args.join(' ')} failed`);
  process.exit(1);
}

step('cmake', [
  ...['-S', root, '-B', directory],
  '-DSANDBOX_RUN_TESTS=ON',
  `-DSANDBOX_RUN_SANITIZE=${values.sanitize}`,
  `-DCMAKE_BUILD_TYPE=${values.sanitize === '' ? 'Release' : 'RelWithDebInfo'}`,
]);
step('cmake', ['--build', directory, '--parallel', '2']);

const namespaces = ['--pid', '--fork', '--kill-child', '--mount-proc'];
const attempts = [namespaces, ['--user', '--map-root-user', ...namespaces]];
const usable = attempts.find((options) => spawnSync('unshare', [...options, '--', 'true']).status === 0);
// The shell stays as process 1 of the namespace: the tests have to have somebody outside of themselves.
const inNamespace =
  usable === undefined ? [] : ['unshare', ...usable, '--', 'sh', '-c', '"$@"; exit $?', 'sh'];
// ThreadSanitizer of GCC 12 cannot live with the address space layout of new kernels.
const fixedLayout = values.sanitize.includes('thread') ? ['setarch', '-R'] : [];
const [program, ...args] = [
  ...fixedLayout,
  ...inNamespace,
  join(directory, 'sandbox_run_tests'),
  ...positionals,
];
const ran = spawnSync(program, args, {
  cwd: root,
  stdio: 'inherit',
  env: {
    ...process.env,
    ...(usable === undefined ? {} : { SANDBOX_RUN_TEST_PID_NAMESPACE: '1' }),
    ASAN_OPTIONS: 'detect_stack_use_after_return=0:abort_on_error=0',
    UBSAN_OPTIONS: 'halt_on_error=1:print_stacktrace=1',
    TSAN_OPTIONS: 'halt_on_error=0:exitcode=66',
  },
});
if (ran.error !== undefined) console.error(`test-native: ${ran.error.message}`);
process.exitCode = ran.status ?? 1;
