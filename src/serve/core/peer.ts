import type { Socket } from 'node:net';
import { isMoreConfined } from '../../gate/approvals/peer-confinement.ts';

/** Who is at the other end of a connection. */
export interface Peer {
  readonly pid: number;
  readonly uid: number;
}

/** Asks the kernel; `undefined`: it does not say, and the connection is to be refused. */
export function peerOf(socket: Socket, peerCredentials: (fd: number) => Peer): Peer | undefined {
  try {
    // Node has no name for it.
    const handle = '_handle' in socket ? socket._handle : undefined;
    const fd = typeof handle === 'object' && handle !== null && 'fd' in handle ? handle.fd : undefined;
    return typeof fd === 'number' && fd >= 0 ? peerCredentials(fd) : undefined;
  } catch {
    return undefined;
  }
}

/** A program of this user that is not more confined than this process, as commands in a sandbox are. */
export function isOurs({ uid, pid }: Peer): boolean {
  return uid === process.geteuid?.() && !isMoreConfined(pid);
}
