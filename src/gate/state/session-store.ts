import { SandboxError } from '../../errors/sandbox-error.ts';
import type { Taint } from '../../model/decision.ts';
import type { SessionInfo } from '../../model/session.ts';
import { TAINTS } from '../../model/words.ts';
import type { Clock } from './clock.ts';
import type { Database, SqlRow } from './database.ts';
import type { SessionStore } from './state.ts';

/** A session that was not used for so long is not concurrent with anything. */
const CONCURRENT_MS = 12 * 3_600_000;

/** Sessions and taints in SQLite. */
export function createSessionStore(database: Database, clock: Clock): SessionStore {
  function use(id: string, principal: string): 'new' | 'known' {
    const now = clock.now();
    database.run(
      `INSERT INTO sessions (id, principal, started_at, last_used_at) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET last_used_at = excluded.last_used_at, ended_at = NULL,
         announced = CASE WHEN ended_at IS NULL THEN announced ELSE 0 END
       WHERE principal = excluded.principal`,
      id,
      principal,
      now,
      now,
    );
    const [owner] = database.all('SELECT principal, announced FROM sessions WHERE id = ?', id);
    if (owner?.principal !== principal)
      throw new SandboxError(
        'session.invalid',
        `the session ${JSON.stringify(id)} belongs to another principal; use an id of your own`,
      );
    return owner.announced === 1 ? 'known' : 'new';
  }

  function taintsOf(id: string): SessionInfo['taints'] {
    return database
      .all('SELECT taint, reason, at FROM taints WHERE session = ? ORDER BY at', id)
      .map(({ taint, reason, at }) => ({ taint: knownTaint(taint), reason: String(reason), at: Number(at) }));
  }

  const info = (row: SqlRow): SessionInfo => ({
    id: String(row.id),
    principal: String(row.principal),
    startedAt: Number(row.started_at),
    lastUsedAt: Number(row.last_used_at),
    endedAt: row.ended_at === null ? undefined : Number(row.ended_at),
    taints: taintsOf(String(row.id)),
  });

  return {
    use: (id, principal) => database.transaction(() => use(id, principal)),
    taint: async (id, principal, taint, reason) => {
      const added = database.transaction(() => {
        use(id, principal);
        return database.run(
          'INSERT INTO taints (session, taint, reason, at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING',
          id,
          taint,
          reason,
          clock.now(),
        );
      });
      if (added > 0) await database.durable();
    },
    announce: (id, principal) => {
      database.run('UPDATE sessions SET announced = 1 WHERE id = ? AND principal = ?', id, principal);
    },
    taints: async (id, principal) => {
      let added = 0;
      const found = database.transaction(() => {
        const taints = database
          .all(
            `SELECT DISTINCT taint FROM taints JOIN sessions ON sessions.id = taints.session
             WHERE sessions.id = ? OR (sessions.principal = ? AND sessions.ended_at IS NULL AND sessions.last_used_at > ?)`,
            id,
            principal,
            clock.now() - CONCURRENT_MS,
          )
          .map(({ taint }) => knownTaint(taint));
        for (const taint of taints) {
          added += database.run(
            `INSERT INTO taints (session, taint, reason, at)
             SELECT id, ?, 'another session at the same time', ? FROM sessions WHERE id = ? AND principal = ?
             ON CONFLICT DO NOTHING`,
            taint,
            clock.now(),
            id,
            principal,
          );
        }
        return taints;
      });
      if (added > 0) await database.durable();
      return found;
    },
    find: (id) => database.all('SELECT * FROM sessions WHERE id = ?', id).map(info)[0],
    list: (principal) =>
      database
        .all('SELECT * FROM sessions WHERE principal = ? ORDER BY last_used_at, id', principal)
        .map(info),
    end: async (id, principal) => {
      const wasOpen = database.transaction(() => {
        const ended = database.run(
          'UPDATE sessions SET ended_at = ? WHERE id = ? AND principal = ? AND ended_at IS NULL',
          clock.now(),
          id,
          principal,
        );
        // What was approved for the session ends with it, also if its id is used again.
        if (ended === 1)
          database.run(
            "DELETE FROM grants WHERE scope = 'session' AND session = ? AND principal = ?",
            id,
            principal,
          );
        return ended === 1;
      });
      // What was granted for it must not come back.
      if (wasOpen) await database.durable();
      return wasOpen;
    },
  };
}

/** One that cannot be read is not one that is not there. */
function knownTaint(value: unknown): Taint {
  const known = TAINTS.find((taint) => taint === value);
  if (known === undefined) throw new Error(`it has a taint ${JSON.stringify(value)}, which nobody knows`);
  return known;
}
