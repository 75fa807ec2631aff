import { describe, expect, it } from 'vitest';
import { autonomy } from '../../../../src/judge/checks/autonomy.ts';
import { autonomyInForce } from '../../../../src/judge/checks/check.ts';
import type { Autonomy } from '../../../../src/model/index.ts';
import { contextOf } from '../../../support/check-context.ts';

describe('autonomy', () => {
  it.each([
    ['readonly', 'low', false, 'allow', 'reads'],
    ['readonly', 'medium', true, 'deny', 'readonly'],
    ['readonly', 'high', true, 'deny', 'readonly'],
    ['contained', 'low', false, 'allow', 'contained'],
    ['contained', 'high', false, 'allow', 'contained'],
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

  it.each([
    ['ls -la src', 'allow'],
    ['git log -3 | head', 'allow'],
    ['rg foo && git status', 'allow'],
    ['node --version', 'allow'],
    // They run what the workspace says.
    ['make', 'deny'],
    ['npm test', 'deny'],
    ['git -c core.pager=./x log', 'deny'],
    ['git remote update', 'deny'],
  ])('readonly, %s: %s', (source, verdict) => {
    expect(autonomy.judge(contextOf(source, { autonomy: 'readonly', risk: 'low' }))).toMatchObject([
      { verdict },
    ]);
  });

  it.each([
    ['contained', true, true, undefined, 'contained'],
    // What the policy opened is asked about by what uses it.
    ['contained', true, false, 'the network is open', 'contained'],
    ['contained', true, false, undefined, 'supervised'],
    ['contained', false, true, undefined, 'supervised'],
    ['contained', false, false, 'the network is open', 'supervised'],
    ['autonomous', false, false, undefined, 'autonomous'],
    ['readonly', true, true, undefined, 'readonly'],
  ] as const)(
    '%s, files held %s, network held %s, opened %s: %s',
    (asked, files, network, opened, inForce) => {
      const { rules } = contextOf('ls', { rules: { held: { files, network, signals: true }, opened } });
      const level: Autonomy = autonomyInForce(asked, rules);
      expect(level).toBe(inForce);
    },
  );
});
