import { z } from 'zod';
import { isObject } from '../base/is-object.ts';
import { readNamePattern } from '../base/name-pattern.ts';
import { count, maybe, text, time, type Value } from '../base/value.ts';
import { FLEET_PRIORITIES, MAX_MILLISECONDS, TAINTS } from '../base/words.ts';
import { Command } from './command.ts';
import { ExecutionError, ExecutionResult, RunAnswer } from './execution-result.ts';
import { RunOptions } from './options.ts';
import type { OutputChunk } from './output.ts';
import type { PolicyFile } from './policy-keys.ts';

/** The address of a NATS server, and our credentials. */
export interface NatsSettings {
  /** `nats://host[:port]` or `tls://host[:port]`; those of a cluster with commas between. Never with a user or password. */
  readonly url: string;
  /**
   * The absolute path of a credentials file (JWT and seed) or of an nkey seed, with the certificate and the key in PEM that a
   * server wants which asks its clients for one; default: what `SANDBOX_RUN_NATS_CREDS` says, or none.
   */
  readonly credentials?: string | undefined;
  /** The absolute path of the certificates that sign the server's; default: those of Node. */
  readonly ca?: string | undefined;
}

/*
 * What submitters and workers of a fleet tell each other. Each side reads what comes from the other one with these schemas,
 * which are strict: what they do not know is refused. What a submitter says can narrow the policy of a worker and never widen it.
 */

/** Milliseconds that a job may run on a worker, whatever its policy says: the record of a claim outlives it. */
export const LONGEST_JOB = 24 * 3600 * 1000;
/** Bytes of standard input that travel with a job; more belongs into its workspace. */
export const MAX_JOB_INPUT = 256 * 1024;
/** Attempts after the first one. */
export const MAX_RETRIES = 100;

const NAME = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;
const nameOf = (what: string) =>
  z.string().max(32).regex(NAME, `${what} must be 1 to 32 small letters, digits and single "-" between them`);

/** The name of a queue: part of subjects, streams and buckets. */
export const QueueName = nameOf('the name of a queue');

/** What a worker has, and a job needs: `gpu`, `arch=arm64`. */
export const Label = z
  .string()
  .max(32, 'a label must have at most 32 characters')
  .regex(
    /^[a-z0-9]+(?:[-=][a-z0-9]+)*$/,
    'a label must be 1 to 32 small letters and digits, with single "-" or "=" between them',
  )
  .refine((label) => label !== 'any', 'a label cannot be called "any"');

const labels = z.array(Label).max(8, 'at most 8 labels');

/** Which of the jobs that wait is taken first. */
export const FleetPriority = z.enum(FLEET_PRIORITIES);
export type FleetPriority = Value<typeof FleetPriority>;

/** SHA-256 of a content, in hexadecimal: the name of a blob. */
export const Digest = z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hexadecimal');

/** Bytes of all files of a workspace that travels, and how many things there may be in it. */
export const MAX_WORKSPACE_BYTES = 4 * 1024 ** 3;
export const MAX_WORKSPACE_ENTRIES = 500_000;

/** Relative, in its shortest form, and of names that a file can have. */
const entryPath = z
  .string()
  .min(1)
  .max(4096)
  .refine((path) => isPlainPath(path), 'must be a relative path without ".", ".." or empty parts');

/** Whether a path names something beneath where it starts, whatever lies on the way, unless that is a link. */
function isPlainPath(path: string): boolean {
  return (
    !path.includes('\0') && path.split('/').every((part) => part !== '' && part !== '.' && part !== '..')
  );
}

/** Permissions of a file; set-ID bits and the sticky bit are no part of it. */
const fileMode = z.number().int().min(0).max(0o777);

