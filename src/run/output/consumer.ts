import type { ExecutionResult } from '../../model/execution-result.ts';
import { type ChunkReceiver, type OutputChunk, streamName } from './chunk.ts';

/** Hands output to a function. */
export interface OutputConsumer extends ChunkReceiver {
  /** The result once every piece was consumed. */
  settled(result: Promise<ExecutionResult>): Promise<ExecutionResult>;
}

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
  return {
    onChunk(stream, bytes, _missing, acknowledge) {
      queue = queue.then(async () => {
        try {
          if (failed === undefined) await onOutput({ stream: streamName(stream), bytes });
        } catch (error) {
          failed = { error };
          abandon();
        }
        acknowledge();
      });
    },
    async settled(result) {
      const ended = await result;
      await queue;
      if (failed !== undefined) throw failed.error;
      return ended;
    },
  };
}
