import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { NativeCapture } from '../../confine/native/contract.ts';
import type { OutputChunk, OutputStream, OutputText, RunOptions } from '../../model/index.ts';
import { type LineOptions, type LineReader, lineOptions, linesOf } from './lines.ts';
import { createDecoder } from './show.ts';

/** Receives pieces of output. */
export interface ChunkReceiver {
  /** `acknowledge` says that the piece was consumed; too many that were not hold the command back. */
  onChunk(stream: OutputStream, bytes: Uint8Array, acknowledge: () => void): void;
  /** Bytes before the next piece were lost because the reader subscribed late. */
  onGap?(stream: OutputStream, missing: number): void;
}

/** Output of a running command, to be iterated once. */
export interface OutputReader extends LineReader {
  /**
   * Output as it arrives, from the beginning: what was written before the iteration began is given first, as far as it was
   * kept. The command is held back while the output is not taken, so that memory stays bounded; to wait for `result`
   * inside of the loop may be to wait for ever. Leaving the loop does not end the command: the rest of its output is
   * drained and kept for the result as always. Can be iterated once, and not besides `onOutput`.
   */
  output(): AsyncIterableIterator<OutputChunk>;
  /** Like `output()`, as text: no character is split, and the run's `escapes` is applied. */
  outputText(): AsyncIterableIterator<OutputText>;
}

/** What readers of a command call. */
export function readersOf(feed: OutputFeed): OutputReader {
  return {
    output: () => feed.output(),
    outputText: () => feed.outputText(),
    lines: (options) => feed.lines(options),
    [Symbol.asyncIterator]: () => feed.lines(),
  };
}

/** What a feed has to know of its run. */
interface FeedOptions {
  /** Whether `outputText()` takes escape sequences out. */
  readonly neutralizes: boolean;
  /** Another consumer gets the output. */
  readonly isTaken: boolean;
  /** Settles when there will be no more output. */
  readonly ended: () => Promise<unknown>;
}

/** The feed of a command with such options. */
export function feedOf(
  { escapes, onOutput }: Pick<RunOptions, 'escapes' | 'onOutput'>,
  ended: () => Promise<unknown>,
): OutputFeed {
  return new OutputFeed({ neutralizes: escapes === 'neutralize', isTaken: onOutput !== undefined, ended });
}

/** Output between a command and an iteration that may never begin. */
export class OutputFeed implements OutputReader, ChunkReceiver {
  readonly #options: FeedOptions;
  readonly #queue: { readonly chunk: OutputChunk; readonly acknowledge: () => void }[] = [];
  /** Bytes that were lost since the last piece of each stream. */
  readonly #missing = { stdout: 0, stderr: 0 };
  #state: 'idle' | 'wanted' | 'left' = 'idle';
  #isTaken: boolean;
  #received = false;
  #ended = false;
  #stream: (on: boolean) => void = () => {};
  #wake = () => {};

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#isTaken = options.isTaken;
  }

  /** Whether output is wanted as it arrives. */
  get wanted(): boolean {
    return this.#state === 'wanted';
  }

  /** The command runs; `stream` begins and ends the arrival of output. */
  launched(stream: (on: boolean) => void): void {
    this.#stream = stream;
  }

  onChunk(name: OutputStream, bytes: Uint8Array, acknowledge: () => void): void {
    this.#received = true;
    if (this.#state === 'left') return;
    this.#add(name, bytes, acknowledge);
    this.#wake();
  }

  onGap(name: OutputStream, lost: number): void {
    this.#received = true;
    this.#missing[name] += lost;
  }

  /** There will be no more. `captured`: what the addon kept, so many bytes of each stream being the first. */
  end(captured: NativeCapture, headBytes: readonly [number, number]): void {
    // The command had ended before the addon was asked for its output.
    if (!this.#received && this.#state !== 'left') {
      this.#addCaptured('stdout', captured.stdout, captured.stdoutBytes, headBytes[0]);
      this.#addCaptured('stderr', captured.stderr, captured.stderrBytes, headBytes[1]);
    }
    this.#noMore();
  }

  output(): AsyncGenerator<OutputChunk, undefined> {
    if (this.#isTaken)
      throw new SandboxError(
        'usage.invalid',
        'the output of a command can be iterated once, and not besides onOutput',
      );
    this.#isTaken = true;
    return this.#iterate();
  }

  outputText(): AsyncGenerator<OutputText, undefined> {
    return decoded(this.output(), this.#options.neutralizes);
  }

  lines(options: LineOptions = {}): AsyncGenerator<string, undefined> {
    const read = lineOptions(options);
    return linesOf(this.outputText(), read);
  }

  [Symbol.asyncIterator](): AsyncGenerator<string, undefined> {
    return this.lines();
  }

  #add(name: OutputStream, bytes: Uint8Array, acknowledge: () => void): void {
    if (bytes.length === 0) return;
    const missing = this.#missing[name];
    this.#missing[name] = 0;
    this.#queue.push({
      chunk: missing === 0 ? { stream: name, bytes } : { stream: name, bytes, missing },
      acknowledge,
    });
  }

  #addCaptured(
    name: OutputStream,
    kept: Uint8Array = new Uint8Array(0),
    total: number,
    headBytes: number,
  ): void {
    const lost = total - kept.length;
    const head = lost === 0 ? kept : kept.subarray(0, headBytes);
    this.#add(name, head, () => {});
    this.#missing[name] += lost;
    this.#add(name, kept.subarray(head.length), () => {});
  }

  #noMore(): void {
    this.#ended = true;
    this.#wake();
  }

  async *#iterate(): AsyncGenerator<OutputChunk, undefined> {
    this.#state = 'wanted';
    this.#stream(true);
    // Also of a command that is never launched.
    const end = () => this.#noMore();
    void this.#options.ended().then(end, end);
    try {
      for (;;) {
        const next = this.#queue.shift();
        if (next !== undefined) {
          yield next.chunk;
          next.acknowledge();
        } else if (this.#ended) {
          return undefined;
        } else {
          await new Promise<void>((done) => {
            this.#wake = done;
          });
        }
      }
    } finally {
      this.#state = 'left';
      this.#queue.length = 0;
      this.#stream(false);
    }
  }
}

async function* decoded(
  chunks: AsyncIterable<OutputChunk>,
  neutralizes: boolean,
): AsyncGenerator<OutputText, undefined> {
  const decoders = { stdout: createDecoder(neutralizes), stderr: createDecoder(neutralizes) };
  for await (const { stream, bytes, missing = 0 } of chunks) {
    const text = (missing > 0 ? decoders[stream].skip(missing) : '') + decoders[stream].write(bytes);
    if (text !== '') yield { stream, text };
  }
  for (const stream of ['stdout', 'stderr'] as const) {
    const text = decoders[stream].end();
    if (text !== '') yield { stream, text };
  }
  return undefined;
}
