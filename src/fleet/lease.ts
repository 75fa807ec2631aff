import { uptime } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { deferred } from '../base/deferred.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { parsedJson } from '../base/parsed-json.ts';
import { type WorkerRecord, WorkerRecord as WorkerRecordSchema } from '../model/fleet.ts';
import { compareAndSet, type Queue } from './queue.ts';

/*
 * A worker may run jobs as long as it has its lease: its record, which it writes again and again. Nobody compares clocks of two
 * machines. Who wants to know whether a worker is lost watches the record for as long as the lease lasts, by its own clock, and
 * if it is the same then, takes it away by compare-and-set: so a renewal and the end of a lease cannot both succeed. The worker
 * counts from before the last renewal that the server acknowledged, which is earlier, and ends its jobs a margin before that.
 */

/** Milliseconds without a sign of life after which a worker is lost, unless it says another time. */
export const DEFAULT_LEASE = 15_000;
export const SHORTEST_LEASE = 3000;
export const LONGEST_LEASE = 10 * 60 * 1000;
/** What part of it is left to end the jobs when it cannot be renewed. */
const MARGIN = 1 / 3;
const RENEWALS = 5;
/** How long the answer to a renewal may take: the next one may meet a leader that was elected meanwhile. */
const ANSWERS = 8;
const AGAIN_MS = 100;
const LOOK_MS = 100;

/** Milliseconds before its end at which a worker that cannot renew its lease ends its jobs. */
export const marginOf = (leaseMs: number) => leaseMs * MARGIN;

/** Milliseconds that have passed, also while the machine slept: the later of two clocks that nobody sets. */
function clock() {
  const now = () => ({ awake: performance.now(), all: uptime() * 1000 });
  return {
    now,
    since: (then: ReturnType<typeof now>) => {
      const at = now();
      return Math.max(at.awake - then.awake, at.all - then.all);
    },
  };
}

/** What a worker tells of itself at the moment. */
type WorkerReport = Omit<WorkerRecord, 'state' | 'beat' | 'leaseMs'>;

/** The lease of this worker. */
export class Lease {
  readonly worker: string;
  readonly leaseMs: number;
  /** Settles when the lease is lost: the jobs of this worker have to end. */
  readonly lost: Promise<void>;
  readonly #queue: Queue;
  readonly #report: () => WorkerReport;
  readonly #clock = clock();
  readonly #lose = deferred<void>();
  #beat = 0;
  #revision = 0;
  /** Before the last renewal that the server has acknowledged. */
  #renewedAt;
  #held = true;
  #over = false;
  #renewing: Promise<void> | undefined;
  readonly #timers: NodeJS.Timeout[] = [];
  /** What the server's clock was at a moment of ours that nobody sets. */
  #server = { time: 0, at: 0 };

  private constructor(queue: Queue, worker: string, leaseMs: number, report: () => WorkerReport) {
    this.#queue = queue;
    this.worker = worker;
    this.leaseMs = leaseMs;
    this.#report = report;
    this.lost = this.#lose.promise;
    this.#renewedAt = this.#clock.now();
  }

