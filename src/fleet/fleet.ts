import { setTimeout as delay } from 'node:timers/promises';
import type { z } from 'zod';
import { deferred } from '../base/deferred.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { parsedJson } from '../base/parsed-json.ts';
import { visibleLine } from '../base/visible-text.ts';
import { connectNats, natsFailure } from '../gate/nats/index.ts';
import {
  type FleetResult,
  type FleetRun,
  FleetRunOptions,
  FleetSettings,
  type FleetStatus,
  type JobMessage,
  type JobRecord,
  MAX_JOB_INPUT,
  SentResult,
  type UnfinishedJob,
} from '../model/fleet.ts';
import type { Command, OutputChunk, Telemetry } from '../model/index.ts';
import { openTelemetry, readOptions } from '../run/index.ts';
import type { Blobs } from './archive/blobs.ts';
import { standingOf, writeRecord } from './claims.ts';
import type { Downloaded, Fleet, FleetJob, FleetOptions, HeldChanges } from './fleet-api.ts';
import { unfinished } from './job.ts';
import { type Awaited, JobWatch, notUnderstood } from './job-watch.ts';
import { looksGone } from './lease.ts';
import { OutputReader, readFrame } from './output.ts';
import { needsToken, openQueue, type Queue } from './queue.ts';
import { KnownReports } from './reports.ts';

/** How long a job that cannot be handed over is tried again. */
const SUBMIT_MS = 60_000;
const RETRY_MS = 250;
/** How much of what the server takes is left for what stands before a message. */
const HEADERS_BYTES = 1024;
/** A worker may not have heard it. */
const CANCEL_AGAIN_MS = 500;
/** Output that is with the server is here sooner, also when a server has just died. */
const OUTPUT_WAIT_MS = 30_000;

/**
 * Connects with a fleet.
 * @throws {SandboxError} `usage.invalid` for an option that is none; as `connectNats`.
 */
export async function openFleet(options: FleetOptions): Promise<Fleet> {
  const { queue: name, replicas, make, ...settings } = readAs(FleetSettings, options, 'createFleet');
  const connection = await connectNats(settings, `sandbox-run submit ${name}`);
  try {
    return await OpenFleet.open(await openQueue(connection, name, { replicas, make }));
  } catch (error) {
    await connection.close();
    throw natsFailure(error, settings.url);
  }
}

class OpenFleet implements Fleet {
  readonly #queue: Queue;
  readonly #watch: JobWatch;
  readonly #closing = new AbortController();
  readonly #reports: KnownReports;
  #jobs = 0;
  #told = new Set<string>();

  readonly #telemetry: Telemetry | undefined;

  private constructor(queue: Queue, telemetry: Telemetry | undefined) {
    this.#queue = queue;
    this.#watch = new JobWatch(queue);
    this.#reports = new KnownReports(queue);
    this.#telemetry = telemetry;
  }

  static async open(queue: Queue): Promise<OpenFleet> {
    const fleet = new OpenFleet(queue, await openTelemetry());
    await fleet.#watch.begin();
    return fleet;
  }

  async run(command: Command, options: FleetRunOptions = {}): Promise<FleetResult> {
    return (await this.submit(command, options)).result;
  }

