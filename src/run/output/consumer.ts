import type { ExecutionResult, OutputChunk, OutputStream } from '../../model/index.ts';
import type { ChunkReceiver } from './feed.ts';

/** How long to wait for a consumer after the end: as long as processes left behind may hold the output open. */
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
export class OutputConsumer implements ChunkReceiver {
  readonly #onOutput: (chunk: OutputChunk) => void | Promise<void>;
  readonly #abandon: () => void;
  #queue: Promise<void> = Promise.resolve();
  #failed: { readonly error: unknown } | undefined;
  #left = false;

  constructor(onOutput: (chunk: OutputChunk) => void | Promise<void>, abandon: () => void) {
    this.#onOutput = onOutput;
    this.#abandon = abandon;
  }

  onChunk(stream: OutputStream, bytes: Uint8Array, acknowledge: () => void): void {
    this.#queue = this.#queue.then(async () => {
      try {
        if (this.#failed === undefined && !this.#left) await this.#onOutput({ stream, bytes });
      } catch (error) {
        this.#failed = { error };
        this.#abandon();
      }
      acknowledge();
    });
  }

  /**
   * The result once every piece was consumed. A command that was ended, and one that by `givenUp` no caller waits for any
   * more, has its result without that: the consumer has a moment, and is not called again after it.
   */
  async settled(result: Promise<ExecutionResult>, givenUp?: AbortSignal): Promise<ExecutionResult> {
    const ended = await result;
    const hurried = ENDED_BY_US.has(ended.status) ? AbortSignal.abort() : givenUp;
    const consumed = await isConsumed(this.#queue, hurried);
    if (this.#failed !== undefined) throw this.#failed.error;
    if (consumed) return ended;
    this.#left = true;
    return { ...ended, warnings: [...ended.warnings, NOT_CONSUMED] };
  }
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
