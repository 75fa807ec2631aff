import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NATIVE_ARTIFACTS } from '../../scripts/native-artifacts.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What a compiler and cmake use besides those that a test takes away. */
const PROGRAMS = ['sh', 'env', 'uname', 'rm', 'as', 'ld', 'ar', 'ranlib', 'nm', 'strip', 'objdump'];
const INSTALL = process.getuid?.() === 0 ? 'apt-get install' : 'sudo apt-get install';
const TOOLS = ['g++', 'cmake', 'make'];
/** The real build takes minutes: the same files, made of nothing. */
const CMAKE_LISTS = `cmake_minimum_required(VERSION 3.18)
project(small LANGUAGES CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY \${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
${NATIVE_ARTIFACTS.map(({ file }) => `add_executable(${file} main.cc)`).join('\n')}
`;

/** The build script with the real cmake-js, cmake and make, on a checkout that is built in a second. */
describe('scripts/build.mjs --only native', () => {
  let place: string;
  let checkout: string;
  beforeEach(() => {
    place = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-build-')));
    checkout = join(place, 'checkout');
    makeCheckout(checkout);
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  const build = (tools: readonly string[] = TOOLS, env: Readonly<Record<string, string>> = {}) => {
    const programs = join(place, `programs-${tools.join('-')}`);
    mkdirSync(programs, { recursive: true });
    for (const name of [...PROGRAMS, ...tools]) linkProgram(programs, name);
    writeFileSync(join(programs, 'apt-get'), '', { mode: 0o755 });
    return execa(process.execPath, [join(checkout, 'scripts/build.mjs'), '--only', 'native'], {
      env: { PATH: programs, HOME: place, ...env },
      extendEnv: false,
      reject: false,
    });
  };
  const isBuilt = () =>
    NATIVE_ARTIFACTS.every(({ file }) => existsSync(join(checkout, 'build/Release', file)));
  const cache = () => join(checkout, 'build/CMakeCache.txt');

  it.each([
    { missing: ['make'] },
    { missing: ['g++'] },
    { missing: ['cmake'] },
    { missing: ['g++', 'make'] },
  ])('says in two lines that $missing are missing; once they are there, it builds', async ({ missing }) => {
    const failed = await build(TOOLS.filter((tool) => !missing.includes(tool)));
    expect(failed.exitCode).toBe(1);
    const [what, how, ...rest] = failed.stderr.split('\n');
    const list = missing.length === 1 ? `${missing[0]} is` : `${missing.join(' and ')} are`;
    expect(what).toBe(`sandbox-run: the native addon was not built: ${list} missing`);
    expect(how).toBe(`sandbox-run: to build it: ${INSTALL} ${missing.join(' ')} && npm run build:native`);
    expect(rest).toEqual([]);
    expect((await build()).exitCode).toBe(0);
    expect(isBuilt()).toBe(true);
  });

  it('builds although an older version, or a person, left the cache of a failed configuration', async () => {
    mkdirSync(join(checkout, 'build'));
    const programs = join(place, 'bare');
    mkdirSync(programs);
    for (const name of [...PROGRAMS, 'cmake', 'g++']) linkProgram(programs, name);
    const configured = await execa('cmake', [checkout], {
      cwd: join(checkout, 'build'),
      env: { PATH: programs },
      extendEnv: false,
      reject: false,
    });
    expect(configured.exitCode).not.toBe(0);
    expect(existsSync(cache())).toBe(true);
    expect(await build()).toMatchObject({ exitCode: 0, stderr: '' });
    expect(isBuilt()).toBe(true);
  });

  it('builds although the last build was made for another program than make', async () => {
    await build();
    const text = readFileSync(cache(), 'utf8');
    writeFileSync(cache(), text.replace(/^CMAKE_GENERATOR:INTERNAL=.*$/m, 'CMAKE_GENERATOR:INTERNAL=Ninja'));
    expect(await build()).toMatchObject({ exitCode: 0, stderr: '' });
    expect(isBuilt()).toBe(true);
  });

  it('builds in a checkout that was moved after a build', async () => {
    await build();
    const moved = join(place, 'moved');
    renameSync(checkout, moved);
    checkout = moved;
    writeFileSync(join(checkout, 'main.cc'), 'int main() { return 1; }\n');
    expect(await build()).toMatchObject({ exitCode: 0, stderr: '' });
    expect(isBuilt()).toBe(true);
    expect(
      (await execa(join(checkout, 'build/Release/sandbox-run-warden'), { reject: false })).exitCode,
    ).toBe(1);
  });

  it('makes nothing anew for a mistake in the source, and shows that one', async () => {
    await build();
    const made = statSync(cache()).birthtimeMs;
    writeFileSync(join(checkout, 'main.cc'), 'int main() { return mistake; }\n');
    const failed = await build();
    expect(failed.exitCode).toBe(1);
    expect(failed.stderr).toContain("'mistake' was not declared");
    expect(failed.stderr).toContain('to build it: npm run build:native');
    expect(statSync(cache()).birthtimeMs).toBe(made);
  });

  it('in an installed package says what to install beside it, and how to build it from the project', async () => {
    const installed = join(place, 'project/node_modules/sandbox-run');
    makeCheckout(installed);
    rmSync(join(installed, 'node_modules'));
    checkout = installed;
    const failed = await build(['g++', 'cmake']);
    expect(failed.exitCode).toBe(1);
    const modules = 'cmake-js node-addon-api node-api-headers @photostructure/sqlite';
    expect(failed.stderr.split('\n')).toEqual([
      'sandbox-run: the native addon was not built: make, cmake-js, node-addon-api, node-api-headers and @photostructure/sqlite are missing',
      `sandbox-run: to build it: ${INSTALL} make && npm install --save-dev ${modules} && npm explore sandbox-run -- npm run build:native`,
    ]);
  });

  it('is not begun by npx of npm 9, which prepares a checkout before each run, unless it never ended', async () => {
    const prepare = () =>
      execa(process.execPath, [join(checkout, 'scripts/build.mjs')], {
        env: { npm_command: 'exec', npm_lifecycle_event: 'prepare' },
        reject: false,
      });
    expect((await prepare()).exitCode).not.toBe(0);
    expect(isBuilt()).toBe(true);
    rmSync(join(checkout, 'build'), { recursive: true });
    mkdirSync(join(checkout, 'dist'), { recursive: true });
    writeFileSync(join(checkout, 'dist/THIRD-PARTY-NOTICES.txt'), '');
    expect(await prepare()).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    expect(existsSync(join(checkout, 'build'))).toBe(false);
  });
});

function makeCheckout(directory: string): void {
  mkdirSync(directory, { recursive: true });
  cpSync(join(ROOT, 'scripts'), join(directory, 'scripts'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(directory, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(directory, 'node_modules'));
  writeFileSync(join(directory, 'CMakeLists.txt'), CMAKE_LISTS);
  writeFileSync(join(directory, 'main.cc'), 'int main() {}\n');
}

function linkProgram(directory: string, name: string): void {
  const found = (process.env.PATH ?? '')
    .split(delimiter)
    .map((each) => join(each, name))
    .find((file) => existsSync(file));
  if (found === undefined) throw new Error(`${name} is missing on this host`);
  if (!existsSync(join(directory, name))) symlinkSync(found, join(directory, name));
}
