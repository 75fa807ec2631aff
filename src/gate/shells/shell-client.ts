import { connect } from 'node:net';
import type { ClientMessage, ServerMessage } from './messages.ts';

/** A connection to the server of a session. */
export interface ShellConnection {
  send(message: ClientMessage): void;
  close(): void;
}

/**
 * Connects to the server of a session; `undefined`: nobody listens there. `onMessage` gets what it says, `onEnd` is
 * called when there will be no more.
 */
export function connectToShell(
  path: string,
  onMessage: (message: ServerMessage) => void,
  onEnd: () => void,
): Promise<ShellConnection | undefined> {
  return new Promise((done, fail) => {
    const socket = connect(path);
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ECONNREFUSED' || error.code === 'ENOENT') done(undefined);
      else fail(error);
    });
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      socket.on('error', () => socket.destroy());
      socket.once('close', onEnd);
      // Pieces are joined once, however many there are.
      let pieces: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => {
        let rest = chunk;
        for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10)) {
          const line = Buffer.concat([...pieces, rest.subarray(0, at)]).toString('utf8');
          pieces = [];
          rest = rest.subarray(at + 1);
          onMessage(JSON.parse(line));
        }
        if (rest.length > 0) pieces.push(rest);
      });
      done({
        send: (message) => socket.write(`${JSON.stringify(message)}\n`),
        close: () => socket.destroySoon(),
      });
    });
  });
}
