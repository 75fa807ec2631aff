import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { Command } from '../../model/command.ts';
import type { RunOptions, SpawnOptions, TerminalSize } from '../../model/options.ts';
import { STDIO_CAPTURE } from '../../native/contract.ts';
import { deferred } from '../../util/deferred.ts';
import type { Launch } from './launch.ts';
import type { RunningCommand } from './pending-command.ts';
import { makePipe, type SpawnParts, type TerminalProcess } from './spawn.ts';

/** Starts a command on a terminal of its own. */
export function spawnOnTerminal(
  { addon, launch }: SpawnParts,
  command: Command,
  options: SpawnOptions,
  size: TerminalSize,
): TerminalProcess {
  const { Socket } = process.getBuiltinModule('node:net');
  const { Readable } = process.getBuiltinModule('node:stream');
  const [readEnd, writeEnd] = makePipe(addon);
  let id: number | undefined;
  let wanted = size;
  const { promise: launched, resolve: tell } = deferred<boolean>();
  const output = createOutput();
  try {
    const started = launch(command, options, {
      stdio: [readEnd, STDIO_CAPTURE, STDIO_CAPTURE],
      extras: { pty: size },
      consumer: { onChunk: (_stream, bytes, acknowledge) => output.take(bytes, acknowledge) },
      onLaunch: (launchedAs) => {
        id = launchedAs;
        if (wanted !== size) addon.resize(id, wanted.cols, wanted.rows);
        tell(true);
      },
      release: () => closeSync(readEnd),
    });
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
        return id === undefined ? false : addon.resize(id, cols, rows);
      },
    };
  } catch (error) {
    closeSync(writeEnd);
    throw error;
  }
}

/** Launches a command on a terminal of its own whose output is captured as `how` says. */
export function launchOnTerminal(
  { addon, launch }: SpawnParts,
  command: Command,
  options: RunOptions,
  how: Launch,
  pty: TerminalSize,
): RunningCommand {
  const extras = { ...how.extras, pty };
  if (options.input !== undefined || options.stdin !== 'inherit')
    return launch(command, options, { ...how, extras });
  // This process's standard input may be anything, and shared with others: only Node's streams read all of it without
  // waiting. What they read goes through a pipe.
  const { Socket } = process.getBuiltinModule('node:net');
  const [readEnd, writeEnd] = makePipe(addon);
  const typed = new Socket({ fd: writeEnd, readable: false, writable: true });
  typed.on('error', () => {});
  const over = () => {
    process.stdin.unpipe(typed);
    process.stdin.pause();
    typed.destroy();
  };
  try {
    const running = launch(command, options, {
      ...how,
      extras,
      stdio: [readEnd, STDIO_CAPTURE, STDIO_CAPTURE],
      release: () => closeSync(readEnd),
    });
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
