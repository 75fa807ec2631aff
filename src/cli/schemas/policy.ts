import { z } from 'zod';
import { LOSS_EFFECTS } from '../../integrations/import/importer.ts';
import { LAYER_NAMES } from '../../policy/layers.ts';
import { policyFileSchema } from '../../policy/schema.ts';
import { count, text } from './common.ts';

/** `sandbox-run policy show --json`. */
export const policyShow = z.strictObject({
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
export const policyImport = z.strictObject({
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
  remarks: z.array(text),
});
