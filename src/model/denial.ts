import { z } from 'zod';
import { count, text, type Value } from '../base/value.ts';
import { CONTROL_IDS, DENIED_OPERATIONS } from '../base/words.ts';

/** What the sandbox kept a command from, or several alike. */
export const Denial = z.strictObject({
  operation: z.enum(DENIED_OPERATIONS).describe('create: of something that was not there'),
  object: text.describe(
    'what it was about: a path without links, HOST:PORT, a process, the limit, or a kind of socket',
  ),
  asked: text.optional().describe('the same as the program named it; missing: in these words'),
  program: text.optional().describe('as the process called itself'),
  pid: count.optional(),
  control: z.enum(CONTROL_IDS).describe('the control of the enforcement report that held'),
  why: text.describe('the rule that holds it, or which one is missing'),
  allow: z
    .strictObject({
      key: text.describe('of a policy file'),
      value: z
        .union([text, z.number().nonnegative()])
        .describe('what it would have to have, or to add to its list'),
      policy: text.describe('the same in TOML'),
      absent: z
        .enum(['path', 'directory'])
        .optional()
        .describe(
          'the path has to be made first, as a directory or as what is needed: what a policy lists must be there',
        ),
    })
    .optional()
    .describe('what lets it through; missing: no setting does, or it is not known which'),
  notProposed: text
    .optional()
    .describe('why what would let it through is not proposed: it would open a secret, or too much'),
  at: text.optional().describe('ISO 8601; when it was first seen'),
  count,
});
export type Denial = Value<typeof Denial>;
