import type { Readable } from 'node:stream';

const MAX_LINE = 1024 * 1024;
const NEWLINE = 10;

/** One line of a stream. */
export interface Line {
  /** From 1. */
  readonly number: number;
  /** `undefined`: it is too long, and was not kept. */
  readonly text: string | undefined;
  /** The last one of what has arrived. */
  readonly last: boolean;
}

/** Splits a stream of bytes into lines. What is not UTF-8 becomes U+FFFD; a line break inside a character cannot be. */
export async function* splitLines(input: Readable): AsyncGenerator<Line> {
  let number = 0;
  let parts: Buffer[] = [];
  let size = 0;
  const keep = (part: Buffer) => {
    size += part.length;
    if (size <= MAX_LINE) parts.push(part);
    else parts = [];
  };
  const take = (last: boolean): Line => {
    const text = size > MAX_LINE ? undefined : Buffer.concat(parts).toString('utf8');
    parts = [];
    size = 0;
    number += 1;
    return { number, text, last };
  };
  for await (const chunk of input) {
    const bytes: Buffer = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    let start = 0;
    for (;;) {
      const end = bytes.indexOf(NEWLINE, start);
      if (end === -1) break;
      keep(bytes.subarray(start, end));
      start = end + 1;
      yield take(bytes.indexOf(NEWLINE, start) === -1);
    }
    keep(bytes.subarray(start));
  }
  if (size > 0) yield take(true);
}
