import { deferred } from '../../base/deferred.ts';
import { errorMessage } from '../../base/error-message.ts';
import type { Command, ExecutionResult, JobOptions, PublishedPort } from '../../model/index.ts';
import type { BackgroundJob, JobPort } from '../launch/jobs.ts';
import { BYTE_BY_BYTE, OutputLog } from '../output/output-log.ts';
import { createDecoder } from '../output/show.ts';
import { LinePattern } from './line-pattern.ts';

/** Bytes that are kept of what a service writes: the last ones of both streams together. */
const KEPT_BYTES = 1024 * 1024;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** Failures in a row after which a service is not started any more. */
const MOST_FAILURES = 10;
/** A service that ran for so long has not failed in a row. */
const RAN_WELL_MS = 60_000;
/** How often it is looked whether a port listens: growing between these. */
const LOOK_MS = { first: 30, most: 400 } as const;

/** What a service is to be. */
export interface ServiceWish {
  readonly command: Command;
  /** Of each start. Output goes to the log of the service. */
  readonly run: Omit<JobOptions, 'background' | 'onOutput' | 'signal'>;
  /** When it is ready: a process of it listens at a TCP port, or a line of its output matches. `undefined`: once it runs. */
  readonly ready: { readonly port: number } | { readonly line: string } | undefined;
  /** Whether it is started again when it fails. */
  readonly restart: 'never' | 'on-failure';
  /** Milliseconds after which it is stopped; `undefined`: never. */
  readonly lifetimeMs: number | undefined;
}

/** What a service does now. */
export type ServiceState = 'starting' | 'running' | 'ready' | 'waiting' | 'stopping' | 'ended';

/** How a service ended. */
export interface ServiceEnd {
  readonly why: 'by-itself' | 'stopped' | 'lifetime' | 'too-many-failures';
  /** Of its last start; `undefined`: it never came to one, or that failed as `problem` says. */
  readonly result: ExecutionResult | undefined;
  readonly problem?: string;
}

/** What a service needs of a sandbox. */
interface Starter {
  start(command: Command, options: JobOptions): BackgroundJob;
}

/** A command in the background that is to go on until somebody stops it. It begins when it is made. */
export class Service {
  readonly wish: ServiceWish;
  /** The last output, byte by byte. */
  readonly log = new OutputLog(KEPT_BYTES, BYTE_BY_BYTE);
  /** Settles when it has ended, with all that it started. Never rejects. */
  readonly ended: Promise<ServiceEnd>;
  readonly #sandbox: Starter;
  #ready = deferred<void>();
  /** Ends the look whether the start that runs is ready. */
  #look: AbortController | undefined;
  readonly #over = new AbortController();
  readonly #lifetime: NodeJS.Timeout | undefined;
  #state: ServiceState = 'starting';
  #job: BackgroundJob | undefined;
  #startedAt = Date.now();
  #restarts = 0;
  #again = false;
  #why: ServiceEnd['why'] = 'stopped';

