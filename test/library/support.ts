import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

/** The built library, for programs that the tests start. */
export const LIBRARY = fileURLToPath(new URL('../../dist/index.js', import.meta.url));
export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Directories for one test file. While it lives, private directories of commands are made in `tmp`. */
export interface Place {
  readonly root: string;
  readonly workspace: string;
  readonly other: string;
  readonly tmp: string;
  dispose(): void;
}

/** Makes the directories and points TMPDIR of this process at one of them. */
export function makePlace(): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-library-test-')));
  const [workspace, other, tmp] = [join(root, 'work'), join(root, 'other'), join(root, 'tmp')];
  for (const directory of [workspace, other, tmp]) mkdirSync(directory);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = tmp;
  return {
    root,
    workspace,
    other,
    tmp,
    dispose: () => {
      if (before === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = before;
      rmSync(root, { recursive: true, force: true });
    },
  };
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

/** Nothing of the place's commands is left. */
export async function expectNothingLeft(place: Place): Promise<void> {
  try {
    await eventually(() => expect(readdirSync(place.tmp)).toEqual([]));
  } finally {
    // One failure is enough: the next test starts clean.
    for (const name of readdirSync(place.tmp))
      rmSync(join(place.tmp, name), { recursive: true, force: true });
  }
}

/** Tries an assertion until it holds, for at most five seconds. */
export async function eventually(assertion: () => void): Promise<void> {
  const end = Date.now() + 5_000;
  for (;;) {
    try {
      assertion();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(20);
    }
  }
}

export const sleep = (milliseconds: number) => new Promise<void>((done) => setTimeout(done, milliseconds));
