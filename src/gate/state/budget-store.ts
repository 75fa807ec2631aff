import { randomUUID } from 'node:crypto';
import type { Clock } from './clock.ts';
import type { Database } from './database.ts';
import type { BudgetStore } from './state.ts';

const WINDOW_MS = 3_600_000;

/**
 * The budget in SQLite. An action leaves the window 3,600 s after it was reserved: by the time since the boot as long as
 * it is the same boot, so that setting the clock neither frees actions nor keeps them; after a reboot by the wall clock.
 */
export function createBudgetStore(database: Database, clock: Clock): BudgetStore {
  function forgetOld(principal: string): void {
    const now = clock.now();
    if (clock.boot !== '') {
      // What another boot noted in the future was noted before the clock was set back. How long ago is unknown: as if now.
      database.run(
        'UPDATE actions SET at_ms = ?, boot = ?, uptime_ms = ? WHERE principal = ? AND boot <> ? AND at_ms > ?',
        now,
        clock.boot,
        clock.sinceBoot(),
        principal,
        clock.boot,
        now,
      );
    }
    database.run(
      `DELETE FROM actions WHERE principal = ? AND CASE WHEN boot = ? AND boot <> '' THEN uptime_ms <= ? ELSE at_ms <= ? END`,
      principal,
      clock.boot,
      clock.sinceBoot() - WINDOW_MS,
      now - WINDOW_MS,
    );
  }

  const count = (principal: string) =>
    Number(database.all('SELECT count(*) AS used FROM actions WHERE principal = ?', principal)[0]?.used);

  return {
    used: (principal) =>
      database.transaction(() => {
        forgetOld(principal);
        return count(principal);
      }),
    reserve: (principal, limit) =>
      database.transaction(() => {
        forgetOld(principal);
        if (count(principal) >= limit) return undefined;
        const id = randomUUID();
        database.run(
          'INSERT INTO actions (id, principal, at_ms, boot, uptime_ms, committed) VALUES (?, ?, ?, ?, ?, 0)',
          id,
          principal,
          clock.now(),
          clock.boot,
          clock.sinceBoot(),
        );
        return id;
      }),
    commit: (reservation) => {
      database.run('UPDATE actions SET committed = 1 WHERE id = ?', reservation);
    },
    release: (reservation) => {
      database.run('DELETE FROM actions WHERE id = ? AND committed = 0', reservation);
    },
    reset: (principal) => database.run('DELETE FROM actions WHERE principal = ?', principal),
  };
}
