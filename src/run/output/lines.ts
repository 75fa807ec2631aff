import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { OutputStream, OutputText } from '../../model/index.ts';

/** Which lines `lines()` gives. */
export interface LineOptions {
  /** `all`: lines of both, each whole, in the order in which they end. Default: `stdout`. */
  readonly stream?: OutputStream | 'all';
  /** Characters of a line at most; of a longer one the rest is left out, which is said at its end. Default: 1,048,576. */
  readonly maxLength?: number;
}

/** Output of a running command, line by line. */
export interface LineReader {
  /**
   * Lines of the output as they come, without their ends (`\n`, `\r\n`); the last need not have one. Bytes are decoded as by
   * `outputText()`, and `[... 12 bytes left out ...]` is a line where something was not kept. It is an iteration of
   * `output()`: the command is held back while no line is taken, and leaving the loop ends the reading, not the command
   * (`cancel()`, or `end()` of a job, does). How the command ended is for its result to say.
   * @throws {SandboxError} `usage.invalid`: the output is read already.
   */
  lines(options?: LineOptions): AsyncIterableIterator<string>;
  /** Iterates over `lines()`: `for await (const line of running)`. */
  [Symbol.asyncIterator](): AsyncIterableIterator<string>;
}

const LONGEST_LINE = 1024 * 1024;

/** Reads options of `lines()`. @throws {SandboxError} `usage.invalid`. */
export function lineOptions({
  stream = 'stdout',
  maxLength = LONGEST_LINE,
}: LineOptions): Required<LineOptions> {
  if (!['stdout', 'stderr', 'all'].includes(stream))
    throw new SandboxError('usage.invalid', 'lines: stream must be "stdout", "stderr" or "all"');
  if (!Number.isSafeInteger(maxLength) || maxLength < 1)
    throw new SandboxError('usage.invalid', 'lines: maxLength must be a whole number above 0');
  return { stream, maxLength };
}

/** Text, piece by piece, as lines. */
export async function* linesOf(
  texts: AsyncIterable<OutputText>,
  { stream: wanted, maxLength }: Required<LineOptions>,
): AsyncGenerator<string, undefined> {
  const lines = { stdout: new Line(maxLength), stderr: new Line(maxLength) };
  for await (const { stream, text } of texts) {
    if (wanted !== 'all' && wanted !== stream) continue;
    const line = lines[stream];
    let from = 0;
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
      line.add(text, from, end);
      yield line.take(true);
      from = end + 1;
    }
    line.add(text, from, text.length);
  }
  for (const line of [lines.stdout, lines.stderr]) if (!line.isEmpty()) yield line.take(false);
  return undefined;
}

/** One line that is not whole yet. */
class Line {
  readonly #most: number;
  #text = '';
  #leftOut = 0;
  /** A `\r` at the end of what is known belongs to the end of the line, or to the line. */
  #endsInReturn = false;

  constructor(most: number) {
    this.#most = most;
  }

  isEmpty(): boolean {
    return this.#text === '' && this.#leftOut === 0 && !this.#endsInReturn;
  }

  add(text: string, from: number, end: number): void {
    if (from === end) return;
    const isReturn = text[end - 1] === '\r';
    this.#append(`${this.#endsInReturn ? '\r' : ''}${text.slice(from, isReturn ? end - 1 : end)}`);
    this.#endsInReturn = isReturn;
  }

  /** `isEnded`: by a line feed. */
  take(isEnded: boolean): string {
    if (this.#endsInReturn && !isEnded) this.#append('\r');
    const line =
      this.#leftOut === 0 ? this.#text : `${this.#text} [... ${this.#leftOut} characters left out ...]`;
    this.#text = '';
    this.#leftOut = 0;
    this.#endsInReturn = false;
    return line;
  }

  #append(text: string): void {
    const room = this.#most - this.#text.length;
    // Not in the middle of a character of two units.
    const cut = text.length > room && /[\ud800-\udbff]/.test(text[room - 1] ?? '') ? room - 1 : room;
    const kept = this.#leftOut > 0 ? '' : text.slice(0, Math.max(cut, 0));
    this.#text += kept;
    this.#leftOut += text.length - kept.length;
  }
}