  async submit(command: Command, given: FleetRunOptions = {}): Promise<FleetJob> {
    const options: FleetRunOptions = readAs(FleetRunOptions, given, 'run');
    if (this.#closing.signal.aborted)
      throw new SandboxError('fleet.unreachable', 'this fleet is closed; nothing was handed over');
    const { priority = 'normal', labels = [], onOutput, signal } = options;
    const measured = this.#telemetry?.begin('submit');
    const message = await this.#messageOf(readOptions.command(command), options, measured?.traceparent);
    const about = { queue: this.#queue.name, priority, job: message.job };
    const needs = needsToken(labels);
    const own = new AbortController();
    const canceled = signal === undefined ? own.signal : AbortSignal.any([own.signal, signal]);
    const result = await this.#await(message.job, onOutput, canceled);
    try {
      await this.#publish(this.#queue.names.jobSubject(priority, needs), message);
    } catch (error) {
      this.#watch.awaited.delete(message.job);
      result.ended.catch(() => {});
      measured?.end({ ...about, status: 'failed' });
      throw error;
    }
    if (measured !== undefined)
      result.ended.then(
        ({ status }) => measured.end({ ...about, status }),
        () => measured.end({ ...about, status: 'failed' }),
      );
    if (!this.#told.has(needs)) {
      this.#told.add(needs);
      this.#queue.connection.publish(this.#queue.names.needs, needs);
    }
    return { id: message.job, result: result.ended, cancel: () => own.abort() };
  }

  async result(
    job: string,
    { wait = false }: { readonly wait?: boolean } = {},
  ): Promise<FleetResult | undefined> {
    for (;;) {
      const record = (await this.#standing(job))?.record;
      if (record?.state === 'done') return this.#resultOf(record, undefined);
      if (record === undefined) await this.#refuseUnknown(job);
      if (!wait) return undefined;
      await delay(RETRY_MS, undefined, { signal: this.#closing.signal });
    }
  }

  async cancel(job: string): Promise<void> {
    const isGone = looksGone(this.#queue);
    for (;;) {
      const standing = await this.#standing(job);
      const record = standing?.record;
      if (record?.state === 'done') return;
      if (standing !== undefined && record !== undefined) {
        const { publisher, names } = this.#queue;
        await this.#answered(() => publisher.tell(names.cancel(record.worker), job));
        // There may be no other worker that would notice it.
        if (await this.#answered(() => isGone(record.worker)))
          await this.#endLost(job, record, standing.revision);
      } else {
        // A job that this process submitted and nobody has claimed is known to exist.
        if (standing !== undefined || !this.#watch.awaited.has(job)) await this.#refuseUnknown(job);
        if (standing === undefined) await this.#endUnclaimed(job);
      }
      await delay(CANCEL_AGAIN_MS, undefined, { signal: this.#closing.signal });
    }
  }

  async status(): Promise<FleetStatus> {
    const { statusOf } = await import('./status.ts');
    return this.#answered(() => statusOf(this.#queue));
  }

  async download(artefacts: string, directory: string): Promise<Downloaded> {
    const { download } = await import('./archive/receive.ts');
    return download(this.#queue, artefacts, directory);
  }

  async hold(changes: string, directory: string): Promise<HeldChanges> {
    const { holdChanges } = await import('./archive/receive.ts');
    return holdChanges(this.#queue, changes, directory);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#watch.end();
    await this.#queue.connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** What the server says, or why it does not. @throws {SandboxError} `fleet.…`. */
  async #answered<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      throw natsFailure(error, this.#queue.connection.getServer());
    }
  }

  /** @throws {SandboxError} `fleet.unknown` for what is no job. */
  async #standing(job: string) {
    if (!/^[a-z0-9]{16}\.[0-9]{1,9}$/.test(job))
      throw new SandboxError(
        'fleet.unknown',
        `${visibleLine(job, 60)} is no job; its id is what submit printed`,
      );
    const standing = await this.#answered(() => standingOf(this.#queue, job));
    if (standing !== undefined && standing.record === undefined && !standing.isDeleted)
      throw notUnderstood(job);
    return standing;
  }

  /**
   * Where no job waits or runs, one whose record is not there, or was deleted, is none. What waits is not looked through for
   * it: there may be a million.
   * @throws {SandboxError} `fleet.unknown`.
   */
  async #refuseUnknown(job: string): Promise<void> {
    const { manager, names, name } = this.#queue;
    const { state } = await this.#answered(() => manager.streams.info(names.jobs));
    // The job may have ended between the two requests.
    if (state.messages > 0 || (await this.#standing(job))?.record !== undefined) return;
    throw new SandboxError(
      'fleet.unknown',
      `there is no job ${job} in the queue ${name}: none waits, and results are kept for 8 days`,
    );
  }

  async #messageOf(
    command: Command,
    options: FleetRunOptions,
    traceparent: string | undefined,
  ): Promise<JobMessage> {
    const {
      input,
      onOutput,
      signal: _,
      retry = 0,
      priority: _p,
      labels: _l,
      workspaceFrom,
      ...job
    } = options;
    const bytes = typeof input === 'string' ? Buffer.from(input) : input;
    if (bytes !== undefined && bytes.length > MAX_JOB_INPUT)
      throw new SandboxError(
        'usage.invalid',
        `run: input has more than the ${MAX_JOB_INPUT} bytes that travel with a job; put it into a file of its workspace (workspaceFrom)`,
      );
    if (workspaceFrom === undefined && (options.changes === true || options.artefacts !== undefined))
      throw new SandboxError(
        'usage.invalid',
        'run: changes and artefacts come back of a workspace that is sent with the job; name one (workspaceFrom)',
      );
    const workspace = workspaceFrom === undefined ? undefined : await this.#send(workspaceFrom);
    this.#jobs += 1;
    return {
      ...{
        version: 1,
        job: `${this.#watch.submitter}.${this.#jobs}`,
        command,
        live: onOutput !== undefined,
        retry,
      },
      ...(bytes === undefined ? {} : { input: Buffer.from(bytes).toString('base64') }),
      ...(workspace === undefined ? {} : { workspace }),
      ...(traceparent === undefined ? {} : { traceparent }),
      options: job,
    };
  }

  #blobs: Promise<Blobs> | undefined;

  /** Runs that begin at the same time send the same once. */
  async #send(from: string): Promise<string> {
    const { sendWorkspace } = await import('./archive/send.ts');
    const { Blobs } = await import('./archive/blobs.ts');
    this.#blobs ??= Blobs.open(this.#queue).catch((error: unknown) => {
      this.#blobs = undefined;
      throw error;
    });
    return sendWorkspace(await this.#blobs, from);
  }

  /** Hands a job over. By its id, a job that comes twice is one. */
  async #publish(subject: string, message: JobMessage): Promise<void> {
    const bytes = JSON.stringify(message);
    const most = (this.#queue.connection.info?.max_payload ?? Number.POSITIVE_INFINITY) - HEADERS_BYTES;
    if (Buffer.byteLength(bytes) > most)
      throw new SandboxError(
        'usage.invalid',
        `run: the job has ${Buffer.byteLength(bytes)} bytes, and the server takes ${most}; put what is long into a file of its workspace (workspaceFrom)`,
      );
    const until = performance.now() + SUBMIT_MS;
    let isUnknown = false;
    for (;;) {
      try {
        await this.#queue.publisher.publish(subject, bytes, { 'Nats-Msg-Id': message.job });
        return;
      } catch (error) {
        const failure = natsFailure(error, this.#queue.connection.getServer());
        // With a code the stream says that it did not take it.
        isUnknown ||= failure.code !== 'fleet.refused' && !(error instanceof Error && 'code' in error);
        if (failure.code === 'fleet.refused' || performance.now() > until || this.#closing.signal.aborted)
          throw isUnknown ? mayRun(message.job, failure) : failure;
        await delay(RETRY_MS);
      }
    }
  }

  /** Waits for the end of a job from now on. */
  async #await(
    job: string,
    onOutput: FleetRunOptions['onOutput'],
    canceled: AbortSignal,
  ): Promise<{ readonly ended: Promise<FleetResult> }> {
    const over = deferred<JobRecord & { readonly state: 'done' }>();
    let taken: Promise<unknown> = Promise.resolve();
    const failed = deferred<never>();
    failed.promise.catch(() => {});
    const take = (chunk: OutputChunk) => {
      // A consumer that fails ends the job: what nobody takes is not worth running for.
      taken = taken
        .then(() => onOutput?.(chunk))
        .catch((error: unknown) => {
          failed.reject(error);
          void this.cancel(job).catch(() => {});
        });
    };
    const output = onOutput === undefined ? undefined : new OutputReader(take);
    const record = (seen: JobRecord) => {
      if (seen.state === 'done') over.resolve(seen);
    };
    const awaited: Awaited = { output, record, fail: failed.reject };
    this.#watch.awaited.set(job, awaited);
    if (output !== undefined) await this.#answered(() => this.#watch.watchOutput());
    // Where the server is gone nothing says how the job ends: that is the answer.
    const cancel = () =>
      void this.cancel(job).catch((error: unknown) =>
        failed.reject(
          error instanceof SandboxError
            ? new SandboxError(error.code, `job ${job} was not canceled and may run: ${error.message}`)
            : error,
        ),
      );
    if (canceled.aborted) cancel();
    else canceled.addEventListener('abort', cancel, { once: true });
    const ended = over.promise
      .then(async (done) => {
        await output?.all(done.run.attempts, done.chunks, OUTPUT_WAIT_MS);
        await Promise.race([taken, failed.promise]);
        return this.#resultOf(done, output);
      })
      .finally(() => {
        canceled.removeEventListener('abort', cancel);
        this.#watch.awaited.delete(job);
      });
    ended.catch(() => {});
    const settled = Promise.race([ended, failed.promise]).finally(() => this.#watch.awaited.delete(job));
    // A caller that does not wait gets no unhandled rejection.
    settled.catch(() => {});
    return { ended: settled };
  }

  async #resultOf(
    { run, result, status }: JobRecord & { readonly state: 'done' },
    output: OutputReader | undefined,
  ): Promise<FleetResult> {
    const sent = 'inline' in result ? result.inline : await fromParts(this.#queue, run.job, result.parts);
    // What a lost worker did not send nobody knows.
    const isCut = output?.cut === true || (output !== undefined && status === 'worker-lost');
    const about = { fleet: run, outputCut: isCut };
    if (!('report' in sent)) return { ...sent.result, ...about };
    const report = await this.#answered(() => this.#reports.read(sent.report));
    if (report === undefined) throw notUnderstood(run.job);
    const bytes = sent.bytes && {
      stdout: Buffer.from(sent.bytes.stdout, 'base64'),
      stderr: Buffer.from(sent.bytes.stderr, 'base64'),
      gapAt: sent.bytes.gapAt,
    };
    // One member of the union, completed with the parts that were sent separately.
    return { ...sent.result, report, ...(bytes && { bytes }), ...about } as FleetResult;
  }

  /** A job that nobody has claimed will not be. */
  async #endUnclaimed(job: string): Promise<void> {
    const result = unfinished('canceled', 'command.failed', 'the job was canceled before a worker had it');
    await this.#end(job, 0, result, { attempts: 0, queueMs: 0, worker: undefined, host: undefined });
  }

  /** By compare-and-set of its claim: a worker that comes back cannot end it any more. */
  async #endLost(
    job: string,
    { worker, host, attempt, queueMs }: JobRecord & { readonly state: 'claimed' },
    revision: number,
  ): Promise<void> {
    const why = `the worker ${worker} on ${host} is lost, and the job was canceled`;
    const result = unfinished('worker-lost', 'fleet.worker_lost', why);
    await this.#end(job, revision, result, { attempts: attempt, queueMs, worker, host });
  }

  async #end(
    job: string,
    revision: number,
    result: UnfinishedJob,
    run: Omit<FleetRun, 'job' | 'changes' | 'artefacts'>,
  ): Promise<void> {
    const { status } = result;
    const record: JobRecord = {
      ...{ state: 'done', at: Date.now(), status, chunks: 0, result: { inline: { result } } },
      run: { job, ...run, changes: undefined, artefacts: undefined },
    };
    const isOurs = (found: JobRecord) => found.state === 'done' && found.at === record.at;
    const text = JSON.stringify(record);
    const { signal } = this.#closing;
    await writeRecord(this.#queue, job, { text, revision, isOurs, signal, untilRefused: true });
  }
}

/** Puts a result together that was too long for the record of its job. @throws {SandboxError} `output.lost`: the output no longer exists. */
async function fromParts(
  { manager, names }: Queue,
  job: string,
  parts: readonly number[],
): Promise<SentResult> {
  const texts: Uint8Array[] = [];
  for (const seq of parts) {
    const message = await manager.streams.getMessage(names.output, { seq }).catch(() => null);
    const read = message?.subject === names.outputOf(job) ? readFrame(message.data) : undefined;
    if (read === undefined)
      throw new SandboxError(
        'output.lost',
        `the result of job ${job} is not there any more; fetch results sooner`,
      );
    texts.push(read.bytes);
  }
  const sent = SentResult.safeParse(parsedJson(Buffer.concat(texts)));
  if (sent.success) return sent.data;
  throw notUnderstood(job);
}

function mayRun(job: string, { code, message }: SandboxError): SandboxError {
  return new SandboxError(code, `job ${job} may have been handed over, and may run: ${message}`);
}

/** @throws {SandboxError} `usage.invalid`. */
function readAs<Schema extends z.ZodType>(schema: Schema, given: unknown, of: string): z.output<Schema> {
  const read = schema.safeParse(given);
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  const where = issue?.path.map(String).join('.') ?? '';
  const text = issue?.code === 'unrecognized_keys' ? `there is no option "${issue.keys[0]}"` : issue?.message;
  throw new SandboxError('usage.invalid', `${of}: ${where === '' ? '' : `${where}: `}${text}`);
}
