import { closeSync } from 'node:fs';
import type { Command } from '../../model/command.ts';
import type { RunOptions, TerminalSize } from '../../model/options.ts';
import { STDIO_CAPTURE } from '../../native/contract.ts';
import type { Launch } from './launch.ts';
import type { RunningCommand } from './pending-command.ts';
import { makePipe, type SpawnParts } from './spawn.ts';

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
