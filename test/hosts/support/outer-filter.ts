import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { arch, constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { syscallNumber } from '../../../src/confine/kernel/index.ts';

type ErrnoName = keyof typeof constants.errno;

/**
 * Builds the program that puts an outer seccomp filter around another. The result turns rules into the words before a
 * command: `{ unshare: 'EPERM', 'prctl[0=22]': 'EINVAL', 'clone[0&0x7e020000]': 'EPERM' }` (the value of an argument, a bit of it).
 * Calls that this architecture has not are left out.
 */
export function buildOuterFilter(): (rules: Readonly<Record<string, ErrnoName>>) => readonly string[] {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-filter-'));
  chmodSync(directory, 0o755);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const program = join(directory, 'with-filter');
  const source = fileURLToPath(new URL('./with-filter.c', import.meta.url));
  execFileSync('gcc', ['-O1', '-Wall', '-Werror', source, '-o', program]);
  return (rules) => {
    const words = Object.entries(rules).flatMap(([call, errno]) => {
      const [, name = '', argument = ''] = /^(\w+)(\[.*\])?$/.exec(call) ?? [];
      const number = syscallNumber(arch() === 'arm64' ? 'arm64' : 'x64', name);
      return number === undefined ? [] : [`${number}${argument}=${constants.errno[errno]}`];
    });
    return [program, words.join(','), '--'];
  };
}
