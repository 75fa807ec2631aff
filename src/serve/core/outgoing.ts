import type { Writable } from 'node:stream';

/** What is said to one client, in order. Nothing is encoded before there is room for it. */
export interface Outgoing {
  /** Settles when the message was handed on and there is room for the next, or nobody listens any more. Never rejects. */
  send(message: unknown): Promise<void>;
  /** Settles when all that was to be said before has been taken. */
  flush(): Promise<void>;
  /** Nothing is said from now on. */
  close(): void;
}

/** @see Outgoing */
export function createOutgoing(stream: Writable): Outgoing {
  let last: Promise<void> = Promise.resolve();
  let closed = false;
  const isOpen = () => !closed && stream.writable;
  // One for all waits: each of them would otherwise add listeners of its own.
  let wake = () => {};
  const awake = () => wake();
  stream.on('drain', awake);
  stream.on('close', awake);
  stream.on('error', awake);
  const room = () =>
    new Promise<void>((done) => {
      wake = done;
      if (!isOpen() || !stream.writableNeedDrain) done();
    });

  return {
    send: (message) => {
      last = last.then(async () => {
        if (!isOpen()) return;
        if (!stream.write(`${JSON.stringify(message)}\n`)) await room();
      });
      return last;
    },
    flush: () => last,
    close: () => {
      closed = true;
      awake();
    },
  };
}
