import { Transform, type TransformCallback, type Writable } from 'node:stream';
import { createLineReader } from '../../util/line-reader.ts';

/** Bytes of one message of a client: a command has a tenth of it at most. */
export const LONGEST_MESSAGE = 1024 * 1024;
/** Answers that wait for a client that does not read: it is not listened to meanwhile. */
const UNREAD_BYTES = 8 * 1024 * 1024;
const NEWLINE = Buffer.from('\n');

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
  const reader = createLineReader(longest);
  return new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      reader.push(chunk);
      for (let line = reader.take(); line !== undefined; line = reader.take()) {
        if (line === 'too-long') onTooLong();
        else this.push(Buffer.concat([line, NEWLINE]));
      }
      if (output.writableLength > UNREAD_BYTES) output.once('drain', done);
      else done();
    },
  });
}