/** One thing in a workspace. Devices, FIFOs and sockets do not travel. */
export const ManifestEntry = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('directory'), path: entryPath, mode: fileMode }),
  z.strictObject({
    kind: z.literal('file'),
    path: entryPath,
    mode: fileMode,
    size: z.number().int().min(0).max(MAX_WORKSPACE_BYTES),
    digest: Digest,
  }),
  z.strictObject({
    kind: z.literal('link'),
    path: entryPath,
    target: z
      .string()
      .min(1)
      .max(4096)
      .refine((target) => !target.includes('\0'), 'must have no NUL'),
  }),
]);
export type ManifestEntry = Value<typeof ManifestEntry>;

/** All of a workspace: parents before what is in them. */
export const Manifest = z.strictObject({
  version: z.literal(1),
  entries: z.array(ManifestEntry).max(MAX_WORKSPACE_ENTRIES),
});
export type Manifest = Value<typeof Manifest>;

/** What a job changed in the workspace that was sent with it. */
export const WorkspaceChange = z.strictObject({
  version: z.literal(1),
  base: Digest.describe('of the manifest that was sent'),
  entries: Manifest.shape.entries.describe('what is new, or another than before'),
  deleted: z.array(entryPath).max(MAX_WORKSPACE_ENTRIES),
});
export type WorkspaceChange = Value<typeof WorkspaceChange>;

/** What may be taken of the policy of a worker: what a file in a workspace may say, and the right to write the workspace. */
export const JobNarrowing = z.strictObject({
  readOnly: z.boolean().optional().describe('the workspace can only be read'),
  policy: z
    .custom<PolicyFile>(isObject)
    .optional()
    .describe('keys of a policy file, as a file in the workspace may have them: they can only take away'),
});
export type JobNarrowing = Value<typeof JobNarrowing>;

const relativeDirectory = z
  .string()
  .max(4096)
  .refine((path) => path === '.' || isPlainPath(path), 'must be a path within the workspace');

/** `dist/**`, `*.log`: names between slashes; `**` is any number of directories. */
const artefactPattern = z
  .string()
  .min(1)
  .max(1024)
  .superRefine((text, { addIssue }) => {
    if (!isPlainPath(text)) addIssue('a pattern is relative, without ".", ".." and empty parts: dist/**');
    const problem = text
      .split('/')
      .map((part) => (part === '**' ? part : readNamePattern(part)))
      .find((read) => typeof read === 'string' && read !== '**');
    if (typeof problem === 'string') addIssue(`a pattern that is not understood: ${problem}`);
  });

/** What comes back of the workspace of a job, beside its output. */
const collected = {
  changes: z
    .boolean()
    .optional()
    .describe('what the job changed in the workspace that was sent comes back, to be applied or not'),
  artefacts: z
    .array(artefactPattern)
    .max(64)
    .optional()
    .describe('files of the workspace that come back, as patterns: `dist/**`, `*.log`'),
};

const { cwd: _cwd, ...said } = RunOptions.shape;
const env = z.record(z.string().regex(/^[^\0=]+$/, 'a name of a variable'), z.string().max(128 * 1024));
const milliseconds = z.number().min(0).max(MAX_MILLISECONDS);

/** How a job is run, on the wire. All of it narrows, or is about this command only. */
const jobOptions = {
  cwd: relativeDirectory.optional().describe('relative to the workspace'),
  env: env.optional(),
  taints: z.array(z.enum(TAINTS)).optional(),
  timeout: milliseconds
    .optional()
    .describe('milliseconds; the time-out of the worker’s policy, if that is shorter'),
  idleTimeout: milliseconds.optional(),
  maxOutput: said.maxOutput,
  encoding: said.encoding,
  escapes: said.escapes,
  combined: said.combined,
  effect: z.literal('preview').optional(),
  narrow: JobNarrowing.optional(),
  ...collected,
};

