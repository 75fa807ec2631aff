import type { Msg } from '@nats-io/transport-node';
import type { Publisher } from '../gate/nats/index.ts';
import type { FleetPriority } from '../model/fleet.ts';
import type { Queue } from './queue.ts';

/** How long a consumer that had no job is not asked again while there are jobs of others. */
const EMPTY_MS = 100;
/** How long the server may be left to think that a job runs which is over: until the next one is asked for, as a rule. */
const ACK_LATER_MS = 100;
/** How much longer than asked for an answer may take. */
const LATE_MS = 2000;

const nanoseconds = (milliseconds: number) => milliseconds * 1e6;

/** A job that the server offers to this worker, until it is acknowledged or nothing was said of it for `ACK_WAIT`. */
export class Offer {
  readonly data: Uint8Array;
  /** When the server took it; milliseconds since 1970. */
  readonly at: number;
  readonly #subject: string;
  readonly #publisher: Publisher;
  readonly #onOver: (subject: string) => void;

  /** `onOver`: acknowledges it, soon. */
  constructor(message: Msg, publisher: Publisher, onOver: (subject: string) => void) {
    this.#publisher = publisher;
    this.#onOver = onOver;
    this.#subject = message.reply ?? '';
    this.data = message.data;
    // $JS.ACK.STREAM.CONSUMER.DELIVERED.SEQ.SEQ.NANOSECONDS.PENDING, or with domain and account in front of the stream.
    const parts = this.#subject.split('.');
    this.at = Number(parts[parts.length < 11 ? 7 : 9]) / 1e6;
  }

  /** The job is over. Until the server has this, another worker that gets the offer sees it in the job's record. */
  ack(): void {
    this.#onOver(this.#subject);
  }

  /** Offers the job to other workers, after a delay in milliseconds. */
  giveBack(delay = 0): void {
    const data = delay === 0 ? '-NAK' : `-NAK ${JSON.stringify({ delay: nanoseconds(delay) })}`;
    this.#publisher.send({ subject: this.#subject, data });
  }

  /** It is being worked on. */
  hold(): void {
    this.#publisher.send({ subject: this.#subject, data: '+WPI' });
  }
}

/**
 * Where jobs of one consumer come from, one for each request. They come by their own subjects, which a subscription for
 * answers of several kinds does not know, so each has one of its own; what the library has for it opens one for each request.
 */
export class JobSource {
  readonly priority: FleetPriority;
  readonly #publisher: Publisher;
  readonly #subject: string;
  readonly #inbox: string;
  #requests = 0;
  #answer: ((job: Offer | 'none' | 'failed') => void) | undefined;
  #emptyAt = Number.NEGATIVE_INFINITY;
  #hadJob = false;
  /** Where to acknowledge jobs that are over. */
  readonly #over: string[] = [];
  #acknowledging: NodeJS.Timeout | undefined;

  /** `onLate`: told of a job that came when nobody waited for it any more. */
  constructor(queue: Queue, consumer: string, priority: FleetPriority, onLate: (job: Offer) => void) {
    this.priority = priority;
    this.#publisher = queue.publisher;
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${queue.names.jobs}.${consumer}`;
    this.#inbox = `${queue.publisher.inbox}${consumer}.`;
    queue.connection.subscribe(`${this.#inbox}*`, {
      callback: (error, message) => {
        if (error !== null) this.#settle('failed');
        else this.#onMessage(message, onLate);
      },
    });
  }

  /** Whether a request waits at the server. */
  get isAsked(): boolean {
    return this.#answer !== undefined;
  }

  /** Whether it had none a moment ago. */
  get wasEmpty(): boolean {
    return performance.now() - this.#emptyAt < EMPTY_MS;
  }

  /** Whether it had one the last time. */
  get hadJob(): boolean {
    return this.#hadJob;
  }

  /**
   * Asks for the next job; `waitMs` 0: only if there is one. `none`: there is none, or none came; `failed`: there was no answer
   * that is understood.
   */
  async next(waitMs: number): Promise<Offer | 'none' | 'failed'> {
    const ask = JSON.stringify(
      waitMs === 0 ? { batch: 1, no_wait: true } : { batch: 1, expires: nanoseconds(waitMs) },
    );
    // One that is over is acknowledged with the same message.
    const over = this.#over.pop();
    this.acknowledge();
    const request =
      over === undefined ? { subject: this.#subject, data: ask } : { subject: over, data: `+NXT ${ask}` };
    this.#requests += 1;
    const reply = `${this.#inbox}${this.#requests}`;
    let timer: NodeJS.Timeout | undefined;
    const job = await new Promise<Offer | 'none' | 'failed'>((answer) => {
      this.#answer = answer;
      timer = setTimeout(() => this.#settle('failed'), waitMs + LATE_MS);
      this.#publisher.send({ ...request, reply });
    });
    clearTimeout(timer);
    this.#hadJob = typeof job === 'object';
    if (job === 'none') this.#emptyAt = performance.now();
    return job;
  }

  /** Acknowledges at once what is over. */
  acknowledge(): void {
    clearTimeout(this.#acknowledging);
    this.#acknowledging = undefined;
    for (const subject of this.#over.splice(0)) this.#publisher.send({ subject, data: '+ACK' });
  }

  #onOver(subject: string): void {
    this.#over.push(subject);
    this.#acknowledging ??= setTimeout(() => this.acknowledge(), ACK_LATER_MS);
  }

  #onMessage(message: Msg, onLate: (job: Offer) => void): void {
    const { subject, headers } = message;
    // What is no job is a status of one request: 404 there is none, 408 the time is over, 409 the consumer is gone.
    if (subject.startsWith(this.#inbox)) {
      if (subject !== `${this.#inbox}${this.#requests}`) return;
      this.#settle(headers?.code === 404 || headers?.code === 408 ? 'none' : 'failed');
      return;
    }
    const offer = new Offer(message, this.#publisher, (over) => this.#onOver(over));
    if (this.isAsked) this.#settle(offer);
    else onLate(offer);
  }

  /** At once, so that what comes in the same moment is not taken for an answer, too. */
  #settle(job: Offer | 'none' | 'failed'): void {
    const answer = this.#answer;
    this.#answer = undefined;
    answer?.(job);
  }
}
