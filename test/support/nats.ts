import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { orElse } from '../../src/base/or-else.ts';
import { eventually } from './eventually.ts';

/** One real `nats-server` with JetStream on loopback. */
export interface NatsNode {
  readonly name: string;
  /** `nats://127.0.0.1:PORT`; the same after a restart. */
  readonly url: string;
  readonly pid: number | undefined;
  /** Ends it, by default at once and without warning, and waits until it is gone. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on its port with its store. Waits until it takes connections. */
  start(): Promise<void>;
  /** Waits until this server itself says that it has all that the others of its cluster have. */
  caughtUp(): Promise<void>;
  /** As if the network to it were cut: connections stay, and nothing comes (SIGSTOP). Settles once all of it stands still. */
  pause(): Promise<void>;
  resume(): void;
}

/** A server or a cluster. */
export interface NatsServers {
  /** Of all nodes, with commas between. */
  readonly url: string;
  readonly nodes: readonly NatsNode[];
  /** Ends all, and removes what they stored. */
  stop(): Promise<void>;
}

export interface NatsServersOptions {
  /** 1, or 3 for a cluster. */
  readonly nodes?: number;
  /** Further lines of the configuration of every node: accounts, authorization, tls. */
  readonly config?: string;
  /** How a client that looks whether JetStream is there connects; default: without credentials. */
  readonly probe?: Parameters<typeof connect>[0];
}

/** How long a server may take to start, to stop or to catch up. */
const PATIENCE_MS = 60_000;

/**
 * Starts servers, and waits until JetStream answers with a leader. They end with this process, however it ends; `stop` in
 * afterAll ends them before, and removes their directory.
 */
export async function startNats(options: NatsServersOptions = {}): Promise<NatsServers> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await startOnce(options);
    } catch (error) {
      // Between the choice of a port and its use somebody else may take it.
      if (tries === 5 || !/address already in use/.test(String(error))) throw error;
    }
  }
}

async function startOnce({ nodes: count = 1, config = '', probe }: NatsServersOptions): Promise<NatsServers> {
  const root = mkdtempSync(join(tmpdir(), 'sandbox-run-nats-'));
  const ports = await freePorts(count * 3);
  const [clients, routes, monitors] = [0, 1, 2].map((at) => ports.slice(at * count, (at + 1) * count));
  const nodes = (clients ?? []).map((port, index) => {
    const name = `n${index + 1}`;
    const monitor = monitors?.[index] ?? 0;
    const directory = join(root, name);
    mkdirSync(directory);
    const others = JSON.stringify(routes?.map((route) => `nats://127.0.0.1:${route}`));
    const cluster = `cluster { name: test, listen: "127.0.0.1:${routes?.[index]}", routes: ${others} }`;
    writeFileSync(
      join(directory, 'nats.conf'),
      [
        `server_name: ${name}`,
        `listen: "127.0.0.1:${port}"`,
        `http: "127.0.0.1:${monitor}"`,
        `jetstream { store_dir: ${JSON.stringify(directory)}, max_memory_store: 256MB, max_file_store: 8GB }`,
        count === 1 ? '' : cluster,
        config,
        '',
      ].join('\n'),
    );
    return natsNode({ name, directory, port, monitor });
  });
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.kill()));
    rmSync(root, { recursive: true, force: true });
  };
  try {
    await Promise.all(nodes.map((node) => node.start()));
    const servers = { url: nodes.map(({ url }) => url).join(','), nodes, stop };
    await jetStreamIsThere(servers, probe);
    return servers;
  } catch (error) {
    await stop();
    throw error;
  }
}

