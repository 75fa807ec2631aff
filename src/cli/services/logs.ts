import { isatty } from 'node:tty';
import { createDecoder, type OutputLog } from '../../run/index.ts';
import { caller } from '../shared/caller.ts';
import { ENDING, onSignals } from '../shared/signals.ts';

/** Bytes that are written at a time to a reader that follows. */
const PIECE = 64 * 1024;
/** Bytes that may wait for a slow reader; more are not written until it has read some. */
const MOST_UNREAD = 1024 * 1024;
/** Milliseconds between two looks at whether a slow reader has read. */
const SLOW_MS = 50;

/**
 * Prints a log to the caller, and with `follow` further output until the service ends. Returns the signal that ended the printing, if
 * one did. The service never waits for a slow reader: output that the log no longer keeps is skipped, with a note of how much.
 */
export async function printLog(log: OutputLog, follow: boolean): Promise<NodeJS.Signals | undefined> {
  const { write, stdio, gone, unread } = caller();
  const isTerminal = isatty(stdio[1]);
  const decoder = createDecoder(true);
  const print = (text: string) => {
    const bytes = Buffer.from(text, 'latin1');
    return write(1, isTerminal ? Buffer.from(decoder.write(bytes)) : bytes);
  };
  let wake = () => {};
  let ended: NodeJS.Signals | undefined;
  using _ = onSignals(ENDING, (signal) => {
    ended = signal;
    wake();
  });
  using __ = log.watch(() => wake());
  const leave = () => wake();
  gone?.addEventListener('abort', leave, { once: true });
  const isOver = () => ended !== undefined || gone?.aborted === true;
  for (let at = log.start; !isOver(); ) {
    if ((unread?.() ?? 0) > MOST_UNREAD) {
      await new Promise((done) => setTimeout(done, SLOW_MS));
      continue;
    }
    // Without `follow`, the whole log in one piece: read in pieces, the log of a service that writes fast would never end.
    const part = log.read(at, follow ? PIECE : log.length);
    at = part.next;
    if (part.leftOut > 0) write(2, Buffer.from(`[... ${part.leftOut} bytes left out ...]\n`));
    if (part.output !== '' && !print(part.output)) break;
    if (part.more) {
      await new Promise(setImmediate);
      continue;
    }
    if (!follow || log.isEnded) break;
    await new Promise<void>((done) => {
      wake = done;
      if (log.length > at || log.isEnded || isOver()) done();
    });
  }
  gone?.removeEventListener('abort', leave);
  if (isTerminal) write(1, Buffer.from(decoder.end()));
  return ended;
}
