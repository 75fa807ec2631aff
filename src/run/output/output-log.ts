import { isInsidePair } from './model-stream.ts';
import { createDecoder } from './show.ts';

/** Turns the bytes of a stream into text, piece by piece. */
interface Decoder {
  write(bytes: Uint8Array): string;
  /** What is left at the end. */
  end(): string;
}

/** Characters that are kept for a model: the last ones. */
const KEPT = 128 * 1024;

/** A part of an output log. */
export interface LogPart {
  readonly output: string;
  /** Where the next part begins: characters from the start of the log. */
  readonly next: number;
  /** Characters that were asked for and are not kept any more. */
  readonly leftOut: number;
  /** There is more behind this part already. */
  readonly more: boolean;
}

/** One character for each byte (ISO 8859-1), so that a log gives back the very bytes that it got. */
export const BYTE_BY_BYTE: Decoder = {
  write: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1'),
  end: () => '',
};

/**
 * The last `limit` characters of what something in the background writes, to be read piece by piece. `decoder`: how its bytes
 * become text; by default text for a model, without escape sequences.
 */
export class OutputLog {
  readonly #decoder: Decoder;
  readonly #limit: number;
  readonly #watchers = new Set<() => void>();
  #text = '';
  /** Characters before `#text`. */
  #gone = 0;
  #cursor = 0;
  #isEnded = false;

  constructor(limit: number = KEPT, decoder: Decoder = createDecoder(true)) {
    this.#limit = limit;
    this.#decoder = decoder;
  }

  write(bytes: Uint8Array): void {
    this.#add(this.#decoder.write(bytes));
  }

  /** Nothing more will come. */
  end(): void {
    this.#isEnded = true;
    this.#add(this.#decoder.end());
  }

  /** Whether nothing more will come. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Where what comes next will be: characters from the start of the log. */
  get length(): number {
    return this.#gone + this.#text.length;
  }

  /** Where the last `limit` characters begin. */
  get start(): number {
    return Math.max(this.#gone, this.length - this.#limit);
  }

  /** At most so many characters, from `since`, or from where the last part ended. */
  read(since = this.#cursor, most: number): LogPart {
    const asked = Math.min(since, this.#gone + this.#text.length);
    const from = Math.max(asked, this.#gone);
    const end = from - this.#gone + most;
    const output = this.#text.slice(from - this.#gone, isInsidePair(this.#text, end) ? end - 1 : end);
    const next = from + output.length;
    this.#cursor = next;
    return { output, next, leftOut: from - asked, more: next < this.#gone + this.#text.length };
  }

  /** Calls `tell` whenever something came, or the end. */
  watch(tell: () => void): Disposable {
    this.#watchers.add(tell);
    return { [Symbol.dispose]: () => void this.#watchers.delete(tell) };
  }

  #add(piece: string): void {
    this.#text += piece;
    // Not each time: cutting copies what is left.
    if (this.#text.length > 2 * this.#limit) {
      const count = this.#text.length - this.#limit;
      const from = isInsidePair(this.#text, count) ? count + 1 : count;
      this.#text = this.#text.slice(from);
      this.#gone += from;
    }
    for (const tell of [...this.#watchers]) tell();
  }
}
