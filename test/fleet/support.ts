import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { createFleet, type Fleet } from '../../src/fleet/fleet.ts';
import { FleetWorker, type WorkerOptions } from '../../src/fleet/worker.ts';
import { connectNats } from '../../src/nats/connection.ts';
import { makePlace, type Place } from '../library/support.ts';
import { type NatsServers, startNats } from '../support/nats.ts';

/** A lease that a test can wait for. */
export const SHORT_LEASE = 9000;

/** Servers, workers and submitters of one test file; all end with it. */
export interface FleetWorld {
  readonly place: Place;
  readonly servers: NatsServers;
  /** Starts a worker in this process; its workspace is `place.workspace`. */
  worker(queue: string, options?: Partial<WorkerOptions>): Promise<FleetWorker>;
  fleet(queue: string): Promise<Fleet>;
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
  }, 60_000);
  afterAll(async () => {
    await Promise.all(ends.map((end) => end()));
    await servers?.stop();
    place?.dispose();
  }, 60_000);
  const there = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error('it is there once the tests run');
    return value;
  };
  return {
    get place() {
      return there(place);
    },
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
    async fleet(queue) {
      const fleet = await createFleet({ url: there(servers).url, queue });
      ends.push(() => fleet.close());
      return fleet;
    },
  };
}
