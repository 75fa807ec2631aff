// Builds the native parts so that they load on every host of a kind, not only on this one.
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mustRun } from '../must-run.mjs';
import { runtimeFor } from './runtime.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const require = createRequire(import.meta.url);

/** Where the C library's headers and the C++ runtimes are kept; making them takes minutes. */
export const RUNTIME_CACHE =
  process.env.SANDBOX_RUN_RUNTIME_CACHE ?? join(root, 'node_modules/.cache/sandbox-run');

/**
 * @param {import('../native-artifacts.mjs').TARGETS[number]} target
 * @param {string} directory where CMake builds
 * @param {{ tests?: boolean }} [what] the C++ unit tests instead of the addon
 * @returns {string} the directory with what was made
 */
export function buildPortable(target, directory, { tests = false } = {}) {
  const runtime = runtimeFor(target, RUNTIME_CACHE);
  const output = join(directory, 'Release');
  mkdirSync(output, { recursive: true });
  const includes = [
    dirname(require.resolve('node-addon-api/package.json')),
    require('node-api-headers').include_dir,
  ];
  const linkFlags = [...runtime.linkFlags, ...(tests ? ['-static-libstdc++', '-static-libgcc'] : [])].join(
    ' ',
  );
  mustRun('cmake', [
    ...['-S', root, '-B', directory, '-DCMAKE_BUILD_TYPE=Release', '-DSANDBOX_RUN_PORTABLE=ON'],
    ...['-DCMAKE_SYSTEM_NAME=Linux', `-DCMAKE_SYSTEM_PROCESSOR=${target.machine}`],
    `-DCMAKE_CXX_COMPILER=${runtime.compiler}`,
    `-DCMAKE_CXX_FLAGS=${runtime.compileFlags.join(' ')}`,
    `-DCMAKE_SHARED_LINKER_FLAGS=${linkFlags}`,
    `-DCMAKE_EXE_LINKER_FLAGS=${linkFlags}`,
    // What a program for another machine is tried with cannot be run here.
    ...['-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY', '-DSANDBOX_RUN_STATIC_LIBC=ON'],
    // Threads are in a library of their own before glibc 2.34.
    ...['-DCMAKE_HAVE_LIBC_PTHREAD=OFF', '-DCMAKE_HAVE_PTHREADS_CREATE=OFF'],
    `-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${output}`,
    `-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${output}`,
    `-DCMAKE_JS_INC=${includes.join(';')}`,
    `-DSANDBOX_RUN_TESTS=${tests ? 'ON' : 'OFF'}`,
  ]);
  mustRun('cmake', ['--build', directory, '--parallel', '2']);
  return output;
}
