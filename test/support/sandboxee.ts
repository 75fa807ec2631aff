import { execFileSync } from 'node:child_process';
import { mkdirSync, realpathSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import type { RunOptions, Sandbox } from '../../src/index.ts';
import { makeDirectory } from './state-home.ts';

/** Programs of this process's tests; give it to sandboxes as a readable path. */
export const PROGRAMS = makeDirectory(join(realpathSync(tmpdir()), 'enforcement-programs-'));

const removePrograms = () => rmSync(PROGRAMS, { recursive: true, force: true });
// In a virtual machine one process runs several files, and this module belongs to the first of them.
if (process.env.SANDBOX_RUN_PREBUILT === undefined) afterAll(removePrograms);
else process.on('exit', removePrograms);

/** `TRY("name", call)` prints `name=ok` or `name=<errno>`; `SAY("name", text)` prints `name=text`. */
const PRELUDE = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#define TRY(name, call) ({ errno = 0; long r_ = (long)(call); int e_ = errno; \\
  if (r_ < 0) printf("%s=%d\\n", name, e_); else printf("%s=ok\\n", name); fflush(stdout); r_; })
#define SAY(name, text) (printf("%s=%s\\n", name, text), fflush(stdout))
`;

/** Compiles a C program whose \`body\` is everything after the usual includes; returns its path. */
export function compile(name: string, body: string, flags: readonly string[] = []): string {
  const program = join(PROGRAMS, name);
  mkdirSync(PROGRAMS, { recursive: true });
  // One of the same name that still runs, of another file, cannot be written to (ETXTBSY).
  rmSync(program, { force: true });
  execFileSync('gcc', ['-O0', '-w', '-x', 'c', '-', '-o', program, ...flags], {
    input: PRELUDE + body,
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  return program;
}

/** What an attack printed and how it ended. */
export interface Trace {
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  readonly stdout: string;
  readonly stderr: string;
  /** `name=value` lines; a number is shown as the name of the errno. */
  readonly results: Readonly<Record<string, string>>;
}

/** Two numbers have two names each; the ones that strace prints are kept. */
const ERRNO_NAMES = new Map(
  Object.entries(constants.errno)
    .filter(([name]) => name !== 'EWOULDBLOCK' && name !== 'ENOTSUP')
    .map(([name, number]) => [String(number), name] as const),
);

function resultsOf(stdout: string): Readonly<Record<string, string>> {
  const results: Record<string, string> = {};
  for (const line of stdout.split('\n')) {
    const match = /^([\w.:/-]+)=(.*)$/.exec(line);
    if (match?.[1] === undefined || match[2] === undefined) continue;
    results[match[1]] = ERRNO_NAMES.get(match[2]) ?? (/^\d+$/.test(match[2]) ? `E${match[2]}` : match[2]);
  }
  return results;
}

export type Argv = readonly [string, ...string[]];

/** Runs the attack in the sandbox. */
export async function confined(sandbox: Sandbox, argv: Argv, options: RunOptions = {}): Promise<Trace> {
  const result = await sandbox.run(argv, options);
  if (result.error !== undefined) throw new Error(`${result.error.code}: ${result.error.message}`);
  const { exitCode, signal, stdout, stderr } = result;
  return { exitCode, signal, stdout, stderr, results: resultsOf(stdout) };
}

/** Runs the attack without a sandbox: it has to work there, or the test proves nothing. */
export async function unconfined(
  argv: Argv,
  options: { readonly cwd?: string; readonly env?: NodeJS.ProcessEnv } = {},
): Promise<Trace> {
  const { spawn } = await import('node:child_process');
  const [program, ...rest] = argv;
  const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
  child.stdout.on('data', (chunk: Buffer) => chunks.stdout.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.stderr.push(chunk));
  const [exitCode, signal] = await new Promise<[number | null, string | null]>((done, fail) => {
    child.on('error', fail);
    child.on('close', (code, name) => done([code, name]));
  });
  const stdout = Buffer.concat(chunks.stdout).toString();
  return {
    exitCode: exitCode ?? undefined,
    signal: signal ?? undefined,
    stdout,
    stderr: Buffer.concat(chunks.stderr).toString(),
    results: resultsOf(stdout),
  };
}

/** The names of the attacks that worked. */
export function worked(trace: Trace): readonly string[] {
  return Object.keys(trace.results).filter((name) => trace.results[name] === 'ok');
}
