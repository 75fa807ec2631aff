import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectTcp, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import { orElse } from '../../src/util/index.ts';

/** One real `nats-server` with JetStream on loopback. */
export interface NatsNode {
  readonly name: string;
  /** `nats://127.0.0.1:PORT`; the same after a restart. */
  readonly url: string;
  readonly pid: number | undefined;
  /** Ends it, by default at once and without warning, and waits until it is gone. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on its port with its store. Waits until it answers. */
  start(): Promise<void>;
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

/**
 * Starts servers, and waits until JetStream answers with a leader. They end with this process, however it ends; `stop` in
 * afterAll ends them before, and removes their directory.
 */
export async function startNats(options: NatsServersOptions = {}): Promise<NatsServers> {
  const { nodes: count = 1, config = '', probe } = options;
  const root = mkdtempSync(join(tmpdir(), 'sandbox-run-nats-'));
  const ports = await freePorts(count * 2);
  const routes = ports.slice(count).map((port) => `nats://127.0.0.1:${port}`);
  const nodes = ports.slice(0, count).map((port, index) => {
    const directory = join(root, `n${index + 1}`);
    mkdirSync(directory);
    const cluster =
      count === 1
        ? ''
        : `cluster { name: test, listen: "127.0.0.1:${ports[count + index]}", routes: ${JSON.stringify(routes)} }`;
    writeFileSync(
      join(directory, 'nats.conf'),
      [
        `server_name: n${index + 1}`,
        `listen: "127.0.0.1:${port}"`,
        `jetstream { store_dir: ${JSON.stringify(directory)}, max_memory_store: 256MB, max_file_store: 8GB }`,
        cluster,
        config,
        '',
      ].join('\n'),
    );
    return natsNode(`n${index + 1}`, directory, port);
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

function natsNode(name: string, directory: string, port: number): NatsNode {
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
      // Ends with us, also if we are killed.
      child = spawn('setpriv', ['--pdeathsig', 'KILL', 'nats-server', '-c', 'nats.conf', '-l', log], {
        cwd: directory,
        stdio: 'ignore',
      });
      await answers(child, port, log);
    },
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
async function standsStill(pid: number): Promise<void> {
  const isStopped = (thread: string) => {
    // One that ends meanwhile was not stopped.
    const status = orElse(() => readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1'), '');
    return status.slice(status.lastIndexOf(')')).startsWith(') T');
  };
  for (let tries = 0; tries < 1000; tries += 1) {
    if (readdirSync(`/proc/${pid}/task`).every(isStopped)) return;
    await sleep(10);
  }
  throw new Error('nats-server did not stop');
}

/** Until the server takes connections. */
async function answers(child: ChildProcess, port: number, log: string): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (child.exitCode !== null || child.signalCode !== null) break;
    if (await isTaken(port)) return;
    await sleep(50);
  }
  throw new Error(`nats-server did not start:\n${readFileSync(log, 'utf8')}`);
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
    for (let tries = 0; tries < 200; tries += 1) {
      const answer = await connection
        .request(`$JS.API.STREAM.CREATE.${name}`, made, { timeout: 1_000 })
        .catch(() => undefined);
      if (answer !== undefined && answer.json<{ error?: unknown }>().error === undefined) {
        await connection.request(`$JS.API.STREAM.DELETE.${name}`);
        return;
      }
      await sleep(100);
    }
    throw new Error('JetStream has no leader');
  } finally {
    await connection.close();
  }
}

function isTaken(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connectTcp(port, '127.0.0.1');
    socket.once('connect', () => done(true)).once('error', () => done(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** Ports that nobody uses at this moment. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((done, failed) => {
          server.once('error', failed);
          server.listen(0, '127.0.0.1', () => {
            const address = server.address();
            done(typeof address === 'object' && address !== null ? address.port : 0);
          });
        }),
    ),
  );
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}
