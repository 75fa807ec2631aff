import type { z } from 'zod';
import type { Zod } from './policy-key.ts';

const examples = (zod: Zod) => zod.array(zod.string().min(1)).optional();

/** What a file of the workspace may say of a rule: it takes away, and allows nothing. */
export const narrowingRule = (zod: Zod) => ruleWith(zod, ['ask', 'deny']);

/** What a file of the operator may say of a rule. */
export const rule = (zod: Zod) => ruleWith(zod, ['ask', 'deny', 'allow']);

const ruleWith = <Word extends 'ask' | 'deny' | 'allow'>(zod: Zod, verdicts: readonly Word[]) =>
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
          'Patterns that words of the command must match, in this order. Other words may stand between them. For verdict = "allow" they are all words of the command, one pattern each; a last "*" stands for any that follow.',
        ),
      directory: zod
        .string()
        .regex(/^(?:\/|~\/)/, 'must be absolute or begin with ~/')
        .optional()
        .describe('Only for commands that run in this directory or beneath it.'),
      verdict: zod
        .enum(verdicts)
        .optional()
        .describe(
          'ask: a matching command needs approval. deny: it is refused. allow, not in a file of the workspace: it is not asked about because of its risk or of a network that the policy opened.',
        ),
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
      message: `needs either verdict = ${verdicts.map((one) => `"${one}"`).join(' or ')}, or effect = "preview"`,
    })
    .refine(({ program, verdict }) => verdict !== 'allow' || !program.includes('*'), {
      path: ['program'],
      message: 'must be written out in a rule that allows',
    });

/** A rule as it stands in a policy file. */
export type RuleInFile = z.output<ReturnType<typeof rule>>;

/** A rule of the operator: it asks, refuses, allows, or has changes wait. The strictest check wins, and a rule that allows only answers questions. */
export interface CommandRule {
  /** Name of the program, `*` stands for any text; compared with the last part of the program's path. */
  readonly program: string;
  /** Patterns that its words must match, in this order. Other words may stand between them, but not for `allow`. */
  readonly words: readonly string[];
  /** Absolute, or beneath `~/`. */
  readonly directory?: string | undefined;
  readonly verdict: 'ask' | 'deny' | 'allow' | 'preview';
  /** Shown when a command is refused or asked about. */
  readonly reason: string | undefined;
}

/** Any further words, in a rule that allows. */
export const ANY_WORDS = '*';

/** A rule as the checks use it. */
export function commandRule({ program, words, directory, verdict, reason }: RuleInFile): CommandRule {
  const said = words ?? (verdict === 'allow' ? [ANY_WORDS] : []);
  return { program, words: said, directory, verdict: verdict ?? 'preview', reason };
}
