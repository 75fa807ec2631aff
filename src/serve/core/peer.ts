import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

/** Who is at the other end of a connection. */
export interface Peer {
  readonly pid: number;
  readonly uid: number;
}

/** Asks the kernel; `undefined`: it does not say, and the connection is to be refused. */
export function peerOf(socket: Socket, peerCredentials: (fd: number) => Peer): Peer | undefined {
  try {
    const fd = descriptorOf(socket);
    return fd === undefined ? undefined : peerCredentials(fd);
  } catch {
    return undefined;
  }
}

/** The descriptor of a socket, which stays its own; `undefined`: it has none any more. */
export function descriptorOf(socket: Socket): number | undefined {
  // Node has no name for it.
  const handle = '_handle' in socket ? socket._handle : undefined;
  const fd = typeof handle === 'object' && handle !== null && 'fd' in handle ? handle.fd : undefined;
  return typeof fd === 'number' && fd >= 0 ? fd : undefined;
}

/** A program of this user that is not more confined than this process, as commands in a sandbox are. */
export function isOurs({ uid, pid }: Peer): boolean {
  return uid === process.geteuid?.() && !isMoreConfined(pid);
}

/** What the kernel says about a process that it keeps from something. */
interface Confinement {
  readonly noNewPrivileges: number;
  readonly filters: number;
}

/**
 * Whether a process is confined in a way that we are not, as sandboxed commands are: such a one does not answer for the
 * user, should it ever reach us. Whoever is gone or cannot be looked at counts as confined.
 */
function isMoreConfined(pid: number): boolean {
  const peer = pid > 0 ? confinementOf(String(pid)) : undefined;
  own ??= confinementOf('self');
  if (peer === undefined || own === undefined) return true;
  return peer.noNewPrivileges > own.noNewPrivileges || peer.filters > own.filters;
}

/** Cached: the confinement of a process never decreases. If ours increases, peers as confined as we are then are refused. */
let own: Confinement | undefined;

function confinementOf(process: string): Confinement | undefined {
  try {
    const status = readFileSync(`/proc/${process}/status`, 'utf8');
    const field = (name: string) => new RegExp(`^${name}:\\s*(\\d+)$`, 'm').exec(status)?.[1];
    return {
      noNewPrivileges: Number(field('NoNewPrivs') ?? 0),
      // Counted since Linux 5.9; before that the mode says whether there is one (2). They are no common measure.
      filters: Number(field('Seccomp_filters') ?? field('Seccomp') ?? 0),
    };
  } catch {
    return undefined;
  }
}
