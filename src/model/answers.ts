import { z } from 'zod';
import { Command } from './command.ts';
import { Autonomy, CheckAnswer, Taint } from './decision.ts';
import { policyFileSchema } from './policy-file.ts';
import { count, text, texts, time } from './value.ts';
import { LAYER_NAMES, LOSS_EFFECTS } from './words.ts';

/* What commands print with `--json` that is no value of the program itself. */

const id = z.unknown().describe('that of the line; its number if it has none');

/** A line of `sandbox-run check --batch`. */
export const BatchLine = z.union([
  CheckAnswer.extend({ id }),
  z.strictObject({
    id,
    verdict: z.literal('deny').describe('what cannot be judged must not run'),
    error: text.describe('why the line cannot be judged'),
  }),
]);

/** A line that `sandbox-run check --batch` reads. Other keys are the caller's own. */
export const BatchRequest = z.looseObject({
  id: z.unknown().optional(),
  command: Command,
  autonomy: Autonomy.optional(),
  taint: z
    .union([z.array(Taint), text.describe('separated by commas')])
    .optional()
    .describe('what the session was exposed to'),
  approved: z.boolean().optional(),
  cwd: text.optional(),
});

/** `sandbox-run gate check --json`. */
export const GateCheckAnswer = z.strictObject({
  request_id: text,
  decision: z.enum(['allow', 'deny']),
  reason: text.optional(),
  by: z
    .enum(['here', 'host', 'nobody'])
    .describe('here: provably local; host: its answer; nobody: there was no answer that can be used'),
});

/** `sandbox-run budget show --json`. */
export const BudgetAnswer = z.strictObject({
  principal: text,
  used: count.describe('commands of the last 3,600 seconds'),
  limit: count.nullable().describe('null: there is none'),
});

/** A line of `sandbox-run cache show --json`. */
export const CacheLine = z.strictObject({
  id: text,
  workspace: text.nullable().describe('null: it is not known any more'),
  workspaceExists: z.boolean(),
  bytes: count,
  complete: z.boolean().describe('false: there is more, or what cannot be looked into'),
  usedAt: time,
  inUse: z.boolean().describe('a command runs'),
  directory: text,
});

/** `sandbox-run policy show --json`. */
export const PolicyShown = z.strictObject({
  workspace: text,
  values: z.array(
    z.strictObject({
      key: text,
      value: z.unknown().optional().describe('missing: it is not set'),
      item: z.boolean().optional().describe('with --explain: it is an item of a list that adds up'),
      source: z
        .strictObject({
          layer: z.enum(LAYER_NAMES),
          path: text.optional(),
          line: count.optional(),
        })
        .optional()
        .describe('with --explain'),
    }),
  ),
  weakerThanDefault: z.array(z.strictObject({ key: text, meaning: text })),
  checks: z.array(z.strictObject({ name: text, summary: text })),
});

/** `sandbox-run policy import --json`. */
export const PolicyImported = z.strictObject({
  file: text,
  from: text,
  policy: policyFileSchema,
  toml: text,
  output: text.nullable().describe('the file that was written; null: none'),
  translated: z.array(
    z.strictObject({ path: text, value: z.unknown(), to: text.describe('what stands for it here') }),
  ),
  losses: z
    .array(
      z.strictObject({
        path: text,
        value: z.unknown(),
        effect: z
          .enum(LOSS_EFFECTS)
          .describe(
            'narrower: less is allowed here; wider: something is allowed that was not; none: it is about something else',
          ),
        why: text,
        what: text.describe('what to do about it'),
      }),
    )
    .describe('what has no equivalent'),
  remarks: texts,
});
