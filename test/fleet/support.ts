import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import {
  createFleet,
  type Fleet,
  FleetWorker,
  openQueue,
  type Queue,
  readWorker,
  type WorkerOptions,
} from '../../src/fleet/index.ts';
import { connectNats } from '../../src/gate/nats/index.ts';
import { makePlace, type Place } from '../library/support.ts';
import { type NatsServers, startNats } from '../support/nats.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url));

/** A lease whose renewal a test can wait for. */
export const SHORT_LEASE = 9000;
/** Milliseconds for which a worker that is dead has its lease, once a test has shortened it. */
const REST_OF_LEASE = 300;

/** Servers, workers and submitters of one test file; all end with it. */
export interface FleetWorld {
  readonly place: Place;
  readonly servers: NatsServers;
  /** Starts a worker in this process; its workspace is `place.workspace`. */
  worker(queue: string, options?: Partial<WorkerOptions>): Promise<FleetWorker>;
  fleet(queue: string): Promise<Fleet>;
  /** A queue as somebody has it who may do everything on the server. The connection ends with the test file. */
  open(queue: string): Promise<Queue>;
  /** Takes the lease of a worker away, as another worker would that saw no sign of life. */
  takeLease(queue: string, worker: string): Promise<void>;
  /** Has others wait for a moment only until they take the lease of a dead worker away. */
  shortenLease(queue: string, worker: string): Promise<void>;
  /**
   * Has the server offer the jobs of dead workers to the next worker that starts. Else it does so once nothing was said of
   * them for `ACK_WAIT`.
   */
  offerAgain(queue: string): Promise<void>;
  /** Does something when the test file ends. */
  atEnd(end: () => Promise<void>): void;
  /** A new name of a queue. */
  queue(): string;
}

export function makeFleetWorld(nodes: 1 | 3 = 1): FleetWorld {
  let servers: NatsServers | undefined;
  let place: Place | undefined;
  const ends: (() => Promise<void>)[] = [];
  let queues = 0;
  beforeAll(async () => {
    place = makePlace();
    mkdirSync(join(place.root, 'scratch'));
    servers = await startNats({ nodes });
  });
  afterAll(async () => {
    await Promise.all(ends.map((end) => end()));
    await servers?.stop();
    place?.dispose();
  });
  const there = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('it is there once the tests run');
    return value;
  };
  const open = async (queue: string) => {
    const connection = await connectNats({ url: there(servers).url }, 'administrator');
    ends.push(() => connection.close());
    return openQueue(connection, queue);
  };
  const changeLease = async (queue: string, worker: string, changes: object) => {
    const { workers } = await open(queue);
    for (;;) {
      const entry = await workers.get(worker);
      const record = entry === null ? undefined : readWorker(entry.value);
      const changed = JSON.stringify({ ...record, ...changes });
      // It may renew it at the same time.
      const written = await workers.update(worker, changed, entry?.revision ?? 0).catch(() => undefined);
      if (written !== undefined) return;
    }
  };
  return {
    get place() {
      return there(place);
    },
    open,
    atEnd: (end) => void ends.push(end),
    get servers() {
      return there(servers);
    },
    queue: () => `q${++queues}`,
    async worker(queue, options = {}) {
      const connection = await connectNats({ url: there(servers).url }, 'worker');
      const { workspace, root } = there(place);
      const worker = await FleetWorker.start({
        ...{ connection, queue, sandbox: { workspace }, scratch: join(root, 'scratch') },
        ...options,
      });
      ends.push(async () => {
        await worker.stop(0);
        await connection.close();
      });
      return worker;
    },
    takeLease: (queue, worker) => changeLease(queue, worker, { state: 'lost' }),
    shortenLease: (queue, worker) => changeLease(queue, worker, { leaseMs: REST_OF_LEASE }),
    async offerAgain(queue) {
      const { manager, names } = await open(queue);
      for await (const { name } of manager.consumers.list(names.jobs))
        await manager.consumers.delete(names.jobs, name);
    },
    async fleet(queue) {
      const fleet = await createFleet({ url: there(servers).url, queue });
      ends.push(() => fleet.close());
      return fleet;
    },
  };
}

/** `sandbox-run worker` as a process of its own. */
export interface WorkerProcess {
  readonly id: string;
  readonly pid: number;
  readonly ended: Promise<number | null>;
  /** What it has written to standard error so far. */
  readonly said: () => string;
  /** Sends a signal. */
  kill(signal: NodeJS.Signals): void;
}

/** How a worker process is started, beside where its queue is. */
interface WorkerProcessOptions {
  readonly args?: readonly string[];
  /** In place of that of this process. */
  readonly env?: NodeJS.ProcessEnv;
}

/** Starts one in the workspace of the world, and waits until it is ready. Ends with the world, or with this process. */
export async function startWorkerProcess(
  { servers, place, atEnd }: FleetWorld,
  queue: string,
  { args = [], env = process.env }: WorkerProcessOptions = {},
): Promise<WorkerProcess> {
  const settings = ['--url', servers.url, '--workspace', place.workspace];
  const child = spawn(
    'setpriv',
    ['--pdeathsig', 'KILL', process.execPath, CLI, 'worker', '--queue', queue, ...settings, ...args],
    { env, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const ended = new Promise<number | null>((done) => child.once('exit', (code) => done(code)));
  atEnd(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let said = '';
  child.stderr.on('data', (bytes) => {
    said += String(bytes);
  });
  const line = await new Promise<string>((done, failed) => {
    child.stdout.once('data', (bytes) => done(String(bytes)));
    void ended.then((code) => failed(new Error(`the worker ended with ${code}: ${said}`)));
  });
  return {
    id: /worker is ready: (\w+)/.exec(line)?.[1] ?? '',
    pid: child.pid ?? 0,
    ended,
    said: () => said,
    kill: (signal) => void child.kill(signal),
  };
}
