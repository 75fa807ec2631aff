import { z } from 'zod';
import { ERROR_CODES, type ErrorCode } from '../base/errors/codes.ts';
import { count, maybe, text, texts, type Value } from '../base/value.ts';
import { DENIED_OPERATIONS, ONLY_IF_IT_SPEAKS, ONLY_IN_FULL } from '../base/words.ts';
import { EnforcementReport, ProcessTreeTier } from '../confine/plan/enforcement-report.ts';
import { ApprovalAnswer } from './approval.ts';
import { ChangeSetDetail, Effect, Gone } from './change-set.ts';
import { Decision, forModel } from './decision.ts';
import { Denial } from './denial.ts';
import { LeftBehind } from './left-behind.ts';
import { Connection, PublishedPort } from './network.ts';

/** Why a command was not run, or which limit it exceeded. */
export const ExecutionError = z.strictObject({
  code: z
    .enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]])
    .describe('stable; the message beside it may change'),
  message: text.describe('one line: what, where, what to do'),
  stage: maybe(text).describe('the step of the launch that failed'),
  errno: maybe(text).describe('the name of the errno, such as ENOENT'),
  path: maybe(text),
});
export type ExecutionError = Value<typeof ExecutionError>;

/** Output as it is: nothing is replaced, and nothing stands in the place of what is missing. */
export const OutputBytes = z.strictObject({
  stdout: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  stderr: z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  gapAt: z
    .strictObject({ stdout: maybe(count), stderr: maybe(count) })
    .describe('at which byte those are missing that truncated counts; missing: nowhere'),
});
export type OutputBytes = Value<typeof OutputBytes>;

/** Files that have the whole output; only their owner can read them. */
export const SpilledOutput = z
  .strictObject({
    stdout: maybe(text).describe('missing: only a file for the other stream was named'),
    stderr: maybe(text).describe(
      'missing: both streams are in one file, or only one for the other was named',
    ),
    incomplete: maybe(text).describe('one line: why a file has less than the command wrote'),
  })
  .describe('files with the whole output');
export type SpilledOutput = Value<typeof SpilledOutput>;

/** Limits of the policy for which a command is ended: `tmp` is the private directories, `idle` the time without output. */
const LIMIT_NAMES = ['memory', 'processes', 'cpu', 'tmp', 'idle', 'file-size'] as const;

/** The limit of the policy for which a command was ended. */
export const ExceededLimit = z.strictObject({
  name: z.enum(LIMIT_NAMES),
  value: z.number().describe('what the policy allows: bytes, processes and threads, or seconds'),
  used: maybe(z.number()).describe('what was seen, in the same unit; missing: the kernel refused more'),
  by: z
    .enum(['cgroup', 'sampling', 'rlimit', 'clock'])
    .describe(
      'by what it was noticed: a control group, a look now and then, a limit of a process, the clock',
    ),
});
export type ExceededLimit = Value<typeof ExceededLimit>;

const Cpu = z.strictObject({ userMs: z.number(), systemMs: z.number() });

/** What a command and everything that it started used. What is unknown is undefined. */
export const ResourceUsage = z.strictObject({
  by: z
    .enum(['cgroup', 'sampling', 'rusage'])
    .describe(
      'cgroup: the kernel counted everything; sampling: the peaks are the largest seen, every 100 ms while the host’s memory shrinks and else twice a second, and memory that forks share counts for each of them; rusage: the account of the command and the children that it waited for',
    ),
  peakMemoryBytes: maybe(count).describe('of all processes, at any one time'),
  peakProcesses: maybe(count).describe('processes and threads at any one time'),
  cpu: Cpu,
  readBytes: count.describe('from block devices; what the page cache answers is not among it'),
  writtenBytes: count,
});
export type ResourceUsage = Value<typeof ResourceUsage>;

const perStream = z.strictObject({ stdout: count, stderr: count });

/** What a preview changed. */
const ChangesOfCommand = ChangeSetDetail.omit({
  ...{ workspace: true, at: true, command: true, left: true },
}).extend({
  id: maybe(text).describe('missing: it changed nothing, so that there is nothing to apply'),
  effect: Effect.exclude(['direct']).describe('how the command ran'),
  gone: Gone.optional(),
});

