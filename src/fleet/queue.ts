import { setTimeout as delay } from 'node:timers/promises';
import type { JetStreamClient, JetStreamManager, StreamConfig } from '@nats-io/jetstream';
import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { errorMessage } from '../base/error-message.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { FLEET_PRIORITIES } from '../base/words.ts';
import {
  natsFailure,
  Publisher,
  patienceWith,
  patiently,
  whereInstalled,
  writeBehind,
} from '../gate/nats/index.ts';
import type { FleetPriority } from '../model/fleet.ts';

const DAY = 24 * 3600 * 1000;
/** What many records have in common is put beside them again when it is older. */
export const REPORT_KEPT = DAY;
/**
 * Records of jobs are kept as long. It is more than {@link LONGEST_WAIT} and the longest job together; what they have in common
 * may go that much sooner.
 */
const RECORDS_KEPT = 8 * DAY + REPORT_KEPT;
/**
 * A job that waited longer is not run: whether it was run before is known for as long as its record is kept. Measured from
 * when the server took it to the clock of the worker.
 */
export const LONGEST_WAIT = 5 * DAY;
const WORKERS_KEPT = DAY;
const OUTPUT_KEPT = DAY;
/** Contents of workspaces are kept as long; one that is older than half of it is sent again, so that a job finds it. */
export const BLOBS_KEPT = 10 * DAY;
/** Of live output, of all jobs together, which the server sets aside; the oldest goes first. */
const OUTPUT_BYTES = 256 * 1024 ** 2;
/** Within this time a job, or a piece of output, that is sent twice is one. */
const DUPLICATES = 2 * 60 * 1000;
/** A job that a worker has is offered to another one when the worker has said nothing of it for this time. */
export const ACK_WAIT = 6000;
/** Waiting pulls of all workers, and jobs that run at once. */
const [MOST_PULLS, MOST_RUNNING] = [20_000, 200_000];

/** Bytes of one message; servers take 1 MiB at most, unless they are told otherwise. */
export const MESSAGE_BYTES = 512 * 1024;
/** A record with the longest result that stands in it, and what stands around that. */
const LEAST_PAYLOAD = MESSAGE_BYTES + 64 * 1024;

/** How long a queue that is not there may take to be made by somebody else. */
const BEING_MADE_MS = 2000;

const nanoseconds = (milliseconds: number) => milliseconds * 1e6;

/** How the things of a queue are called on the server: THE table of subjects, streams and buckets. */
const namesOf = (queue: string) => ({
  jobs: `SR_JOBS_${queue}`,
  output: `SR_OUT_${queue}`,
  records: `sr_jobs_${queue}`,
  workers: `sr_workers_${queue}`,
  blobs: `sr_blobs_${queue}`,
  jobSubject: (priority: FleetPriority, needs: string) => `sr.${queue}.jobs.${priority}.${needs}`,
  allJobs: `sr.${queue}.jobs.>`,
  /** Beside the records of jobs: no job has such an id. */
  report: (digest: string) => `report.${digest}`,
  outputOf: (job: string) => `sr.${queue}.out.${job}`,
  allOutput: `sr.${queue}.out.>`,
  /** Told once a job with needs that are new was sent. */
  needs: `sr.${queue}.needs`,
  cancel: (worker: string) => `sr.${queue}.cancel.${worker}`,
});
type QueueNames = ReturnType<typeof namesOf>;

/** What a job needs, as a part of a subject: no label has an underscore. */
export const needsToken = (labels: readonly string[]) =>
  labels.length === 0 ? 'any' : [...new Set(labels)].sort().join('_');
/** The same as labels. */
export const labelsOf = (needs: string) => (needs === 'any' ? [] : needs.split('_'));
/** Whether a worker has all of it. What says it in another way than {@link needsToken} is none: it would be without end. */
export const satisfies = (labels: readonly string[], needs: string) => {
  const needed = labelsOf(needs);
  return needsToken(needed) === needs && needed.every((label) => labels.includes(label));
};

/** One queue on a server: its streams and buckets exist. */
export interface Queue {
  readonly name: string;
  readonly names: QueueNames;
  readonly connection: NatsConnection;
  readonly js: JetStreamClient;
  readonly publisher: Publisher;
  readonly manager: JetStreamManager;
  /** Where each job stands, by id. */
  readonly records: KV;
  /** The leases of workers, by id. */
  readonly workers: KV;
  readonly replicas: number;
}

/** How {@link openQueue} opens one. */
interface QueueSettings {
  /** Of what is made. Default: 3 on a cluster, else 1. */
  readonly replicas?: number | undefined;
  /** Default: true. */
  readonly make?: boolean | undefined;
}

/**
 * Opens a queue, and makes it where it is not there yet, unless `make` is false.
 * @throws {SandboxError} `fleet.unreachable`, `fleet.refused`, `fleet.uninstalled`, `fleet.unknown`, `fleet.invalid`.
 */
export async function openQueue(
  connection: NatsConnection,
  name: string,
  { replicas = connection.info?.cluster === undefined ? 1 : 3, make = true }: QueueSettings = {},
): Promise<Queue> {
  const [{ jetstream, jetstreamManager }, { Kvm }] = await Promise.all([
    whereInstalled(() => import('@nats-io/jetstream')),
    whereInstalled(() => import('@nats-io/kv')),
  ]);
  const names = namesOf(name);
  refuseSmallMessages(connection);
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    await patiently(
      () => (make ? ensureStreams(manager, names, replicas) : refuseMissing(manager, names, name)),
      patienceWith(connection),
    );
    const js = jetstream(connection);
    const kv = new Kvm(js);
    // From the leader: a copy may lag behind, and what is decided by it must not.
    const open = (bucket: string) => kv.open(bucket, { allow_direct: false });
    const [records, workers] = await patiently(() => Promise.all([open(names.records), open(names.workers)]));
    const publisher = await Publisher.on(connection);
    return { name, names, connection, js, publisher, manager, records, workers, replicas };
  } catch (error) {
    throw natsFailure(error, connection.getServer());
  }
}

