// Cross-builds the native tests for arm64 and runs them: those that qemu's user mode can stand for, then all of them on a
// real arm64 kernel in an emulated machine. The package for arm64 is for scripts/kernel-matrix --kernels arm64.
//   node scripts/test-arm64.mjs [--user-mode | --machine]
// Needs g++-aarch64-linux-gnu, qemu-user-static, qemu-system-arm and cpio. Kernel and userland are Debian's for arm64;
// emulated, it takes some ten minutes.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mustRun } from './must-run.mjs';
import { debianArm64Root } from './vm/arm64-root.mjs';
import { boot, newPlace } from './vm/machine.mjs';
import { packRoot } from './vm/root.mjs';

/**
 * Files of test/native/ whose tests start no command: user mode has fork() for clone(CLONE_VM | CLONE_VFORK), and
 * neither Landlock nor seccomp. The rest is for the machine.
 */
const USER_MODE = ['base_test', 'files_test', 'head_tail_test', 'directory_usage_test'];
/** Of those, what is left to the machine, and why. */
const NOT_IN_USER_MODE = new Map([
  ['OpenPathRefusesASymbolicLinkAnywhere', 'user mode has no openat2'],
  ['RemoveContentsStaysOnItsFileSystem', 'it mounts something'],
  ['HeadTailGoesOnWithWhatItHasWhereMemoryIsShort', 'a limit of memory is one of the emulator'],
  ['HeadTailKeepsWhatANaiveModelKeepsWhateverThePieces', 'emulated it takes minutes'],
  ['DirectoryUsageStopsInTimeAndGoesOn', 'emulated it takes minutes'],
]);
const MINUTES = 25;

const { values } = parseArgs({
  options: { 'user-mode': { type: 'boolean', default: false }, machine: { type: 'boolean', default: false } },
});
const root = fileURLToPath(new URL('..', import.meta.url));
const place = newPlace();

if (!values.machine) runInUserMode();
if (!values['user-mode']) await runInMachine();

function buildTests() {
  const directory = join(root, 'build-arm64-tests');
  const toolchain = join(root, 'scripts/toolchains/aarch64.cmake');
  mustRun('cmake', [
    '-S',
    root,
    '-B',
    directory,
    `-DCMAKE_TOOLCHAIN_FILE=${toolchain}`,
    '-DSANDBOX_RUN_TESTS=ON',
  ]);
  mustRun('cmake', ['--build', directory, '--parallel', '2']);
  return directory;
}

function runInUserMode() {
  const directory = buildTests();
  const names = USER_MODE.flatMap((file) =>
    [...mustRun('cat', [join(root, `test/native/${file}.cc`)]).matchAll(/^(?:LONG_)?TEST\((\w+)\)/gm)].map(
      ([, name]) => name,
    ),
  );
  const missing = [...NOT_IN_USER_MODE.keys()].filter((name) => !names.includes(name));
  if (missing.length > 0) throw new Error(`test-arm64: there is no test ${missing.join(', ')}`);
  const failed = names.filter((name) => {
    if (NOT_IN_USER_MODE.has(name)) return false;
    const ran = spawnSync(
      'qemu-aarch64-static',
      ['-L', '/usr/aarch64-linux-gnu', join(directory, 'sandbox_run_tests'), name],
      {
        encoding: 'utf8',
        timeout: 60_000,
      },
    );
    if (ran.status !== 0) console.error(`${name}: ${ran.stdout}${ran.stderr}${ran.error?.message ?? ''}`);
    return ran.status !== 0;
  });
  for (const [name, reason] of NOT_IN_USER_MODE) console.log(`not run in user mode: ${name}: ${reason}`);
  const passed = names.length - NOT_IN_USER_MODE.size - failed.length;
  console.log(`arm64, user mode: ${passed} passed, ${failed.length} failed`);
  if (failed.length > 0) process.exitCode = 1;
}

async function runInMachine() {
  const tests = buildTests();
  const { root: system, kernel } = debianArm64Root(place, { init: 'arm64-init' });
  mkdirSync(join(system, 'tests'));
  // With the programs that it starts, which it looks for beside itself.
  for (const file of ['sandbox_run_tests', 'sandbox-run-warden', 'sandbox-run-begin'])
    cpSync(join(tests, file), join(system, 'tests', file));
  const initrd = packRoot(system);
  const vm = await boot({
    architecture: 'arm64',
    ...{ kernel, initrd, megabytes: 2048, seconds: MINUTES * 60 },
    onLine: (line) => {
      if (/^(vm |FAILED|not run|\d+ passed| {2}\/)/.test(line)) console.log(line.trimEnd());
    },
  });
  if (vm.ended && vm.ill.length === 0 && vm.lines.some((line) => line.trimEnd() === 'vm native 0')) return;
  console.error(`test-arm64: something failed\n${vm.lines.slice(-40).join('\n')}`);
  process.exitCode = 1;
}
