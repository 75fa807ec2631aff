import type { FleetStore, State } from '../../../model/index.ts';
import { FleetApprovals } from './approvals.ts';
import { FleetBudget } from './budget.ts';
import { FleetSessions } from './sessions.ts';

/** The state of a fleet, in a store that many machines use. Closing it closes the store. */
export function openFleetState(store: FleetStore): State {
  const sessions = new FleetSessions(store);
  return {
    budget: new FleetBudget(store),
    approvals: new FleetApprovals(store, sessions),
    sessions,
    close: store.close,
  };
}
