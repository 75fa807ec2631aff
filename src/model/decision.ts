import { z } from 'zod';
import { maybe, text, texts, type Value } from '../base/value.ts';
import { AUTONOMIES, REACHES, RISKS, TAINTS, VERDICTS } from '../base/words.ts';

export const Verdict = z.enum(VERDICTS);
export type Verdict = Value<typeof Verdict>;

export const Risk = z.enum(RISKS);
export type Risk = Value<typeof Risk>;

export const Reach = z.enum(REACHES).describe('whether the command can use the network');
export type Reach = Value<typeof Reach>;

export const Autonomy = z.enum(AUTONOMIES);
export type Autonomy = Value<typeof Autonomy>;

export const Taint = z.enum(TAINTS);
export type Taint = Value<typeof Taint>;

/** What one check says about one thing that it stumbled on. */
export const Reason = z.strictObject({
  check: text.describe('name of the check'),
  verdict: maybe(Verdict).describe('missing: no opinion, and the message says why'),
  code: text.describe('stable, unique within the check'),
  message: text.describe('one sentence that a person or a model can act on'),
  words: texts.describe('what it stumbled on, as it was written'),
  needs: z
    .array(
      z.strictObject({
        key: z
          .enum(['filesystem.read', 'filesystem.write', 'network.allow', 'network.unix'])
          .describe('of a policy'),
        value: text.optional().describe('a canonical path, or an entry; missing: which entry is not known'),
        isDirectory: z.literal(true).optional().describe('a directory is to be made there'),
      }),
    )
    .optional()
    .describe('what the policy would have to list for it; missing: no list lets it through'),
});
export type Reason = Value<typeof Reason>;

/** What the policy decided about a request, and why. */
export const Decision = z
  .strictObject({
    verdict: Verdict.describe('the strictest of the reasons'),
    risk: Risk,
    reach: Reach,
    reasons: z.array(Reason).describe('of every check, in the order in which they are registered'),
  })
  .describe('what the policy says, and why');
export type Decision = Value<typeof Decision>;

/** A decision as `check`, `serve` and MCP tell it: without the words, and each reason has a verdict or null. */
export const ToldDecision = Decision.extend({
  reasons: z.array(
    Reason.omit({ words: true, needs: true }).extend({
      verdict: Verdict.nullable().describe('null: no opinion'),
    }),
  ),
});
export type ToldDecision = Value<typeof ToldDecision>;

/** A text for a model about what was stopped. */
export const forModel = text.describe(
  'what a model may be told: what was stopped, by which rule, what is allowed and what to do; text of others stands in quotes',
);

/** What `sandbox-run check --json` prints. */
export const CheckAnswer = ToldDecision.extend({
  messageForModel: forModel.optional().describe('missing if the command is allowed'),
});
