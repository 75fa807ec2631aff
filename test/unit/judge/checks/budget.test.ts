import { describe, expect, it } from 'vitest';
import { budget } from '../../../../src/judge/checks/budget.ts';
import type { ActionBudget } from '../../../../src/model/index.ts';
import { contextOf } from '../../../support/check-context.ts';

const store = (used: ActionBudget['used']): ActionBudget => ({
  used,
  reserve: () => {
    throw new Error('a check must not record');
  },
});
const judge = (limit: number | undefined, port: ActionBudget | undefined) =>
  budget.judge(contextOf('ls', { rules: { maxActionsPerHour: limit }, gate: { budget: port } }));

describe('budget', () => {
  it.each([
    ['no limit', undefined, undefined, undefined, 'no_limit'],
    ['zero, even without a store', 0, undefined, 'deny', 'blocked'],
    ['zero', 0, store(() => 0), 'deny', 'blocked'],
    ['a limit that nobody counts', 5, undefined, 'deny', 'store_missing'],
    ['room left', 5, store(() => 4), undefined, 'within_limit'],
    ['none left', 5, store(() => 5), 'deny', 'exhausted'],
    ['more than allowed', 5, store(() => 9), 'deny', 'exhausted'],
    ['a count that is no number', 5, store(() => Number.NaN), 'deny', 'store_unusable'],
    ['a negative count', 5, store(() => -1), 'deny', 'store_unusable'],
    [
      'a store that throws',
      5,
      store(() => {
        throw new Error('disk full');
      }),
      'deny',
      'store_unusable',
    ],
  ] as const)('%s', (_, limit, port, verdict, code) => {
    expect(judge(limit, port)).toMatchObject([{ check: 'budget', verdict, code }]);
  });

  it.each([
    ['room left', async (): Promise<number> => 1, undefined, 'within_limit'],
    ['none left', async (): Promise<number> => 5, 'deny', 'exhausted'],
    [
      'a store that fails',
      (): Promise<number> => Promise.reject(new Error('gone')),
      'deny',
      'store_unusable',
    ],
  ] as const)('waits for a store: %s', async (_, used, verdict, code) => {
    const said = judge(5, store(used));
    expect(said).toBeInstanceOf(Promise);
    expect(await said).toMatchObject([{ verdict, code }]);
  });
});
