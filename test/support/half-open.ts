import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** What somebody sends to a web server who wants to keep a connection for nothing. */
export const HALF_OPEN: readonly (readonly [string, string])[] = [
  ['nothing sent', ''],
  ['half a line sent', 'GET / HT'],
  ['half a request sent', 'GET / HTTP/1.1\r\nX-Slow: '],
];

/** As many at a time as every server's queue takes. */
const BATCH = 50;
const PAUSE_MS = 20;
/** Until another one takes the place of one that was taken away. */
const AGAIN_MS = 300;

/** Holds connections open. `again`: makes a new one in place of each that is taken away, which it sees if it `reads`. */
export async function holdOpen(
  count: number,
  open: () => Socket,
  text: string,
  { again = true, reads = true }: { readonly again?: boolean; readonly reads?: boolean } = {},
) {
  const sockets = new Set<Socket>();
  let dropped = 0;
  let over = false;
  function hold(): void {
    if (over) return;
    const socket = open();
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('connect', () => text !== '' && socket.write(text));
    if (reads) socket.resume();
    socket.on('close', () => {
      sockets.delete(socket);
      dropped += 1;
      if (again) setTimeout(hold, AGAIN_MS).unref();
    });
  }
  for (let made = 0; made < count; made += 1) {
    hold();
    if (made % BATCH === BATCH - 1) await sleep(PAUSE_MS);
  }
  await sleep(AGAIN_MS);
  return {
    /** How many are open now. */
    held: () => sockets.size,
    dropped: () => dropped,
    release() {
      over = true;
      for (const socket of sockets) socket.destroy();
    },
  };
}
