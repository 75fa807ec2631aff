import { z } from 'zod';
import { APPROVAL_SCOPES } from '../../model/approval.ts';
import { REACHES, RISKS, VERDICTS } from '../../model/decision.ts';
import { leftBehindSchema } from '../../model/left-behind.ts';

const count = z.number();
const strings = z.array(z.string()).readonly();
const command = z.union([z.string(), strings]);

export const decisionResult = z
  .strictObject({
    verdict: z.enum(VERDICTS).describe('Strictest of the reasons.'),
    risk: z.enum(RISKS),
    reach: z.enum(REACHES).describe('Whether the command can use the network.'),
    reasons: z
      .array(
        z.strictObject({
          check: z.string(),
          verdict: z.enum(VERDICTS).nullable().describe('null: no opinion.'),
          code: z.string().describe('Stable, unique within the check.'),
          message: z.string(),
        }),
      )
      .readonly(),
  })
  .describe('What the policy thinks of a command.');

export const messageForModel = z
  .string()
  .optional()
  .describe(
    'Where something was stopped: a text for a model that says what, why, and what is allowed instead.',
  );

const cpu = z.strictObject({ userMs: count, systemMs: count });

const commandResultFields = {
  status: z
    .enum(['exited', 'signaled', 'timed-out', 'canceled', 'limit-exceeded', 'denied', 'setup-failed'])
    .describe('What became of the command. `denied` and `setup-failed`: it did not run.'),
  exitCode: z.number().int().optional(),
  signal: z.string().optional().describe('The signal that ended it.'),
  error: z
    .strictObject({
      code: z.string().describe('Stable.'),
      message: z.string(),
      stage: z.string().optional(),
      errno: z.string().optional(),
      path: z.string().optional(),
    })
    .optional()
    .describe('Why it did not run, or which limit it exceeded.'),
  message: messageForModel,
  argv: strings,
  cwd: z.string(),
  stdout: z.string().describe('Captured output, in the encoding that was asked for.'),
  stderr: z.string(),
  truncated: z
    .strictObject({ stdout: count, stderr: count })
    .describe('Bytes that were written and are not shown.'),
  gapAt: z
    .strictObject({ stdout: count.optional(), stderr: count.optional() })
    .optional()
    .describe('With base64: at which byte the missing ones were.'),
  outputBytes: z.strictObject({ stdout: count.optional(), stderr: count.optional() }),
  durationMs: count,
  cpu,
  peakMemoryBytes: count.optional(),
  usage: z.strictObject({
    by: z.enum(['cgroup', 'sampling', 'rusage']),
    peakMemoryBytes: count.optional(),
    peakProcesses: count.optional(),
    cpu,
    readBytes: count,
    writtenBytes: count,
  }),
  limit: z
    .strictObject({
      name: z.enum(['memory', 'processes', 'cpu', 'tmp', 'idle', 'file-size']),
      value: count,
      used: count.optional(),
      by: z.enum(['cgroup', 'sampling', 'rlimit', 'clock']),
    })
    .optional(),
  treeEnded: z.boolean().describe('Every process that the command started is provably gone.'),
  processTree: z.strictObject({
    tier: z.enum(['signal-scope', 'subreaper', 'none']),
    ended: z.boolean(),
  }),
  outputHeld: z.boolean(),
  leftBehind: z.array(leftBehindSchema).readonly(),
  warnings: strings,
  decision: decisionResult.optional(),
  approval: z
    .strictObject({
      approved: z.boolean(),
      scope: z.enum(APPROVAL_SCOPES).optional(),
      reason: z.enum(['denied', 'expired', 'nobody', 'failed']).optional(),
      by: z.string(),
      detail: z.string().optional(),
    })
    .optional()
    .describe('What came of asking somebody.'),
} as const;

export const commandResult = z.strictObject(commandResultFields);
/** A result as it is sent. */
export type CommandResult = z.input<typeof commandResult>;

export const turnResult = z.strictObject({
  ...commandResultFields,
  cwdAfter: z.string().describe('Where the shell is now.'),
  restarted: z.boolean().describe('The shell ended with the command, and a new one has taken its place.'),
});

export const enforcementReport = z
  .strictObject({
    backend: z.string(),
    passedOver: z.array(z.strictObject({ backend: z.string(), reason: z.string() })).readonly(),
    landlockAbi: count,
    processTree: z.string(),
    controls: z
      .array(
        z.strictObject({
          id: z.string(),
          state: z.string(),
          demand: z.string(),
          reason: z.string(),
        }),
      )
      .readonly(),
  })
  .describe('What is really enforced for every command of this server.');

export const question = z
  .strictObject({
    question: z.string().describe('Names the question in `approvals.answer`.'),
    request: z
      .union([z.string(), z.number()])
      .describe('Id of the request (`run`, `spawn`, `session.run`) whose command it is about.'),
    expiresAt: count.describe('Milliseconds since 1970; without an answer until then it is a no.'),
    fingerprint: z.string().describe('Of everything that the answer is bound to.'),
    principal: z.string(),
    session: z.string().optional(),
    command,
    cwd: z.string(),
    decision: decisionResult,
    parts: z
      .array(
        z.strictObject({
          source: z.string(),
          executable: z.string().optional(),
          remarks: strings,
        }),
      )
      .readonly(),
    environment: strings,
    profile: z.string(),
    confinement: strings,
  })
  .describe(
    'What a person has to see to decide. Its texts come from the agent: show them with escapes made visible.',
  );
/** A question as it is sent. */
export type Question = z.input<typeof question>;
