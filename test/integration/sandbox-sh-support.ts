import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { makePlace, type Place } from '../cli/support.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/sandbox-sh.cjs', import.meta.url));

/** What became of a shell; a signal counts as 128 and its number, as shells say it. */
export interface Ended {
  readonly status: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a shell is started. */
export interface ShellStart {
  readonly input?: string | Uint8Array;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** A place where `sandbox-sh` is installed as npm does it, in a directory of PATH. */
export interface ShellPlace extends Place {
  readonly shell: string;
}

export function makeShellPlace(): ShellPlace {
  const place = makePlace();
  const bin = join(place.root, 'bin');
  mkdirSync(bin);
  mkdirSync(join(place.root, 'home'));
  const shell = join(bin, 'sandbox-sh');
  symlinkSync(PROGRAM, shell);
  return {
    ...place,
    shell,
    env: { ...place.env, PATH: `${bin}:${place.env.PATH}`, SANDBOX_SH_WORKSPACE: place.workspace },
  };
}

/** Runs a program to its end; bytes as Latin-1, so that each of them counts. */
export async function runProgram(
  place: Place,
  argv: readonly [string, ...string[]],
  start: ShellStart = {},
): Promise<Ended> {
  const [program, ...args] = argv;
  const { exitCode, signal, stdout, stderr } = await execa(program, args, {
    cwd: start.cwd ?? place.workspace,
    env: { ...place.env, ...start.env },
    extendEnv: false,
    reject: false,
    stripFinalNewline: false,
    encoding: 'latin1',
    ...(start.input === undefined ? { stdin: 'ignore' as const } : { input: start.input }),
  });
  const numbers: Readonly<Record<string, number>> = { SIGINT: 2, SIGKILL: 9, SIGPIPE: 13, SIGTERM: 15 };
  return { status: signal === undefined ? exitCode : 128 + (numbers[signal] ?? 0), stdout, stderr };
}
