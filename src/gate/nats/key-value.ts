import type { JetStreamManager } from '@nats-io/jetstream';
import type { KV, KvOptions } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { NatsSettings } from '../../model/fleet.ts';
import type { FleetStore, KeyValue, KeyValueEntry } from '../../model/index.ts';
import { ANSWER_MS, connectNats, natsFailure, whereInstalled } from './connection.ts';
import { patienceWith, patiently } from './patience.ts';
import { Publisher } from './publisher.ts';
import { writeBehind } from './write-behind.ts';

/** The buckets of the state; documented, for the permissions of accounts. */
const BUCKETS = { values: 'sandbox-run-state', shortLived: 'sandbox-run-approvals' } as const;
/** Twice as long as anything there counts: a write is never compared with a value that the servers are about to drop. */
const SHORT_LIVED_MS = 48 * 3_600_000;
/** Anybody writes it, to see at what time the store did so. */
const CLOCK_KEY = 'clock';
/** The clocks of two machines drift apart by less than 0.1 ms in a second. */
const CLOCK_HOLDS_MS = 600_000;
/** The wall clock was set, or the machine was asleep. */
const CLOCK_JUMP_MS = 250;
/** How long a bucket may take to be opened: as long as a change of it is tried. */
const OPEN_MS = 15_000;
/** Values of a list that are asked for at once. */
const READ_AT_ONCE = 256;

/** How many servers keep the state. */
export interface FleetStoreSettings extends NatsSettings {
  /** 1 to 5; default: 3 in a cluster, else 1. */
  readonly replicas?: number | undefined;
}

/**
 * The store of a fleet's state on a NATS server. Its buckets are made if they are not there.
 * @throws {SandboxError} `fleet.…` as `connectNats`; `fleet.invalid` if a bucket is kept by fewer servers than wanted.
 */
export async function openFleetStore(settings: FleetStoreSettings, name: string): Promise<FleetStore> {
  return fleetStoreOn(await connectNats(settings, name), settings);
}

/** Opens the store on an existing connection. Closing the store closes the connection. */
export async function fleetStoreOn(
  connection: NatsConnection,
  settings: FleetStoreSettings,
): Promise<FleetStore> {
  try {
    const alone = new Map<string, Promise<KeyValue>>();
    const publisher = await Publisher.on(connection);
    const values = await openBucket(publisher, settings, BUCKETS.values, {});
    const shortLived = await openBucket(publisher, settings, BUCKETS.shortLived, { ttl: SHORT_LIVED_MS });
    return {
      values: keyValue(values, settings.url),
      alone: (word) => {
        const name = `sandbox-run-budget-${word}`;
        const known = alone.get(name);
        if (known !== undefined) return known;
        const opened = openBucket(publisher, settings, name, {}).then(
          (one) => keyValue(one, settings.url, true),
          (error: unknown) => {
            alone.delete(name);
            throw natsFailure(error, settings.url);
          },
        );
        alone.set(name, opened);
        return opened;
      },
      shortLived: keyValue(shortLived, settings.url),
      clock: clockOf(values.kv, settings.url),
      close: async () => {
        await connection.close().catch(() => {});
      },
    };
  } catch (error) {
    await connection.close().catch(() => {});
    throw natsFailure(error, settings.url);
  }
}

/** A bucket, and the stream that it is. */
interface Bucket {
  readonly kv: KV;
  readonly manager: JetStreamManager;
  readonly publisher: Publisher;
  readonly name: string;
}

function openBucket(
  publisher: Publisher,
  settings: FleetStoreSettings,
  name: string,
  options: Partial<KvOptions>,
): Promise<Bucket> {
  const patience = Math.min(OPEN_MS, patienceWith(publisher.connection));
  return patiently(() => openBucketNow(publisher, settings, name, options), patience);
}

