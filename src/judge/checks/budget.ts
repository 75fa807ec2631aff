import { isPromise } from '../../base/promise.ts';
import type { Reason } from '../../model/index.ts';
import { type Check, type CheckContext, reasonFor } from './check.ts';

const reason = reasonFor('budget');
const say = (...opinion: Parameters<typeof reason>) => [reason(...opinion)];

const unusable = (error?: unknown) => {
  const why = error instanceof Error ? `: ${error.message}` : '';
  return say('deny', 'store_unusable', `the actions of this hour cannot be counted, so nothing is run${why}`);
};

function compare(used: number, limit: number): readonly Reason[] {
  if (!Number.isFinite(used) || used < 0) return unusable();
  if (used >= limit)
    return say(
      'deny',
      'exhausted',
      `${used} actions were run in the last hour and ${limit} are allowed (security.max_actions_per_hour); wait`,
    );
  return say(undefined, 'within_limit', `${used} of ${limit} actions of this hour are used`);
}

/** Only looks: what is refused for another reason, or never started, must not use the budget up. */
export const budget: Check = {
  name: 'budget',
  summary: 'Refuses when security.max_actions_per_hour is reached.',
  judge({ rules, gate }: CheckContext) {
    const limit = rules.maxActionsPerHour;
    if (limit === undefined) return say(undefined, 'no_limit', 'there is no limit of actions per hour');
    if (limit === 0)
      return say('deny', 'blocked', 'security.max_actions_per_hour is 0, which blocks everything');
    if (gate.budget === undefined)
      return say(
        'deny',
        'store_missing',
        'security.max_actions_per_hour is set, but nothing here counts the actions of this hour',
      );
    try {
      const used = gate.budget.used();
      if (!isPromise(used)) return compare(used, limit);
      return used.then((count) => compare(count, limit), unusable);
    } catch (error) {
      return unusable(error);
    }
  },
};
