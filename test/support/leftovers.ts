import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';

/** Private directories of commands are gone: `tmp` is where they are made, and nothing else is. */
export async function expectNothingLeft({ tmp }: { readonly tmp: string }): Promise<void> {
  try {
    await eventually(() => expect(readdirSync(tmp)).toEqual([]));
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
