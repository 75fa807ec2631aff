import { chmodSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { errnoOf } from '../../util/errno-of.ts';
import { claimSocketPath, type PathClaim } from './claim-path.ts';
import { Connection, TOO_MANY, tooManyClients } from './connection.ts';
import { createEntrance } from './entrance.ts';
import { responseToError } from './errors.ts';
import type { Offer, RefusalCode } from './offer.ts';
import { type Peer, peerOf } from './peer.ts';

/** For a client that is turned away to read why. */
const FAREWELL_MS = 1_000;

/** Where to listen, to whom, and for how long. */
interface ListenOptions extends PathClaim {
  readonly path: string;
  /** Whose connection is served; of all others not a byte is read. */
  readonly admits: (peer: Peer) => boolean;
  /** True: other users may connect, and `admits` says which of them are heard. */
  readonly forOthers?: boolean;
  /** Refuses the path, by where it really is. */
  readonly check?: (path: string) => void;
  /** Milliseconds without any connection after which `ended` settles; 0: never. */
  readonly unusedTimeout?: number;
  readonly addon: SocketAddon;
}

/** What a socket needs of the addon. */
interface SocketAddon {
  /** Who connected the socket of a descriptor, as the kernel noted it. */
  readonly peerCredentials: (fd: number) => Peer;
  /** Takes the lock of an open file. */
  readonly tryLock: (fd: number) => boolean;
}

/** A server that listens. */
export interface Listener {
  readonly path: string;
  /** Settles when nobody was connected for long. */
  readonly ended: Promise<void>;
  /** Takes no more clients, ends those that there are with a sentence that says why, and takes the socket away. */
  close(reason: string): Promise<void>;
}

/** One that is connected. */
interface Client {
  readonly socket: Socket;
  readonly peer: Peer;
  readonly connection: Connection;
}

/**
 * Serves what is offered on a Unix socket.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function listenForClients(offer: Offer, options: ListenOptions): Promise<Listener> {
  const { addon, admits, forOthers = false, unusedTimeout = 0 } = options;
  const { connections: most, handshakeMs } = offer.limits;
  const { path, release } = await claimSocketPath(options.path, addon.tryLock, options);
  const connections = new Set<Connection>();
  let idle: NodeJS.Timeout | undefined;
  let end = () => {};
  const ended = new Promise<void>((done) => {
    end = done;
  });
  const rest = () => {
    clearTimeout(idle);
    if (unusedTimeout > 0 && connections.size === 0) idle = setTimeout(end, unusedTimeout);
  };

  const turnAway = (socket: Socket) => {
    socket.end(`${JSON.stringify(responseToError(null, tooManyClients(offer.limits)))}\n`);
    // Nothing is read of it, and it is not waited for.
    setTimeout(() => socket.destroy(), FAREWELL_MS).unref();
  };
  const refused = (peer: Peer | undefined, code: RefusalCode, message: string) =>
    void offer.onRefused?.({ code, peer, message });
  const bounds = { admitted: most, waiting: most };
  const entrance = createEntrance<Client>(bounds, ({ socket, peer, connection }) => {
    turnAway(socket);
    refused(peer, 'too_many_connections', TOO_MANY);
    void connection.end('it was turned away');
  });

  function accept(socket: Socket): void {
    socket.on('error', () => {});
    const peer = peerOf(socket, addon.peerCredentials);
    if (peer === undefined || !admits(peer)) {
      socket.destroy();
      refused(peer, 'foreign_peer', 'somebody connected who may not ask');
      return;
    }
    if (entrance.isFull()) {
      turnAway(socket);
      refused(peer, 'too_many_connections', TOO_MANY);
      return;
    }
    clearTimeout(idle);
    const admit = () => entrance.admit(client);
    const connection = new Connection(offer, { input: socket, output: socket, peer, handshakeMs, admit });
    const client: Client = { socket, peer, connection };
    connections.add(connection);
    entrance.enter(client);
    void connection.ended.then(() => {
      connections.delete(connection);
      entrance.leave(client);
      setImmediate(rest);
    });
  }

  const server = createServer({ allowHalfOpen: true }, accept);
  try {
    options.check?.(path);
    await listen(server, path, options.name);
    chmodSync(path, forOthers ? 0o666 : 0o600);
  } finally {
    release();
  }
  // A connection that cannot be accepted (no descriptors left) is one that is not served.
  server.on('error', () => {});
  rest();
  return {
    path,
    ended,
    close: async (reason) => {
      clearTimeout(idle);
      // Takes the socket's file away, too.
      const closed = new Promise<void>((done) => server.close(() => done()));
      await Promise.all([...connections].map((connection) => connection.end(reason)));
      await closed;
    },
  };
}

function listen(server: Server, path: string, name: string): Promise<void> {
  return new Promise((done, fail) => {
    server.once('error', (error) => {
      const code = errnoOf(error) ?? error.message;
      fail(new SandboxError('gate.unusable', `${name} cannot listen on ${path} (${code})`));
    });
    server.listen({ path, backlog: 511 }, () => {
      server.removeAllListeners('error');
      done();
    });
  });
}
