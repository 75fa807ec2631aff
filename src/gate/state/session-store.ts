import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { TAINTS, type TaintSharing } from '../../base/words.ts';
import type { SessionInfo, SessionStore, Taint } from '../../model/index.ts';
import type { Clock } from './clock.ts';
import type { Database, SqlRow } from './database.ts';

/** A session that was not used for so long is not concurrent with anything. */
export const CONCURRENT_MS = 12 * 3_600_000;

/** Sessions and taints in SQLite. */
export class SqliteSessions implements SessionStore {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  use(id: string, principal: string): 'new' | 'known' {
    return this.#database.transaction(() => this.#use(id, principal));
  }

  async taint(id: string, principal: string, taint: Taint, reason: string): Promise<void> {
    const added = this.#database.transaction(() => {
      this.#use(id, principal);
      return this.#database.run(
        'INSERT INTO taints (session, taint, reason, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
        id,
        taint,
        reason,
        this.#clock.now(),
      );
    });
    if (added > 0) await this.#database.durable();
  }

  announce(id: string, principal: string): void {
    this.#database.run('UPDATE sessions SET announced = 1 WHERE id = ? AND principal = ?', id, principal);
  }

  async taints(id: string, principal: string, sharing: TaintSharing): Promise<readonly Taint[]> {
    if (sharing === 'session')
      return this.#database
        .all(
          `SELECT taint FROM taints JOIN sessions ON sessions.id = taints.session
           WHERE sessions.id = ? AND sessions.principal = ?`,
          id,
          principal,
        )
        .map(({ taint }) => knownTaint(taint));
    let added = 0;
    const found = this.#database.transaction(() => {
      const taints = this.#taintsAtOnce(id, principal);
      for (const taint of taints) {
        added += this.#database.run(
          `INSERT INTO taints (session, taint, reason, at)
           SELECT id, ?, 'another session at the same time', ? FROM sessions WHERE id = ? AND principal = ?
           ON CONFLICT DO NOTHING`,
          taint,
          this.#clock.now(),
          id,
          principal,
        );
      }
      return taints;
    });
    if (added > 0) await this.#database.durable();
    return found;
  }

  find(id: string): SessionInfo | undefined {
    return this.#database.all('SELECT * FROM sessions WHERE id = ?', id).map((row) => this.#info(row))[0];
  }

  list(principal: string): readonly SessionInfo[] {
    return this.#database
      .all('SELECT * FROM sessions WHERE principal = ? ORDER BY last_used_at, id', principal)
      .map((row) => this.#info(row));
  }

  async end(id: string, principal: string): Promise<boolean> {
    const wasOpen = this.#database.transaction(() => {
      const ended = this.#database.run(
        'UPDATE sessions SET ended_at = ? WHERE id = ? AND principal = ? AND ended_at IS NULL',
        this.#clock.now(),
        id,
        principal,
      );
      // What was approved for the session ends with it, also if its id is used again.
      if (ended === 1)
        this.#database.run(
          "DELETE FROM grants WHERE scope = 'session' AND session = ? AND principal = ?",
          id,
          principal,
        );
      return ended === 1;
    });
    // What was granted for it must not come back.
    if (wasOpen) await this.#database.durable();
    return wasOpen;
  }

  #use(id: string, principal: string): 'new' | 'known' {
    const now = this.#clock.now();
    this.#database.run(
      `INSERT INTO sessions (id, principal, started_at, last_used_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET last_used_at = excluded.last_used_at, ended_at = NULL,
         announced = CASE WHEN ended_at IS NULL THEN announced ELSE 0 END
       WHERE principal = excluded.principal`,
      id,
      principal,
      now,
      now,
    );
    const [owner] = this.#database.all('SELECT principal, announced FROM sessions WHERE id = ?', id);
    if (owner?.principal !== principal)
      throw new SandboxError(
        'session.invalid',
        `the session ${JSON.stringify(id)} belongs to another principal; use an id of your own`,
      );
    return owner.announced === 1 ? 'known' : 'new';
  }

  /** Taints of the session, and of the principal's other sessions that are in use at the same time. */
  #taintsAtOnce(id: string, principal: string): readonly Taint[] {
    return this.#database
      .all(
        `SELECT DISTINCT taint FROM taints JOIN sessions ON sessions.id = taints.session
         WHERE sessions.id = ? OR (sessions.principal = ? AND sessions.ended_at IS NULL AND sessions.last_used_at > ?)`,
        id,
        principal,
        this.#clock.now() - CONCURRENT_MS,
      )
      .map(({ taint }) => knownTaint(taint));
  }

  #info(row: SqlRow): SessionInfo {
    const id = String(row.id);
    return {
      id,
      principal: String(row.principal),
      startedAt: Number(row.started_at),
      lastUsedAt: Number(row.last_used_at),
      endedAt: row.ended_at === null ? undefined : Number(row.ended_at),
      taints: this.#database
        .all('SELECT taint, reason, at FROM taints WHERE session = ? ORDER BY at', id)
        .map(({ taint, reason, at }) => ({
          taint: knownTaint(taint),
          reason: String(reason),
          at: Number(at),
        })),
    };
  }
}

/** One that cannot be read is not one that is not there. */
function knownTaint(value: unknown): Taint {
  const known = TAINTS.find((taint) => taint === value);
  if (known === undefined) throw new Error(`it has a taint ${JSON.stringify(value)}, which nobody knows`);
  return known;
}
