import { randomBytes } from 'node:crypto';
import type { ApprovalAnswer, ApprovalRequest } from '../../model/approval.ts';
import { APPROVAL_SCOPES } from '../../model/words.ts';
import { type Askers, processAskers } from './asker.ts';
import type { Clock } from './clock.ts';
import type { Database, SqlRow } from './database.ts';
import type { ApprovalStore, StoredApproval, StoredGrant } from './state.ts';

const DAY_MS = 24 * 3_600_000;

/** Enough that nobody guesses one, and short enough to be typed: 96 bits. Never looks like an option. */
const unguessableId = () => randomBytes(12).toString('hex');

/** Requests and grants in SQLite. */
export function createApprovalStore(
  database: Database,
  clock: Clock,
  askers: Askers = processAskers(),
): ApprovalStore {
  /** What is too late is so for everybody, whoever looks first; so is an answer that nobody came for. */
  function settleExpired(): void {
    database.run(
      `UPDATE approvals SET state = 'expired' WHERE state IN ('pending', 'approved') AND expires_at <= ?`,
      clock.now(),
    );
  }

  /** Nobody comes for an answer any more: who asked was killed, or it would have withdrawn it. */
  function settleAbandoned(): void {
    const waiting = database.all(
      `SELECT id, asker FROM approvals WHERE state IN ('pending', 'approved') AND asker IS NOT NULL`,
    );
    for (const { id = null, asker } of waiting) {
      if (askers.isGone(String(asker)))
        database.run(`UPDATE approvals SET state = 'abandoned' WHERE id = ?`, id);
    }
  }

  /** For whoever looks at what waits, or answers. */
  function settle(): void {
    settleExpired();
    settleAbandoned();
  }

  function grant(request: ApprovalRequest, scope: StoredGrant['scope'], by: string): void {
    const session = scope === 'session' ? (request.session ?? null) : null;
    // What was approved for a session that has ended since is over with it.
    const ended = database.all('SELECT 1 FROM sessions WHERE id = ? AND ended_at IS NOT NULL', session);
    if (ended.length > 0) return;
    // In place of an equal one: who revokes what is shown must not leave a second one behind.
    database.run(
      'DELETE FROM grants WHERE fingerprint = ? AND principal = ? AND scope = ? AND session IS ?',
      request.fingerprint,
      request.principal,
      scope,
      session,
    );
    database.run(
      `INSERT INTO grants (id, principal, fingerprint, scope, session, request, granted_at, granted_by)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      unguessableId(),
      request.principal,
      request.fingerprint,
      scope,
      session,
      JSON.stringify(request),
      clock.now(),
      by,
    );
  }

  return {
    post: (request, expiresAt, { forLater = false } = {}) =>
      database.transaction(() => {
        database.run('DELETE FROM approvals WHERE created_at < ?', clock.now() - DAY_MS);
        const id = unguessableId();
        database.run(
          `INSERT INTO approvals (id, principal, fingerprint, request, state, created_at, expires_at, asker)
           VALUES (?, ?, ?, ?, 'pending', ?, ?, ?)`,
          id,
          request.principal,
          request.fingerprint,
          JSON.stringify(request),
          clock.now(),
          expiresAt,
          forLater ? null : (askers.self() ?? null),
        );
        return id;
      }),
    find: (id) =>
      database.transaction(() => {
        settle();
        return database.all('SELECT * FROM approvals WHERE id = ?', id).map(approvalOf)[0];
      }),
    list: (which) =>
      database.transaction(() => {
        settle();
        const where = which === 'pending' ? `WHERE state = 'pending'` : '';
        return database.all(`SELECT * FROM approvals ${where} ORDER BY created_at, id`).map(approvalOf);
      }),
    answer: (id, answer) =>
      database.transaction(() => {
        settle();
        const changed = database.run(
          `UPDATE approvals SET state = ?, scope = ?, answered_at = ?, answered_by = ? WHERE id = ? AND state = 'pending'`,
          answer.approved ? 'approved' : 'denied',
          answer.approved ? answer.scope : null,
          clock.now(),
          answer.by,
          id,
        );
        // Now, because the asker may be gone by the time it would do so.
        if (changed === 1 && answer.approved && answer.scope !== 'once') {
          const [found] = database.all('SELECT * FROM approvals WHERE id = ?', id).map(approvalOf);
          if (found !== undefined && (answer.scope === 'always' || found.request.session !== undefined))
            grant(found.request, answer.scope, answer.by);
        }
        return changed === 1;
      }),
    take: async (id) => {
      const answer = database.transaction(() => {
        settleExpired();
        const found = database.all('SELECT * FROM approvals WHERE id = ?', id).map(approvalOf)[0];
        if (found?.state === 'pending') return undefined;
        if (found?.state === 'approved') database.run(`UPDATE approvals SET state = 'used' WHERE id = ?`, id);
        return answerOf(found);
      });
      // Whoever has its id must not find it unused after a power cut.
      if (answer?.approved === true) await database.durable();
      return answer;
    },
    withdraw: (id) => {
      database.run(
        `UPDATE approvals SET state = 'withdrawn' WHERE id = ? AND state IN ('pending', 'approved')`,
        id,
      );
    },
    granted: (request) =>
      database
        .all(
          `SELECT * FROM grants WHERE fingerprint = ? AND principal = ?
           AND (scope = 'always' OR (scope = 'session' AND session = ?))`,
          request.fingerprint,
          request.principal,
          request.session ?? null,
        )
        .map(grantOf)[0],
    grant: (request, scope, by) => database.transaction(() => grant(request, scope, by)),
    grants: () => database.all('SELECT * FROM grants ORDER BY granted_at, id').map(grantOf),
    revoke: async (id) => {
      const revoked = database.run('DELETE FROM grants WHERE id = ?', id) === 1;
      if (revoked) await database.durable();
      return revoked;
    },
  };
}

/** What a row that is settled means for its asker. Whatever is not a clear yes is a no. */
function answerOf(found: StoredApproval | undefined): ApprovalAnswer {
  const by = found?.answeredBy ?? 'state';
  switch (found?.state) {
    case 'approved':
      return found.scope === undefined
        ? { approved: false, reason: 'failed', by, detail: 'the answer has no scope' }
        : { approved: true, scope: found.scope, by };
    case 'denied':
      return { approved: false, reason: 'denied', by };
    case 'expired':
      return { approved: false, reason: 'expired', by };
    default:
      return { approved: false, reason: 'failed', by, detail: 'the request is not there any more' };
  }
}

const STATES: readonly StoredApproval['state'][] = [
  'pending',
  'approved',
  'denied',
  'expired',
  'used',
  'withdrawn',
  'abandoned',
];

function approvalOf(row: SqlRow): StoredApproval {
  return {
    id: String(row.id),
    request: JSON.parse(String(row.request)) as ApprovalRequest,
    // A state that nobody knows is none that could be approved.
    state: STATES.find((state) => state === row.state) ?? 'withdrawn',
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    scope: APPROVAL_SCOPES.find((scope) => scope === row.scope),
    answeredAt: row.answered_at === null ? undefined : Number(row.answered_at),
    answeredBy: row.answered_by === null ? undefined : String(row.answered_by),
  };
}

function grantOf(row: SqlRow): StoredGrant {
  return {
    id: String(row.id),
    request: JSON.parse(String(row.request)) as ApprovalRequest,
    scope: row.scope === 'always' ? 'always' : 'session',
    session: row.session === null ? undefined : String(row.session),
    grantedAt: Number(row.granted_at),
    grantedBy: String(row.granted_by),
  };
}
