// What a portable build is linked with, for one target: the C and the C++ library of an old Debian release, or musl and
// a libstdc++ built from GCC's source against it. The compiler stays the host's. Needs apt, for arm64
// g++-aarch64-linux-gnu, and for musl gcc-12-source and some minutes, once: what is there is used again.
//
// Why not the host's own libstdc++: it asks for functions of the host's C library (arc4random of glibc 2.36), so an
// addon that has it inside loads nowhere else. musl's Debian packages come without any.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, dirname, isAbsolute, join, relative } from 'node:path';
import { mustRun } from '../must-run.mjs';
import { unpackDebianPackages } from './debian-packages.mjs';

/** The oldest release whose C library is promised: glibc 2.31, as of Ubuntu 20.04. musl's ABI has no versions. */
const SUITE = { gnu: 'bullseye', musl: 'bookworm' };
/** That release's C++ library, and its unwinder, which knows nothing of _dl_find_object of glibc 2.35. */
const GNU_CXX = '10';
const PACKAGES = {
  gnu: ['libc6', 'libc6-dev', 'linux-libc-dev', `libstdc++-${GNU_CXX}-dev`, `libgcc-${GNU_CXX}-dev`],
  musl: ['musl', 'musl-dev', 'linux-libc-dev'],
};
const DEBIAN = { x64: 'amd64', arm64: 'arm64' };
const SOURCES = '/usr/src/gcc-12';
const PARTS = ['libstdc++-v3', 'libgcc', 'config', 'include', 'libiberty', 'gcc/BASE-VER', 'gcc/DATESTAMP'];

/**
 * @param {{ id: string, architecture: 'x64' | 'arm64', libc: 'gnu' | 'musl', machine: string }} target
 * @param {string} cache a directory
 * @returns {{ compiler: string, compileFlags: readonly string[], linkFlags: readonly string[] }} CMake links with both
 *   kinds of flags
 */
export function runtimeFor(target, cache) {
  const place = join(cache, target.id);
  const sysroot = join(place, 'sysroot');
  const built = join(place, 'cxx');
  const { machine, libc } = target;
  const flags = flagsFor(target, sysroot);
  const [headers, libraries] =
    libc === 'gnu'
      ? [`${sysroot}/usr/include/c++/${GNU_CXX}`, `${sysroot}/usr/lib/gcc/${machine}-linux-gnu/${GNU_CXX}`]
      : [`${built}/include/c++/${gccVersion()}`, `${built}/lib`];
  const own =
    libc === 'gnu'
      ? `${sysroot}/usr/include/${machine}-linux-gnu/c++/${GNU_CXX}`
      : `${headers}/${machine}-linux-musl`;
  const whole = {
    compiler: compilers(target).cxx,
    compileFlags: ['-nostdinc++', '-isystem', headers, '-isystem', own, ...flags],
    linkFlags: [`-L${libraries}`],
  };
  const done = join(place, 'complete');
  if (existsSync(done)) return whole;
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  unpackDebianPackages({
    suite: SUITE[libc],
    architecture: DEBIAN[target.architecture],
    packages: PACKAGES[libc],
    into: sysroot,
  });
  keepLinksInside(sysroot);
  if (libc === 'musl') {
    completeMusl(target, sysroot);
    buildLibrary(target, place, flags);
  }
  writeFileSync(done, '');
  return whole;
}

/** Programs and sources that a build for a target lacks here: what, and the package of Debian 12 that brings it. */
export function missingFor(target) {
  const { cxx } = compilers(target);
  const own = target.architecture === process.arch;
  const needs = [
    { what: cxx, packaged: own ? 'g++-12' : `g++-12-${target.machine.replace('_', '-')}-linux-gnu` },
    { what: 'cmake', packaged: 'cmake' },
    { what: 'make', packaged: 'make' },
    { what: 'readelf', packaged: 'binutils' },
    ...(target.libc === 'musl' ? [{ what: SOURCES, packaged: 'gcc-12-source' }] : []),
  ];
  const places = (process.env.PATH ?? '').split(delimiter);
  const isThere = (what) =>
    isAbsolute(what) ? existsSync(what) : places.some((directory) => existsSync(join(directory, what)));
  return needs.filter(({ what }) => !isThere(what));
}

function compilers({ machine, architecture }) {
  const isOwn = architecture === process.arch;
  const prefix = isOwn ? '' : `${machine}-linux-gnu-`;
  return { prefix, cc: `${prefix}gcc-12`, cxx: `${prefix}g++-12` };
}

const muslDirectory = (sysroot, machine) => join(sysroot, 'usr/lib', `${machine}-linux-musl`);

function flagsFor({ libc, machine }, sysroot) {
  // A native compiler looks for the C library's files beside itself first, whatever --sysroot says; -B goes before.
  const places = [`${sysroot}/usr/lib/${machine}-linux-gnu`, `${sysroot}/lib/${machine}-linux-gnu`];
  return libc === 'gnu'
    ? [`--sysroot=${sysroot}`, ...places.map((path) => `-B${path}/`)]
    : ['-specs', join(muslDirectory(sysroot, machine), 'musl-gcc.specs')];
}

