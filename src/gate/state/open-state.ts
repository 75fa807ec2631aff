import { join } from 'node:path';
import type { State } from '../../model/index.ts';
import { SqliteApprovals } from './approval-store.ts';
import { SqliteBudget } from './budget-store.ts';
import { type Clock, systemClock } from './clock.ts';
import { openDatabase } from './database.ts';
import type { DatabaseKind } from './database-kind.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';
import { SqliteSessions } from './session-store.ts';

const STATE: DatabaseKind = {
  ...{ name: 'the state database', code: 'state.unusable', holds: 'budget, approvals and taints' },
  ...{ applicationId: APPLICATION_ID, migrations: MIGRATIONS, isChecked: true },
};

/**
 * The state of a state directory, which must exist and be ours (`ensureStateDirectory`).
 * @throws {SandboxError} `state.unusable`.
 */
export async function openState(directory: string, clock: Clock = systemClock()): Promise<State> {
  const database = await openDatabase(join(directory, 'gate.db'), STATE);
  return {
    budget: new SqliteBudget(database, clock),
    approvals: new SqliteApprovals(database, clock),
    sessions: new SqliteSessions(database, clock),
    close: database.close,
  };
}
