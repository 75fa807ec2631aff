import { randomBytes } from 'node:crypto';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { natsFailure, patiently } from '../gate/nats/index.ts';
import type { JobRecord } from '../model/fleet.ts';
import { isClaim, readRecord, standingOf } from './claims.ts';
import type { OutputReader } from './output.ts';
import type { Queue } from './queue.ts';

/** What was missed while there was no connection is looked for as often, and so many jobs at once. */
const [RECONCILE_MS, RECONCILED_AT_ONCE] = [3000, 200];

/** A job whose end this process waits for. */
export interface Awaited {
  readonly output: OutputReader | undefined;
  readonly record: (record: JobRecord) => void;
  readonly fail: (error: unknown) => void;
}

/** Hears of the jobs of one process: what they write and how they end, also what it missed while there was no connection. */
export class JobWatch {
  /** Begins the ids of the jobs of this process: it is not told of others. */
  readonly submitter = randomBytes(8).toString('hex');
  /** By the id of the job. */
  readonly awaited = new Map<string, Awaited>();
  readonly #queue: Queue;
  readonly #stops: (() => void)[] = [];
  #isEnded = false;

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Begins to hear how jobs end. */
  async begin(): Promise<void> {
    await this.#watchRecords();
    const timer = setInterval(() => void this.#reconcile().catch(() => {}), RECONCILE_MS).unref();
    this.#stops.push(() => clearInterval(timer));
    // The connection closes by us, or by a server that does not let this user in any more.
    void this.#queue.connection.closed().then((error) => this.#failAll(error));
  }

  /** Ends that; jobs that are awaited fail when the connection closes. */
  end(): void {
    this.#isEnded = true;
    for (const stop of this.#stops) stop();
  }

  /** Nobody tells any more how jobs end. */
  #failAll(error: unknown): void {
    const server = this.#queue.connection.getServer();
    const why = error instanceof Error ? natsFailure(error, server).message : 'the connection was closed';
    for (const [job, { fail }] of this.awaited)
      fail(new SandboxError('fleet.unreachable', `how job ${job} ends is not known here: ${why}`));
    this.awaited.clear();
  }

  /** One watch for the jobs of this process: what was missed comes again. */
  async #watchRecords(): Promise<void> {
    const watched = await patiently(() =>
      this.#queue.records.watch({
        key: `${this.submitter}.>`,
        include: 'updates' as never,
      }),
    );
    this.#stops.push(() => watched.stop());
    void (async () => {
      // A deleted record is ignored: the job's worker writes another one.
      for await (const entry of watched)
        if (entry.operation === 'PUT' && !isClaim(entry.value))
          this.#onRecord(entry.key, readRecord(entry.value));
    })().catch(() => {});
  }

  #onRecord(job: string, record: JobRecord | undefined): void {
    const awaited = this.awaited.get(job);
    if (record !== undefined) awaited?.record(record);
    else awaited?.fail(notUnderstood(job));
  }

  #outputWatched: Promise<void> | undefined;

  /** One consumer for the output of all jobs of this process. */
  watchOutput(): Promise<void> {
    this.#outputWatched ??= (async () => {
      const { names, js } = this.#queue;
      const prefix = names.outputOf('');
      const consumer = await patiently(() =>
        js.consumers.getPushConsumer(names.output, {
          // One subject: several are for servers from 2.10 on.
          filter_subjects: names.outputOf(`${this.submitter}.>`),
          deliver_policy: 'all' as never,
        }),
      );
      const messages = await consumer.consume({
        callback: ({ subject, data }) => {
          this.awaited.get(subject.slice(prefix.length))?.output?.onMessage(data);
        },
      });
      this.#stops.push(() => messages.stop());
    })();
    return this.#outputWatched;
  }

  /** Asks for records whose news may have been missed, a few each time. */
  async #reconcile(): Promise<void> {
    const jobs = [...this.awaited].slice(0, RECONCILED_AT_ONCE);
    for (const [job, awaited] of jobs) {
      if (this.#isEnded) return;
      // To the end of the line.
      if (this.awaited.delete(job)) this.awaited.set(job, awaited);
      const standing = await standingOf(this.#queue, job);
      if (standing !== undefined && !standing.isDeleted) this.#onRecord(job, standing.record);
    }
  }
}

/** The record of a job cannot be read. */
export function notUnderstood(job: string): SandboxError {
  return new SandboxError(
    'output.lost',
    `the result of job ${job} is not understood: is its worker of another version?`,
  );
}
