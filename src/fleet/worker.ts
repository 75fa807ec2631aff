import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { errorMessage } from '../base/error-message.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { parsedJson } from '../base/parsed-json.ts';
import { visibleLine } from '../base/visible-text.ts';
import { FLEET_PRIORITIES } from '../base/words.ts';
import { ANSWER_MS, natsFailure, patiently } from '../gate/nats/index.ts';
import { type FleetRun, JobMessage, type JobRecord, type SentResult } from '../model/fleet.ts';
import type { SandboxOptions, Telemetry } from '../model/index.ts';
import { openTelemetry, refuseReadableCredentials } from '../run/index.ts';
import { packageVersion } from '../version.ts';
import { standingOf, writeRecord } from './claims.ts';
import { type ClaimedJob, runJob, unfinished } from './job.ts';
import { DEFAULT_LEASE, Lease, LeaseWatch, marginOf } from './lease.ts';
import { JobSource, type Offer } from './offers.ts';
import { OutputSender } from './output.ts';
import {
  ACK_WAIT,
  ensureConsumer,
  jobsBySubject,
  LONGEST_WAIT,
  labelsOf,
  MESSAGE_BYTES,
  openQueue,
  type Queue,
  satisfies,
} from './queue.ts';
import { ReportTeller } from './reports.ts';
import { JobSandboxes } from './sandboxes.ts';

/** How long one request for a job waits at the server. */
const PULL_MS = 5000;
const RECONNECT_MS = 250;
/** Sets of labels whose jobs a worker takes: each has consumers, and labels can be put together in very many ways. */
export const MOST_NEEDS = 256;
/** How often it is looked for jobs with needs that this worker has not heard of. */
const NEEDS_MS = 15_000;
const WORKING_MS = ACK_WAIT / 3;
/** How much of a record is left for what stands around a result. */
const INLINE_BYTES = MESSAGE_BYTES;

/** Options of {@link FleetWorker.start}. */
export interface WorkerOptions {
  readonly connection: NatsConnection;
  readonly queue: string;
  /** Jobs at once. Default: 1. */
  readonly slots?: number;
  readonly labels?: readonly string[];
  /** Milliseconds without a sign of life after which this worker is lost, at least 3,000. Default: 15,000. */
  readonly leaseMs?: number;
  /** The policy and the workspace of the worker. */
  readonly sandbox: SandboxOptions;
  /** The file that the connection was made with: commands must not be able to read it. */
  readonly credentials?: string | undefined;
  /** Where workspaces of jobs are made. */
  readonly scratch: string;
  readonly replicas?: number;
  /** Told what people should know, in one line each. */
  readonly onProblem?: (line: string) => void;
}

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

/** Takes jobs off a queue and runs them under its own policy. */
export class FleetWorker {
  readonly #options: WorkerOptions;
  readonly #queue: Queue;
  readonly #sandboxes: JobSandboxes;
  readonly #watch: LeaseWatch;
  readonly #reports: ReportTeller;
  readonly #held = new Map<string, Held>();
  /** What jobs need whose consumers are there, or being made. */
  readonly #needs = new Set<string>();
  #isLeaving = false;
  /** By consumer. */
  readonly #sources = new Map<string, JobSource>();
  /** Jobs whose records are not understood. */
  readonly #told = new Set<string>();
  readonly #closing = new AbortController();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #since = Date.now();
  readonly #host = hostname();
  #lease: Lease | undefined;
  #cancels: Subscription | undefined;
  #busy = 0;
  #done = 0;
  #failed = 0;
  #stopping = false;
  #wake: () => void = () => {};
  #pulling: Promise<void> = Promise.resolve();

  #telemetry: Telemetry | undefined;

