import {
  existsSync,
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
import { execa } from 'execa';
import { expect } from 'vitest';

/** The built command line. The tests run what users run. */
export const CLI = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url));
export const PTY_DRIVER = fileURLToPath(new URL('./pty-driver.py', import.meta.url));

/** A workspace and a temporary directory that only one test file uses. */
export interface Place {
  readonly root: string;
  readonly workspace: string;
  readonly tmp: string;
  readonly env: Readonly<Record<string, string>>;
  dispose(): void;
}

/** Fails where dist/ is missing, then makes a place. */
export function makePlace(): Place {
  if (!existsSync(CLI)) throw new Error('dist/ is missing: run `npm run build:ts` first');
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-cli-test-')));
  const workspace = join(root, 'work');
  const tmp = join(root, 'tmp');
  mkdirSync(workspace);
  mkdirSync(tmp);
  // What these tests try, a policy may refuse: here the kernel is to refuse it. Tests of the policy say so themselves.
  const configuration = join(root, 'config');
  mkdirSync(join(configuration, 'sandbox-run'), { recursive: true });
  writeFileSync(join(configuration, 'sandbox-run/policy.toml'), '[unsafe]\nunjudged_commands = true\n', {
    mode: 0o600,
  });
  return {
    root,
    workspace,
    tmp,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: join(root, 'home'),
      XDG_CONFIG_HOME: configuration,
      TMPDIR: tmp,
      TERM: 'xterm',
      LANG: 'C.UTF-8',
    },
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
}

interface CliOptions {
  readonly input?: string | Uint8Array;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: 'ignore';
}

/** Runs the command line to its end, output as text. */
export async function cli(place: Place, args: readonly string[], options: CliOptions = {}) {
  const { exitCode, signal, stdout, stderr } = await execa(process.execPath, [CLI, ...args], {
    cwd: options.cwd ?? place.workspace,
    env: { ...place.env, ...options.env },
    extendEnv: false,
    reject: false,
    stripFinalNewline: false,
    ...(options.input === undefined ? { stdin: 'ignore' as const } : { input: options.input }),
  });
  return { exitCode, signal, stdout, stderr };
}

/** Starts the command line and leaves it running. */
export function startCli(
  place: Place,
  args: readonly string[],
  { stdin = 'ignore' }: { readonly stdin?: 'ignore' | 'pipe' } = {},
) {
  return execa(process.execPath, [CLI, ...args], {
    cwd: place.workspace,
    env: place.env,
    extendEnv: false,
    reject: false,
    stripFinalNewline: false,
    stdin,
  });
}

/** The launcher refused: exactly one line, of its own, and no stack trace. */
export function expectOneLine(stderr: string): void {
  expect(stderr).toMatch(/^sandbox-run: [^\n]+\n$/);
  expect(stderr).not.toMatch(/\bat .*[:(]\d+/);
}

/** Private directories of commands are gone, in the place's temporary directory. */
export async function expectNothingLeft(place: Place): Promise<void> {
  try {
    await eventually(() => expect(readdirSync(place.tmp)).toEqual([]));
  } finally {
    // One failure is enough: the next test starts clean.
    for (const name of readdirSync(place.tmp))
      rmSync(join(place.tmp, name), { recursive: true, force: true });
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

/** Tries an assertion until it holds, for at most five seconds. */
export async function eventually(assertion: () => void): Promise<void> {
  const end = Date.now() + 5_000;
  for (;;) {
    try {
      assertion();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((done) => setTimeout(done, 20));
    }
  }
}
