import { z } from 'zod';
import type { Problem } from '../../audit/chain-check.ts';
import { leftBehindSchema } from '../../model/left-behind.ts';
import { count, names, text, texts } from './common.ts';

const hash = z.string().regex(/^[0-9a-f]{64}$/);

const envelope = {
  seq: z.number().int().positive(),
  time: text.describe('ISO 8601'),
  follows: text.nullable().optional().describe('the file before, in the first record of a file'),
  prev: hash,
  hash,
  mac: hash.optional(),
};

const about = { request: text, principal: text, session: text.optional() };

/**
 * A line of `sandbox-run audit tail|show|search --json`: the record as it was written. Loose, because the trail keeps
 * records of other versions, and because of a record that was too large parts are cut.
 */
export const auditRecord = z.union([
  z.looseObject({
    ...envelope,
    type: z.literal('decision'),
    ...about,
    outcome: text.describe('launch, allow (of the gate), or the code of why not'),
    command: z.union([text, texts]),
    cwd: text,
    verdict: text.nullable().describe('null: it was not judged'),
    profile: text,
    backend: text,
  }),
  z.looseObject({
    ...envelope,
    type: z.literal('result'),
    ...about,
    status: text,
    leftBehind: z.array(leftBehindSchema).optional(),
    durationMs: z.number(),
  }),
  z.looseObject({
    ...envelope,
    type: z.literal('event'),
    code: text,
    principal: text,
    session: text.optional(),
    message: text,
    details: z.record(text, z.unknown()),
  }),
]);

/** `sandbox-run audit verify --json`. */
export const auditVerify = z.strictObject({
  ok: z.boolean(),
  problems: z.array(
    z.strictObject({
      kind: names<Problem['kind']>(
        ...(['changed', 'removed', 'reordered', 'inserted', 'truncated', 'unreadable'] as const),
        ...(['torn', 'anchor', 'mac'] as const),
      ),
      message: text,
      file: text.optional(),
      line: count.optional(),
      seq: count.optional(),
    }),
  ),
  problemCount: count,
  records: count,
  files: count,
  first: z.strictObject({ seq: count, file: text }).optional(),
  last: z.strictObject({ seq: count, hash, file: text }).optional(),
  signed: z.strictObject({ records: count, since: count.optional() }).optional(),
  remarks: texts,
});

const counts = z.record(text, count);

/** `sandbox-run audit stats --json`. */
export const auditStats = z.strictObject({
  records: count,
  first: text.optional(),
  last: text.optional(),
  ...{ types: counts, verdicts: counts, outcomes: counts, approvals: counts },
  ...{ objections: counts, results: counts, events: counts },
  outputBytes: count,
  durationMs: z.number(),
  sessions: count,
});
