import type { ExecutionResult } from '../model/execution-result.ts';

/** A running command of `start()`. */
export interface RunningCommand {
  readonly result: Promise<ExecutionResult>;
  /** Sends a signal to the command's process group. False: it has ended, or has not begun. */
  kill(signal: NodeJS.Signals): boolean;
  /** Ends the command: SIGTERM, then SIGKILL after the grace period. */
  cancel(): void;
}

/** Signals that would have ended the command, had it begun. */
const ENDING: ReadonlySet<NodeJS.Signals> = new Set(['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGKILL']);

/** A command that starts later: what is done to it before then is remembered. */
export function pendingCommand(
  begin: (isCanceled: () => boolean) => PromiseLike<RunningCommand>,
): RunningCommand {
  let started: RunningCommand | undefined;
  let canceled = false;
  const result = Promise.resolve(begin(() => canceled)).then((running) => {
    started = running;
    return running.result;
  });
  return {
    result,
    kill: (signal) => {
      if (started === undefined && ENDING.has(signal)) canceled = true;
      return started?.kill(signal) ?? false;
    },
    cancel: () => {
      canceled = true;
      started?.cancel();
    },
  };
}
