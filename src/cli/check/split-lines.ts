import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';

const MAX_LINE = 1024 * 1024;
const NEWLINE = 10;

/** One line of a stream. */
interface Line {
  /** From 1. */
  readonly number: number;
  /** `undefined`: it is too long, and was not kept, or not UTF-8, and would be another text. */
  readonly text: string | undefined;
  /** The last one of what has arrived. */
  readonly last: boolean;
}

/** Splits a stream of bytes into lines. A line break inside a character cannot be. */
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
    const line = Buffer.concat(parts);
    const text = size > MAX_LINE || !isUtf8(line) ? undefined : line.toString('utf8');
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