/** What every result has, whatever became of the command. */
export const ExecutionResultBase = z.strictObject({
  argv: texts.describe('the argument vector that was run or would have been'),
  cwd: text,
  stdout: text.describe(
    'captured output, as UTF-8 with U+FFFD for invalid bytes; empty if it was not captured or is wanted as bytes. Of what is longer than the limit the beginning and the end, and between them one line `[... 12,345,678 bytes left out ...]`',
  ),
  stderr: text,
  truncated: perStream.describe('bytes that were written and are not shown'),
  bytes: maybe(OutputBytes).describe('of a run with encoding bytes'),
  spilled: maybe(SpilledOutput),
  outputBytes: z
    .strictObject({ stdout: maybe(count), stderr: maybe(count) })
    .describe('bytes that the command wrote, kept or not; missing: the stream was not captured'),
  durationMs: z.number().describe('from the start of the launch to the end of the process tree'),
  cpu: Cpu.describe('of the command and the children that it waited for'),
  peakMemoryBytes: maybe(count).describe(
    'largest resident set of one process; missing where it is below that of the launcher, from which the kernel counts',
  ),
  usage: ResourceUsage,
  limit: maybe(ExceededLimit),
  treeEnded: z.boolean().describe('every process that the command started is provably gone'),
  processTree: z
    .strictObject({ tier: ProcessTreeTier, ended: z.boolean() })
    .describe('by what the processes of the command are held together, and treeEnded again'),
  outputHeld: z
    .boolean()
    .describe(
      'the command ended by itself, but something that it had started kept its output open for 250 ms and was ended then',
    ),
  leftBehind: z
    .array(LeftBehind)
    .describe('what programs outside would obey of what the command left, and what was done about it'),
  connections: z
    .array(Connection)
    .optional()
    .describe(
      'with network.mode = "listed": what the command connected to or was refused, each kind once, at most 256; missing: nothing',
    ),
  ports: z
    .array(PublishedPort)
    .optional()
    .describe('where programs of this machine could connect to while it ran (publish); missing: nowhere'),
  denials: maybe(z.array(Denial)).describe(
    'of a command that failed: what the sandbox denied it, each kind once; it may have gone on without. Of one that was refused by its text: what it would have needed, where a policy could list that. Missing: nothing that was looked at',
  ),
  notLookedAt: maybe(z.array(z.enum(DENIED_OPERATIONS))).describe(
    'of a command that failed: of which operations it is not known, or not of every call, whether they were denied (sandbox.explain, or no descriptors were left to look with); missing: of none',
  ),
  changes: maybe(ChangesOfCommand).describe(
    'of a preview, or with undo of a command that changed something: what it changed in the workspace, and whether that is there',
  ),
  wouldDeny: maybe(z.array(Denial)).describe(
    'with the option shadow: what that other policy would have denied the command; missing: nothing, or there is none',
  ),
  warnings: texts.describe('remarks on the launch'),
  notKept: maybe(
    z.array(
      z.strictObject({
        path: text.describe('absolute, or ~/NAME where the private home has no place of its own'),
        allow: text
          .optional()
          .describe(
            'what --rw or filesystem.write would have to name, once that is there; missing: it is not proposed',
          ),
      }),
    ),
  ).describe(
    'what the command made in its private home, which goes with it: beside a workspace that lies in the home, or where programs are installed; the first few, and nothing whose name begins with a dot. Missing: nothing',
  ),
  hiddenPrograms: maybe(texts).describe(
    'programs of the words of a command that ended by itself: they are on this machine, and the sandbox does not show them; missing: there are none',
  ),
  report: EnforcementReport,
  decision: maybe(Decision).describe(
    'what the policy decided; missing: commands are not judged (unsafe.unjudged_commands)',
  ),
  approval: maybe(ApprovalAnswer).describe('what came of asking; missing: nobody was asked'),
});
export type ExecutionResultBase = Value<typeof ExecutionResultBase>;

const exitCode = z.number().int();
const absent = maybe(z.undefined());
const notOk = { ok: z.literal(false) };

