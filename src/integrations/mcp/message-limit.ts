import { Transform, type TransformCallback, type Writable } from 'node:stream';

/** Bytes of one message of a client: a command has a tenth of it at most. */
export const LONGEST_MESSAGE = 1024 * 1024;
/** Answers that wait for a client that does not read: it is not listened to meanwhile. */
const UNREAD_BYTES = 8 * 1024 * 1024;
const NEWLINE = 10;

/** What is done with the input of a client. */
interface MessageLimitOptions {
  readonly longest: number;
  /** Where the answers go. */
  readonly output: Writable;
  /** Called for each message that was left out. */
  readonly onTooLong: () => void;
}

/** Hands on whole lines: those that are too long are left out, and nothing comes while too many answers are unread. */
export function limitMessages({ longest, output, onTooLong }: MessageLimitOptions): Transform {
  const kept = Buffer.alloc(longest);
  let size = 0;
  let skipping = false;

  function take(piece: Buffer): void {
    if (skipping) return;
    if (size + piece.length <= longest) {
      piece.copy(kept, size);
      size += piece.length;
      return;
    }
    skipping = true;
    size = 0;
    onTooLong();
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      let from = 0;
      for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
        take(chunk.subarray(from, end));
        if (!skipping) this.push(Buffer.concat([kept.subarray(0, size), Buffer.from('\n')]));
        skipping = false;
        size = 0;
        from = end + 1;
      }
      take(chunk.subarray(from));
      if (output.writableLength > UNREAD_BYTES) output.once('drain', done);
      else done();
    },
  });
}
