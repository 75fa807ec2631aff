import { describe, expect, it } from 'vitest';
import { autonomy } from '../../../../src/policy/checks/autonomy.ts';
import { contextOf } from '../../../support/check-context.ts';

describe('autonomy', () => {
  it.each([
    ['readonly', 'low', false, 'deny', 'readonly'],
    ['readonly', 'low', true, 'deny', 'readonly'],
    ['readonly', 'high', true, 'deny', 'readonly'],
    ['supervised', 'low', false, 'allow', 'low_risk'],
    ['supervised', 'medium', false, 'ask', 'needs_approval'],
    ['supervised', 'high', false, 'ask', 'needs_approval'],
    ['supervised', 'medium', true, 'allow', 'approved'],
    ['supervised', 'high', true, 'allow', 'approved'],
    ['autonomous', 'low', false, 'allow', 'autonomous'],
    ['autonomous', 'high', false, 'allow', 'autonomous'],
  ] as const)('%s, risk %s, approved %s: %s', (level, risk, approved, verdict, code) => {
    expect(autonomy.judge(contextOf('ls', { autonomy: level, risk, approved }))).toMatchObject([
      { check: 'autonomy', verdict, code },
    ]);
  });
});
