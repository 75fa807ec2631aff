// Builds the addon and the programs beside it with cmake-js, in a checkout and in an installed package.
import { spawn } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NATIVE_ARTIFACTS, ownTarget, SQLITE, sqliteFor } from './native-artifacts.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(import.meta.url);
const isInstalled = basename(dirname(root)) === 'node_modules';

/** What cmake-js looks for: one of the programs, and the package of Debian and of many others that brings one. */
export const TOOLS = [
  { programs: ['g++', 'clang++'], packaged: 'g++' },
  { programs: ['cmake'], packaged: 'cmake' },
  { programs: ['make', 'ninja'], packaged: 'make' },
];
/** A checkout has them by `npm ci`; an installed package does not depend on what most hosts need not. */
const MODULES = ['cmake-js', 'node-addon-api', 'node-api-headers', SQLITE.package];

/** Whether it was built; if not, standard error has two lines: what is missing, and the command that mends it. */
export async function buildNative() {
  const tools = TOOLS.filter(({ programs }) => !programs.some(isInPath)).map(({ packaged }) => packaged);
  const modules = MODULES.filter((name) => !isModule(name));
  const missing = [...tools, ...modules];
  const built = missing.length === 0 ? await configureAndBuild() : { ok: false };
  if (built.ok) {
    console.log('sandbox-run: addon built');
    return true;
  }
  if (missing.length === 0) console.error(built.said.trim().split('\n').slice(-15).join('\n'));
  const why =
    missing.length === 0
      ? 'see above (it takes g++ 11 or newer and cmake 3.18 or newer)'
      : `${missing.join(', ').replace(/, ([^,]*)$/, ' and $1')} ${missing.length === 1 ? 'is' : 'are'} missing`;
  console.error(`sandbox-run: the native addon was not built: ${why}`);
  console.error(`sandbox-run: to build it: ${mendingCommand(tools, modules)}`);
  return false;
}

/** Puts SQLite beside what was built. */
export function bringSqlite() {
  const from = dirname(require.resolve(`${SQLITE.package}/package.json`));
  cpSync(join(from, sqliteFor(ownTarget())), join(root, 'build/Release', SQLITE.file));
}

function mendingCommand(tools, modules) {
  const asRoot = process.getuid() === 0 ? '' : 'sudo ';
  const installer = isInPath('apt-get') ? `${asRoot}apt-get install` : 'install';
  return [
    ...(tools.length > 0 ? [`${installer} ${tools.join(' ')}`] : []),
    ...(modules.length > 0 ? [isInstalled ? `npm install --save-dev ${modules.join(' ')}` : 'npm ci'] : []),
    isInstalled ? `npm explore ${basename(root)} -- npm run build:native` : 'npm run build:native',
  ].join(' && ');
}

/**
 * Builds one target of the same build directory that is not built otherwise, and what it needs; returns its path, or throws
 * an Error with what the compiler said.
 */
export async function buildNativeTarget(target) {
  const built = await configureAndBuild(target);
  if (!built.ok) throw new Error(built.said.trim());
  return join(root, 'build/Release', target);
}

/**
 * Configured each time, which takes a moment: cmake-js alone never looks at a configuration again, be it one that failed,
 * of another directory or for a program that is gone. What CMake itself cannot use any more is made anew.
 */
async function configureAndBuild(target) {
  const made = (target === undefined ? NATIVE_ARTIFACTS.map(({ file }) => file) : [target]).map((file) =>
    join(root, 'build/Release', file),
  );
  const directory = join(root, 'build');
  const isFirst = !existsSync(directory);
  let configured = await cmakeJs('configure');
  if (!configured.ok && !isFirst) {
    try {
      rmSync(directory, { recursive: true, force: true });
    } catch (error) {
      return {
        ok: false,
        said: `${directory} is of no use any more, and cannot be removed: ${error.message}`,
      };
    }
    configured = await cmakeJs('configure');
  }
  if (!configured.ok) return configured;
  const built = await cmakeJs('build', ...(target === undefined ? [] : ['--target', target]));
  return { ...built, ok: built.ok && made.every((file) => existsSync(file)) };
}

function cmakeJs(command, ...options) {
  const manifest = require.resolve('cmake-js/package.json');
  const program = join(dirname(manifest), require(manifest).bin['cmake-js']);
  const child = spawn(process.execPath, [program, command, '--log-level', 'error', ...options], {
    cwd: root,
    // make, unlike ninja, runs one compiler at a time unless it is told otherwise.
    env: { CMAKE_BUILD_PARALLEL_LEVEL: String(availableParallelism()), ...process.env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      said += text;
    });
  return new Promise((done) => {
    child.once('error', (error) => done({ ok: false, said: error.message }));
    child.once('close', (status) => done({ ok: status === 0, said }));
  });
}

function isInPath(program) {
  return (process.env.PATH ?? '').split(delimiter).some((directory) => existsSync(join(directory, program)));
}

function isModule(name) {
  try {
    require.resolve(`${name}/package.json`);
    return true;
  } catch {
    return false;
  }
}
