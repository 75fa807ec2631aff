import { createApprovalStore } from './approval-store.ts';
import { createBudgetStore } from './budget-store.ts';
import { type Clock, systemClock } from './clock.ts';
import { openDatabase } from './database.ts';
import { createSessionStore } from './session-store.ts';
import type { GateState } from './state.ts';

/**
 * The state of a state directory, which must exist and be ours (`ensureStateDirectory`).
 * @throws {SandboxError} `state.unusable`.
 */
export async function openState(directory: string, clock: Clock = systemClock()): Promise<GateState> {
  const database = await openDatabase(directory);
  return {
    budget: createBudgetStore(database, clock),
    approvals: createApprovalStore(database, clock),
    sessions: createSessionStore(database, clock),
    close: database.close,
  };
}