/** A job as it is sent. */
export const JobMessage = z.strictObject({
  version: z.literal(1),
  job: z
    .string()
    .regex(/^[a-z0-9]{16}\.[0-9]{1,9}$/)
    .describe('the submitter and a number of its own'),
  command: Command,
  live: z.boolean().describe('somebody reads the output while it comes'),
  retry: z.number().int().min(0).max(MAX_RETRIES),
  input: z
    .string()
    .max(Math.ceil(MAX_JOB_INPUT / 3) * 4)
    .optional()
    .describe('standard input, in base64'),
  workspace: Digest.optional().describe('of the manifest; missing: the workspace of the worker'),
  traceparent: z
    .string()
    .regex(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/)
    .optional()
    .describe('of the span of its submitter (W3C Trace Context)'),
  options: z.strictObject(jobOptions),
});
export type JobMessage = Value<typeof JobMessage>;

/** What is known of a job beside what became of its command. */
export const FleetRun = z.strictObject({
  job: text,
  worker: maybe(text).describe('missing: no worker had it'),
  host: maybe(text),
  attempts: count.describe('how often it was begun'),
  queueMs: z.number().describe('how long it waited, by the clock of the server'),
  changes: maybe(Digest).describe('of what the job changed in the workspace that was sent'),
  artefacts: maybe(Digest).describe('of the manifest of the files that were asked for'),
});
export type FleetRun = Value<typeof FleetRun>;

const absent = maybe(z.undefined());

/**
 * A job that no worker brought to an end, so that there is no more to tell:
 * - `worker-lost`: its worker gave no sign of life until its lease was over; what the job did until then was done.
 * - `canceled`: before a worker had it.
 * - `setup-failed`: nothing was run.
 */
export const UnfinishedJob = z.strictObject({
  status: z.enum(['worker-lost', 'canceled', 'setup-failed']),
  ok: z.literal(false),
  ...{ exitCode: absent, signal: absent },
  ...{ stdout: z.literal(''), stderr: z.literal('') },
  error: ExecutionError,
});
export type UnfinishedJob = Value<typeof UnfinishedJob>;

/** What became of a job: the result of a command as everywhere, or that there is none; `fleet` says where and when. */
export type FleetResult = (ExecutionResult | UnfinishedJob) & {
  readonly fleet: FleetRun;
  /**
   * The live output misses some: the stream was full before it was read, or the worker is lost. The captured output of a
   * result does not.
   */
  readonly outputCut: boolean;
};

const answered = {
  fleet: FleetRun,
  outputCut: z.literal(true).optional().describe('the live output misses some'),
};

/** What `sandbox-run submit --wait --json` and `fleet job --json` print. */
export const FleetAnswer = z.union([
  // A model is told in the words of where it ran.
  ...RunAnswer.options.map((option: z.ZodObject) => option.omit({ messageForModel: true }).extend(answered)),
  UnfinishedJob.omit({ exitCode: true, signal: true }).extend(answered),
]);

type WithoutReport<Result> = Result extends unknown ? Omit<Result, 'report'> : never;

// Omitting keeps what tells the options apart, and loses that the type knows of it.
const withoutReport: readonly z.ZodObject[] = ExecutionResult.options.map((option: z.ZodObject) =>
  option.omit({ report: true }),
);
const ExecutionWithoutReport = z.discriminatedUnion('status', [
  ...withoutReport,
] as unknown as typeof ExecutionResult.options) as unknown as z.ZodType<
  WithoutReport<z.output<typeof ExecutionResult>>
>;

/**
 * The result of a command as it is sent: bytes as base64, and the report, which is most of it and the same for all commands of
 * a sandbox, as text, or where that is.
 */
export const SentResult = z.union([
  z.strictObject({
    result: ExecutionWithoutReport,
    report: z
      .union([text, z.strictObject({ kept: Digest.describe('of it: it is kept beside the records') })])
      .describe('an EnforcementReport as JSON'),
    bytes: z
      .strictObject({
        stdout: text,
        stderr: text,
        gapAt: z.strictObject({ stdout: maybe(count), stderr: maybe(count) }),
      })
      .optional(),
  }),
  z.strictObject({ result: UnfinishedJob }),
]);
export type SentResult = Value<typeof SentResult>;
/** The result of a command that ran; the other kind is of a job that no worker brought to an end. */
export type SentExecution = Extract<SentResult, { readonly report: unknown }>;

