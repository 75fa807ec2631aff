import {
  closeSync,
  createReadStream,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { dispatch, onBehalfOf } from '../../src/cli/index.ts';
import type { Caller } from '../../src/serve/index.ts';

/** How a call of the command line ended. */
export interface CliResult {
  readonly exitCode: number | undefined;
  /** Only a process can end by one. */
  readonly signal: string | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

interface Call {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Without it standard input is empty. */
  readonly input: string | Uint8Array | undefined;
  /** What the command line takes for the file that it was started as. */
  readonly program: string;
}

/** What dist/cli.cjs does before it looks for subcommands, with handlers for the end of its process. */
const PROCESSES = ['hook', 'sandbox-sh', 'warm'];

/** The call before: they share this process, so that they are done one after the other. */
let before: Promise<unknown> = Promise.resolve();

/**
 * Calls the command line in this process on behalf of a caller with its own directory, environment and streams, as a warm
 * server does. What the program reads of the process and not of its caller (HOME, arguments, standard input as a stream) is
 * that of the caller, too, while the call lasts. No signals: only a process gets those.
 */
export function callInProcess(args: readonly string[], call: Call): Promise<CliResult> {
  if (PROCESSES.includes(args[0] ?? '')) throw new Error(`${args[0]} has to be started as a process`);
  const done = before.then(() => callNow(args, call));
  before = done.catch(() => {});
  return done;
}

async function callNow(args: readonly string[], { cwd, env, input, program }: Call): Promise<CliResult> {
  const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-streams-test-'));
  const fileOf = (name: string) => join(directory, name);
  writeFileSync(fileOf('in'), input ?? '');
  const stdin = openSync(input === undefined ? '/dev/null' : fileOf('in'), 'r');
  const [stdout, stderr] = [openSync(fileOf('out'), 'a'), openSync(fileOf('err'), 'a')];
  const texts = () => ({
    stdout: readFileSync(fileOf('out'), 'utf8'),
    stderr: readFileSync(fileOf('err'), 'utf8'),
  });
  const giveBack = lendProcess({ cwd, env, program, stdio: [stdin, stdout, stderr] });
  try {
    const caller: Caller = {
      env,
      cwd: () => cwd,
      stdio: [stdin, stdout, stderr],
      write: (fd, bytes) => {
        writeAll(fd === 1 ? stdout : stderr, bytes);
        return true;
      },
      onSignals: () => ({ [Symbol.dispose]: () => {} }),
      stop: () => {},
    };
    const exitCode = await onBehalfOf(caller, () => dispatch(args));
    return { exitCode, signal: undefined, ...texts() };
  } finally {
    giveBack();
    for (const fd of [stdin, stdout, stderr]) closeSync(fd);
    rmSync(directory, { recursive: true });
  }
}

/** Makes this process look like one that was started for the caller. Returns what undoes it. */
function lendProcess(of: {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly program: string;
  readonly stdio: readonly [number, number, number];
}): () => void {
  const own = {
    cwd: process.cwd(),
    env: { ...process.env },
    argv: process.argv,
    execArgv: process.execArgv,
  };
  const [stdin, stdout, stderr] = of.stdio;
  const streams = {
    stdin: () => createReadStream('', { fd: stdin, autoClose: false }),
    stdout: () => streamTo(stdout),
    stderr: () => streamTo(stderr),
  };
  const names = ['stdin', 'stdout', 'stderr'] as const;
  const ownStreams = names.map((name) => Object.getOwnPropertyDescriptor(process, name));
  // A stream is made when it is looked at, as Node does it.
  for (const name of names) {
    let made: unknown;
    Object.defineProperty(process, name, {
      configurable: true,
      get: () => {
        made ??= streams[name]();
        return made;
      },
    });
  }
  process.chdir(of.cwd);
  setEnvironment(of.env);
  process.argv = [process.execPath, of.program];
  process.execArgv = [];
  return () => {
    for (const [at, name] of names.entries()) {
      const descriptor = ownStreams[at];
      if (descriptor !== undefined) Object.defineProperty(process, name, descriptor);
    }
    process.chdir(own.cwd);
    setEnvironment(own.env);
    process.argv = own.argv;
    process.execArgv = own.execArgv;
  };
}

/** Not another object: what was loaded before, the addon among it, reads this one. */
function setEnvironment(env: Readonly<Record<string, string | undefined>>): void {
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  for (const [name, value] of Object.entries(env)) if (process.env[name] !== value) process.env[name] = value;
}

function streamTo(fd: number): Writable {
  return new Writable({
    decodeStrings: true,
    write: (bytes: Buffer, _, done) => {
      writeAll(fd, bytes);
      done();
    },
  });
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let rest = bytes; rest.length > 0; ) rest = rest.subarray(writeSync(fd, rest));
}