  /** Takes one. @throws what the server says. */
  static async take(
    queue: Queue,
    worker: string,
    leaseMs: number,
    report: () => WorkerReport,
  ): Promise<Lease> {
    const lease = new Lease(queue, worker, leaseMs, report);
    const revision = await lease.#write('live');
    if (revision === undefined)
      throw new SandboxError('fleet.unreachable', 'the lease of this worker is there already');
    lease.#revision = revision;
    const entry = await queue.workers.get(worker);
    lease.#server = { time: entry?.created.getTime() ?? Date.now(), at: performance.now() };
    lease.#timers.push(
      setInterval(() => lease.#renewSoon(), leaseMs / RENEWALS),
      setInterval(() => lease.#look(), LOOK_MS),
    );
    return lease;
  }

  /** What time it is for the server; milliseconds since 1970. Its clock says when a job was handed over, and not ours. */
  now(): number {
    return this.#server.time + performance.now() - this.#server.at;
  }

  /** Whether jobs may run, as far as it was known a moment ago: a machine that slept meanwhile is not asked. */
  get held(): boolean {
    return this.#held && performance.now() - this.#renewedAt.awake < this.leaseMs - marginOf(this.leaseMs);
  }

  /** Whether a job may be begun now. */
  isHeldNow(): boolean {
    return this.#held && this.#clock.since(this.#renewedAt) < this.leaseMs - marginOf(this.leaseMs);
  }

  /** Gives the lease back after all jobs have ended: another worker takes unfinished ones at once. */
  async end(): Promise<void> {
    this.#stop();
    await this.#renewing;
    if (!this.#held) return;
    this.#held = false;
    await this.#write('ended').catch(() => {});
  }

  #look(): void {
    if (!this.isHeldNow()) this.#giveUp();
  }

  #stop(): void {
    this.#over = true;
    for (const timer of this.#timers) clearInterval(timer);
  }

  #giveUp(): void {
    if (this.#over) return;
    this.#held = false;
    this.#stop();
    this.#lose.resolve();
  }

  #renewSoon(): void {
    if (this.#over) return;
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
  }

  async #renew(): Promise<void> {
    const before = this.#clock.now();
    this.#beat += 1;
    const again = () => {
      if (!this.#over) setTimeout(() => this.#renewSoon(), AGAIN_MS);
    };
    let revision: number | undefined;
    try {
      revision = await within(this.leaseMs / ANSWERS, this.#write('live'));
    } catch {
      again();
      return;
    }
    if (revision === undefined) {
      // Written by us, with an answer that was lost; or taken away.
      const entry = await this.#queue.workers.get(this.worker).catch(() => undefined);
      if (entry === undefined) {
        again();
        return;
      }
      const said = entry === null ? undefined : readWorker(entry.value);
      if (said !== undefined && said.state !== 'live') {
        this.#giveUp();
        return;
      }
      // A deleted or damaged lease is not lost: other workers wait longer before they take it over.
      this.#revision = entry?.revision ?? 0;
      // When that was written is not known: the next renewal counts.
      again();
      return;
    }
    this.#revision = revision;
    this.#renewedAt = before;
  }

  #write(state: WorkerRecord['state']): Promise<number | undefined> {
    const record: WorkerRecord = {
      ...this.#report(),
      ...{ state, beat: this.#beat, leaseMs: this.leaseMs },
    };
    const { names } = this.#queue;
    return compareAndSet(this.#queue, names.workers, this.worker, JSON.stringify(record), this.#revision);
  }
}

/** The result of work that must finish within a time. @throws if it does not. */
async function within<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), milliseconds);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** A record of a worker; `undefined`: it is none. */
export function readWorker(value: Uint8Array): WorkerRecord | undefined {
  const read = WorkerRecordSchema.safeParse(parsedJson(value));
  return read.success ? read.data : undefined;
}

const FORGOTTEN: WorkerRecord = {
  ...{ state: 'lost', beat: 0, host: '', pid: 0, version: '', labels: [], slots: 0, running: 0 },
  ...{ done: 0, failed: 0, leaseMs: 0, since: 0 },
};

/**
 * For who may not take leases away: whether a worker has ended, or gave no sign of life for as long as its lease lasts, by all
 * that was seen of it so far. Then its jobs have ended, too.
 */
export function looksGone(queue: Queue): (worker: string) => Promise<boolean> {
  let seen = { what: '', at: 0 };
  return async (worker) => {
    const entry = await queue.workers.get(worker);
    const said = entry === null ? undefined : readWorker(entry.value);
    if (said !== undefined && said.state !== 'live') return true;
    const what = `${worker} ${entry?.revision}`;
    if (seen.what !== what) seen = { what, at: performance.now() };
    return performance.now() - seen.at > (said?.leaseMs ?? LONGEST_LEASE);
  };
}

/** Finds out whether workers are lost, each once at a time. */
export class LeaseWatch {
  readonly #queue: Queue;
  readonly #watched = new Map<string, Promise<boolean>>();
  /** They do not come back: a worker that lost its lease takes another name. */
  readonly #gone = new Set<string>();
  /** Those whose record does not say how long their lease lasts. */
  readonly #forgetting = new Set<string>();

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** Whether a worker is lost, or has ended. Waits for as long as its lease lasts, if there is any doubt. */
  isGone(worker: string, signal: AbortSignal): Promise<boolean> {
    if (this.#gone.has(worker)) return Promise.resolve(true);
    let watched = this.#watched.get(worker);
    if (watched === undefined) {
      watched = this.#watch(worker, signal)
        // Unknown, because the record cannot be read: the job is offered again.
        .catch(() => false)
        .finally(() => this.#watched.delete(worker));
      this.#watched.set(worker, watched);
    }
    return watched;
  }

  async #watch(worker: string, signal: AbortSignal): Promise<boolean> {
    const before = await this.#queue.workers.get(worker);
    const said = before === null ? undefined : readWorker(before.value);
    if (before === null || said === undefined) {
      void this.#forget(worker, before?.revision ?? 0).catch(() => {});
      return false;
    }
    if (said.state !== 'live') return this.#note(worker);
    await delay(said.leaseMs, undefined, { signal });
    const after = await this.#queue.workers.get(worker);
    if (after === null || after.revision !== before.revision) {
      const now = after === null ? undefined : readWorker(after.value);
      // Without a word of its own it is looked at again.
      return now === undefined || now.state === 'live' ? false : this.#note(worker);
    }
    // From here on the worker cannot renew it; or it just did.
    return (await this.#take(worker, { ...said, state: 'lost' }, before.revision)) && this.#note(worker);
  }

  /**
   * A record that is not there (it is kept for a day), that somebody deleted, or that is of another version: its worker is
   * lost if it says nothing for as long as any lease lasts. Jobs are given back meanwhile.
   */
  async #forget(worker: string, revision: number): Promise<void> {
    if (this.#forgetting.has(worker)) return;
    this.#forgetting.add(worker);
    try {
      await delay(LONGEST_LEASE, undefined, { ref: false });
      const after = await this.#queue.workers.get(worker);
      if ((after?.revision ?? 0) !== revision) return;
      if (await this.#take(worker, FORGOTTEN, revision)) this.#note(worker);
    } finally {
      this.#forgetting.delete(worker);
    }
  }

  async #take(worker: string, lost: WorkerRecord, revision: number): Promise<boolean> {
    const text = JSON.stringify(lost);
    return (
      (await compareAndSet(this.#queue, this.#queue.names.workers, worker, text, revision)) !== undefined
    );
  }

  #note(worker: string): true {
    this.#gone.add(worker);
    return true;
  }
}
