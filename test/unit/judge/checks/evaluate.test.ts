import { describe, expect, it } from 'vitest';
import { CHECKS } from '../../../../src/judge/checks/all-checks.ts';
import type { Check } from '../../../../src/judge/checks/check.ts';
import { evaluate, refusalSentence } from '../../../../src/judge/checks/evaluate.ts';
import { decisiveReason, type Reason, type Verdict } from '../../../../src/model/index.ts';
import { contextOf } from '../../../support/check-context.ts';

const reason = (check: string, verdict: Verdict | undefined, code = 'code'): Reason => ({
  check,
  verdict,
  code,
  message: `${check} says ${verdict}`,
  words: [],
});
const saying = (name: string, ...verdicts: readonly (Verdict | undefined)[]): Check => ({
  name,
  summary: name,
  judge: () => verdicts.map((verdict) => reason(name, verdict)),
});
const later = (check: Check): Check => ({ ...check, judge: async (context) => check.judge(context) });
const CONTEXT = contextOf('ls');

describe('evaluate', () => {
  it.each([
    [[], 'allow'],
    [[undefined], 'allow'],
    [['allow'], 'allow'],
    [['allow', 'ask'], 'ask'],
    [['ask', 'allow'], 'ask'],
    [['deny', 'allow'], 'deny'],
    [['ask', 'deny', 'allow'], 'deny'],
    [[undefined, 'ask'], 'ask'],
  ] as const)('takes the strictest of %j', async (verdicts, expected) => {
    const checks = verdicts.map((verdict, index) => saying(`c${index}`, verdict));
    expect(evaluate(checks, CONTEXT)).toMatchObject({ verdict: expected });
    expect(await evaluate(checks.map(later), CONTEXT)).toMatchObject({ verdict: expected });
  });

  it('runs every check and keeps the order of the registry in the trace', async () => {
    const checks = [
      saying('a', 'deny'),
      later(saying('b', 'ask', 'allow')),
      saying('c'),
      saying('d', 'allow'),
    ];
    const decision = await evaluate(checks, CONTEXT);
    expect(decision.reasons.map(({ check, verdict }) => `${check} ${verdict}`)).toEqual([
      'a deny',
      'b ask',
      'b allow',
      'c undefined',
      'd allow',
    ]);
  });

  it('asks the last ones only where nothing refuses', async () => {
    const last: Check = { ...saying('last', 'deny'), isLast: true };
    const decide = async (...verdicts: readonly Verdict[]) => {
      const checks = [last, ...verdicts.map((verdict) => later(saying('own', verdict)))];
      return (await evaluate(checks, CONTEXT)).reasons.map(({ check, code }) => `${check} ${code}`);
    };
    expect(await decide('allow', 'deny')).toEqual(['own code', 'own code', 'last not_asked']);
    expect(await decide('allow', 'ask')).toEqual(['own code', 'own code', 'last code']);
  });

  it('decides at once unless a check waits', () => {
    expect(evaluate([saying('a', 'allow')], CONTEXT)).not.toBeInstanceOf(Promise);
    expect(evaluate([saying('a', 'allow'), later(saying('b'))], CONTEXT)).toBeInstanceOf(Promise);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('bug');
      },
    ],
    ['rejects', () => Promise.reject(new Error('bug'))],
  ])('refuses if a check %s, and still runs the others', async (_, judge) => {
    const decision = await evaluate([{ name: 'a', summary: 'a', judge }, saying('b', 'ask')], CONTEXT);
    expect(decision).toMatchObject({
      verdict: 'deny',
      reasons: [{ check: 'a', code: 'check_failed' }, { check: 'b' }],
    });
  });

  it('passes risk and reach on', () => {
    expect(evaluate([], contextOf('x', { risk: 'high', reach: 'network' }))).toMatchObject({
      risk: 'high',
      reach: 'network',
    });
  });
});

describe('why a command does not run', () => {
  const decide = (...checks: readonly Check[]) =>
    evaluate(checks, CONTEXT) as Exclude<ReturnType<typeof evaluate>, Promise<unknown>>;

  it('is the first of the strictest reasons', () => {
    expect(decisiveReason(decide(saying('a', 'ask'), saying('b', 'deny'), saying('c', 'deny')))?.check).toBe(
      'b',
    );
  });

  it('is nothing for what is allowed, the reason for what is refused', () => {
    expect(refusalSentence(decide(saying('a', 'allow')))).toBeUndefined();
    expect(refusalSentence(decide(saying('a', 'deny')))).toBe('refused by the policy: a says deny');
  });

  it('names what would let a question pass: an autonomy only where that asked', () => {
    const asked = refusalSentence(decide(saying('autonomy', 'ask')));
    expect(asked).toContain('the option approved runs it');
    expect(asked).toContain('the option autonomy: "autonomous"');
    const other = refusalSentence(decide(saying('autonomy', 'ask'), saying('reach', 'ask')));
    expect(other).toContain('the option approved runs it');
    expect(other).not.toContain('autonomous');
  });
});

describe('the registry', () => {
  it('begins with the budget and ends with plug-ins; names are unique and described', () => {
    const names = CHECKS.map(({ name }) => name);
    expect(names[0]).toBe('budget');
    expect(names.at(-1)).toBe('hooks');
    expect(new Set(names).size).toBe(names.length);
    for (const { name, summary } of CHECKS) {
      expect(name).toMatch(/^[a-z]+(-[a-z]+)*$/);
      expect(summary).toMatch(/^\S.{10,}/);
    }
  });
});
