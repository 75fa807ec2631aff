import { closeSync } from 'node:fs';
import type { Duplex, Readable, Writable } from 'node:stream';
import type { Command } from '../../model/command.ts';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { SpawnOptions } from '../../model/options.ts';
import type { NativeAddon, NativeCommand } from '../../native/contract.ts';
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
export function spawnOnPipes(
  { addon, launch }: SpawnParts,
  command: Command,
  options: SpawnOptions,
): SandboxProcess {
  // Here, because loading it takes longer than a command takes that needs no streams.
  const { Socket } = process.getBuiltinModule('node:net');
  const pipes = makeThree(addon);
  const child: NativeCommand['stdio'] = [pipes[0][0], pipes[1][1], pipes[2][1]];
  // The child has them once it is launched, which may have to wait for a decision.
  const release = () => {
    for (const fd of child) closeSync(fd);
  };
  try {
    const started = launch(command, options, { stdio: child, release });
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
