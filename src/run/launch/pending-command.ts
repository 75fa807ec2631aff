import { constants } from 'node:os';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { ExecutionResult } from '../../model/index.ts';

/** A running command of `start()`. */
export interface RunningCommand {
  readonly result: Promise<ExecutionResult>;
  /** Sends a signal to the command's process group. False: it has ended, or has not begun. Default: SIGTERM. */
  kill(signal?: NodeJS.Signals): boolean;
  /** Ends the command: SIGTERM, then SIGKILL after the grace period. */
  cancel(): void;
}

/** Signals after which there is nothing left of a process that does not handle them. */
export const ENDING: ReadonlySet<NodeJS.Signals> = new Set([
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGKILL',
]);

/** A command that does not run, but has a result. */
export function neverBegun(result: ExecutionResult | Promise<ExecutionResult>): RunningCommand {
  return { result: Promise.resolve(result), kill: () => false, cancel: () => {} };
}

/**
 * A command that starts later, if it does. What is done to it before then gives it up; `giveUp` ends what it waits for.
 */
export function pendingCommand(begun: Promise<RunningCommand>, giveUp: () => void): RunningCommand {
  let started: RunningCommand | undefined;
  let isGivenUp = false;
  const result = begun.then((running) => {
    started = running;
    // Canceled while the launch was under way.
    if (isGivenUp) running.cancel();
    return running.result;
  });
  const end = () => {
    isGivenUp = true;
    giveUp();
  };
  return {
    result,
    kill: (signal = 'SIGTERM') => {
      signalNumber(signal);
      if (started === undefined && ENDING.has(signal)) end();
      return started?.kill(signal) ?? false;
    },
    cancel: () => {
      end();
      started?.cancel();
    },
  };
}

/**
 * The number of a signal.
 * @throws {SandboxError} `usage.invalid` if there is none of that name.
 */
export function signalNumber(signal: NodeJS.Signals): number {
  if (typeof signal === 'string' && Object.hasOwn(constants.signals, signal))
    return constants.signals[signal];
  throw new SandboxError(
    'usage.invalid',
    `kill: ${JSON.stringify(signal) ?? 'undefined'} is no signal; give its name, such as "SIGTERM"`,
  );
}
