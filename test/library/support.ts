import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
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
  const before = { TMPDIR: process.env.TMPDIR, XDG_CONFIG_HOME: process.env.XDG_CONFIG_HOME };
  process.env.TMPDIR = tmp;
  process.env.XDG_CONFIG_HOME = unjudged(root);
  return {
    root,
    workspace,
    other,
    tmp,
    dispose: () => {
      for (const [name, value] of Object.entries(before)) {
        if (value === undefined) delete process.env[name];
        else process.env[name] = value;
      }
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** What these tests try is about the kernel and the library, not about the policy; that has tests of its own. */
function unjudged(root: string): string {
  const configuration = join(root, 'config');
  mkdirSync(join(configuration, 'sandbox-run'), { recursive: true });
  writeFileSync(join(configuration, 'sandbox-run/policy.toml'), '[unsafe]\nunjudged_commands = true\n', {
    mode: 0o644,
  });
  return configuration;
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
