import { readSync } from 'node:fs';

/** One line of a file, without its line break. */
export interface FileLine {
  readonly bytes: Buffer;
  /** Where it begins in the file. */
  readonly offset: number;
  /** It ends with a line break; otherwise it is the torn last one. */
  readonly complete: boolean;
}

const CHUNK = 256 * 1024;
/** A line of the trail is shorter. What is longer is given in pieces, which are no records. */
const LONGEST = 4 * 1024 * 1024;

/** The lines of an open file between two offsets. A whole file is never in memory. */
export function* readLines(fd: number, from = 0, to = Number.POSITIVE_INFINITY): Generator<FileLine> {
  let rest: Buffer = Buffer.alloc(0);
  let restOffset = from;
  for (;;) {
    const end = restOffset + rest.length;
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(0, to - end)));
    const length = chunk.length === 0 ? 0 : readSync(fd, chunk, 0, chunk.length, end);
    if (length === 0) break;
    const text =
      rest.length === 0 ? chunk.subarray(0, length) : Buffer.concat([rest, chunk.subarray(0, length)]);
    let start = 0;
    for (let at = text.indexOf(10, rest.length); at !== -1; at = text.indexOf(10, start)) {
      yield { bytes: text.subarray(start, at), offset: restOffset + start, complete: true };
      start = at + 1;
    }
    rest = text.subarray(start);
    restOffset += start;
    if (rest.length > LONGEST) {
      yield { bytes: rest, offset: restOffset, complete: true };
      restOffset += rest.length;
      rest = Buffer.alloc(0);
    }
  }
  if (rest.length > 0) yield { bytes: rest, offset: restOffset, complete: false };
}

/** Where the last lines of a file begin: at most `count` of them, none of them torn at its beginning. */
export function offsetOfLastLines(fd: number, size: number, count: number): number {
  let left = count + 1;
  const chunk = Buffer.allocUnsafe(CHUNK);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK);
    const length = readSync(fd, chunk, 0, end - start, start);
    for (let at = length - 1; at >= 0; at -= 1) {
      if (chunk[at] !== 10) continue;
      left -= 1;
      if (left === 0) return start + at + 1;
    }
    end = start;
  }
  return 0;
}
