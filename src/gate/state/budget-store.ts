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
  const change = (principal: string, by: number) => {
    if (by === 0) return;
    database.run(
      `INSERT INTO budgets (principal, used) VALUES (?1, max(0, ?2))
       ON CONFLICT (principal) DO UPDATE SET used = max(0, used + ?2)`,
      principal,
      by,
    );
  };

  const count = (principal: string) =>
    Number(database.all('SELECT used FROM budgets WHERE principal = ?', principal)[0]?.used ?? 0);

  /** What is old by the time since the boot, and, of other boots, by the wall clock. Returns how many there were. */
  function deleteOld(principal: string): number {
    const { boot } = clock;
    const ofThisBoot =
      boot === ''
        ? 0
        : database.run(
            'DELETE FROM actions WHERE principal = ? AND boot = ? AND uptime_ms <= ?',
            principal,
            boot,
            clock.sinceBoot() - WINDOW_MS,
          );
    // An index finds each of these ranges at once, and their union only by looking at everything. Without a boot of our
    // own all are of another one.
    const others = boot === '' ? ['='] : ['<', '>'];
    return others.reduce(
      (sum, order) => sum + deleteOldOf(`principal = ?1 AND boot ${order} ?2`, principal),
      ofThisBoot,
    );
  }

  function deleteOldOf(which: string, principal: string): number {
    const { boot } = clock;
    const now = clock.now();
    if (database.all(`SELECT 1 FROM actions WHERE ${which} LIMIT 1`, principal, boot).length === 0) return 0;
    // What another boot noted in the future was noted before the clock was set back. How long ago is unknown: as if now.
    database.run(
      `UPDATE actions SET at_ms = ?3, boot = ?2, uptime_ms = ?4 WHERE ${which} AND at_ms > ?3`,
      principal,
      boot,
      now,
      clock.sinceBoot(),
    );
    return database.run(
      `DELETE FROM actions WHERE ${which} AND at_ms <= ?3`,
      principal,
      boot,
      now - WINDOW_MS,
    );
  }

  const forgetOld = (principal: string) => change(principal, -deleteOld(principal));

  return {
    used: (principal) =>
      database.transaction(() => {
        forgetOld(principal);
        return count(principal);
      }),
    reserve: async (principal, limit) => {
      const reserved = database.transaction(() => {
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
        change(principal, 1);
        return id;
      });
      // It is counted before anything runs, also if the power goes.
      if (reserved !== undefined) await database.durable();
      return reserved;
    },
    commit: (reservation) => {
      database.run('UPDATE actions SET committed = 1 WHERE id = ?', reservation);
    },
    release: (reservation) =>
      database.transaction(() => {
        const [found] = database.all(
          'SELECT principal FROM actions WHERE id = ? AND committed = 0',
          reservation,
        );
        if (found === undefined) return;
        change(String(found.principal), -database.run('DELETE FROM actions WHERE id = ?', reservation));
      }),
    reset: (principal) =>
      database.transaction(() => {
        database.run('DELETE FROM budgets WHERE principal = ?', principal);
        return database.run('DELETE FROM actions WHERE principal = ?', principal);
      }),
  };
}
