import { describe, expect, it } from 'vitest';
import { checkRuleExamples } from '../../../../src/gate/decide/rule-examples.ts';
import { parseShell } from '../../../../src/judge/index.ts';
import { parsePolicy } from '../../../../src/policy/index.ts';

async function tried(rule: string): Promise<void> {
  const text = `[[commands.rules]]\nprogram = "git"\nwords = ["push"]\nverdict = "deny"\n${rule}`;
  await checkRuleExamples(
    { name: 'option', path: 'p.toml', text, says: await parsePolicy(text, 'p.toml') },
    parseShell,
  );
}

describe('examples of rules', () => {
  it.each(['', 'match = ["git push", "cd x && git -C y push"]\nnot_match = ["git pull", "echo git push"]'])(
    'that are right load: %j',
    async (rule) => {
      await expect(tried(rule)).resolves.toBeUndefined();
    },
  );

  it.each([
    [
      'match = ["git push",\n"git pull"]',
      /^p\.toml:6: commands\.rules\.0\.match\.1: .*does not match.*: git pull$/,
    ],
    ['not_match = ["git push"]', /^p\.toml:5: commands\.rules\.0\.not_match\.0: .*matches: git push$/],
    ['match = ["git push |"]', /^p\.toml:5: .*not understood/],
  ])('that are wrong are fatal: %j', async (rule, message) => {
    await expect(tried(rule)).rejects.toMatchObject({
      code: 'policy.invalid',
      message: expect.stringMatching(message),
    });
  });
});
