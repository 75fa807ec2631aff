import type { ExecutionResult } from '../../model/execution-result.ts';
import type { OutputChunk } from '../../model/output.ts';
import type { ChunkReceiver } from './chunk.ts';

/** Hands output to a function. */
interface OutputConsumer extends ChunkReceiver {
  /**
   * The result once every piece was consumed. A command that was ended, and one that by `givenUp` no caller waits for any
   * more, has its result without that: the consumer has a moment, and is not called again after it.
   */
  settled(result: Promise<ExecutionResult>, givenUp?: AbortSignal): Promise<ExecutionResult>;
}

/** As long as what a command left behind may hold its output. */
const GRACE_MS = 250;

const ENDED_BY_US: ReadonlySet<ExecutionResult['status']> = new Set([
  'timed-out',
  'canceled',
  'limit-exceeded',
]);

const NOT_CONSUMED =
  'onOutput did not get all of the output: the command was ended or given up, and onOutput had not settled 250 ms later';

/**
 * Hands streamed output to a consumer, one piece after the other. One that throws or rejects gets no more output,
 * `abandon` is called, and the run's promise rejects with its error.
 */
export function createOutputConsumer(
  onOutput: (chunk: OutputChunk) => void | Promise<void>,
  abandon: () => void,
): OutputConsumer {
  let queue: Promise<void> = Promise.resolve();
  let failed: { readonly error: unknown } | undefined;
  let left = false;
  return {
    onChunk(stream, bytes, acknowledge) {
      queue = queue.then(async () => {
        try {
          if (failed === undefined && !left) await onOutput({ stream, bytes });
        } catch (error) {
          failed = { error };
          abandon();
        }
        acknowledge();
      });
    },
    async settled(result, givenUp) {
      const ended = await result;
      const consumed = await isConsumed(queue, ENDED_BY_US.has(ended.status) ? AbortSignal.abort() : givenUp);
      if (failed !== undefined) throw failed.error;
      if (consumed) return ended;
      left = true;
      return { ...ended, warnings: [...ended.warnings, NOT_CONSUMED] };
    },
  };
}

/** False: it was not, a moment after it was given up. */
function isConsumed(queue: Promise<void>, givenUp: AbortSignal | undefined): Promise<boolean> {
  return new Promise((settle) => {
    let timer: NodeJS.Timeout | undefined;
    const hurry = () => {
      timer = setTimeout(() => settle(false), GRACE_MS);
    };
    if (givenUp?.aborted === true) hurry();
    else givenUp?.addEventListener('abort', hurry, { once: true });
    void queue.then(() => {
      clearTimeout(timer);
      givenUp?.removeEventListener('abort', hurry);
      settle(true);
    });
  });
}
