import { setTimeout as delay } from 'node:timers/promises';
import { errorMessage } from '../base/error-message.ts';
import { parsedJson } from '../base/parsed-json.ts';
import { visibleLine } from '../base/visible-text.ts';
import { type FleetRun, JobMessage, type JobRecord, type SentResult } from '../model/fleet.ts';
import type { Telemetry } from '../model/index.ts';
import { packageVersion } from '../version.ts';
import { standingOf, writeRecord } from './claims.ts';
import { type ClaimedJob, runJob, unfinished } from './job.ts';
import { type Lease, LeaseWatch } from './lease.ts';
import type { Offer } from './offers.ts';
import { OutputSender } from './output.ts';
import { ACK_WAIT, LONGEST_WAIT, MESSAGE_BYTES, type Queue } from './queue.ts';
import { ReportTeller } from './reports.ts';
import type { JobSandboxes } from './sandboxes.ts';

/** How long is waited before a record that could not be read is read again, in milliseconds. */
const RECONNECT_MS = 250;
/** How much of a record is left for what stands around a result. */
const INLINE_BYTES = MESSAGE_BYTES;

/** Where the parts of a result are that is too long for its record. */
interface SentParts {
  readonly parts: readonly number[];
}

/** A job that this worker has. */
interface Held {
  /** As it was offered the last time. */
  offered: Offer;
  readonly ending: AbortController;
  /** Its lease is over, or the worker ends: what became of it is not for this worker to say. */
  readonly abandoning: AbortController;
}

const workerOf = (record: JobRecord) => (record.state === 'claimed' ? record.worker : record.run.worker);

/** What the jobs of a worker need of it. */
interface WorkerParts {
  readonly queue: Queue;
  readonly sandboxes: JobSandboxes;
  readonly telemetry: Telemetry | undefined;
  /** The name of the worker's machine. */
  readonly host: string;
  /** The lease of the worker now; `undefined`: it is lost, or was given back. */
  readonly lease: () => Lease | undefined;
  /** The worker closes: nothing is waited for any more. */
  readonly closing: AbortSignal;
  /** Tells the operator of the worker a line. */
  readonly say: (line: string) => void;
}

/** Ends a job whose outcome is not for this worker to say. */
export function abandon({ abandoning, ending }: Held): void {
  abandoning.abort();
  ending.abort();
}