  private constructor(options: WorkerOptions, queue: Queue) {
    this.#options = options;
    this.#queue = queue;
    this.#sandboxes = new JobSandboxes(options.sandbox, options.scratch);
    this.#watch = new LeaseWatch(queue);
    this.#reports = new ReportTeller(queue);
    // One for each job that waits for something.
    setMaxListeners(0, this.#closing.signal);
  }

  /**
   * Starts one: opens its own sandbox first, so that a policy that does not hold here is known before any job is.
   * @throws {SandboxError} as `createSandbox`; as `openQueue`; `usage.invalid` if the lease is too short to end jobs in.
   */
  static async start(options: WorkerOptions): Promise<FleetWorker> {
    const queue = await openQueue(options.connection, options.queue, { replicas: options.replicas });
    const worker = new FleetWorker(options, queue);
    worker.#telemetry = await openTelemetry();
    try {
      await worker.#check();
    } catch (error) {
      await worker.#sandboxes.close();
      throw error;
    }
    try {
      await patiently(() => worker.#findNeeds(['any']));
      await patiently(() => worker.#takeLease());
    } catch (error) {
      await worker.#sandboxes.close();
      throw natsFailure(error, options.connection.getServer());
    }
    worker.#begin();
    return worker;
  }

  /** Refuses what could not be held once jobs run. */
  async #check(): Promise<void> {
    const { plan, policy } = (await this.#sandboxes.own()).sandbox;
    const { leaseMs = DEFAULT_LEASE, credentials } = this.#options;
    refuseReadableCredentials(plan, credentials);
    const { killGraceMs } = policy.limits;
    if (killGraceMs + 500 > marginOf(leaseMs))
      throw new SandboxError(
        'usage.invalid',
        `a lease of ${leaseMs / 1000} s leaves ${(marginOf(leaseMs) / 1000).toFixed(1)} s to end a job, and limits.kill_grace_seconds is ${killGraceMs / 1000}; choose a longer lease or a shorter grace`,
      );
  }

  /** Its present name; another one after a lost lease. */
  get id(): string | undefined {
    return this.#lease?.worker;
  }

  /** Where it works. */
  get workspace(): Promise<string> {
    return this.#sandboxes.own().then(({ workspace }) => workspace);
  }

  /** Takes no more jobs, waits for those that run, ends what is left after `graceMs`, and gives back the lease. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping = true;
    this.#wake();
    const running = this.#held.size;
    if (running > 0 && graceMs > 0)
      this.#say(
        `takes no more jobs; ${running === 1 ? '1 that runs has' : `${running} that run have`} ${graceMs / 1000} s to end`,
      );
    const patience = delay(graceMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    await Promise.race([this.#idle(), patience]);
    const left = [...this.#held.values()];
    for (const held of left) this.#abandon(held);
    // A result that the server does not take for as long as a lease lasts is another worker's to replace by then.
    await Promise.race([this.#idle(), this.#pause(this.#options.leaseMs ?? DEFAULT_LEASE)]);
    this.#closing.abort();
    await this.#idle();
    for (const timer of this.#timers) clearInterval(timer);
    this.#cancels?.unsubscribe();
    await this.#lease?.end();
    // Another worker has them at once.
    for (const { offered } of left) offered.giveBack();
    await this.#pulling;
    await this.#sandboxes.close();
    for (const source of this.#sources.values()) source.acknowledge();
    this.#queue.publisher.flush();
    await Promise.race([this.#queue.connection.flush().catch(() => {}), delay(ANSWER_MS)]);
  }

  #begin(): void {
    const { connection, names } = this.#queue;
    const working = () => {
      for (const { offered } of this.#held.values()) offered.hold();
    };
    const look = () => {
      jobsBySubject(this.#queue)
        .then((found) => this.#findNeeds(found.map(({ needs }) => needs)))
        .catch(() => {});
    };
    this.#timers.push(setInterval(working, WORKING_MS), setInterval(look, NEEDS_MS));
    look();
    connection.subscribe(names.needs, {
      // A worker without permission to subscribe here finds it out later.
      callback: (error, message) => {
        if (error === null) void this.#findNeeds([message.string()]).catch(() => {});
      },
    });
    this.#pulling = this.#pull();
  }

  /** Makes the consumers for needs that this worker has. */
  async #findNeeds(found: readonly string[]): Promise<void> {
    const { labels = [] } = this.#options;
    for (const needs of new Set(found)) {
      if (this.#needs.has(needs) || !satisfies(labels, needs)) continue;
      if (this.#needs.size >= MOST_NEEDS) {
        this.#leaveToOthers(needs);
        continue;
      }
      this.#needs.add(needs);
      try {
        for (const priority of FLEET_PRIORITIES) {
          const name = await ensureConsumer(this.#queue, priority, needs);
          // From before, where the next one could not be made.
          if (this.#sources.has(name)) continue;
          this.#sources.set(name, new JobSource(this.#queue, name, priority, (job) => this.#offer(job)));
        }
      } catch (error) {
        this.#needs.delete(needs);
        throw error;
      }
      this.#wake();
    }
  }

  #leaveToOthers(needs: string): void {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    const labels = labelsOf(needs).join(' ');
    this.#say(
      `this worker takes jobs of ${MOST_NEEDS} sets of labels, and leaves others, such as ${labels}, to other workers until it is started again`,
    );
  }

  async #takeLease(): Promise<void> {
    const worker = randomBytes(8).toString('hex');
    const { slots = 1, labels = [], leaseMs = DEFAULT_LEASE } = this.#options;
    await this.#listen(worker);
    const lease = await Lease.take(this.#queue, worker, leaseMs, () => ({
      ...{ host: this.#host, pid: process.pid, version: packageVersion, labels: [...labels], slots },
      ...{ running: this.#held.size, done: this.#done, failed: this.#failed, since: this.#since },
    }));
    // The worker has ended meanwhile, and gives back no other one.
    if (this.#stopping) return lease.end();
    this.#lease = lease;
    void lease.lost.then(() => this.#replaceLease());
  }

  /** Hears which jobs are canceled. @throws the error of a server that lets this user not. */
  async #listen(worker: string): Promise<void> {
    const { connection, names } = this.#queue;
    let refused: Error | undefined;
    this.#cancels?.unsubscribe();
    this.#cancels = connection.subscribe(names.cancel(worker), {
      callback: (error, message) => {
        if (error === null) this.#held.get(message.string())?.ending.abort();
        else refused = error;
      },
    });
    // What the server has against it is here before that is answered.
    await connection.flush();
    if (refused !== undefined) throw refused;
  }

  /** All jobs end; then there is another name to work under. */
  async #replaceLease(): Promise<void> {
    this.#lease = undefined;
    this.#say('the lease of this worker is lost: its jobs end, and it goes on under another name');
    for (const held of this.#held.values()) this.#abandon(held);
    await this.#idle();
    while (!this.#stopping) {
      try {
        await this.#takeLease();
        this.#wake();
        return;
      } catch {
        await this.#pause(RECONNECT_MS);
      }
    }
  }

  #abandon(held: Held): void {
    held.abandoning.abort();
    held.ending.abort();
  }

