import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { APPROVAL_SCOPES, REQUEST_STATES } from '../../base/words.ts';
import type {
  ApprovalAnswer,
  ApprovalGrant,
  ApprovalRequest,
  ApprovalStore,
  StoredApproval,
} from '../../model/index.ts';
import type { Clock } from './clock.ts';
import type { Database, SqlRow } from './database.ts';

export const DAY_MS = 24 * 3_600_000;

/** Enough that nobody guesses one, and short enough to be typed: 96 bits. Never looks like an option. */
export const unguessableId = () => randomBytes(12).toString('hex');

/** Requests and grants in SQLite. */
export class SqliteApprovals implements ApprovalStore {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #askers = processAskers();

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  post(request: ApprovalRequest, expiresAt: number, { forLater = false } = {}): string {
    return this.#database.transaction(() => {
      const now = this.#clock.now();
      this.#database.run('DELETE FROM approvals WHERE created_at < ?', now - DAY_MS);
      const id = unguessableId();
      this.#database.run(
        `INSERT INTO approvals (id, principal, fingerprint, request, state, created_at, expires_at, asker)
         VALUES (?, ?, ?, ?, 'pending', ?, ?, ?)`,
        id,
        request.principal,
        request.fingerprint,
        JSON.stringify(request),
        now,
        expiresAt,
        forLater ? null : (this.#askers.self() ?? null),
      );
      return id;
    });
  }

  find(id: string): StoredApproval | undefined {
    return this.#database.transaction(() => {
      this.#settle();
      return this.#row(id);
    });
  }

  list(which: 'pending' | 'all'): readonly StoredApproval[] {
    return this.#database.transaction(() => {
      this.#settle();
      const where = which === 'pending' ? `WHERE state = 'pending'` : '';
      return this.#database.all(`SELECT * FROM approvals ${where} ORDER BY created_at, id`).map(approvalOf);
    });
  }

  answer(id: string, answer: ApprovalAnswer): boolean {
    return this.#database.transaction(() => {
      this.#settle();
      const changed = this.#database.run(
        `UPDATE approvals SET state = ?, scope = ?, answered_at = ?, answered_by = ? WHERE id = ? AND state = 'pending'`,
        answer.approved ? 'approved' : 'denied',
        answer.approved ? answer.scope : null,
        this.#clock.now(),
        answer.by,
        id,
      );
      // Now, because the asker may be gone by the time it would do so.
      if (changed === 1 && answer.approved && answer.scope !== 'once') {
        const found = this.#row(id);
        if (found !== undefined && (answer.scope === 'always' || found.request.session !== undefined))
          this.#remember(found.request, answer.scope, answer.by);
      }
      return changed === 1;
    });
  }

  async take(id: string): Promise<ApprovalAnswer | undefined> {
    const answer = this.#database.transaction(() => {
      this.#settleExpired();
      const found = this.#row(id);
      if (found?.state === 'pending') return undefined;
      if (found?.state === 'approved')
        this.#database.run(`UPDATE approvals SET state = 'used' WHERE id = ?`, id);
      return answerOf(found);
    });
    // After a power cut the approval must still be marked as used, or its id would work again.
    if (answer?.approved === true) await this.#database.durable();
    return answer;
  }

  withdraw(id: string): void {
    this.#database.run(
      `UPDATE approvals SET state = 'withdrawn' WHERE id = ? AND state IN ('pending', 'approved')`,
      id,
    );
  }

  granted(request: ApprovalRequest): ApprovalGrant | undefined {
    return this.#database
      .all(
        `SELECT * FROM grants WHERE fingerprint = ? AND principal = ?
         AND (scope = 'always' OR (scope = 'session' AND session = ?))`,
        request.fingerprint,
        request.principal,
        request.session ?? null,
      )
      .map(grantOf)[0];
  }

  grant(request: ApprovalRequest, scope: ApprovalGrant['scope'], by: string): void {
    this.#database.transaction(() => this.#remember(request, scope, by));
  }

  grants(): readonly ApprovalGrant[] {
    return this.#database.all('SELECT * FROM grants ORDER BY granted_at, id').map(grantOf);
  }

  async revoke(id: string): Promise<boolean> {
    const revoked = this.#database.run('DELETE FROM grants WHERE id = ?', id) === 1;
    if (revoked) await this.#database.durable();
    return revoked;
  }

  #row(id: string): StoredApproval | undefined {
    return this.#database.all('SELECT * FROM approvals WHERE id = ?', id).map(approvalOf)[0];
  }

  /** Brings the states of requests up to date, before they are read or answered. */
  #settle(): void {
    this.#settleExpired();
    this.#settleAbandoned();
  }

  /** Marks requests, and approvals that nobody fetched, as expired, so that all processes see the same state. */
  #settleExpired(): void {
    this.#database.run(
      `UPDATE approvals SET state = 'expired' WHERE state IN ('pending', 'approved') AND expires_at <= ?`,
      this.#clock.now(),
    );
  }

  /** Marks requests as abandoned if the asking process is gone: it was killed, or it would have withdrawn them. */
  #settleAbandoned(): void {
    const waiting = this.#database.all(
      `SELECT id, asker FROM approvals WHERE state IN ('pending', 'approved') AND asker IS NOT NULL`,
    );
    for (const { id = null, asker } of waiting) {
      if (this.#askers.isGone(String(asker)))
        this.#database.run(`UPDATE approvals SET state = 'abandoned' WHERE id = ?`, id);
    }
  }

  #remember(request: ApprovalRequest, scope: ApprovalGrant['scope'], by: string): void {
    const session = scope === 'session' ? (request.session ?? null) : null;
    // What was approved for a session that has ended since is over with it.
    const ended = this.#database.all('SELECT 1 FROM sessions WHERE id = ? AND ended_at IS NOT NULL', session);
    if (ended.length > 0) return;
    // Replaces an equal grant: revoking the one that is shown must not leave a second one behind.
    this.#database.run(
      'DELETE FROM grants WHERE fingerprint = ? AND principal = ? AND scope = ? AND session IS ?',
      request.fingerprint,
      request.principal,
      scope,
      session,
    );
    this.#database.run(
      `INSERT INTO grants (id, principal, fingerprint, scope, session, request, granted_at, granted_by)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
      unguessableId(),
      request.principal,
      request.fingerprint,
      scope,
      session,
      JSON.stringify(request),
      this.#clock.now(),
      by,
    );
  }
}

/** What a row that is settled means for its asker. Whatever is not a clear yes is a no. */
export function answerOf(found: StoredApproval | undefined): ApprovalAnswer {
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

function approvalOf(row: SqlRow): StoredApproval {
  return {
    id: String(row.id),
    request: JSON.parse(String(row.request)) as ApprovalRequest,
    // A state that nobody knows is none that could be approved.
    state: REQUEST_STATES.find((state) => state === row.state) ?? 'withdrawn',
    createdAt: Number(row.created_at),
    expiresAt: Number(row.expires_at),
    scope: APPROVAL_SCOPES.find((scope) => scope === row.scope),
    answeredAt: row.answered_at === null ? undefined : Number(row.answered_at),
    answeredBy: row.answered_by === null ? undefined : String(row.answered_by),
  };
}

function grantOf(row: SqlRow): ApprovalGrant {
  return {
    id: String(row.id),
    request: JSON.parse(String(row.request)) as ApprovalRequest,
    scope: row.scope === 'always' ? 'always' : 'session',
    session: row.session === null ? undefined : String(row.session),
    grantedAt: Number(row.granted_at),
    grantedBy: String(row.granted_by),
  };
}

/**
 * Processes that ask, known by more than their number: that is given to others once they are gone. Those of this machine,
 * or container: a process by its place, its number and when it began.
 */
export function processAskers() {
  let known: { readonly place: string; readonly began: string } | undefined;
  /** Looked at again until it is there; it does not change. */
  const own = () => {
    known ??= lookAtOwn();
    return known;
  };
  return {
    /** This process, as others can look for it; `undefined`: they could not. */
    self(): string | undefined {
      const found = own();
      return found && [found.place, process.pid, found.began].join(' ');
    },
    /** True only if it is certain: not for one of another machine or container. */
    isGone(asker: string): boolean {
      const [place, pid = '', began] = asker.split(' ');
      return place === own()?.place && began !== beginningOf(pid);
    },
  };
}

function lookAtOwn(): { readonly place: string; readonly began: string } | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    // Numbers are those of a process namespace; /proc may be that of another one.
    const place = `${boot}/${readlinkSync('/proc/self/ns/pid')}`;
    if (readlinkSync('/proc/self') !== String(process.pid)) return undefined;
    const began = beginningOf('self');
    return began === undefined ? undefined : { place, began };
  } catch {
    return undefined;
  }
}

/** Clock ticks from the boot to the start of a process (proc_pid_stat(5)); `undefined`: it has ended. */
function beginningOf(pid: string): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name before may hold anything.
    const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Killed, and nobody has asked for its status yet.
    return state === 'Z' || state === 'X' ? undefined : fields[18];
  } catch {
    return undefined;
  }
}
