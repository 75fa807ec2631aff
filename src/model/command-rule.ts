import type { z } from 'zod';
import type { Zod } from './policy-key.ts';

const examples = (zod: Zod) => zod.array(zod.string().min(1)).optional();

/** What a file may say of a rule. */
export const rule = (zod: Zod) =>
  zod
    .strictObject({
      program: zod
        .string()
        .regex(/^[^\s/]+$/, 'must be the name of a program; * stands for any text')
        .describe('Name of the program, without a directory. * stands for any text.'),
      words: zod
        .array(zod.string().min(1))
        .optional()
        .describe(
          'Patterns that words of the command must match, in this order. Other words may stand between them.',
        ),
      verdict: zod
        .enum(['ask', 'deny'])
        .optional()
        .describe('ask: a matching command needs approval. deny: it is refused.'),
      effect: zod
        .enum(['preview'])
        .optional()
        .describe(
          'preview: what a matching command changes in the workspace waits until a person applies it; where that is not possible, it is asked about.',
        ),
      reason: zod.string().min(1).optional().describe('Shown when a command is refused or asked about.'),
      match: examples(zod).describe(
        'Commands that the rule must match. This is checked when the policy is loaded.',
      ),
      not_match: examples(zod).describe(
        'Commands that the rule must not match. This is checked when the policy is loaded.',
      ),
    })
    .refine(({ verdict, effect }) => (verdict === undefined) !== (effect === undefined), {
      message: 'needs either verdict = "ask" or "deny", or effect = "preview"',
    });

/** A rule as it stands in a policy file. */
export type RuleInFile = z.output<ReturnType<typeof rule>>;

/**
 * A rule of the operator: it asks, refuses, or has changes wait. The strictest check wins, so a rule that allows would do
 * nothing.
 */
export interface CommandRule {
  /** Name of the program, `*` stands for any text; compared with the last part of the program's path. */
  readonly program: string;
  /** Patterns that its words must match, in this order. Other words may stand between them. */
  readonly words: readonly string[];
  readonly verdict: 'ask' | 'deny' | 'preview';
  /** Shown when a command is refused or asked about. */
  readonly reason: string | undefined;
}

/** A rule as the checks use it. */
export function commandRule({ program, words, verdict, reason }: RuleInFile): CommandRule {
  return { program, words: words ?? [], verdict: verdict ?? 'preview', reason };
}
