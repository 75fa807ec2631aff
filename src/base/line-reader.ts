const NEWLINE = 10;
/** Kept from line to line; what a longer one took is given back. */
const KEPT_BYTES = 1024;

/** Cuts a stream of bytes into lines without ever keeping more than one. */
export interface LineReader {
  /** Takes bytes in; `take` then gives the lines. */
  push(chunk: Buffer): void;
  /** The next whole line; `too-long`: one that is not kept, told once and without waiting for its end; `undefined`: none yet. */
  take(): Buffer | 'too-long' | undefined;
  /** True in the middle of a line, also of one that is there as a whole and was not taken. */
  isPartial(): boolean;
}

/** A reader of lines of at most `limit` bytes, the line break not counted. */
export function createLineReader(limit: number): LineReader {
  // One growing buffer, so that a sender of single bytes does not cost an object for each.
  let line = Buffer.alloc(KEPT_BYTES);
  let size = 0;
  let rest: Buffer = Buffer.alloc(0);
  /** Whether the next bytes are the rest of a line that is too long. */
  let skipping = false;

  function keep(piece: Buffer): void {
    if (size + piece.length > line.length) {
      const larger = Buffer.alloc(Math.min(limit, 2 * (size + piece.length)));
      line.copy(larger, 0, 0, size);
      line = larger;
    }
    piece.copy(line, size);
    size += piece.length;
  }

  function take(): Buffer | 'too-long' | undefined {
    const end = rest.indexOf(NEWLINE);
    const piece = end === -1 ? rest : rest.subarray(0, end);
    rest = end === -1 ? Buffer.alloc(0) : rest.subarray(end + 1);
    if (skipping) {
      skipping = end === -1;
      return skipping ? undefined : take();
    }
    if (size + piece.length > limit) {
      skipping = end === -1;
      size = 0;
      return 'too-long';
    }
    keep(piece);
    if (end === -1) return undefined;
    const whole = Buffer.from(line.subarray(0, size));
    size = 0;
    if (line.length > 64 * KEPT_BYTES) line = Buffer.alloc(KEPT_BYTES);
    return whole;
  }

  return {
    push: (chunk) => {
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    },
    take,
    isPartial: () => size > 0 || rest.length > 0 || skipping,
  };
}
