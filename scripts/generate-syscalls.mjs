#!/usr/bin/env node
// Generates src/confine/kernel/seccomp/syscalls.gen.json from installed kernel headers.
//
//   node scripts/generate-syscalls.mjs [--headers DIR]           write the file
//   node scripts/generate-syscalls.mjs --check [--headers DIR]   compare it with the headers, write nothing
//
// DIR is laid out like Debian's linux-libc-dev below usr/include (default: /usr/include). The checked-in file comes
// from the newest headers there were, so --check accepts numbers that only we know; a number that the headers have and
// we have not, or have otherwise, is an error.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const OUTPUT = new URL('../src/confine/kernel/seccomp/syscalls.gen.json', import.meta.url);

// What arch/arm64/include/uapi/asm/unistd.h asks of asm-generic/unistd.h up to 6.10; later kernels ship a ready table.
const ARM64_WANTS = [
  'RENAMEAT',
  'NEW_STAT',
  'SET_GET_RLIMIT',
  'TIME32_SYSCALLS',
  'MEMFD_SECRET',
  'SYS_CLONE3',
];

// Markers of the generic header, not system calls.
const NOT_SYSCALLS = new Set(['syscalls', 'arch_specific_syscall']);

const { values: options } = parseArgs({
  options: {
    headers: { type: 'string', default: '/usr/include' },
    check: { type: 'boolean', default: false },
  },
});

/** Runs the preprocessor on `source` and returns every syscall name with its number. */
function syscallsOf(source, includeDirectories) {
  const macros = execFileSync(
    process.env.CC ?? 'gcc',
    ['-E', '-dM', '-x', 'c', '-nostdinc', ...includeDirectories.map((dir) => `-I${dir}`), '-'],
    { input: source, encoding: 'utf8', maxBuffer: 1 << 24 },
  );
  const definitions = new Map(
    [...macros.matchAll(/^#define (__NR\w+) (.+)$/gm)].map((match) => [match[1], match[2].trim()]),
  );
  const numbers = new Map();
  for (const name of definitions.keys()) {
    const syscall = /^__NR_(\w+)$/.exec(name)?.[1];
    if (syscall !== undefined && !NOT_SYSCALLS.has(syscall)) {
      numbers.set(syscall, evaluate(name, definitions));
    }
  }
  if (numbers.size < 250) throw new Error(`only ${numbers.size} syscalls found: wrong headers?`);
  return numbers;
}

/** Follows aliases (`__NR3264_mmap`) and sums (`(__NR_arch_specific_syscall + 15)`) to a number. */
function evaluate(expression, definitions) {
  const terms = expression.replace(/^\((.*)\)$/, '$1').split('+');
  return terms.reduce((sum, raw) => {
    const term = raw.trim();
    if (/^\d+$/.test(term)) return sum + Number(term);
    const definition = definitions.get(term);
    if (definition === undefined) throw new Error(`cannot evaluate "${expression}"`);
    return sum + evaluate(definition, definitions);
  }, 0);
}

function readHeaders(headers) {
  const of = (triplet) => join(headers, triplet);
  const x64 = syscallsOf('#include <asm/unistd_64.h>\n', [of('x86_64-linux-gnu'), headers]);
  const arm64Header = join(of('aarch64-linux-gnu'), 'asm/unistd.h');
  const arm64 = existsSync(arm64Header)
    ? syscallsOf('#include <asm/unistd.h>\n', [of('aarch64-linux-gnu'), headers])
    : syscallsOf(
        `${ARM64_WANTS.map((want) => `#define __ARCH_WANT_${want}\n`).join('')}#include <asm-generic/unistd.h>\n`,
        // Only <asm/bitsperlong.h> is taken from here, and it says 64 as arm64's would.
        [headers, of('x86_64-linux-gnu')],
      );
  return { x64, arm64 };
}

function kernelVersion(headers) {
  const code = /LINUX_VERSION_CODE (\d+)/.exec(readFileSync(join(headers, 'linux/version.h'), 'utf8'))?.[1];
  if (code === undefined) throw new Error('linux/version.h names no version');
  return `${Number(code) >> 16}.${(Number(code) >> 8) & 0xff}`;
}

function render({ x64, arm64 }, version) {
  const place = (name) => x64.get(name) ?? arm64.get(name);
  const names = [...new Set([...x64.keys(), ...arm64.keys()])].sort(
    (one, other) => place(one) - place(other),
  );
  const rows = names.map((name) => {
    const [ofX64, ofArm64] = [x64.get(name), arm64.get(name)];
    return `  "${name}": ${ofX64 === ofArm64 ? ofX64 : `[${ofX64 ?? null}, ${ofArm64 ?? null}]`}`;
  });
  return `{
 "generated": "by scripts/generate-syscalls.mjs from the Linux ${version} headers: x64 and arm64, or one for both",
 "numbers": {
${rows.join(',\n')}
 }
}
`;
}

/** Reads the checked-in table back: the file is ours, so its shape is known. */
function readGenerated() {
  const { numbers } = JSON.parse(readFileSync(OUTPUT, 'utf8'));
  const column = (at) =>
    new Map(
      Object.entries(numbers)
        .map(([name, number]) => [name, typeof number === 'number' ? number : number[at]])
        .filter(([, number]) => number !== null),
    );
  return { x64: column(0), arm64: column(1) };
}

function differences(expected, actual) {
  return Object.entries(expected).flatMap(([arch, numbers]) =>
    [...numbers]
      .filter(([name, number]) => actual[arch]?.get(name) !== number)
      .map(
        ([name, number]) =>
          `${arch} ${name}: headers say ${number}, we ${actual[arch]?.get(name) ?? 'nothing'}`,
      ),
  );
}

const tables = readHeaders(options.headers);
const version = kernelVersion(options.headers);
const summary = Object.entries(tables)
  .map(([arch, numbers]) => `${arch} ${numbers.size}`)
  .join(', ');
if (options.check) {
  const wrong = differences(tables, readGenerated());
  if (wrong.length > 0) {
    console.error(`syscalls.gen.json differs from the Linux ${version} headers:\n${wrong.join('\n')}`);
    process.exitCode = 1;
  } else {
    console.log(`syscalls.gen.json agrees with the Linux ${version} headers (${summary})`);
  }
} else {
  writeFileSync(OUTPUT, render(tables, version));
  console.log(`syscalls.gen.json written from the Linux ${version} headers (${summary})`);
}
