import type { ExecutionResult } from '../model/execution-result.ts';
import type { KeptOutput } from './classify.ts';
import type { OutputChunk } from './sandbox-options.ts';

/**
 * Hands streamed output to a consumer, one piece after the other, and keeps the first `limit` bytes of each stream.
 * A consumer that throws or rejects gets no more output, `abandon` is called, and the run's promise rejects with its
 * error.
 */
export function createOutputKeeper(
  limit: number,
  onOutput: (chunk: OutputChunk) => void | Promise<void>,
  abandon: () => void,
) {
  const kept = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const sizes = { stdout: 0, stderr: 0 };
  let queue: Promise<void> = Promise.resolve();
  let failed: { readonly error: unknown } | undefined;

  return {
    onChunk(streamNumber: number, bytes: Buffer, acknowledge: () => void): void {
      const stream = streamNumber === 1 ? 'stdout' : 'stderr';
      const room = limit - sizes[stream];
      if (room > 0) {
        const part = bytes.subarray(0, room);
        kept[stream].push(part);
        sizes[stream] += part.length;
      }
      queue = queue.then(async () => {
        try {
          if (failed === undefined) await onOutput({ stream, bytes });
        } catch (error) {
          failed = { error };
          abandon();
        }
        acknowledge();
      });
    },
    kept: (): KeptOutput => ({ stdout: Buffer.concat(kept.stdout), stderr: Buffer.concat(kept.stderr) }),
    /** The result once every piece was consumed. */
    async settled(result: Promise<ExecutionResult>): Promise<ExecutionResult> {
      const ended = await result;
      await queue;
      if (failed !== undefined) throw failed.error;
      return ended;
    },
  };
}
