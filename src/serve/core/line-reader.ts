const NEWLINE = 10;
/** Kept from line to line; what a longer one took is given back. */
const KEPT_BYTES = 1024;

/** Cuts a stream of bytes into lines without ever keeping more than one. */
export interface LineReader {
  /** Takes bytes in; `take` then gives the lines. */
  push(chunk: Buffer): void;
  /** The next whole line; `too-long`: there is one that cannot be, and no way to go on; `undefined`: none is there yet. */
  take(): Buffer | 'too-long' | undefined;
  /** True in the middle of a line, also of one that is there as a whole and was not taken. */
  isPartial(): boolean;
}

/** A reader of lines of at most `limit` bytes, the line break not counted. */
export function createLineReader(limit: number): LineReader {
  // One buffer that grows: whoever sends single bytes must not make us keep an object for each.
  let line = Buffer.alloc(KEPT_BYTES);
  let size = 0;
  let rest: Buffer = Buffer.alloc(0);

  function keep(piece: Buffer): void {
    if (size + piece.length > line.length) {
      const larger = Buffer.alloc(Math.min(limit, 2 * (size + piece.length)));
      line.copy(larger, 0, 0, size);
      line = larger;
    }
    piece.copy(line, size);
    size += piece.length;
  }

  return {
    push: (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    },
    take: () => {
      const end = rest.indexOf(NEWLINE);
      const piece = end === -1 ? rest : rest.subarray(0, end);
      if (size + piece.length > limit) return 'too-long';
      keep(piece);
      rest = end === -1 ? Buffer.alloc(0) : rest.subarray(end + 1);
      if (end === -1) return undefined;
      const whole = Buffer.from(line.subarray(0, size));
      size = 0;
      if (line.length > 64 * KEPT_BYTES) line = Buffer.alloc(KEPT_BYTES);
      return whole;
    },
    isPartial: () => size > 0 || rest.length > 0,
  };
}
