import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Duplex, Readable, Writable } from 'node:stream';
import { deferred } from '../../base/deferred.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { type NativeAddon, type NativeCommand, STDIO_CAPTURE } from '../../confine/native/contract.ts';
import type { Running } from '../../confine/running.ts';
import type { Command, ExecutionResult, RunOptions, SpawnOptions, TerminalSize } from '../../model/index.ts';
import { describeThrown } from './failure.ts';
import type { Launch } from './launch.ts';
import type { RunningCommand } from './pending-command.ts';

/** A command started with streams. */
export interface SandboxProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles when the command and everything that it started has ended; never rejects for what the command did. */
  readonly result: Promise<ExecutionResult>;
  /** Sends a signal to the command's process group. False: it has ended. Default: SIGTERM. */
  kill(signal?: NodeJS.Signals): boolean;
}

/** A command started on a terminal of its own. */
export interface TerminalProcess extends SandboxProcess {
  /**
   * What is written to it is typed, what is read from it is what the command shows. To end it types the character that
   * means the end of the input; to destroy it hangs up. `stdin` and `stdout` are the same stream; `stderr` is empty.
   */
  readonly terminal: Duplex;
  /** True once the command runs; false if it ended or was refused before it began. */
  readonly launched: Promise<boolean>;
  /** Gives the terminal another size. False: the command has ended. */
  resize(cols: number, rows: number): boolean;
}

/** What streams are made with, for one sandbox. */
export interface SpawnParts {
  readonly addon: NativeAddon;
  readonly launch: (command: Command, options: SpawnOptions, how: Launch) => RunningCommand;
}

type Pipe = readonly [number, number];

