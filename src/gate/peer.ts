import type { Socket } from 'node:net';

/** Who is at the other end of a connection. */
export interface Peer {
  readonly pid: number;
  readonly uid: number;
}

/** Asks the kernel; `undefined`: it does not say, and the connection is to be refused. */
export function peerOf(socket: Socket, peerCredentials: (fd: number) => Peer): Peer | undefined {
  try {
    const handle = '_handle' in socket ? socket._handle : undefined;
    const fd = typeof handle === 'object' && handle !== null && 'fd' in handle ? handle.fd : undefined;
    return typeof fd === 'number' ? peerCredentials(fd) : undefined;
  } catch {
    return undefined;
  }
}
