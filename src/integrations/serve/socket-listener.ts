import { chmodSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { isMoreConfined } from '../../gate/approvals/peer-confinement.ts';
import { type Peer, peerOf } from '../../gate/peer.ts';
import { claimSocketPath } from '../../gate/server/connection/claim-path.ts';
import { createEntrance } from '../../gate/server/connection/entrance.ts';
import type { LaunchPlan } from '../../model/launch-plan.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { errnoOf } from '../../util/errno-of.ts';
import type { Connection } from './connection.ts';
import { responseToError } from './errors.ts';
import { tooManyClients } from './handlers.ts';
import type { Service } from './service.ts';

/** For a client that is turned away to read why. */
const FAREWELL_MS = 1_000;

/** Where to listen, and for how long. */
export interface ListenOptions {
  readonly path: string;
  /** Milliseconds without any connection after which `ended` settles; 0: never. */
  readonly unusedTimeout: number;
  /** The addon's. */
  readonly peerCredentials: (fd: number) => Peer;
  readonly tryLock: (fd: number) => boolean;
}

/** One that is connected. */
interface Client {
  readonly socket: Socket;
  readonly connection: Connection;
}

/** A server that listens. */
export interface Listener {
  readonly path: string;
  /** Settles when nobody was connected for long. */
  readonly ended: Promise<void>;
  /** Takes no more clients and takes the socket away. */
  close(): Promise<void>;
}

/**
 * Listens on a Unix socket for programs of this user. Whoever is more confined than this process, as its commands are,
 * is not heard, and the socket may not lie where they are.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function listenForClients(service: Service, options: ListenOptions): Promise<Listener> {
  const { peerCredentials, tryLock, unusedTimeout } = options;
  const claim = { name: 'serve', sharedDirectory: false };
  const { path, release } = await claimSocketPath(options.path, tryLock, claim);
  let idle: NodeJS.Timeout | undefined;
  let end = () => {};
  const ended = new Promise<void>((done) => {
    end = done;
  });
  const rest = () => {
    clearTimeout(idle);
    if (unusedTimeout > 0 && service.connections() === 0) idle = setTimeout(end, unusedTimeout);
  };

  const turnAway = (socket: Socket) => {
    socket.end(`${JSON.stringify(responseToError(null, tooManyClients(service.limits)))}\n`);
    // Nothing is read of it, and it is not waited for.
    setTimeout(() => socket.destroy(), FAREWELL_MS).unref();
  };
  const { connections } = service.limits;
  const most = { admitted: connections, waiting: connections };
  const entrance = createEntrance<Client>(most, ({ socket, connection }) => {
    turnAway(socket);
    void connection.end();
  });

  function accept(socket: Socket): void {
    socket.on('error', () => {});
    const peer = peerOf(socket, peerCredentials);
    const isOurs = peer !== undefined && peer.uid === process.geteuid?.() && !isMoreConfined(peer.pid);
    if (!isOurs) {
      socket.destroy();
      return;
    }
    if (entrance.isFull()) {
      turnAway(socket);
      return;
    }
    clearTimeout(idle);
    const { handshakeMs } = service.limits;
    const admit = () => entrance.admit(client);
    const connection = service.connect({ input: socket, output: socket, handshakeMs, admit });
    const client: Client = { socket, connection };
    entrance.enter(client);
    void connection.ended.then(() => {
      entrance.leave(client);
      setImmediate(rest);
    });
  }

  const server = createServer({ allowHalfOpen: true }, accept);
  try {
    refuseReachable(path, service.sandbox.plan);
    await listen(server, path);
    chmodSync(path, 0o600);
  } finally {
    release();
  }
  // A connection that cannot be accepted (no descriptors left) is one that is not served.
  server.on('error', () => {});
  rest();
  return {
    path,
    ended,
    close: () =>
      new Promise((done) => {
        clearTimeout(idle);
        // Takes the socket's file away, too. It waits for connections, which end with the service.
        server.close(() => done());
      }),
  };
}

/** Where commands can read they could also connect, on kernels that cannot keep them from it. */
function refuseReachable(path: string, { paths, workspace }: LaunchPlan): void {
  const roots = [workspace, ...paths.map((planned) => planned.path)];
  const root = roots.find((place) => isBeneath(path, place) || isBeneath(dirname(path), place));
  if (root === undefined) return;
  throw new SandboxError(
    'gate.unusable',
    `serve cannot use ${path}: it lies in ${root}, which commands can reach; choose a directory outside, such as one in XDG_RUNTIME_DIR`,
  );
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((done, fail) => {
    server.once('error', (error) => {
      const code = errnoOf(error) ?? error.message;
      fail(new SandboxError('gate.unusable', `serve cannot listen on ${path} (${code})`));
    });
    server.listen({ path, backlog: 128 }, () => {
      server.removeAllListeners('error');
      done();
    });
  });
}
