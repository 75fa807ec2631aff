// Cross-builds the addon and the native tests for arm64 and runs them: those that qemu's user mode can stand for, then
// all of them and the command line on a real arm64 kernel in an emulated machine.
//   node scripts/test-arm64.mjs [--user-mode | --machine]
// Needs g++-aarch64-linux-gnu, qemu-user-static, qemu-system-arm, cpio, and `npm run build:ts` before. The kernel and
// the userland, with Node, are Debian's for arm64; emulated, it takes some ten minutes.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { mustRun } from './must-run.mjs';
import { NATIVE_ARTIFACTS } from './native-artifacts.mjs';
import { unpackDebianPackages } from './toolchains/debian-packages.mjs';

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
const SUITE = 'trixie';
const PACKAGES =
  'linux-image-cloud-arm64 nodejs bash dash coreutils mount util-linux procps libc-bin grep sed findutils';
const MINUTES = 25;

const { values } = parseArgs({
  options: { 'user-mode': { type: 'boolean', default: false }, machine: { type: 'boolean', default: false } },
});
const root = fileURLToPath(new URL('..', import.meta.url));
const place = mkdtempSync(join(tmpdir(), 'sandbox-run-arm64-'));
process.on('exit', () => rmSync(place, { recursive: true, force: true }));
const require = createRequire(import.meta.url);

if (!values.machine) runInUserMode();
if (!values['user-mode']) runInMachine();

function build(name, options) {
  const directory = join(root, `build-arm64-${name}`);
  const toolchain = join(root, 'scripts/toolchains/aarch64.cmake');
  mustRun('cmake', ['-S', root, '-B', directory, `-DCMAKE_TOOLCHAIN_FILE=${toolchain}`, ...options]);
  mustRun('cmake', ['--build', directory, '--parallel', '2']);
  return directory;
}

function runInUserMode() {
  const directory = build('tests', ['-DSANDBOX_RUN_TESTS=ON']);
  const names = USER_MODE.flatMap((file) =>
    [...mustRun('cat', [join(root, `test/native/${file}.cc`)]).matchAll(/^TEST\((\w+)\)/gm)].map(
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

function runInMachine() {
  const tests = build('tests', ['-DSANDBOX_RUN_TESTS=ON']);
  const includes = [
    dirname(require.resolve('node-addon-api/package.json')),
    require('node-api-headers').include_dir,
  ];
  const addon = build('addon', [
    `-DCMAKE_JS_INC=${includes.join(';')}`,
    `-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${join(root, 'build-arm64-addon/Release')}`,
  ]);
  const system = join(place, 'root');
  mkdirSync(join(system, 'usr'), { recursive: true });
  for (const name of ['bin', 'sbin', 'lib']) {
    mkdirSync(join(system, 'usr', name), { recursive: true });
    symlinkSync(`usr/${name}`, join(system, name));
  }
  unpackDebianPackages({
    suite: SUITE,
    architecture: 'arm64',
    packages: PACKAGES.split(' '),
    dependencies: true,
    into: system,
  });
  const kernel = join(place, 'vmlinuz');
  const image = readdirSync(join(system, 'boot')).find((name) => name.startsWith('vmlinuz-')) ?? '';
  cpSync(join(system, 'boot', image), kernel);
  for (const name of ['boot', 'usr/lib/modules', 'usr/lib/systemd', 'usr/share/perl']) {
    rmSync(join(system, name), { recursive: true, force: true });
  }
  if (!existsSync(join(system, 'usr/bin/sh'))) symlinkSync('dash', join(system, 'usr/bin/sh'));
  writeFileSync(
    join(system, 'etc/passwd'),
    'root:x:0:0::/root:/bin/bash\nnobody:x:65534:65534::/tmp:/bin/sh\n',
  );
  writeFileSync(join(system, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n');
  cpSync(join(root, 'scripts/vm/arm64-init'), join(system, 'init'));
  chmodSync(join(system, 'init'), 0o755);
  const app = join(system, 'app');
  for (const [from, to] of [
    ...['dist', 'package.json'].map((name) => [join(root, name), join(app, name)]),
    ...NATIVE_ARTIFACTS.map(({ file }) => [join(addon, 'Release', file), join(app, 'build/Release', file)]),
    ...['sandbox_run_tests', 'sandbox-run-warden'].map((file) => [
      join(tests, file),
      join(app, 'tests', file),
    ]),
    ...runtimeDependencies().map((name) => [
      join(root, 'node_modules', name),
      join(app, 'node_modules', name),
    ]),
  ]) {
    mkdirSync(dirname(to), { recursive: true });
    cpSync(from, to, { recursive: true });
  }
  mustRun('sh', [
    '-ec',
    'cd "$1" && find . | cpio -o -H newc --quiet > "$2"',
    'sh',
    system,
    join(place, 'initrd'),
  ]);
  rmSync(system, { recursive: true });
  const machine = spawnSync(
    'qemu-system-aarch64',
    [
      ...[
        '-machine',
        'virt',
        '-cpu',
        'max',
        '-accel',
        'tcg,thread=single',
        '-m',
        '2048',
        '-nographic',
        '-no-reboot',
      ],
      ...['-kernel', kernel, '-initrd', join(place, 'initrd'), '-append', 'console=ttyAMA0 quiet panic=-1'],
    ],
    { encoding: 'utf8', timeout: MINUTES * 60_000, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  report(machine.stdout.replaceAll('\r', ''));
}

/** What dist/ loads from node_modules. */
function runtimeDependencies() {
  const { dependencies } = require('../package.json');
  return [...Object.keys(dependencies), 'node-gyp-build', 'bindings'].filter((name) =>
    existsSync(join(root, 'node_modules', name)),
  );
}

function report(output) {
  const lines = output.split('\n').filter((line) => /^(vm |FAILED|not run|\d+ passed| {2}\/)/.test(line));
  console.log(lines.join('\n'));
  const has = (line) => lines.includes(line);
  const isGood =
    has('vm native 0') && has('vm command aarch64') && has('vm done') && !/^vm FAIL/m.test(output);
  if (isGood) return;
  console.error(`test-arm64: something failed\n${output.slice(-3000)}`);
  process.exitCode = 1;
}
