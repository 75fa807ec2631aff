import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { visibleLine } from '../base/visible-text.ts';
import { FLEET_PRIORITIES } from '../base/words.ts';
import { ANSWER_MS, natsFailure, patiently } from '../gate/nats/index.ts';
import type { SandboxOptions, Telemetry } from '../model/index.ts';
import { openTelemetry, refuseReadableCredentials } from '../run/index.ts';
import { packageVersion } from '../version.ts';
import { DEFAULT_LEASE, Lease, marginOf } from './lease.ts';
import { JobSource, type Offer } from './offers.ts';
import {
  ACK_WAIT,
  ensureConsumer,
  jobsBySubject,
  labelsOf,
  openQueue,
  type Queue,
  satisfies,
} from './queue.ts';
import { JobSandboxes } from './sandboxes.ts';
import { abandon, WorkerJobs } from './worker-jobs.ts';

/** How long one request for a job waits at the server. */
const PULL_MS = 5000;
const RECONNECT_MS = 250;
/** Sets of labels whose jobs a worker takes: each has consumers, and labels can be put together in very many ways. */
export const MOST_NEEDS = 256;
/** How often it is looked for jobs with needs that this worker has not heard of. */
const NEEDS_MS = 15_000;
const WORKING_MS = ACK_WAIT / 3;

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

/** Takes jobs off a queue and runs them under its own policy. */
export class FleetWorker {
  readonly #options: WorkerOptions;
  readonly #queue: Queue;
  readonly #sandboxes: JobSandboxes;
  readonly #jobs: WorkerJobs;
  /** What jobs need whose consumers are there, or being made. */
  readonly #needs = new Set<string>();
  #isLeaving = false;
  /** By consumer. */
  readonly #sources = new Map<string, JobSource>();
  readonly #closing = new AbortController();
  readonly #timers: NodeJS.Timeout[] = [];
  readonly #since = Date.now();
  readonly #host = hostname();
  #lease: Lease | undefined;
  #cancels: Subscription | undefined;
  #busy = 0;
  #stopping = false;
  #wake: () => void = () => {};
  #pulling: Promise<void> = Promise.resolve();

  private constructor(options: WorkerOptions, queue: Queue, telemetry: Telemetry | undefined) {
    this.#options = options;
    this.#queue = queue;
    this.#sandboxes = new JobSandboxes(options.sandbox, options.scratch);
    this.#jobs = new WorkerJobs({
      ...{ queue, sandboxes: this.#sandboxes, telemetry, host: this.#host, closing: this.#closing.signal },
      lease: () => this.#lease,
      say: (line) => this.#say(line),
    });
    // One for each job that waits for something.
    setMaxListeners(0, this.#closing.signal);
  }

  /**
   * Starts one: opens its own sandbox first, so that a policy that does not hold here is known before any job is.
   * @throws {SandboxError} as `createSandbox`; as `openQueue`; `usage.invalid` if the lease is too short to end jobs in.
   */
  static async start(options: WorkerOptions): Promise<FleetWorker> {
    const queue = await openQueue(options.connection, options.queue, { replicas: options.replicas });
    const worker = new FleetWorker(options, queue, await openTelemetry());
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
    const running = this.#jobs.held.size;
    if (running > 0 && graceMs > 0)
      this.#say(
        `takes no more jobs; ${running === 1 ? '1 that runs has' : `${running} that run have`} ${graceMs / 1000} s to end`,
      );
    const patience = delay(graceMs, undefined, { signal: this.#closing.signal }).catch(() => {});
    await Promise.race([this.#idle(), patience]);
    const left = [...this.#jobs.held.values()];
    for (const held of left) abandon(held);
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
      for (const { offered } of this.#jobs.held.values()) offered.hold();
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
      ...{ running: this.#jobs.held.size, ...this.#jobs.ended, since: this.#since },
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
        if (error === null) this.#jobs.held.get(message.string())?.ending.abort();
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
    for (const held of this.#jobs.held.values()) abandon(held);
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

  async #idle(): Promise<void> {
    while (this.#busy > 0 || this.#jobs.held.size > 0) await delay(20);
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
    void this.#jobs
      .handle(offered, free)
      .catch((error: unknown) => this.#say(`a job was not handled: ${String(error)}`))
      .finally(free);
  }

  #say(line: string): void {
    this.#options.onProblem?.(visibleLine(line, 300));
  }
}