/** A result that no message can have would be sent again and again. @throws {SandboxError} `fleet.invalid`. */
function refuseSmallMessages(connection: NatsConnection): void {
  const { info } = connection;
  if (info === undefined || info.max_payload >= LEAST_PAYLOAD) return;
  throw new SandboxError(
    'fleet.invalid',
    `the NATS server ${connection.getServer()} takes messages of ${info.max_payload} bytes at the most; set its max_payload to 1MB`,
  );
}

async function ensureStreams(manager: JetStreamManager, names: QueueNames, replicas: number): Promise<void> {
  const common = {
    storage: 'file',
    num_replicas: replicas,
    duplicate_window: nanoseconds(DUPLICATES),
  } as const;
  const bucket = (name: string, kept: number) => ({
    ...{ ...common, name: `KV_${name}`, subjects: [`$KV.${name}.>`], max_msgs_per_subject: 1 },
    // Without these, one message or a purge could remove all records, and jobs would run a second time.
    ...({ max_age: nanoseconds(kept), discard: 'new', deny_delete: true, deny_purge: true } as const),
    // No reads from replicas: they may be out of date.
    allow_direct: false,
  });
  const streams = [
    { ...common, name: names.jobs, subjects: [names.allJobs], retention: 'workqueue' },
    {
      ...{ ...common, name: names.output, subjects: [names.allOutput], max_age: nanoseconds(OUTPUT_KEPT) },
      ...{ max_bytes: OUTPUT_BYTES, discard: 'old' },
    },
    {
      ...{
        ...common,
        name: `OBJ_${names.blobs}`,
        subjects: [`$O.${names.blobs}.C.>`, `$O.${names.blobs}.M.>`],
      },
      ...{ max_age: nanoseconds(BLOBS_KEPT), discard: 'new', allow_rollup_hdrs: true, allow_direct: true },
    },
    bucket(names.records, RECORDS_KEPT),
    bucket(names.workers, WORKERS_KEPT),
  ];
  // The type of the library has enumerations in place of words.
  for (const stream of streams)
    await ensureStream(manager, stream as unknown as Partial<StreamConfig> & { name: string });
}

async function ensureStream(
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { readonly name: string },
): Promise<void> {
  if (await isThere(manager, config.name)) return;
  await manager.streams.add(config).catch(async (error: unknown) => {
    // Somebody else made it meanwhile.
    if (!(await isThere(manager, config.name))) throw error;
  });
}

const isThere = (manager: JetStreamManager, stream: string) =>
  manager.streams.info(stream).then(
    () => true,
    (error: unknown) => {
      if (errorMessage(error) === 'stream not found') return false;
      throw error;
    },
  );

/** Waits a moment before it reports a missing stream: a submitter may be creating it. @throws {SandboxError} `fleet.unknown`. */
async function refuseMissing(manager: JetStreamManager, names: QueueNames, name: string): Promise<void> {
  const until = performance.now() + BEING_MADE_MS;
  // The last that is made.
  while (!(await isThere(manager, `KV_${names.workers}`))) {
    if (performance.now() > until) throw new SandboxError('fleet.unknown', `there is no queue ${name}`);
    await delay(200);
  }
}

/** The consumer of a priority and of needs: its name, once it is there. */
export async function ensureConsumer(queue: Queue, priority: FleetPriority, needs: string): Promise<string> {
  const durable = `${priority}-${needs}`;
  await queue.manager.consumers.add(queue.names.jobs, {
    durable_name: durable,
    filter_subject: queue.names.jobSubject(priority, needs),
    ack_policy: 'explicit',
    ack_wait: nanoseconds(ACK_WAIT),
    max_deliver: -1,
    max_ack_pending: MOST_RUNNING,
    max_waiting: MOST_PULLS,
  } as unknown as Parameters<JetStreamManager['consumers']['add']>[1]);
  return durable;
}

/** How many jobs wait, or run, for each priority and needs. */
export async function jobsBySubject(
  queue: Queue,
): Promise<readonly { readonly priority: FleetPriority; readonly needs: string; readonly jobs: number }[]> {
  const info = await queue.manager.streams.info(queue.names.jobs, { subjects_filter: queue.names.allJobs });
  return Object.entries(info.state.subjects ?? {}).flatMap(([subject, jobs]) => {
    const [priority, needs] = subject.split('.').slice(3);
    const known = FLEET_PRIORITIES.find((one) => one === priority);
    return known === undefined || needs === undefined ? [] : [{ priority: known, needs, jobs }];
  });
}

/**
 * Writes JSON into a bucket (`names.records`, `names.workers`) by compare-and-set: gives its revision. `undefined`: the value
 * there is not that of `revision` (0: there is none) any more.
 * @throws {SandboxError} `fleet.…`: whether it was written is unknown.
 */
export function compareAndSet(
  queue: Queue,
  bucket: string,
  key: string,
  text: string,
  revision: number,
): Promise<number | undefined> {
  const follower = { subject: `$KV.${bucket}.${key}`, data: text, behind: revision };
  return writeBehind(queue.publisher, follower, queue.connection.getServer());
}