/** Each status with what only results of that status have. */
const exited = {
  ...{ status: z.literal('exited'), ok: z.boolean().describe('it ran, and exited 0') },
  ...{ exitCode, signal: absent, error: absent },
};
const signaled = {
  ...{ status: z.literal('signaled'), ...notOk },
  ...{ exitCode: absent, signal: text, error: absent },
};
const ended = { ...notOk, exitCode: maybe(exitCode), signal: maybe(text) };
const stopped = { status: z.literal(['timed-out', 'canceled']), ...ended, error: absent };
const exceeded = {
  ...{ status: z.literal('limit-exceeded'), ...ended, limit: ExceededLimit },
  error: ExecutionError,
};
const notRun = {
  ...{ status: z.literal(['denied', 'setup-failed']), ...notOk },
  ...{ exitCode: absent, signal: absent, error: ExecutionError },
};

/**
 * What became of a command. `ok`, `exitCode`, `signal` and `error` are always there, so that one shape serves
 * success and failure. `ok`: it ran, and exited 0.
 * - `exited`: it ran and ended by itself with `exitCode`.
 * - `signaled`: `signal` ended it.
 * - `timed-out`, `canceled`: we ended it.
 * - `limit-exceeded`: it used more than the policy allows and was ended; `limit` says of what, `error` what to do. `exitCode`
 *   may be 0: a shell may have outlived what was ended, and a command may handle SIGTERM. Of `file_size` only the signal
 *   (SIGXFSZ) that ends the command itself is seen: not that of a program under a shell, nor EFBIG, where it is ignored.
 * - `denied`: it was judged and not run: refused, or asked about with nobody to answer. `error` says why in one sentence,
 *   `decision` with all reasons.
 * - `setup-failed`: it could not be started; `error` says why (`program.not_found`, `program.not_executable`, …).
 */
export const ExecutionResult = resultWith({});
export type ExecutionResult = Value<typeof ExecutionResult>;

/** What `sandbox-run --json=full` prints: a result whose output is text, with what a model may be told of it. */
export const FullRunAnswer = toldOf(ExecutionResult);

/** What `sandbox-run --json` prints: the same without what has nothing to say. */
export const RunAnswer = briefOf(FullRunAnswer);

const ofTurn = {
  cwdAfter: text.describe('where the shell is now'),
  restarted: z
    .boolean()
    .describe(
      'the shell ended with the command (exit, exec, a hang), or before it because a file came that has to be hidden, and a new one has taken its place, with the directory and the exported variables from before; functions and other variables are lost',
    ),
};

/** What became of a command of a session, and of its shell. */
export const TurnResult = resultWith(ofTurn);
export type TurnResult = Value<typeof TurnResult>;

/** What `sandbox-run session run --json=full` prints. */
export const FullTurnAnswer = toldOf(TurnResult);

/** What `sandbox-run session run --json` prints. */
export const TurnAnswer = briefOf(FullTurnAnswer);

function resultWith<More extends z.core.$ZodLooseShape>(more: More) {
  const all = { ...ExecutionResultBase.shape, ...more };
  return z.discriminatedUnion('status', [
    z.strictObject({ ...all, ...exited }),
    z.strictObject({ ...all, ...signaled }),
    z.strictObject({ ...all, ...stopped }),
    z.strictObject({ ...all, ...exceeded }),
    z.strictObject({ ...all, ...notRun }),
  ]);
}

function toldOf(results: { readonly options: readonly z.ZodObject[] }) {
  const options = results.options.map(({ shape: { bytes: _, ...shape } }) => {
    const present = Object.entries(shape).filter(
      ([name, schema]) => schema !== absent && (name !== 'limit' || schema === ExceededLimit),
    );
    const byItself = shape.status === exited.status || shape.status === signaled.status;
    return z.strictObject({
      ...Object.fromEntries(present),
      messageForModel: byItself ? forModel.optional() : forModel,
    });
  });
  return unionOf(options);
}

/** What is left of such a result where it has nothing to say. */
function briefOf(results: { readonly options: readonly z.ZodObject[] }) {
  const options = results.options.map(({ shape }) => {
    const told = Object.entries(shape).filter(([name]) => !isAmong(ONLY_IN_FULL, name));
    const brief = told.map(([name, schema]) => [
      name,
      isAmong(ONLY_IF_IT_SPEAKS, name) ? z.optional(schema) : schema,
    ]);
    return z.strictObject(Object.fromEntries(brief));
  });
  return unionOf(options);
}

function isAmong(names: readonly string[], name: string): boolean {
  return names.includes(name);
}

function unionOf(options: readonly z.ZodObject[]) {
  return z.discriminatedUnion('status', options as [z.ZodObject<{ status: typeof exited.status }>]);
}