  constructor(sandbox: Starter, wish: ServiceWish) {
    this.#sandbox = sandbox;
    this.wish = wish;
    if (wish.lifetimeMs !== undefined)
      this.#lifetime = setTimeout(() => this.#stop('lifetime'), wish.lifetimeMs);
    this.ended = this.#live().then((end) => {
      clearTimeout(this.#lifetime);
      this.#state = 'ended';
      this.log.end();
      return end;
    });
  }

  get state(): ServiceState {
    return this.#state;
  }

  /**
   * Settles when it is ready for the first time since it was made or {@link startAgain} was called, which is when it runs if nothing
   * else was asked for.
   */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** When it was started last: milliseconds since 1970. */
  get startedAt(): number {
    return this.#startedAt;
  }

  /** How often it was started again. */
  get restarts(): number {
    return this.#restarts;
  }

  /** The first of its processes; `undefined`: none runs. */
  async pid(): Promise<number | undefined> {
    const [first] = [...((await this.#job?.members()) ?? [])].sort((one, two) => one - two);
    return first;
  }

  /** Where programs of this machine can connect to, also while nothing listens there. */
  get published(): readonly PublishedPort[] {
    return this.#job?.published ?? [];
  }

  /** What its processes listen on now. */
  async ports(): Promise<readonly JobPort[]> {
    return (await this.#job?.ports()) ?? [];
  }

  /** SIGTERM, then SIGKILL after the grace period, to everything that it started; also while it is about to begin. Settles when all has ended. */
  async stop(): Promise<ServiceEnd> {
    this.#stop('stopped');
    return this.ended;
  }

  /** Ends what runs and starts it again, at once. Settles when that has been decided about. False: it is not running any more. */
  async startAgain(): Promise<boolean> {
    if (this.#over.signal.aborted || this.#state === 'ended') return false;
    this.#again = true;
    // What the start before still says is not about the next one.
    this.#look?.abort();
    const { resolve } = this.#ready;
    this.#ready = deferred();
    // A caller that waits for the start before means this one now.
    void this.#ready.promise.then(resolve);
    const before = this.#job;
    this.#wake();
    await before?.end().catch(() => {});
    return true;
  }

  #stop(why: ServiceEnd['why']): void {
    if (this.#state === 'ended' || this.#over.signal.aborted) return;
    this.#why = why;
    this.#state = 'stopping';
    this.#over.abort();
    this.#wake();
    void this.#job?.end().catch(() => {});
  }

  #wake = () => {};

  async #live(): Promise<ServiceEnd> {
    let failures = 0;
    for (;;) {
      if (this.#over.signal.aborted) return { why: this.#why, result: undefined };
      const began = performance.now();
      let result: ExecutionResult;
      try {
        result = await this.#once();
      } catch (error) {
        return { why: 'by-itself', result: undefined, problem: errorMessage(error) };
      }
      if (this.#over.signal.aborted) return { why: this.#why, result };
      if (this.#again) {
        this.#again = false;
        failures = 0;
      } else {
        const isRetried = this.wish.restart === 'on-failure' && mayBeTriedAgain(result);
        if (!isRetried) return { why: 'by-itself', result };
        failures = performance.now() - began >= RAN_WELL_MS ? 1 : failures + 1;
        if (failures > MOST_FAILURES) return { why: 'too-many-failures', result };
        this.#state = 'waiting';
        await this.#pause(Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS));
        this.#again = false;
      }
      this.#restarts += 1;
    }
  }

  /** One start of its command, to the end of all that it leaves behind. */
  async #once(): Promise<ExecutionResult> {
    const { ready, run, command } = this.wish;
    if (!this.#over.signal.aborted) this.#state = 'starting';
    this.#startedAt = Date.now();
    const look = new AbortController();
    this.#look = look;
    const line = ready !== undefined && 'line' in ready ? ready.line : undefined;
    const reader = () =>
      line === undefined ? undefined : { decoder: createDecoder(true), pattern: new LinePattern(line) };
    const readers = { stdout: reader(), stderr: reader() };
    const job = this.#sandbox.start(command, {
      ...run,
      background: true,
      onOutput: ({ stream, bytes }) => {
        this.log.write(bytes);
        const reads = readers[stream];
        if (reads === undefined || look.signal.aborted) return;
        if (reads.pattern.take(reads.decoder.write(bytes))) this.#isReady(look);
      },
    });
    this.#job = job;
    // It was stopped meanwhile.
    if (this.#over.signal.aborted) void job.end().catch(() => {});
    void job.launched.then((isLaunched) => {
      if (!isLaunched || this.#over.signal.aborted) return;
      if (ready === undefined) this.#isReady(look);
      else if ('port' in ready) void this.#awaitPort(job, ready.port, look);
    });
    // What failed and left something behind has failed.
    void job.waitForExit().then((exit) => {
      if (exit !== undefined && exit.exitCode !== 0) void job.end().catch(() => {});
    });
    try {
      return await job.wait();
    } finally {
      look.abort();
    }
  }

  #isReady(look: AbortController): void {
    if (look.signal.aborted) return;
    look.abort();
    if (!this.#over.signal.aborted) this.#state = this.wish.ready === undefined ? 'running' : 'ready';
    this.#ready.resolve();
  }

  async #awaitPort(job: BackgroundJob, port: number, look: AbortController): Promise<void> {
    for (
      let pause: number = LOOK_MS.first;
      !look.signal.aborted;
      pause = Math.min(pause * 1.5, LOOK_MS.most)
    ) {
      const found = await job.ports();
      if (found.some((one) => one.port === port)) return this.#isReady(look);
      await new Promise((done) => setTimeout(done, pause));
    }
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((done) => {
      const timer = setTimeout(done, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        done();
      };
    });
  }
}

/** What ended in a way that another start may not. What was refused, or could not begin, is so the next time, too. */
function mayBeTriedAgain(result: ExecutionResult): boolean {
  if (result.status === 'denied' || result.status === 'canceled' || result.status === 'setup-failed')
    return false;
  return !(result.status === 'exited' && result.exitCode === 0);
}
