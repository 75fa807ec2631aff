import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { describeRule, ruleMatchesLine } from '../../judge/index.ts';
import { commandRule, type Parsed, type RuleInFile } from '../../model/index.ts';
import type { PolicyLayer } from '../../policy/index.ts';

/**
 * Tries the examples that rules carry.
 * @throws {SandboxError} `policy.invalid` for the first rule that does not do what its author thinks.
 */
export async function checkRuleExamples(
  { path, text, says }: PolicyLayer,
  parse: (source: string) => Parsed,
): Promise<void> {
  for (const [index, rule] of (says.commands?.rules ?? []).entries()) {
    for (const kind of ['match', 'not_match'] as const) {
      for (const [position, example] of (rule[kind] ?? []).entries()) {
        const place = ['commands', 'rules', index, kind, position];
        const problem = problemOf(rule, kind, parse(example));
        if (problem === undefined) continue;
        const { locateKey } = await import('../../policy/locate-key.ts');
        const line = text === undefined ? undefined : locateKey(text, place);
        throw new SandboxError(
          'policy.invalid',
          `${path ?? 'policy'}:${line === undefined ? '' : `${line}:`} ${place.join('.')}: ${problem}: ${example}`,
        );
      }
    }
  }
}

function problemOf(rule: RuleInFile, kind: 'match' | 'not_match', parsed: Parsed): string | undefined {
  if (!parsed.understood) return `the example is not understood (${parsed.problem.message})`;
  const matches = ruleMatchesLine(commandRule(rule), parsed);
  if (matches === (kind === 'match')) return undefined;
  const name = describeRule(commandRule(rule));
  return kind === 'match' ? `the rule "${name}" does not match its example` : `the rule "${name}" matches`;
}
