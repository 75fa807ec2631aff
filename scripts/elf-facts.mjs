// What a native file needs of the host that loads it, by binutils' readelf (which reads every machine's files).
import { mustRun } from './must-run.mjs';

const MACHINES = { 'Advanced Micro Devices X86-64': 'x86_64', AArch64: 'aarch64' };

/**
 * @param {string} file
 * @returns {{ machine: string, needed: readonly string[], interpreter: boolean, glibc: readonly number[] }}
 *   `glibc`: the newest version that a symbol asks for, empty if none does
 */
export function elfFacts(file) {
  const env = { ...process.env, LC_ALL: 'C' };
  const header = mustRun('readelf', ['--file-header', '--program-headers', '--wide', file], { env });
  const dynamic = mustRun('readelf', ['--dynamic', '--wide', file], { env });
  const versions = mustRun('readelf', ['--version-info', '--wide', file], { env });
  const machine = /^\s*Machine:\s*(.+)$/m.exec(header)?.[1] ?? '';
  return {
    machine: MACHINES[machine] ?? machine,
    needed: [...dynamic.matchAll(/\(NEEDED\).*\[(.+)\]/g)].map(([, library]) => library),
    interpreter: /^\s*INTERP/m.test(header),
    glibc: [...versions.matchAll(/GLIBC_(\d+)\.(\d+)/g)]
      .map(([, major, minor]) => [Number(major), Number(minor)])
      .reduce((newest, next) => (compare(next, newest) > 0 ? next : newest), []),
  };
}

function compare([major = 0, minor = 0], [otherMajor = 0, otherMinor = 0]) {
  return major - otherMajor || minor - otherMinor;
}