  async #idle(): Promise<void> {
    while (this.#busy > 0 || this.#held.size > 0) await delay(20);
  }

  async #pause(milliseconds: number): Promise<void> {
    await delay(milliseconds, undefined, { signal: this.#closing.signal }).catch(() => {});
  }

  get #isFree(): boolean {
    return !this.#stopping && this.#lease?.held === true && this.#busy < (this.#options.slots ?? 1);
  }

  /** Keeps the slots filled: of jobs that wait those of the highest priority first. */
  async #pull(): Promise<void> {
    while (!this.#stopping) {
      let timer: NodeJS.Timeout | undefined;
      const woken = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, PULL_MS);
        this.#wake = resolve;
      });
      // Where one is left to be asked there is no order to keep: it is asked once, and waited for.
      const isOrdered = [...this.#sources.values()].filter(({ isAsked }) => !isAsked).length > 1;
      if (isOrdered && this.#isFree && (await this.#takeWaiting())) this.#wake();
      else if (this.#isFree) this.#askAll();
      await woken;
      clearTimeout(timer);
    }
  }

  /** Takes one job, if there is one. */
  async #takeWaiting(): Promise<boolean> {
    const all = [...this.#sources.values()];
    const left = FLEET_PRIORITIES.flatMap((priority) =>
      all.filter((source) => source.priority === priority),
    ).filter(({ isAsked, wasEmpty }) => !isAsked && !wasEmpty);
    while (left.length > 0) {
      // Down to the one that is likely to have a job: as a rule those above have none. What comes too much is given back.
      const likely = left.findIndex(({ hadJob }) => hadJob);
      const answers = left.splice(0, Math.max(likely, 0) + 1).map((source) => source.next(0));
      const jobs = await Promise.all(answers);
      for (const job of jobs) if (typeof job === 'object') this.#offer(job);
      if (jobs.some((job) => typeof job === 'object')) return true;
      if (jobs.includes('failed')) {
        await this.#pause(RECONNECT_MS);
        return false;
      }
    }
    return false;
  }

  /** Asks every consumer to tell when there is a job. */
  #askAll(): void {
    for (const source of this.#sources.values()) {
      if (source.isAsked) continue;
      void source.next(PULL_MS).then(async (job) => {
        if (job === 'failed') await this.#pause(RECONNECT_MS);
        else if (job !== 'none') this.#offer(job);
        this.#wake();
      });
    }
  }

  /** Begins a job if there is a slot for it; else another worker gets it. */
  #offer(offered: Offer): void {
    if (!this.#isFree) {
      offered.giveBack();
      return;
    }
    this.#busy += 1;
    let isFreed = false;
    const free = () => {
      if (isFreed) return;
      isFreed = true;
      this.#busy -= 1;
      this.#wake();
    };
    void this.#handle(offered, free)
      .catch((error: unknown) => this.#say(`a job was not handled: ${String(error)}`))
      .finally(free);
  }

  /** `free`: gives the slot to the next job. */
  async #handle(offered: Offer, free: () => void): Promise<void> {
    const read = JobMessage.safeParse(parsedJson(offered.data));
    const { error } = read;
    if (error !== undefined) {
      await this.#refuseUnread(offered, error.issues[0]);
      return;
    }
    const job = read.data;
    const known = this.#held.get(job.job);
    if (known !== undefined) {
      known.offered = offered;
      return;
    }
    const held: Held = { offered, ending: new AbortController(), abandoning: new AbortController() };
    this.#held.set(job.job, held);
    try {
      const claimed = await this.#claim(job, held);
      if (claimed !== undefined)
        await this.#run(claimed, held, free).catch((error: unknown) =>
          this.#endAsUnknown(claimed, held, error),
        );
    } finally {
      this.#held.delete(job.job);
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
    this.#say(why);
    if (name.success) {
      const result = unfinished('setup-failed', 'usage.invalid', why);
      const record = this.#doneRecord(name.data, 0, 0, { result }, 'setup-failed');
      await this.#write(name.data, record, 0);
    }
    offered.ack();
  }

  /** Makes a job this worker's own; `undefined`: it is somebody's, or over. */
  async #claim(job: JobMessage, held: Held): Promise<ClaimedJob | undefined> {
    const lease = this.#lease;
    if (lease?.isHeldNow() !== true) return undefined;
    const queueMs = Math.max(0, lease.now() - held.offered.at);
    const claim = (attempt: number): JobRecord => ({
      ...{ state: 'claimed', worker: lease.worker, host: this.#host, attempt, at: Date.now(), queueMs },
    });
    const claimed = (attempt: number, revision: number): ClaimedJob => ({
      ...{ job, attempt, revision, queueMs, queue: this.#queue.name, worker: lease.worker },
      ...{ signal: held.ending.signal, abandoned: held.abandoning.signal },
    });
    const isTooLate = queueMs > LONGEST_WAIT;
    if (!isTooLate) {
      // Most jobs are nobody's, so that is tried first.
      const own = await this.#write(job.job, claim(1), 0, { signal: held.ending.signal });
      if (own !== undefined) return claimed(1, own);
    }
    while (!held.ending.signal.aborted && lease.isHeldNow()) {
      const standing = await standingOf(this.#queue, job.job).catch(() => 'unknown' as const);
      if (standing === 'unknown') {
        await this.#pause(RECONNECT_MS);
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
      this.#say(`the record of job ${job.job} is not understood; is another worker of another version?`);
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
    this.#say(`job ${job.job}: ${why}`);
    const result = unfinished('worker-lost', 'fleet.worker_lost', why);
    const about = { worker, host: this.#host, queueMs };
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
      this.#queue,
      job.job,
      attempt,
      () => held.ending.signal.aborted || this.#closing.signal.aborted,
    );
    const measured = this.#telemetry?.begin('job', { parent: job.traceparent });
    const waited = () => this.#telemetry?.begin('queue-wait', { since: Date.now() - queueMs }).end(ofQueue);
    const ofQueue = { queue: this.#queue.name };
    measured?.within(waited);
    const tells = { output, reports: this.#reports, say: (line: string) => this.#say(line) };
    const run = () => runJob(claimed, this.#sandboxes, this.#queue, tells);
    const ran = await (measured === undefined ? run() : measured.within(run));
    measured?.end({ ...ofQueue, job: job.job, worker, attempt, status: ran.sent.result.status });
    // While it is told what became of this one, the next one runs.
    free();
    if (held.abandoning.signal.aborted) return;
    const pieces = await output.end();
    this.#done += 1;
    if (!ran.sent.result.ok) this.#failed += 1;
    const about = { worker, host: this.#host, queueMs, ...ran.collected };
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
    { signal = this.#closing.signal, text = JSON.stringify(record) } = {},
  ): Promise<number | undefined> {
    // What this worker wrote of it before is another one.
    const isOurs = (found: JobRecord) =>
      found.state === record.state && found.at === record.at && workerOf(found) === workerOf(record);
    return writeRecord(this.#queue, job, { text, revision, isOurs, signal });
  }

  #say(line: string): void {
    this.#options.onProblem?.(visibleLine(line, 300));
  }
}
