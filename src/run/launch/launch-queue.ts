import type { ExecutionResult } from '../../model/execution-result.ts';
import { deferred } from '../../util/deferred.ts';
import { neverBegun, pendingCommand, type RunningCommand } from './pending-command.ts';

/** Commands that wait until the limit of open files carries one more, in order. */
interface LaunchQueue {
  isEmpty(): boolean;
  /** `launch`: `undefined` as long as it has to wait. `giveUp`: the result of a command that is not wanted any more. */
  add(
    launch: () => RunningCommand | undefined,
    giveUp: () => ExecutionResult,
    signal: AbortSignal | undefined,
  ): RunningCommand;
  /** Something has ended. */
  tryNow(): void;
  giveUpAll(): void;
}

interface Waiting {
  readonly tryIt: () => boolean;
  readonly giveUp: () => void;
}

/** Others in this process have commands, too, of whose end nothing is heard here. */
const LOOK_AGAIN_MS = 5;

/** @see LaunchQueue */
export function createLaunchQueue(): LaunchQueue {
  const waiting = new Set<Waiting>();
  let timer: NodeJS.Timeout | undefined;

  function tryNow(): void {
    for (const one of waiting) {
      if (!one.tryIt()) break;
      waiting.delete(one);
    }
    if (waiting.size === 0) {
      clearInterval(timer);
      timer = undefined;
    } else timer ??= setInterval(tryNow, LOOK_AGAIN_MS);
  }

  return {
    isEmpty: () => waiting.size === 0,
    add: (launch, giveUp, signal) => {
      const { promise, resolve, reject } = deferred<RunningCommand>();
      const over = () => {
        waiting.delete(one);
        signal?.removeEventListener('abort', one.giveUp);
      };
      const one: Waiting = {
        tryIt: () => {
          try {
            const started = launch();
            if (started === undefined) return false;
            over();
            resolve(started);
          } catch (error) {
            over();
            reject(error);
          }
          return true;
        },
        giveUp: () => {
          if (!waiting.has(one)) return;
          over();
          resolve(neverBegun(giveUp()));
        },
      };
      waiting.add(one);
      signal?.addEventListener('abort', one.giveUp, { once: true });
      tryNow();
      return pendingCommand(promise, one.giveUp);
    },
    tryNow,
    giveUpAll: () => {
      for (const one of waiting) one.giveUp();
      tryNow();
    },
  };
}