async function openBucketNow(
  publisher: Publisher,
  { replicas, url }: FleetStoreSettings,
  name: string,
  options: Partial<KvOptions>,
): Promise<Bucket> {
  const { connection } = publisher;
  const { Kvm } = await whereInstalled(() => import('@nats-io/kv'));
  const { jetstream } = await whereInstalled(() => import('@nats-io/jetstream'));
  const wanted = replicas ?? (connection.info?.cluster === undefined ? 1 : 3);
  const js = jetstream(connection, { timeout: ANSWER_MS });
  const kv = await new Kvm(js).create(name, {
    ...options,
    history: 1,
    replicas: wanted,
    // A replica would answer with what it has: only the leader of the stream knows the last write.
    allow_direct: false,
  });
  const has = (await kv.status()).replicas;
  if (replicas !== undefined && has < replicas)
    throw new SandboxError(
      'fleet.invalid',
      `the bucket ${name} of ${url} is kept by ${has} of the ${replicas} servers that state.replicas wants; nats stream edit KV_${name} --replicas ${replicas} changes it`,
    );
  return { kv, manager: await js.jetstreamManager(false), publisher, name };
}

async function entryOf(kv: KV, key: string): Promise<KeyValueEntry | undefined> {
  const found = await kv.get(key);
  if (found === null || found.operation !== 'PUT') return undefined;
  return { key, value: found.string(), revision: found.revision };
}

function keyValue({ kv, manager, publisher, name }: Bucket, url: string, isAlone = false): KeyValue {
  const answered = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw natsFailure(error, url);
    }
  };

  const follow = (key: string, data: string, behind: number, headers?: Readonly<Record<string, string>>) =>
    writeBehind(
      publisher,
      { subject: `$KV.${name}.${key}`, data, behind, isAlone, ...(headers && { headers }) },
      url,
    );

  return {
    get: (key) => answered(() => entryOf(kv, key)),
    put: async (key, value, revision) => {
      const written = await follow(key, value, revision);
      if (written !== undefined || revision > 0) return written;
      // What was taken away has a revision, too.
      const found = await answered(() => kv.get(key));
      if (found === null || found.operation === 'PUT') return undefined;
      return follow(key, value, found.revision);
    },
    remove: async (key, revision) =>
      (await follow(key, '', revision, { 'KV-Operation': 'DEL' })) !== undefined,
    list: (pattern) =>
      answered(async () => {
        // What the client has for it waits for 30 seconds, or as long as others write, where something is written meanwhile.
        const prefix = `$KV.${name}.`;
        const info = await manager.streams.info(`KV_${name}`, { subjects_filter: `${prefix}${pattern}` });
        const left = Object.keys(info.state.subjects ?? {}).map((subject) => subject.slice(prefix.length));
        const entries: KeyValueEntry[] = [];
        while (left.length > 0) {
          const read = left.splice(0, READ_AT_ONCE).map((key) => entryOf(kv, key));
          for (const entry of await Promise.all(read)) if (entry !== undefined) entries.push(entry);
        }
        return entries;
      }),
  };
}

/**
 * The clock of the server that leads the stream: a write, and what time it says it was done at. In between it is counted on
 * by the monotonic clock of this machine, so that nobody changes it by setting a clock here.
 */
function clockOf(kv: KV, url: string): FleetStore['clock'] {
  let known: { readonly at: number; readonly wall: number; readonly server: number } | undefined;
  let asking: Promise<void> | undefined;
  const holds = () => {
    if (known === undefined) return false;
    const since = performance.now() - known.at;
    return since < CLOCK_HOLDS_MS && Math.abs(Date.now() - known.wall - since) < CLOCK_JUMP_MS;
  };
  const ask = async () => {
    try {
      const written = await patiently(async () => {
        await kv.put(CLOCK_KEY, '');
        return kv.get(CLOCK_KEY);
      }, OPEN_MS);
      const after = performance.now();
      if (written === null) throw new Error(`the key ${CLOCK_KEY} is not kept`);
      // The server wrote the time before `after`, so our estimate lags by two requests at most.
      known = { at: after, wall: Date.now(), server: written.created.getTime() };
    } catch (error) {
      throw natsFailure(error, url);
    } finally {
      asking = undefined;
    }
  };
  return {
    host: Date.now,
    now: async () => {
      if (!holds()) {
        asking ??= ask();
        await asking;
      }
      return Math.round((known?.server ?? 0) + performance.now() - (known?.at ?? 0));
    },
  };
}
