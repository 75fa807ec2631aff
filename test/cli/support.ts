import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect } from 'vitest';
import { type CliResult, callInProcess } from '../support/in-process.ts';
import { makeUnjudgedConfiguration } from '../support/unjudged-policy.ts';

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
  return {
    root,
    workspace,
    tmp,
    env: {
      PATH: process.env.PATH ?? '',
      HOME: join(root, 'home'),
      XDG_CONFIG_HOME: makeUnjudgedConfiguration(root),
      TMPDIR: tmp,
      TERM: 'xterm',
      LANG: 'C.UTF-8',
    },
    dispose: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** The command line is called in this process, as a warm server does it: see in-process.ts. Not at the same time as another call. */
export function cli(place: Place, args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  return callInProcess(args, {
    cwd: options.cwd ?? place.workspace,
    env: { ...place.env, ...options.env },
    input: options.input,
    program: CLI,
  });
}

interface CliOptions {
  readonly input?: string | Uint8Array;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts dist/cli.cjs and waits for its end: for what only a process shows, such as its exit status or a signal. Output as text. */
export async function startedCli(
  place: Place,
  args: readonly string[],
  options: CliOptions = {},
): Promise<CliResult> {
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
