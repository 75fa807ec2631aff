import { createServer, type Server, type Socket } from 'node:net';
import { deferred } from '../../base/deferred.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { chmodItself } from '../../workspace/index.ts';
import { claimSocketPath, type PathClaim } from './claim-path.ts';
import { Connection, TOO_MANY, tooManyClients } from './connection.ts';
import { Entrance } from './entrance.ts';
import { responseToError } from './errors.ts';
import type { Offer, RefusalCode } from './offer.ts';
import { type Peer, peerOf } from './peer.ts';

/** For a client that is turned away to read why. */
const FAREWELL_MS = 1_000;

/** Where to listen, whose connections to serve, and for how long. */
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
  /** Asked when nobody was connected for so long: true, and `ended` does not settle yet. */
  readonly isNeeded?: () => boolean;
  /** True: nothing is read of a connection before it is resumed, so that descriptors can be taken out of it. */
  readonly pauses?: boolean;
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

/** A connection that is served. */
interface Served {
  /** Settles when it is over. */
  readonly ended: Promise<void>;
  /** Ends it, with a sentence that says why. */
  end(reason: string): Promise<void>;
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
  const { connections: most, handshakeMs } = offer.limits;
  const turnAway = (socket: Socket) => {
    socket.end(`${JSON.stringify(responseToError(null, tooManyClients(offer.limits)))}\n`);
    // Nothing is read of it, and it is not waited for.
    setTimeout(() => socket.destroy(), FAREWELL_MS).unref();
  };
  const refused = (peer: Peer | undefined, code: RefusalCode, message: string) =>
    void offer.onRefused?.({ code, peer, message });
  const bounds = { admitted: most, waiting: most };
  const entrance = new Entrance<Client>(bounds, ({ socket, peer, connection }) => {
    turnAway(socket);
    refused(peer, 'too_many_connections', TOO_MANY);
    void connection.end('it was turned away');
  });
  return listenOn(
    {
      ...options,
      onForeign: (peer) => refused(peer, 'foreign_peer', 'somebody connected who may not ask'),
    },
    (socket, peer) => {
      if (entrance.isFull()) {
        turnAway(socket);
        refused(peer, 'too_many_connections', TOO_MANY);
        return undefined;
      }
      const admit = () => entrance.admit(client);
      const connection = new Connection(offer, { input: socket, output: socket, peer, handshakeMs, admit });
      const client: Client = { socket, peer, connection };
      entrance.enter(client);
      void connection.ended.then(() => entrance.leave(client));
      return connection;
    },
  );
}

/**
 * Listens on a Unix socket. `serve`: begins with a connection of somebody who is admitted, of which nothing was read;
 * `undefined`: it is not served.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function listenOn(
  options: ListenOptions & { readonly onForeign?: (peer: Peer | undefined) => void },
  serve: (socket: Socket, peer: Peer) => Served | undefined,
): Promise<Listener> {
  const { addon, admits, forOthers = false, unusedTimeout = 0 } = options;
  const { path, release } = await claimSocketPath(options.path, addon.tryLock, options);
  const served = new Set<Served>();
  let idle: NodeJS.Timeout | undefined;
  const { promise: ended, resolve: end } = deferred<void>();
  const rest = () => {
    clearTimeout(idle);
    if (unusedTimeout === 0 || served.size > 0) return;
    idle = setTimeout(() => (options.isNeeded?.() === true ? rest() : end()), unusedTimeout);
  };

  function accept(socket: Socket): void {
    socket.on('error', () => {});
    const peer = peerOf(socket, addon.peerCredentials);
    if (peer === undefined || !admits(peer)) {
      socket.destroy();
      options.onForeign?.(peer);
      return;
    }
    const one = serve(socket, peer);
    if (one === undefined) return;
    clearTimeout(idle);
    served.add(one);
    void one.ended.then(() => {
      served.delete(one);
      setImmediate(rest);
    });
  }

  const server = createServer({ allowHalfOpen: true, pauseOnConnect: options.pauses === true }, accept);
  try {
    options.check?.(path);
    await listen(server, path, options.name);
    // A command may have put a link in its place by now.
    chmodItself(path, forOthers ? 0o666 : 0o600);
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
      await Promise.all([...served].map((one) => one.end(reason)));
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