function natsNode({
  name,
  directory,
  port,
  monitor,
}: {
  readonly name: string;
  readonly directory: string;
  readonly port: number;
  /** The port on which the server says how it does. */
  readonly monitor: number;
}): NatsNode {
  let child: ChildProcess | undefined;
  const log = join(directory, 'log');
  return {
    name,
    url: `nats://127.0.0.1:${port}`,
    get pid() {
      return child?.pid;
    },
    async kill(signal = 'SIGKILL') {
      const ended = child;
      child = undefined;
      if (ended === undefined || ended.exitCode !== null || ended.signalCode !== null) return;
      const gone = new Promise((done) => ended.once('exit', done));
      ended.kill('SIGCONT');
      ended.kill(signal);
      await gone;
    },
    async start() {
      if (child !== undefined) return;
      const before = existsSync(log) ? statSync(log).size : 0;
      // Ends with us, also if we are killed.
      child = spawn('setpriv', ['--pdeathsig', 'KILL', 'nats-server', '-c', 'nats.conf', '-l', log], {
        cwd: directory,
        stdio: 'ignore',
      });
      await isReady(child, () => (existsSync(log) ? readFileSync(log).subarray(before).toString() : ''));
    },
    caughtUp: () =>
      eventually(async () => {
        const answer = await fetch(`http://127.0.0.1:${monitor}/healthz`);
        const said = await answer.text();
        if (answer.status !== 200) throw new Error(`${name} has not caught up: ${said}`);
      }, PATIENCE_MS),
    async pause() {
      if (child?.pid === undefined) return;
      child.kill('SIGSTOP');
      await standsStill(child.pid);
    },
    resume() {
      child?.kill('SIGCONT');
    },
  };
}

/** Until each thread has stopped: a signal is sent sooner, and what is not stopped yet still answers. */
const standsStill = (pid: number) =>
  eventually(() => {
    const running = readdirSync(`/proc/${pid}/task`).filter((thread) => {
      // One that ends meanwhile was not stopped.
      const status = orElse(() => readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1'), '');
      return !status.slice(status.lastIndexOf(')')).startsWith(') T');
    });
    if (running.length > 0) throw new Error(`threads of nats-server that have not stopped: ${running}`);
  }, PATIENCE_MS);

/** Until the server says that it takes connections. @throws what it logged, if it ends. */
async function isReady(child: ChildProcess, logged: () => string): Promise<void> {
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  await eventually(() => {
    if (!hasEnded() && !logged().includes('Server is ready'))
      throw new Error(`nats-server did not start:\n${logged()}`);
  }, PATIENCE_MS);
  if (hasEnded()) throw new Error(`nats-server did not start:\n${logged()}`);
}

async function jetStreamIsThere(
  { url, nodes }: NatsServers,
  probe: NatsServersOptions['probe'],
): Promise<void> {
  const connection = await connect({ ...probe, servers: url.split(','), maxReconnectAttempts: -1 });
  try {
    const name = 'test-servers-are-there';
    const made = JSON.stringify({ name, subjects: [name], storage: 'memory', num_replicas: nodes.length });
    // Only what is kept by all of them shows that all of them are there.
    await eventually(async () => {
      const answer = await connection.request(`$JS.API.STREAM.CREATE.${name}`, made, { timeout: 1_000 });
      const { error } = answer.json<{ error?: object }>();
      if (error !== undefined) throw new Error(`JetStream has no leader: ${JSON.stringify(error)}`);
    }, PATIENCE_MS);
    await connection.request(`$JS.API.STREAM.DELETE.${name}`);
  } finally {
    await connection.close();
  }
}

/** Connections to other servers have their own ports from 32768 on: a server that is killed would not get one of them back. */
const PORTS = [10_000, 32_000] as const;

/** A port that nobody uses at this moment. */
export const freePort = async (): Promise<number> => (await freePorts(1))[0] ?? 0;

/** Ports that nobody uses at this moment. */
async function freePorts(count: number): Promise<readonly number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = randomInt(...PORTS);
    if (await isFree(port)) found.add(port);
  }
  return [...found];
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((done) => {
    server.once('error', () => done(false));
    server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
  });
}
