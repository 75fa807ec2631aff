import { deferred } from '../../base/deferred.ts';
import { errorMessage } from '../../base/error-message.ts';
import type { Command, ExecutionResult, JobOptions, PublishedPort } from '../../model/index.ts';
import type { BackgroundJob, JobPort } from '../launch/jobs.ts';
import { BYTE_BY_BYTE, OutputLog } from '../output/output-log.ts';
import { createDecoder } from '../output/show.ts';
import { LinePattern } from './line-pattern.ts';

/** Bytes of output that are kept: the last ones of both streams together. */
const KEPT_BYTES = 1024 * 1024;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
/** How often in a row a service that fails is started again. */
const MOST_FAILURES = 10;
/** Milliseconds after which a run counts as a success for `MOST_FAILURES`: the next failure is the first in a row. */
const RAN_WELL_MS = 60_000;
/** Milliseconds between two looks at whether a port listens: they grow from `first` to `most`. */
const LOOK_MS = { first: 30, most: 400 } as const;

/** The settings of a service. */
export interface ServiceWish {
  readonly command: Command;
  /** The options of each start. Output goes to the log of the service. */
  readonly run: Omit<JobOptions, 'background' | 'onOutput' | 'signal'>;
  /** When it is ready: a process of it listens at a TCP port, or a line of its output matches. `undefined`: once it runs. */
  readonly ready: { readonly port: number } | { readonly line: string } | undefined;
  /** Whether it is started again when it fails. */
  readonly restart: 'never' | 'on-failure';
  /** Milliseconds after which it is stopped; `undefined`: never. */
  readonly lifetimeMs: number | undefined;
}

/** The state of a service. `waiting`: it has failed and will be started again. */
export type ServiceState = 'starting' | 'running' | 'ready' | 'waiting' | 'stopping' | 'ended';

/** How a service ended. */
export interface ServiceEnd {
  readonly why: 'by-itself' | 'stopped' | 'lifetime' | 'too-many-failures';
  /** The result of the run that was its last; `undefined`: it was stopped between two runs, or a start failed as `problem` says. */
  readonly result: ExecutionResult | undefined;
  readonly problem?: string;
}

/** The part of a sandbox that a service needs. */
interface Starter {
  start(command: Command, options: JobOptions): BackgroundJob;
}

/** A background command that runs until somebody stops it. The constructor starts it. */
export class Service {
  readonly wish: ServiceWish;
  /** The last output. */
  readonly log = new OutputLog(KEPT_BYTES, BYTE_BY_BYTE);
  /** Settles when it and everything that it started have ended. Never rejects. */
  readonly ended: Promise<ServiceEnd>;
  readonly #sandbox: Starter;
  #ready = deferred<void>();
  /** Ends the waiting for the current start to be ready. */
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
   * Settles when the service is ready for the first time since it was made or since {@link startAgain} was called. Without a readiness
   * condition that is when its command runs.
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

  /** The published ports, at which programs of this host can connect. They exist even while no server listens behind them. */
  get published(): readonly PublishedPort[] {
    return this.#job?.published ?? [];
  }

  /** The sockets on which its processes listen now. */
  async ports(): Promise<readonly JobPort[]> {
    return (await this.#job?.ports()) ?? [];
  }

  /**
   * Sends SIGTERM, and SIGKILL after the grace period, to everything that the service started. Also works while it is being started.
   * Settles when everything has ended.
   */
  async stop(): Promise<ServiceEnd> {
    this.#stop('stopped');
    return this.ended;
  }

  /** Ends the current run and starts the command again, at once. Settles when the current run has ended. False: the service has ended. */
  async startAgain(): Promise<boolean> {
    if (this.#over.signal.aborted || this.#state === 'ended') return false;
    this.#again = true;
    // Output and ports of the previous start must not make the next one ready.
    this.#look?.abort();
    const { resolve } = this.#ready;
    this.#ready = deferred();
    // A caller that waits for the previous start to be ready waits for this one now.
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

  /** Starts the command once. Settles when the command and everything that it left running have ended. */
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
    // `stop` may have been called while the job was made.
    if (this.#over.signal.aborted) void job.end().catch(() => {});
    void job.launched.then((isLaunched) => {
      if (!isLaunched || this.#over.signal.aborted) return;
      if (ready === undefined) this.#isReady(look);
      else if ('port' in ready) void this.#awaitPort(job, ready.port, look);
    });
    // If the command itself fails, the service has failed, even if it left processes running: end those.
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

/** Whether another start may succeed. A command that was refused or could not be started will fail in the same way again. */
function mayBeTriedAgain(result: ExecutionResult): boolean {
  if (result.status === 'denied' || result.status === 'canceled' || result.status === 'setup-failed')
    return false;
  return !(result.status === 'exited' && result.exitCode === 0);
}
