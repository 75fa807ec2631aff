import { randomUUID } from 'node:crypto';
import type { BudgetStore, Reservation } from '../../model/index.ts';
import type { Clock } from './clock.ts';
import type { Database } from './database.ts';

const WINDOW_MS = 3_600_000;

/**
 * The budget in SQLite. An action leaves the window 3,600 s after it was reserved: by the time since the boot as long as
 * it is the same boot, so that setting the clock neither frees actions nor keeps them; after a reboot by the wall clock.
 */
export class SqliteBudget implements BudgetStore {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  used(principal: string): number {
    // Nobody has to wait for a look at what is up to date.
    const { used, hasOld } = this.#look(principal, this.#clock.sinceBoot());
    return hasOld ? this.#database.transaction(() => this.#count(principal)) : used;
  }

  reserve(principal: string, limit: number): Reservation | undefined {
    const reserved = this.#database.transaction(() => {
      const uptime = this.#clock.sinceBoot();
      if (this.#count(principal, uptime) >= limit) return undefined;
      const id = randomUUID();
      this.#database.run(
        'INSERT INTO actions (id, principal, at_ms, boot, uptime_ms, committed) VALUES (?, ?, ?, ?, ?, 0)',
        id,
        principal,
        this.#clock.now(),
        this.#clock.boot,
        uptime,
      );
      this.#change(principal, 1);
      return id;
    });
    if (reserved === undefined) return undefined;
    return {
      // The action is on disk before anything runs, so a power cut does not lose it.
      durable: this.#database.durable(),
      commit: () => {
        this.#database.run('UPDATE actions SET committed = 1 WHERE id = ?', reserved);
      },
      release: () =>
        this.#database.transaction(() => {
          const gone = this.#database.run('DELETE FROM actions WHERE id = ? AND committed = 0', reserved);
          this.#change(principal, -gone);
        }),
    };
  }

  reset(principal: string): number {
    return this.#database.transaction(() => {
      this.#database.run('DELETE FROM budgets WHERE principal = ?', principal);
      return this.#database.run('DELETE FROM actions WHERE principal = ?', principal);
    });
  }

  /** How many there are, once what is old was forgotten. In a transaction. */
  #count(principal: string, uptime = this.#clock.sinceBoot()): number {
    const { used, hasOld } = this.#look(principal, uptime);
    if (!hasOld) return used;
    this.#change(principal, -this.#deleteOld(principal, uptime));
    return this.#look(principal, uptime).used;
  }

  /** How many are noted, and whether some of them may be old: one is, or was noted in another boot. */
  #look(principal: string, uptime: number): { readonly used: number; readonly hasOld: boolean } {
    const { boot } = this.#clock;
    // An index finds each of these ranges at once, and their union only by looking at everything.
    const [row] = this.#database.all(
      `SELECT (SELECT used FROM budgets WHERE principal = ?1) AS used,
         EXISTS (SELECT 1 FROM actions WHERE principal = ?1 AND boot = ?2 AND uptime_ms <= ?3)
         OR EXISTS (SELECT 1 FROM actions WHERE principal = ?1 AND boot < ?2)
         OR EXISTS (SELECT 1 FROM actions WHERE principal = ?1 AND boot > ?2) AS old`,
      principal,
      boot,
      uptime - WINDOW_MS,
    );
    return { used: Number(row?.used ?? 0), hasOld: boot === '' || row?.old !== 0 };
  }

  #change(principal: string, by: number): void {
    if (by === 0) return;
    this.#database.run(
      `INSERT INTO budgets (principal, used) VALUES (?1, max(0, ?2))
       ON CONFLICT (principal) DO UPDATE SET used = max(0, used + ?2)`,
      principal,
      by,
    );
  }

  /** What is old by the time since the boot, and, of other boots, by the wall clock. Returns how many there were. */
  #deleteOld(principal: string, uptime: number): number {
    const { boot } = this.#clock;
    const ofThisBoot =
      boot === ''
        ? 0
        : this.#database.run(
            'DELETE FROM actions WHERE principal = ? AND boot = ? AND uptime_ms <= ?',
            principal,
            boot,
            uptime - WINDOW_MS,
          );
    // An index finds each of these ranges at once, and their union only by looking at everything. Without a boot of our
    // own all are of another one.
    const others = boot === '' ? ['='] : ['<', '>'];
    return others.reduce(
      (sum, order) => sum + this.#deleteOldOf(`principal = ?1 AND boot ${order} ?2`, principal),
      ofThisBoot,
    );
  }

  #deleteOldOf(which: string, principal: string): number {
    const { boot } = this.#clock;
    const now = this.#clock.now();
    const found = this.#database.all(`SELECT 1 FROM actions WHERE ${which} LIMIT 1`, principal, boot);
    if (found.length === 0) return 0;
    // What another boot noted in the future was noted before the clock was set back. How long ago is unknown: as if now.
    this.#database.run(
      `UPDATE actions SET at_ms = ?3, boot = ?2, uptime_ms = ?4 WHERE ${which} AND at_ms > ?3`,
      principal,
      boot,
      now,
      this.#clock.sinceBoot(),
    );
    return this.#database.run(
      `DELETE FROM actions WHERE ${which} AND at_ms <= ?3`,
      principal,
      boot,
      now - WINDOW_MS,
    );
  }
}
