import { chmodSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { SandboxError } from '../../../errors/sandbox-error.ts';
import { errnoOf } from '../../../util/errno-of.ts';
import type { Answerer } from '../answer.ts';
import { type GateServer, principalOf, type ReportRefusal } from '../ports.ts';
import { claimSocketPath } from './claim-path.ts';
import { type Connection, serveConnection } from './connection.ts';
import { SOCKET_LIMITS, type SocketLimits } from './connection-limits.ts';

/** Where to listen, to whom, and who answers. */
export interface SocketServerOptions {
  readonly path: string;
  /** Users that may ask, whatever the mode of the socket. */
  readonly allowedUids: ReadonlySet<number>;
  /** The addon's: who connected the socket of a descriptor, as the kernel noted it. */
  readonly peerOf: (fd: number) => { readonly uid: number };
  /** The addon's: takes the lock of an open file. */
  readonly tryLock: (fd: number) => boolean;
  readonly answer: Answerer;
  readonly report: ReportRefusal;
  readonly limits?: Partial<SocketLimits>;
}

/**
 * Listens on a Unix socket. The socket's mode keeps other users out where only we may ask; where others may, everybody
 * can connect, and whoever may not ask is closed before a byte is read.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function serveSocket(options: SocketServerOptions): Promise<GateServer> {
  const { allowedUids, peerOf, answer, report } = options;
  const limits = { ...SOCKET_LIMITS, ...options.limits };
  const { path, release } = await claimSocketPath(options.path, options.tryLock);
  const connections = new Set<Connection>();
  let closing = false;

  function accept(socket: Socket): void {
    // Before the identity is settled nothing about it may end the server.
    socket.on('error', () => {});
    const uid = peerUid(socket, peerOf);
    const principal = uid === undefined ? 'unknown' : principalOf(uid);
    const refuse = (code: 'foreign_peer' | 'too_many_connections', message: string) => {
      socket.destroy();
      void report({ code, transport: 'socket', principal, message });
    };
    if (uid === undefined || !allowedUids.has(uid)) {
      refuse('foreign_peer', 'somebody connected who may not ask');
      return;
    }
    if (closing || connections.size >= limits.connections) {
      refuse('too_many_connections', 'too many clients are connected');
      return;
    }
    const connection = serveConnection({ socket, principal, answer, report, limits });
    connections.add(connection);
    socket.once('close', () => connections.delete(connection));
  }

  const server = createServer(accept);
  await listen(server, path).finally(release);
  const forOthers = [...allowedUids].some((uid) => uid !== process.geteuid?.());
  chmodSync(path, forOthers ? 0o666 : 0o600);
  // A connection that cannot be accepted (no descriptors left) is one that gets no answer.
  server.on('error', () => {});

  return {
    close: async () => {
      closing = true;
      // Takes the socket's file away, too.
      const closed = new Promise<void>((done) => server.close(() => done()));
      await Promise.all([...connections].map((one) => one.close('the gate server is stopping')));
      await closed;
    },
  };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((done, fail) => {
    server.once('error', (error) => {
      const code = errnoOf(error) ?? error.message;
      fail(new SandboxError('gate.unusable', `the gate cannot listen on ${path} (${code})`));
    });
    server.listen({ path, backlog: 128 }, () => {
      server.removeAllListeners('error');
      done();
    });
  });
}

/** `undefined`: the kernel does not say, so that nobody is to be trusted. */
function peerUid(socket: Socket, peerOf: SocketServerOptions['peerOf']): number | undefined {
  try {
    // Node has no name for it.
    const { _handle: handle } = socket as { readonly _handle?: { readonly fd?: unknown } | null };
    return typeof handle?.fd === 'number' && handle.fd >= 0 ? peerOf(handle.fd).uid : undefined;
  } catch {
    return undefined;
  }
}