/** Where a job stands: the one record of it, which changes by compare-and-set only. */
export const JobRecord = z.discriminatedUnion('state', [
  z.strictObject({
    state: z.literal('claimed'),
    worker: text,
    host: text,
    attempt: count,
    at: time,
    queueMs: z.number(),
  }),
  z.strictObject({
    state: z.literal('done'),
    at: time,
    run: FleetRun,
    status: text,
    chunks: count.describe('pieces of live output of the last attempt'),
    result: z
      .union([z.strictObject({ inline: SentResult }), z.strictObject({ parts: z.array(count) })])
      .describe('itself, or where in the stream of output its parts are'),
  }),
]);
export type JobRecord = Value<typeof JobRecord>;

/** A worker's lease, and what it tells of itself. */
export const WorkerRecord = z.strictObject({
  state: z
    .enum(['live', 'lost', 'ended'])
    .describe('lost: no sign of life was seen until the lease was over'),
  beat: count.describe('another with each renewal'),
  host: text,
  pid: count,
  version: text,
  labels: z.array(text),
  slots: count,
  running: count,
  done: count,
  failed: count.describe('of those: what did not exit with 0'),
  leaseMs: count,
  since: time,
});
export type WorkerRecord = Value<typeof WorkerRecord>;

/** Which queue, and where: what `createFleet` takes. */
export const FleetSettings = z.strictObject({
  url: z.string(),
  credentials: z.string().optional(),
  ca: z.string().optional(),
  queue: QueueName,
  make: z.boolean().optional(),
  replicas: z.number().int().min(1).max(5).optional(),
});

/** Options of one job. */
export const FleetRunOptions = z.strictObject({
  ...jobOptions,
  input: z
    .union([text, z.custom<Uint8Array>((value) => value instanceof Uint8Array)], 'a string or bytes')
    .optional()
    .describe('Written to standard input, which is empty otherwise.'),
  onOutput: z
    .custom<(chunk: OutputChunk) => void | Promise<void>>(
      (value) => typeof value === 'function',
      'a function',
    )
    .optional()
    .describe('Called with output as it arrives; `missing` of a chunk tells what was lost.'),
  signal: said.signal.describe('Cancels the job when aborted, wherever it is.'),
  retry: z
    .number()
    .int()
    .min(0)
    .max(MAX_RETRIES)
    .optional()
    .describe(
      'How often the job is run again if its worker is lost. Default: 0, so that it runs at most once.',
    ),
  priority: FleetPriority.optional().describe('Default: `normal`.'),
  labels: labels.optional().describe('What its worker must have.'),
  workspaceFrom: z
    .string()
    .min(1)
    .optional()
    .describe(
      'What the fresh workspace of the job has: a directory, a git repository (`git:PATH[@REVISION]`) or what was sent before (`object:DIGEST`). Default: the job runs in the workspace of its worker.',
    ),
});
export type FleetRunOptions = Value<typeof FleetRunOptions>;

/** What `sandbox-run fleet status` tells of a queue. */
export const FleetStatus = z.strictObject({
  queue: text,
  jobs: z.strictObject({ high: count, normal: count, low: count }).describe('that wait or run, by priority'),
  unmet: z
    .array(z.strictObject({ labels: z.array(text), jobs: count }))
    .describe('of those, what needs labels that no worker that lives has'),
  oldestMs: maybe(count).describe('how long the oldest job waits or runs; missing: there is none'),
  workers: z.array(
    WorkerRecord.extend({ worker: text, seenMs: count.describe('since its last sign of life') }),
  ),
  slots: count.describe('of all workers that live'),
  running: count,
  done: count.describe('jobs of these workers that ended'),
  failed: count,
  lost: count.describe('workers that gave no sign of life, of the last day'),
});
export type FleetStatus = Value<typeof FleetStatus>;
