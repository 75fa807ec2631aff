import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
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
    dispose: () => {
      // One that lives on writes into what is removed here, so that removing it fails by luck only.
      if (serversOf(root).length > 0) throw new Error('a server of calls is left: use makeWarmPlace()');
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Processes that are servers of calls with their sockets beneath a directory. */
export function serversOf(directory: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return words[2] === 'warm' && words[3]?.startsWith(directory) === true;
      } catch {
        return false;
      }
    });
}

interface CliOptions {
  readonly input?: string | Uint8Array;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Calls the command line in this process (test/support/in-process.ts), one call after the other: a start of Node for each
 * would take most of the time. What only a process has (signals, how it ends, a terminal) and what runs beside another call
 * is started by {@link startCli}.
 */
export function cli(
  place: Pick<Place, 'workspace' | 'env'>,
  args: readonly string[],
  options: CliOptions = {},
): Promise<CliResult> {
  return callInProcess(args, {
    cwd: options.cwd ?? place.workspace,
    env: { ...place.env, ...options.env },
    input: options.input,
    program: CLI,
  });
}

/** Starts the built command line as a process of its own, which is what users run. Its end can be awaited. */
export function startCli(
  place: Pick<Place, 'workspace' | 'env'>,
  args: readonly string[],
  { stdin = 'ignore', ...options }: CliOptions & { readonly stdin?: 'ignore' | 'pipe' } = {},
) {
  return execa(process.execPath, [CLI, ...args], {
    cwd: options.cwd ?? place.workspace,
    env: { ...place.env, ...options.env },
    extendEnv: false,
    reject: false,
    stripFinalNewline: false,
    ...(options.input === undefined ? { stdin } : { input: options.input }),
  });
}

/** The launcher refused: exactly one line, of its own, and no stack trace. */
export function expectOneLine(stderr: string): void {
  expect(stderr).toMatch(/^sandbox-run: [^\n]+\n$/);
  expect(stderr).not.toMatch(/\bat .*[:(]\d+/);
}
