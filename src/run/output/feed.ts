import { SandboxError } from '../../errors/sandbox-error.ts';
import type { OutputChunk, OutputStream, OutputText } from '../../model/output.ts';
import type { NativeCapture } from '../../native/contract.ts';
import type { ChunkReceiver } from './chunk.ts';
import { createDecoder } from './decoder.ts';

/** Output of a running command, to be iterated once. */
export interface OutputReader {
  /**
   * Output as it arrives, from the beginning: what was written before the iteration began is given first, as far as it was
   * kept. The command is held back while the output is not taken, so that memory stays bounded; to wait for `result`
   * inside of the loop may be to wait for ever. Leaving the loop does not end the command: the rest of its output is
   * drained and kept for the result as always. Can be iterated once, and not besides `onOutput`.
   */
  output(): AsyncIterableIterator<OutputChunk>;
  /** The same, decoded: no character is cut, and `escapes` of the run is obeyed. */
  outputText(): AsyncIterableIterator<OutputText>;
}

/** Output between a command and an iteration that may never begin. */
export interface OutputFeed extends OutputReader, ChunkReceiver {
  /** Whether output is wanted as it arrives. */
  readonly wanted: boolean;
  /** The command runs; `stream` begins and ends the arrival of output. */
  launched(stream: (on: boolean) => void): void;
  /** There will be no more. `captured`: what the addon kept, so many bytes of each stream being the first. */
  end(captured: NativeCapture, headBytes: readonly [number, number]): void;
}

/** What a feed has to know of its run. */
export interface FeedOptions {
  /** Whether `outputText()` takes escape sequences out. */
  readonly neutralizes: boolean;
  /** Another consumer gets the output. */
  readonly isTaken: boolean;
  /** Settles when there will be no more output. */
  readonly ended: () => Promise<unknown>;
}

/** @see OutputFeed */
export function createOutputFeed({ neutralizes, isTaken, ended: whenEnded }: FeedOptions): OutputFeed {
  const queue: { readonly chunk: OutputChunk; readonly acknowledge: () => void }[] = [];
  const missing = { stdout: 0, stderr: 0 };
  let state: 'idle' | 'wanted' | 'left' = 'idle';
  let stream: (on: boolean) => void = () => {};
  let received = false;
  let taken = isTaken;
  let ended = false;
  let wake = () => {};

  function add(name: OutputStream, bytes: Uint8Array, acknowledge: () => void): void {
    if (bytes.length === 0) return;
    const before = missing[name];
    missing[name] = 0;
    queue.push({
      chunk: before === 0 ? { stream: name, bytes } : { stream: name, bytes, missing: before },
      acknowledge,
    });
  }

  function addCaptured(
    name: OutputStream,
    kept: Uint8Array = new Uint8Array(0),
    total: number,
    headBytes: number,
  ) {
    const lost = total - kept.length;
    const head = lost === 0 ? kept : kept.subarray(0, headBytes);
    add(name, head, () => {});
    missing[name] += lost;
    add(name, kept.subarray(head.length), () => {});
  }

  async function* iterate(): AsyncGenerator<OutputChunk, undefined> {
    state = 'wanted';
    stream(true);
    // Also of a command that is never launched.
    const end = () => {
      ended = true;
      wake();
    };
    void whenEnded().then(end, end);
    try {
      for (;;) {
        const next = queue.shift();
        if (next !== undefined) {
          yield next.chunk;
          next.acknowledge();
        } else if (ended) {
          return undefined;
        } else {
          await new Promise<void>((done) => {
            wake = done;
          });
        }
      }
    } finally {
      state = 'left';
      queue.length = 0;
      stream(false);
    }
  }

  function output(): AsyncGenerator<OutputChunk, undefined> {
    if (taken)
      throw new SandboxError(
        'usage.invalid',
        'the output of a command can be iterated once, and not besides onOutput',
      );
    taken = true;
    return iterate();
  }

  async function* decoded(chunks: AsyncIterable<OutputChunk>): AsyncGenerator<OutputText, undefined> {
    const decoders = { stdout: createDecoder(neutralizes), stderr: createDecoder(neutralizes) };
    for await (const { stream, bytes, missing: before = 0 } of chunks) {
      const text = (before > 0 ? decoders[stream].skip(before) : '') + decoders[stream].write(bytes);
      if (text !== '') yield { stream, text };
    }
    for (const stream of ['stdout', 'stderr'] as const) {
      const text = decoders[stream].end();
      if (text !== '') yield { stream, text };
    }
    return undefined;
  }

  return {
    get wanted() {
      return state === 'wanted';
    },
    launched(control) {
      stream = control;
    },
    onChunk(name, bytes, acknowledge) {
      received = true;
      if (state === 'left') return;
      add(name, bytes, acknowledge);
      wake();
    },
    onGap(name, lost) {
      received = true;
      missing[name] += lost;
    },
    end(captured, headBytes) {
      // The command had ended before the addon was asked for its output.
      if (!received && state !== 'left') {
        addCaptured('stdout', captured.stdout, captured.stdoutBytes, headBytes[0]);
        addCaptured('stderr', captured.stderr, captured.stderrBytes, headBytes[1]);
      }
      ended = true;
      wake();
    },
    output,
    outputText: () => decoded(output()),
  };
}