/** The jobs that a worker has: claims each one, runs it, and writes what became of it into its record. */
export class WorkerJobs {
  /** By the id of the job. */
  readonly held = new Map<string, Held>();
  /** How many jobs ended here, and how many of them with something else than success. */
  readonly ended = { done: 0, failed: 0 };
  readonly #parts: WorkerParts;
  readonly #watch: LeaseWatch;
  readonly #reports: ReportTeller;
  /** Jobs whose records are not understood. */
  readonly #told = new Set<string>();

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    this.#watch = new LeaseWatch(parts.queue);
    this.#reports = new ReportTeller(parts.queue);
  }

  /** Claims and runs a job that was offered, unless it is another worker's. `free`: gives the slot to the next job. */
  async handle(offered: Offer, free: () => void): Promise<void> {
    const read = JobMessage.safeParse(parsedJson(offered.data));
    const { error } = read;
    if (error !== undefined) {
      await this.#refuseUnread(offered, error.issues[0]);
      return;
    }
    const job = read.data;
    const known = this.held.get(job.job);
    if (known !== undefined) {
      known.offered = offered;
      return;
    }
    const held: Held = { offered, ending: new AbortController(), abandoning: new AbortController() };
    this.held.set(job.job, held);
    try {
      const claimed = await this.#claim(job, held);
      if (claimed !== undefined)
        await this.#run(claimed, held, free).catch((error: unknown) =>
          this.#endAsUnknown(claimed, held, error),
        );
    } finally {
      this.held.delete(job.job);
    }
  }

  /** A job that cannot be read is not run, and the submitter is told so if it can be. */
  async #refuseUnread(
    offered: Offer,
    issue: { readonly path: readonly PropertyKey[]; readonly message: string } | undefined,
  ): Promise<void> {
    const raw = parsedJson(offered.data);
    const job = typeof raw === 'object' && raw !== null ? Reflect.get(raw, 'job') : undefined;
    const name = JobMessage.shape.job.safeParse(job);
    const where = visibleLine(issue?.path.map(String).join('.') ?? '', 100);
    const why = `the job is not accepted: ${where === '' ? '' : `${where}: `}${visibleLine(issue?.message ?? '', 200)} (the worker is of version ${packageVersion}; is its submitter of another one?)`;
    this.#parts.say(why);
    if (name.success) {
      const result = unfinished('setup-failed', 'usage.invalid', why);
      const record = this.#doneRecord(name.data, 0, 0, { result }, 'setup-failed');
      await this.#write(name.data, record, 0);
    }
    offered.ack();
  }

  /** Makes a job this worker's own; `undefined`: it is somebody's, or over. */
  async #claim(job: JobMessage, held: Held): Promise<ClaimedJob | undefined> {
    const lease = this.#parts.lease();
    if (lease?.isHeldNow() !== true) return undefined;
    const queueMs = Math.max(0, lease.now() - held.offered.at);
    const claim = (attempt: number): JobRecord => ({
      ...{ state: 'claimed', worker: lease.worker, host: this.#parts.host, attempt, at: Date.now(), queueMs },
    });
    const claimed = (attempt: number, revision: number): ClaimedJob => ({
      ...{ job, attempt, revision, queueMs, queue: this.#parts.queue.name, worker: lease.worker },
      ...{ signal: held.ending.signal, abandoned: held.abandoning.signal },
    });
    const isTooLate = queueMs > LONGEST_WAIT;
    if (!isTooLate) {
      // Most jobs are nobody's, so that is tried first.
      const own = await this.#write(job.job, claim(1), 0, { signal: held.ending.signal });
      if (own !== undefined) return claimed(1, own);
    }
    while (!held.ending.signal.aborted && lease.isHeldNow()) {
      const standing = await standingOf(this.#parts.queue, job.job).catch(() => 'unknown' as const);
      if (standing === 'unknown') {
        await delay(RECONNECT_MS, undefined, { signal: this.#parts.closing }).catch(() => {});
        continue;
      }
      if (standing === undefined && isTooLate) return this.#endAsTooLate(job, held);
      const { record, revision } = standing ?? { record: undefined, revision: 0 };
      if (record === undefined) return this.#leave(job, held, standing, isTooLate);
      if (record.state === 'done') {
        held.offered.ack();
        return undefined;
      }
      // If our own job does not run here any more, its outcome is unknown.
      const isOurs = record.worker === lease.worker;
      if (!isOurs && !(await this.#watch.isGone(record.worker, held.ending.signal))) {
        held.offered.giveBack(ACK_WAIT);
        return undefined;
      }
      if (record.attempt > job.retry) return this.#endAsLost(job, held, record, revision);
      const attempt = record.attempt + 1;
      const again = await this.#write(job.job, claim(attempt), revision, { signal: held.ending.signal });
      if (again !== undefined) return claimed(attempt, again);
    }
    return undefined;
  }

  /** Does not run a job that may be claimed. A deleted record ends the job; an unreadable one is left to newer workers. */
  async #leave(
    job: JobMessage,
    held: Held,
    standing: Awaited<ReturnType<typeof standingOf>>,
    isTooLate: boolean,
  ): Promise<undefined> {
    if (standing?.isDeleted === true) {
      const why = 'the record of the job was deleted; whether it was run is not known, so it is not run now';
      const result = unfinished('worker-lost', 'fleet.worker_lost', why);
      const record = this.#doneRecord(job.job, 0, 0, { result }, 'worker-lost');
      if ((await this.#write(job.job, record, standing.revision)) !== undefined) held.offered.ack();
      return undefined;
    }
    if (standing !== undefined && !this.#told.has(job.job)) {
      this.#told.add(job.job);
      this.#parts.say(
        `the record of job ${job.job} is not understood; is another worker of another version?`,
      );
    }
    if (isTooLate) held.offered.ack();
    else held.offered.giveBack(ACK_WAIT);
    return undefined;
  }

  async #endAsLost(
    job: JobMessage,
    held: Held,
    { worker, host, attempt, queueMs }: JobRecord & { readonly state: 'claimed' },
    revision: number,
  ): Promise<undefined> {
    const message = `the worker ${worker} on ${host} is lost; what the command did until then was done, and it is not run again without --retry`;
    const result = unfinished('worker-lost', 'fleet.worker_lost', message);
    const about = { worker, host, queueMs };
    const record = this.#doneRecord(job.job, attempt, 0, { result }, 'worker-lost', about);
    if ((await this.#write(job.job, record, revision)) !== undefined) held.offered.ack();
  }

  /** A job that was claimed has to end, whatever nobody thought of: it would be offered, and awaited, for ever. */
  async #endAsUnknown(
    { job, attempt, revision, worker, queueMs }: ClaimedJob,
    held: Held,
    error: unknown,
  ): Promise<void> {
    if (held.abandoning.signal.aborted) return;
    const why = `what became of the job is not known: ${visibleLine(errorMessage(error), 300)}`;
    this.#parts.say(`job ${job.job}: ${why}`);
    const result = unfinished('worker-lost', 'fleet.worker_lost', why);
    const about = { worker, host: this.#parts.host, queueMs };
    const record = this.#doneRecord(job.job, attempt, 0, { result }, 'worker-lost', about);
    if ((await this.#write(job.job, record, revision)) !== undefined) held.offered.ack();
  }

  async #endAsTooLate(job: JobMessage, held: Held): Promise<undefined> {
    const days = LONGEST_WAIT / 24 / 3600 / 1000;
    const message = `the job waited for more than ${days} days; submit it again`;
    const result = unfinished('setup-failed', 'fleet.too_late', message);
    const record = this.#doneRecord(job.job, 0, 0, { result }, 'setup-failed');
    await this.#write(job.job, record, 0);
    held.offered.ack();
  }

  async #run(claimed: ClaimedJob, held: Held, free: () => void): Promise<void> {
    const { job, attempt, revision, worker, queueMs } = claimed;
    const output = new OutputSender(
      this.#parts.queue,
      job.job,
      attempt,
      () => held.ending.signal.aborted || this.#parts.closing.aborted,
    );
    const measured = this.#parts.telemetry?.begin('job', { parent: job.traceparent });
    const waited = () =>
      this.#parts.telemetry?.begin('queue-wait', { since: Date.now() - queueMs }).end(ofQueue);
    const ofQueue = { queue: this.#parts.queue.name };
    measured?.within(waited);
    const tells = { output, reports: this.#reports, say: (line: string) => this.#parts.say(line) };
    const run = () => runJob(claimed, this.#parts.sandboxes, this.#parts.queue, tells);
    const ran = await (measured === undefined ? run() : measured.within(run));
    measured?.end({ ...ofQueue, job: job.job, worker, attempt, status: ran.sent.result.status });
    // While it is told what became of this one, the next one runs.
    free();
    if (held.abandoning.signal.aborted) return;
    const pieces = await output.end();
    this.ended.done += 1;
    if (!ran.sent.result.ok) this.ended.failed += 1;
    const about = { worker, host: this.#parts.host, queueMs, ...ran.collected };
    const { status } = ran.sent.result;
    const recordOf = (sent: SentResult | SentParts) =>
      this.#doneRecord(job.job, attempt, pieces, sent, status, about);
    let record = recordOf(ran.sent);
    let text = JSON.stringify(record);
    if (Buffer.byteLength(text) > INLINE_BYTES) {
      record = recordOf({ parts: await output.sendParts(Buffer.from(JSON.stringify(ran.sent))) });
      text = JSON.stringify(record);
    }
    if ((await this.#write(job.job, record, revision, { text })) !== undefined) held.offered.ack();
  }

  #doneRecord(
    job: string,
    attempts: number,
    chunks: number,
    sent: SentResult | SentParts,
    status: string,
    about: Partial<FleetRun> = {},
  ): JobRecord {
    const none = { worker: undefined, host: undefined, queueMs: 0, changes: undefined, artefacts: undefined };
    const result = 'parts' in sent ? { parts: [...sent.parts] } : { inline: sent };
    return {
      ...{ state: 'done', at: Date.now(), status, chunks, result },
      run: { job, attempts, ...none, ...about },
    };
  }

  /** Writes the record of a job by compare-and-set. */
  #write(
    job: string,
    record: JobRecord,
    revision: number,
    { signal = this.#parts.closing, text = JSON.stringify(record) } = {},
  ): Promise<number | undefined> {
    // What this worker wrote of it before is another one.
    const isOurs = (found: JobRecord) =>
      found.state === record.state && found.at === record.at && workerOf(found) === workerOf(record);
    return writeRecord(this.#parts.queue, job, { text, revision, isOurs, signal });
  }
}
