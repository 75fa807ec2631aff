import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';

/**
 * Paths of what is in a temporary directory beside empty directories for private ones, which stay: that of this user, and that of
 * user 0 of a user namespace.
 */
export const leftIn = (tmp: string): readonly string[] =>
  readdirSync(tmp).flatMap((name) => {
    const path = join(tmp, name);
    return /^\.sandbox-run-\d+(?:-inner)?$/.test(name)
      ? readdirSync(path).map((own) => join(path, own))
      : [path];
  });

/** Private directories of commands are gone: `tmp` is where they are made, and nothing else is. */
export async function expectNothingLeft({ tmp }: { readonly tmp: string }): Promise<void> {
  try {
    await eventually(() => expect(leftIn(tmp)).toEqual([]));
  } finally {
    // One failure is enough: the next test starts clean.
    for (const name of readdirSync(tmp)) rmSync(join(tmp, name), { recursive: true, force: true });
  }
}

/** Processes, zombies aside, whose command line contains a mark. */
export function processesWith(mark: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && commandLine(pid).includes(mark));
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}