/** Debian's development packages link to absolute paths, which would be the host's libraries. */
function keepLinksInside(sysroot) {
  for (const name of readdirSync(sysroot, { recursive: true })) {
    const path = join(sysroot, name);
    if (!lstatSync(path).isSymbolicLink()) continue;
    const target = readlinkSync(path);
    if (!target.startsWith('/')) continue;
    rmSync(path);
    symlinkSync(relative(dirname(path), join(sysroot, target)), path);
  }
}

/** musl's specs name the directories of an installed package; the kernel's headers are not among them. */
function completeMusl({ machine }, sysroot) {
  const specs = join(muslDirectory(sysroot, machine), 'musl-gcc.specs');
  const text = readFileSync(specs, 'utf8').replaceAll(/\/usr\/(lib|include)\//g, `${sysroot}/usr/$1/`);
  writeFileSync(specs, text);
  // Else the linker takes libc.a, and an addon would hold a second C library.
  symlinkSync(`../../../lib/${machine}-linux-musl/libc.so`, join(muslDirectory(sysroot, machine), 'libc.so'));
  const headers = join(sysroot, 'usr/include');
  for (const [name, source] of [
    ['linux', 'linux'],
    ['asm-generic', 'asm-generic'],
    ['asm', `${machine}-linux-gnu/asm`],
  ]) {
    symlinkSync(join(headers, source), join(headers, `${machine}-linux-musl`, name));
  }
}

function gccVersion() {
  if (!existsSync(SOURCES)) {
    throw new Error(`${SOURCES} is missing: apt-get install gcc-12-source`);
  }
  const name = readdirSync(SOURCES).find((file) => /^gcc-.*\.tar\.xz$/.test(file)) ?? '';
  return /^gcc-([\d.]+)-/.exec(name)?.[1] ?? '';
}

function buildLibrary(target, place, flags) {
  const version = gccVersion();
  const source = join(place, 'source');
  const built = join(place, 'object');
  mkdirSync(source);
  mkdirSync(built);
  // Documentation and tests are left out; what configure looks for of them is not.
  mustRun('tar', [
    ...['xJf', join(SOURCES, `gcc-${version}-dfsg.tar.xz`), '-C', source, '--strip-components=1'],
    ...[
      '--wildcards',
      '--exclude=*/libstdc++-v3/testsuite/[0-9a-z]*/*',
      '--exclude=*/libstdc++-v3/doc/html/*',
    ],
    ...[...PARTS, '[a-z]*'].map((part) => `gcc-${version}/${part}`).slice(0, PARTS.length),
    ...[
      'config*',
      '*.m4',
      'missing',
      'mkinstalldirs',
      'move-if-change',
      'install-sh',
      'depcomp',
      'ltmain.sh',
      'compile',
    ].map((part) => `gcc-${version}/${part}`),
  ]);
  // As a build of the whole compiler has it; without it configure finds no threads, and std::mutex is left out.
  symlinkSync('gthr-posix.h', join(source, 'libgcc/gthr-default.h'));
  const { prefix, cc, cxx } = compilers(target);
  const tools = ['ar', 'ranlib', 'nm', 'ld', 'strip', 'as', 'objdump'].map(
    (tool) => `${tool.toUpperCase()}=${prefix}${tool}`,
  );
  const all = flags.join(' ');
  const inBuilt = { cwd: built };
  mustRun(
    join(source, 'libstdc++-v3/configure'),
    [
      `--host=${target.machine}-linux-${target.libc}`,
      '--build=x86_64-build-linux-gnu',
      `CC=${cc} ${all}`,
      `CXX=${cxx} -nostdinc++ ${all}`,
      ...tools,
      'CFLAGS=-O2 -fPIC',
      'CXXFLAGS=-O2 -fPIC',
      ...['--disable-shared', '--enable-static', '--with-pic', '--disable-multilib', '--disable-nls'],
      ...['--disable-libstdcxx-pch', '--disable-libstdcxx-filesystem-ts', '--disable-libstdcxx-verbose'],
      // Of the C library in use, not of the one that configure was run with.
      '--enable-libstdcxx-time=yes',
      `--prefix=${join(place, 'installed')}`,
    ],
    inBuilt,
  );
  const configuration = readFileSync(join(built, 'config.h'), 'utf8');
  if (!/^#define _GLIBCXX_HAS_GTHREADS 1/m.test(configuration)) throw new Error('libstdc++ found no threads');
  for (const part of ['include', 'libsupc++', 'src']) {
    mustRun('make', ['-C', part, `-j${availableParallelism()}`], inBuilt);
    mustRun('make', ['-C', part, 'install'], inBuilt);
  }
  rmSync(source, { recursive: true });
  rmSync(built, { recursive: true });
  renameSync(join(place, 'installed'), join(place, 'cxx'));
}
