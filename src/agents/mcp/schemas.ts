import { z } from 'zod';
import { text, texts, type Value } from '../../base/value.ts';
import { NETWORK_MODES, STATUSES } from '../../base/words.ts';
import { ChangeCounts, ExecutionResultBase, LeftBehind, ToldDecision, Verdict } from '../../model/index.ts';

/** A command has to fit into one argument of a program. */
const LONGEST_COMMAND = 100_000;
const LONGEST_PATH = 4_096;
const MOST_SECONDS = 365 * 24 * 3600;

const command = z
  .string()
  .min(1)
  .max(LONGEST_COMMAND)
  .refine((text) => !text.includes('\0'), 'must have no NUL character');
const cwd = z
  .string()
  .min(1)
  .max(LONGEST_PATH)
  .optional()
  .describe('Directory in the workspace. Default: the workspace.');
const jobId = z.string().min(1).max(40).describe('`job` of `shell`.');

/** Arguments of `shell`. Strict: nothing that a model adds can mean anything. */
export const ShellInput = z.strictObject({
  command,
  cwd,
  timeout: z
    .number()
    .positive()
    .max(MOST_SECONDS)
    .optional()
    .describe('Seconds. Can only shorten the limit.'),
  background: z.boolean().optional().describe('Return at once with a `job`.'),
  preview: z
    .boolean()
    .optional()
    .describe(
      'Hold back what it changes in the workspace, for the user to apply or not. Not with background.',
    ),
  on: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('Preview it on changes that wait, by their id: to build or test with them.'),
});

/** Arguments of `shell_output`. */
export const OutputInput = z.strictObject({
  id: jobId.optional(),
  since: z
    .number()
    .int()
    .nonnegative()
    .optional()
    .describe('`next` of an earlier call. Default: what was not read yet.'),
});

/** Signals that a model may send to its own commands. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGKILL', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

/** Arguments of `shell_kill`. */
export const KillInput = z.strictObject({
  id: jobId,
  signal: z.enum(SIGNALS).optional().describe('Only send this.'),
});

/** Arguments of `policy_explain`. */
export const ExplainInput = z.strictObject({
  command,
  cwd,
});

const exitCode = z.number().int().nullable().describe('null: it did not exit by itself, or not yet.');
/** As in a result of any other door: it ran, and exited 0. null: it runs. */
const ok = z.boolean().nullable();
const signal = text.nullable().describe('The signal that ended it.');
const { truncated } = ExecutionResultBase.shape;
const error = z.strictObject({ code: text, message: text }).nullable();
const leftBehind = z
  .array(LeftBehind.omit({ kept: true }))
  .describe('What programs outside of the sandbox would obey of what it left; the operator is told.');

/** Result of `shell`. */
export const ShellOutput = z.strictObject({
  status: z
    .enum([...STATUSES, 'running'])
    .describe('denied, setup-failed: it was not run. running: in the background.'),
  ok,
  exitCode,
  signal,
  stdout: text,
  stderr: text,
  truncated: truncated.describe('Bytes in the middle of a long output that are not shown.'),
  durationMs: z.number(),
  error: error.describe('Why it was not run, or which limit it exceeded.'),
  warnings: texts,
  leftBehind,
  changes: z
    .strictObject({ id: text, counts: ChangeCounts })
    .nullable()
    .describe(
      'What waits until the user applies it: of a preview, or what could not be applied; null: nothing.',
    ),
  messageForModel: text.nullable().describe('What sandbox-run says of it, as in the text; null: nothing.'),
  job: z.string().nullable().describe('Id of a command in the background.'),
});
export type ShellOutput = Value<typeof ShellOutput>;

/** Result of `shell_output` and `shell_kill`. */
export const JobOutput = z.strictObject({
  id: z.string(),
  status: z
    .enum([...STATUSES, 'running'])
    .describe('running: the command, or something that it started, still runs.'),
  ok,
  exitCode,
  signal,
  output: z.string().describe('Standard output and standard error in the order in which they were written.'),
  next: z.number().describe('Pass it as `since` to read what comes after this.'),
  leftOut: z.number().describe('Characters between `since` and `output` that are not kept any more.'),
  more: z.boolean().describe('There is more to be read already.'),
  error,
  warnings: texts,
  leftBehind,
});
export type JobOutput = Value<typeof JobOutput>;

/** Result of `shell_output` without an id. */
export const ListOutput = z.strictObject({
  jobs: z.array(
    z.strictObject({
      id: z.string(),
      command: text,
      status: z.enum([...STATUSES, 'running']),
      reach: texts.describe(
        'Where other commands reach its servers, and who is outside: localhost:3000 (outside 127.0.0.1:8080).',
      ),
    }),
  ),
});
export type ListOutput = Value<typeof ListOutput>;

/** Result of `policy_explain`. */
export const ExplainOutput = ToldDecision.extend({
  verdict: Verdict.describe('allow: it would run. ask: a person is asked first. deny: it would not run.'),
  judged: z.boolean().describe('false: the policy judges no commands, and only the confinement counts.'),
  allowed: z.strictObject({ writable: texts, readable: texts, network: z.enum(NETWORK_MODES) }),
});
export type ExplainOutput = Value<typeof ExplainOutput>;
