import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { State } from '../model/state.ts';
import { SqliteApprovals } from './approval-store.ts';
import { SqliteBudget } from './budget-store.ts';
import type { Clock } from './clock.ts';
import { openDatabase } from './database.ts';
import { SqliteSessions } from './session-store.ts';

/**
 * The state of a state directory, which must exist and be ours (`ensureStateDirectory`).
 * @throws {SandboxError} `state.unusable`.
 */
export async function openState(directory: string, clock: Clock = systemClock()): Promise<State> {
  const database = await openDatabase(directory);
  return {
    budget: new SqliteBudget(database, clock),
    approvals: new SqliteApprovals(database, clock),
    sessions: new SqliteSessions(database, clock),
    close: database.close,
  };
}

/** The clocks of this machine. */
function systemClock(): Clock {
  return { now: Date.now, sinceBoot: () => Math.round(uptime() * 1000), boot: bootId() };
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Without /proc only the wall clock is left, as if each look were made in a boot of its own.
    return '';
  }
}
