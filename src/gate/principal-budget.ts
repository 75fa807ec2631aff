import type { ActionBudget } from '../model/gate-ports.ts';
import type { MaybePromise } from '../util/promise.ts';
import type { BudgetStore } from './state/state.ts';

/** The budget of one principal, from a store that is opened when it is needed. */
export function budgetOf(principal: string, store: () => MaybePromise<BudgetStore>): ActionBudget {
  const then = <T>(use: (opened: BudgetStore) => MaybePromise<T>): MaybePromise<T> => {
    const opened = store();
    return opened instanceof Promise ? opened.then(use) : use(opened);
  };
  return {
    used: () => then((opened) => opened.used(principal)),
    reserve: (limit) =>
      then((opened) => {
        const reserved = opened.reserve(principal, limit);
        const reservation = (id: string | undefined) =>
          id === undefined
            ? undefined
            : { commit: () => opened.commit(id), release: () => opened.release(id) };
        return reserved instanceof Promise ? reserved.then(reservation) : reservation(reserved);
      }),
  };
}
