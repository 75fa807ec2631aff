import { describe, expect, it } from 'vitest';
import { matchesPattern, ownRules } from '../../../../src/judge/checks/own-rules.ts';
import type { CommandRule, Reason } from '../../../../src/model/index.ts';
import { contextOf } from '../../../support/check-context.ts';

const rule = (program: string, words: readonly string[] = [], changes: Partial<CommandRule> = {}) => ({
  program,
  words,
  verdict: 'ask' as const,
  reason: undefined,
  ...changes,
});
const judge = (source: string, ...own: readonly CommandRule[]) =>
  ownRules.judge(contextOf(source, { rules: { own } })) as readonly Reason[];

describe('patterns', () => {
  it.each([
    ['git', 'git', true],
    ['git', 'gi', false],
    ['git', 'git*', true],
    ['git-lfs', 'git*', true],
    ['', '*', true],
    ['', '', true],
    ['ab', 'a*b', true],
    ['a', 'a*a', false],
    ['aXbXc', 'a*b*c', true],
    ['acb', 'a*b*c', false],
    ['abab', '*ab', true],
    ['a.b', 'a.b', true],
    ['axb', 'a.b', false],
  ])('%j and %j: %s', (text, pattern, expected) => {
    expect(matchesPattern(text, pattern)).toBe(expected);
  });

  it('stay fast', () => {
    const start = performance.now();
    matchesPattern('a'.repeat(50_000), `${'*a'.repeat(200)}b`);
    expect(performance.now() - start).toBeLessThan(1_000);
  });
});

describe('rules of the policy', () => {
  it.each([
    ['git push', rule('git', ['push']), true],
    ['git -C x --no-pager push origin', rule('git', ['push']), true],
    ['/usr/bin/git push', rule('git', ['push']), true],
    ['git status', rule('git', ['push']), false],
    ['git push', rule('git', ['push', 'origin']), false],
    ['git push origin main', rule('git', ['push', 'main']), true],
    ['git main push', rule('git', ['push', 'main']), false],
    ['ls; (true && git push)', rule('git', ['push']), true],
    ['echo git push', rule('git', ['push']), false],
    ['git $verb', rule('git', ['push']), true],
    ['npm run deploy-prod', rule('npm', ['run', 'deploy*']), true],
    ['anything', rule('*'), true],
    ['X=1', rule('*'), false],
  ])('%s', (source, own, matches) => {
    expect(judge(source, own)).toHaveLength(matches ? 1 : 0);
  });

  it('say what the policy says, or name the rule', () => {
    expect(
      judge('git push', rule('git', ['push'], { verdict: 'deny', reason: 'ask the team' })),
    ).toMatchObject([
      { verdict: 'deny', code: 'rule_deny', message: 'ask the team', words: ['git', 'push'] },
    ]);
    expect(judge('git push', rule('git', ['push']))[0]?.message).toBe(
      'a rule of the policy asks about git push',
    );
  });

  it('see through a link to the program', () => {
    const reasons = ownRules.judge(
      contextOf('g push', { rules: { own: [rule('git', ['push'])] }, findExecutable: () => '/usr/bin/git' }),
    );
    expect(reasons).toHaveLength(1);
  });
});
