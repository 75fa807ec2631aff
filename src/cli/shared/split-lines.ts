import { isUtf8 } from 'node:buffer';
import type { Readable } from 'node:stream';
import { createLineReader } from '../../util/line-reader.ts';

const MAX_LINE = 1024 * 1024;
const NEWLINE = Buffer.from('\n');

/** One line of a stream. */
export interface Line {
  /** From 1. */
  readonly number: number;
  /** `undefined`: it is too long, and was not kept, or not UTF-8, and would be another text. */
  readonly text: string | undefined;
  /** The last one of what has arrived. */
  readonly last: boolean;
}

/** Splits a stream of bytes into lines. A line break inside a character cannot be. */
export async function* splitLines(input: Readable): AsyncGenerator<Line> {
  const reader = createLineReader(MAX_LINE);
  let number = 0;
  function* lines(): Generator<Line> {
    for (let line = reader.take(); line !== undefined; ) {
      const next = reader.take();
      number += 1;
      const text = line === 'too-long' || !isUtf8(line) ? undefined : line.toString('utf8');
      yield { number, text, last: next === undefined };
      line = next;
    }
  }
  for await (const chunk of input) {
    reader.push(Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk)));
    yield* lines();
  }
  if (!reader.isPartial()) return;
  reader.push(NEWLINE);
  yield* lines();
}
