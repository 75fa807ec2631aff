import { z } from 'zod';
import { count, maybe, text, texts, type Value } from '../base/value.ts';
import { STATUSES } from '../base/words.ts';
import { EnforcementReport } from '../confine/plan/enforcement-report.ts';
import { ApprovalAnswer } from './approval.ts';
import { Command, JobOrigin } from './command.ts';
import { Decision } from './decision.ts';
import { Denial } from './denial.ts';
import { ExceededLimit } from './execution-result.ts';
import { LeftBehind } from './left-behind.ts';
import { Connection } from './network.ts';

const about = {
  request: text.describe('unique; the decision and the result of one request have the same'),
  principal: text,
  session: maybe(text),
  job: JobOrigin.optional().describe('of a fleet; missing: the command was run for none'),
};

/** What was decided about one request; written, and on the disk, before anything starts. */
export const DecisionRecord = z.strictObject({
  type: z.literal('decision'),
  ...about,
  command: Command,
  cwd: text,
  decision: maybe(Decision).describe('missing: commands are not judged (unsafe.unjudged_commands)'),
  approval: maybe(ApprovalAnswer).describe('missing: nobody was asked'),
  outcome: text.describe('launch, allow (of the gate), or the code of why not'),
  profile: text,
  backend: text,
  report: EnforcementReport,
  files: z
    .strictObject({ writes: texts, executes: texts })
    .optional()
    .describe(
      'canonical paths that the command names, as far as its text tells; missing: it was not looked at',
    ),
  flags: texts
    .optional()
    .describe(
      'options that make a program run another one or use the network, which it does not do by its name, with the program before them; missing: there are none',
    ),
});
export type DecisionRecord = Value<typeof DecisionRecord>;

/** How a command that was launched ended. */
export const ResultRecord = z.strictObject({
  type: z.literal('result'),
  ...about,
  status: z.enum(STATUSES),
  exitCode: maybe(z.number().int()),
  signal: maybe(text),
  error: maybe(text).describe('stable code, if it could not be started'),
  limit: ExceededLimit.optional().describe('missing: none was exceeded'),
  leftBehind: z.array(LeftBehind).optional().describe('missing: there is nothing'),
  connections: z
    .array(Connection)
    .optional()
    .describe('where the network is listed; missing: there were none'),
  denials: z.array(Denial).optional().describe('of a command that failed; missing: none was seen'),
  durationMs: z.number(),
  outputBytes: z
    .strictObject({ stdout: maybe(count), stderr: maybe(count) })
    .describe('missing: not captured'),
});
export type ResultRecord = Value<typeof ResultRecord>;

/** Something that happened besides commands: a pattern over several of them, a refused message, a taint. */
export const EventRecord = z.strictObject({
  type: z.literal('event'),
  code: text.describe('stable, snake_case'),
  principal: text,
  session: maybe(text),
  message: text,
  details: z.record(text, z.union([text, z.number(), z.boolean()])),
});
export type EventRecord = Value<typeof EventRecord>;

export type AuditRecord = DecisionRecord | ResultRecord | EventRecord;

/** Where records go. */
export interface AuditSink {
  /**
   * Settles when a decision is on the disk, and when anything else is written (a power cut can lose the last of those);
   * rejects with a `SandboxError` `audit.failed` if that fails.
   */
  append(record: AuditRecord): Promise<void>;
}

const hash = z.string().regex(/^[0-9a-f]{64}$/);

const envelope = {
  seq: z.number().int().positive(),
  time: text.describe('ISO 8601'),
  follows: text.nullable().optional().describe('the file before, in the first record of a file'),
  prev: hash,
  hash,
  mac: hash.optional(),
};

/**
 * A line of the trail. Loose, because the trail keeps records of other versions, and because parts are cut of a record that
 * was too large.
 */
export const AuditLine = z.union([
  z.looseObject({
    ...envelope,
    ...DecisionRecord.pick({ type: true, request: true, principal: true, session: true }).shape,
    ...DecisionRecord.pick({ outcome: true, cwd: true, profile: true, backend: true }).shape,
    command: z.union([text, texts]),
    verdict: text.nullable().describe('null: it was not judged'),
  }),
  z.looseObject({
    ...envelope,
    ...ResultRecord.pick({ type: true, request: true, principal: true, session: true }).shape,
    ...ResultRecord.pick({ leftBehind: true, durationMs: true }).shape,
    status: text,
  }),
  z.looseObject({ ...envelope, ...EventRecord.shape, details: z.record(text, z.unknown()) }),
]);

/** Something that is wrong with a trail. */
export const AuditProblem = z.strictObject({
  kind: z.enum([
    ...(['changed', 'removed', 'reordered', 'inserted', 'truncated'] as const),
    ...(['unreadable', 'anchor', 'mac'] as const),
  ]),
  message: text.describe('one sentence'),
  seq: count.optional(),
});
export type AuditProblem = Value<typeof AuditProblem>;

/** What was found when a trail was verified. */
export const Verification = z.strictObject({
  problems: z.array(AuditProblem).describe('at most 1,000 of them'),
  problemCount: count,
  records: count,
  first: maybe(count).describe('the number of the first record'),
  last: maybe(z.strictObject({ seq: count, hash })).describe('the last record'),
  signed: maybe(z.strictObject({ records: count, since: maybe(count) })).describe(
    'records with a MAC, and since which one; missing: no key was given',
  ),
  remarks: texts.describe('what is no problem but worth knowing'),
});
export type Verification = Value<typeof Verification>;

/** What was found when the trail of one machine and user was verified in the stream of a fleet. */
export const TrailVerification = z.strictObject({
  trail: text.describe('machine, user, and something that no other trail has'),
  problems: z.array(AuditProblem).describe('at most 1,000 of them'),
  problemCount: count,
  records: count,
  first: maybe(count).describe('the number of the first record'),
  last: maybe(z.strictObject({ seq: count, hash })),
  signed: maybe(z.strictObject({ records: count, since: maybe(count) })),
  remarks: texts,
});
export type TrailVerification = Value<typeof TrailVerification>;

/** What was found when the audit stream of a fleet was verified. */
export const StreamVerification = z.strictObject({
  problems: z.array(AuditProblem).describe('of the stream as a whole'),
  problemCount: count.describe('those of the trails among them'),
  trails: z.array(TrailVerification),
  records: count,
  remarks: texts,
});
export type StreamVerification = Value<typeof StreamVerification>;
