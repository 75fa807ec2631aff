import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { RecordStream, StreamedLines } from '../../model/index.ts';
import { ANSWER_MS, connectNats, natsFailure, whereInstalled } from './connection.ts';
import type { FleetStoreSettings } from './key-value.ts';
import { patiently } from './patience.ts';
import { Publisher } from './publisher.ts';
import { writeBehind } from './write-behind.ts';

/** The stream and its subjects; documented, for the permissions of accounts. */
const STREAM = 'sandbox-run-audit';
const SUBJECTS = 'sandbox-run.audit';
/** How long the stream may take to be opened: as long as it is tried to publish. */
const OPEN_MS = 15_000;
/** There is no such stream. */
const NOT_FOUND = 10059;

/**
 * The audit stream of a fleet. It is made if it is not there, so that the server deletes and purges nothing of it.
 * @throws {SandboxError} `fleet.…` as `connectNats`; `fleet.invalid` if it is kept by fewer servers than wanted.
 */
export async function openRecordStream(settings: FleetStoreSettings, name: string): Promise<RecordStream> {
  const connection = await connectNats(settings, name);
  try {
    const { jetstream, jetstreamManager } = await whereInstalled(() => import('@nats-io/jetstream'));
    const js = jetstream(connection, { timeout: ANSWER_MS });
    // Whether there is JetStream is seen by the next request.
    const manager = await jetstreamManager(connection, { timeout: ANSWER_MS, checkAPI: false });
    await patiently(() => ensureStream(manager, connection, settings), OPEN_MS);
    const publisher = await Publisher.on(connection);
    return recordStream({ js, manager, publisher, connection }, settings.url);
  } catch (error) {
    await connection.close().catch(() => {});
    throw natsFailure(error, settings.url);
  }
}

async function ensureStream(
  manager: JetStreamManager,
  connection: NatsConnection,
  { replicas, url }: FleetStoreSettings,
): Promise<void> {
  const info = await manager.streams.info(STREAM).catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === NOT_FOUND) return undefined;
    throw error;
  });
  const wanted = replicas ?? (connection.info?.cluster === undefined ? 1 : 3);
  const { config } =
    info ??
    // Several clients may create it at once: with the same configuration, all succeed.
    (await manager.streams.add({
      name: STREAM,
      subjects: [`${SUBJECTS}.*`],
      num_replicas: wanted,
      deny_delete: true,
      deny_purge: true,
      // The ids of messages are compared within it; a lost answer is asked about long before.
      duplicate_window: 120_000_000_000,
    }));
  if (replicas !== undefined && config.num_replicas < replicas)
    throw new SandboxError(
      'fleet.invalid',
      `the stream ${STREAM} of ${url} is kept by ${config.num_replicas} of the ${replicas} servers that state.replicas wants; nats stream edit ${STREAM} --replicas ${replicas} changes it`,
    );
}

function recordStream(
  {
    js,
    manager,
    publisher,
    connection,
  }: {
    readonly js: JetStreamClient;
    readonly manager: JetStreamManager;
    readonly publisher: Publisher;
    readonly connection: NatsConnection;
  },
  url: string,
): RecordStream {
  const answered = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw natsFailure(error, url);
    }
  };
  return {
    last: (trail) =>
      answered(async () => {
        const found = await manager.streams.getMessage(STREAM, { last_by_subj: `${SUBJECTS}.${trail}` });
        return found === null ? undefined : { trail, position: found.seq, lines: Buffer.from(found.data) };
      }),
    append: (trail, lines, behind) =>
      writeBehind(publisher, { subject: `${SUBJECTS}.${trail}`, data: lines, behind }, url),
    extent: () =>
      answered(async () => {
        const { state, config } = await manager.streams.info(STREAM);
        return {
          ...{ first: state.first_seq, last: state.last_seq, count: state.messages, name: STREAM },
          deletesNothing: config.deny_delete && config.deny_purge,
          dropsOld:
            config.max_age > 0 ||
            [config.max_bytes, config.max_msgs, config.max_msgs_per_subject].some((limit) => limit > 0),
        };
      }),
    read: (since) => readFrom(js, manager, url, since),
    close: async () => {
      await connection.close().catch(() => {});
    },
  };
}

async function* readFrom(
  js: JetStreamClient,
  manager: JetStreamManager,
  url: string,
  since: number | undefined,
): AsyncGenerator<StreamedLines> {
  try {
    const { last_seq: last, last_ts: lastAt } = (await manager.streams.info(STREAM)).state;
    // The leader knows what there is. The server that delivers may be a follower, which gets the last ones a moment later.
    const isThere =
      last > 0 &&
      (since === undefined || Date.parse(lastAt) >= since) &&
      (await manager.streams.getMessage(STREAM, { seq: last })) !== null;
    const { DeliverPolicy } = await whereInstalled(() => import('@nats-io/jetstream'));
    const consumer = await js.consumers.get(
      STREAM,
      since === undefined
        ? {}
        : {
            deliver_policy: DeliverPolicy.StartTime,
            opt_start_time: new Date(since).toISOString(),
          },
    );
    if (!isThere && (await consumer.info()).num_pending === 0) return;
    for await (const message of await consumer.consume()) {
      yield {
        trail: message.subject.slice(SUBJECTS.length + 1),
        position: message.seq,
        lines: Buffer.from(message.data),
      };
      if (message.info.pending === 0 && (!isThere || message.seq >= last)) return;
    }
  } catch (error) {
    throw natsFailure(error, url);
  }
}