/** Launches a command that is handed descriptors. They are closed here once it has them, or never will. */
export function launchHanding(
  { launch }: SpawnParts,
  command: Command,
  options: SpawnOptions,
  how: Launch,
  handed: readonly number[],
): RunningCommand {
  let left = handed;
  const close = () => {
    for (const fd of left) closeSync(fd);
    left = [];
  };
  const onLaunch = (running: Running) => {
    close();
    how.onLaunch?.(running);
  };
  try {
    const started = launch(command, options, { ...how, onLaunch });
    started.result.then(close, close);
    return started;
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * A pipe of this process: the end to read and the end to write.
 * @throws {SandboxError} `launch.failed`.
 */
export function makePipe(addon: NativeAddon): Pipe {
  try {
    return addon.makePipe();
  } catch (error) {
    throw describeThrown(error);
  }
}

/** All three, or none. */
function makeThree(addon: NativeAddon): readonly [Pipe, Pipe, Pipe] {
  const made: Pipe[] = [];
  const one = () => {
    const pipe = makePipe(addon);
    made.push(pipe);
    return pipe;
  };
  try {
    return [one(), one(), one()];
  } catch (error) {
    for (const fd of made.flat()) closeSync(fd);
    throw error;
  }
}

/** Starts a command with a pipe for each stream. */
export function spawnOnPipes(parts: SpawnParts, command: Command, options: SpawnOptions): SandboxProcess {
  // Here, because loading it takes longer than a command takes that needs no streams.
  const { Socket } = process.getBuiltinModule('node:net');
  const pipes = makeThree(parts.addon);
  const child: NativeCommand['stdio'] = [pipes[0][0], pipes[1][1], pipes[2][1]];
  try {
    const started = launchHanding(parts, command, options, { stdio: child }, child);
    const stdin = new Socket({ fd: pipes[0][1], readable: false, writable: true });
    // Its reader is gone.
    void started.result.finally(() => stdin.destroy()).catch(() => {});
    return {
      stdin,
      stdout: new Socket({ fd: pipes[1][0], readable: true, writable: false }),
      stderr: new Socket({ fd: pipes[2][0], readable: true, writable: false }),
      result: started.result,
      kill: (signal = 'SIGTERM') => started.kill(signal),
    };
  } catch (error) {
    for (const fd of [pipes[0][1], pipes[1][0], pipes[2][0]]) closeSync(fd);
    throw error;
  }
}

/** Starts a command on a terminal of its own. */
export function spawnOnTerminal(
  parts: SpawnParts,
  command: Command,
  options: SpawnOptions,
  size: TerminalSize,
): TerminalProcess {
  const { Socket } = process.getBuiltinModule('node:net');
  const { Readable } = process.getBuiltinModule('node:stream');
  const [readEnd, writeEnd] = makePipe(parts.addon);
  let running: Running | undefined;
  let wanted = size;
  const { promise: launched, resolve: tell } = deferred<boolean>();
  const output = createOutput();
  try {
    const how: Launch = {
      stdio: [readEnd, STDIO_CAPTURE, STDIO_CAPTURE],
      extras: { pty: size },
      consumer: { onChunk: (_stream, bytes, acknowledge) => output.take(bytes, acknowledge) },
      onLaunch: (launchedAs) => {
        running = launchedAs;
        if (wanted !== size) running.resize(wanted.cols, wanted.rows);
        tell(true);
      },
    };
    const started = launchHanding(parts, command, options, how, [readEnd]);
    const typed = new Socket({ fd: writeEnd, readable: false, writable: true });
    const terminal = createTerminal(typed, output, () => started.kill('SIGHUP'));
    const over = () => {
      tell(false);
      typed.destroy();
      output.end();
    };
    started.result.then(over, over);
    return {
      terminal,
      stdin: terminal,
      stdout: terminal,
      stderr: Readable.from([]),
      result: started.result,
      launched,
      kill: (signal = 'SIGTERM') => started.kill(signal),
      resize: (cols, rows) => {
        wanted = terminalSize(cols, rows);
        return running?.resize(cols, rows) ?? false;
      },
    };
  } catch (error) {
    closeSync(writeEnd);
    throw error;
  }
}

/** Launches a command on a terminal of its own whose output is captured as `how` says. */
export function launchOnTerminal(
  parts: SpawnParts,
  command: Command,
  options: RunOptions,
  how: Launch,
  pty: TerminalSize,
): RunningCommand {
  const extras = { ...how.extras, pty };
  if (options.input !== undefined || options.stdin !== 'inherit')
    return parts.launch(command, options, { ...how, extras });
  // This process's standard input may be anything, and shared with others: only Node's streams read all of it without
  // waiting. What they read goes through a pipe.
  const { Socket } = process.getBuiltinModule('node:net');
  const [readEnd, writeEnd] = makePipe(parts.addon);
  const typed = new Socket({ fd: writeEnd, readable: false, writable: true });
  typed.on('error', () => {});
  const over = () => {
    process.stdin.unpipe(typed);
    process.stdin.pause();
    typed.destroy();
  };
  try {
    const stdio = [readEnd, STDIO_CAPTURE, STDIO_CAPTURE] as const;
    const running = launchHanding(parts, command, options, { ...how, extras, stdio }, [readEnd]);
    process.stdin.pipe(typed);
    running.result.then(over, over);
    return running;
  } catch (error) {
    over();
    throw error;
  }
}

/** Between the addon, which sends output as long as it is acknowledged, and the stream, which wants it when it is read. */
function createOutput() {
  let terminal: Duplex | undefined;
  let ended = false;
  let owed: (() => void)[] = [];
  const pay = () => {
    const due = owed;
    owed = [];
    for (const acknowledge of due) acknowledge();
  };
  return {
    attach(stream: Duplex): void {
      terminal = stream;
    },
    take(bytes: Uint8Array, acknowledge: () => void): void {
      if (terminal === undefined || terminal.destroyed || terminal.push(bytes)) acknowledge();
      else owed.push(acknowledge);
    },
    /** The reader wants more, or nothing any more. */
    wanted: pay,
    end(): void {
      ended = true;
      terminal?.push(null);
    },
    hasEnded: () => ended,
  };
}

function createTerminal(typed: Socket, output: ReturnType<typeof createOutput>, hangUp: () => void): Duplex {
  const { Duplex } = process.getBuiltinModule('node:stream');
  // A command that has ended reads nothing: what is typed then has no reader, as on any terminal.
  typed.on('error', () => {});
  const terminal = new Duplex({
    read: output.wanted,
    write: (bytes: Buffer, _, done) => {
      if (typed.destroyed) done();
      else typed.write(bytes, () => done());
    },
    final: (done) => {
      if (typed.destroyed) done();
      else typed.end(() => done());
    },
    destroy: (error, done) => {
      if (!output.hasEnded()) hangUp();
      output.wanted();
      typed.destroy();
      done(error);
    },
  });
  output.attach(terminal);
  return terminal;
}

/** What a terminal can have (unsigned short of `struct winsize`, tty_ioctl(4)). */
const MOST_CHARACTERS = 65_535;

/** @throws {SandboxError} `usage.invalid`. */
function terminalSize(cols: number, rows: number): TerminalSize {
  const isCount = (count: number) => Number.isInteger(count) && count >= 1 && count <= MOST_CHARACTERS;
  if (isCount(cols) && isCount(rows)) return { cols, rows };
  throw new SandboxError(
    'usage.invalid',
    `resize: cols and rows must be numbers from 1 to ${MOST_CHARACTERS}`,
  );
}
