/** SQLite's `application_id`, by which a database is known as ours: "SbRn". */
export const APPLICATION_ID = 0x5362526e;
/** The version of databases that are ours and have no such id. */
export const VERSION_WITHOUT_ID = 1;

/**
 * What makes the schema of one version from the one before; the first from nothing. Only ever added to: databases of
 * every version are out there. The version is SQLite's `user_version`.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE actions (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    -- Wall clock and, for as long as it is the same boot, the time since then: it cannot be set.
    at_ms INTEGER NOT NULL,
    boot TEXT NOT NULL,
    uptime_ms INTEGER NOT NULL,
    committed INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX actions_by_age ON actions (principal, boot, uptime_ms);

  -- How many rows of actions a principal has: counting them would take longer with each.
  CREATE TABLE budgets (
    principal TEXT PRIMARY KEY,
    used INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    scope TEXT,
    answered_at INTEGER,
    answered_by TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX approvals_by_state ON approvals (state, created_at);

  CREATE TABLE grants (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    scope TEXT NOT NULL,
    session TEXT,
    request TEXT NOT NULL,
    granted_at INTEGER NOT NULL,
    granted_by TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX grants_of ON grants (fingerprint, principal);

  CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    principal TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    last_used_at INTEGER NOT NULL,
    ended_at INTEGER,
    -- Whether the hooks were told of it, and said yes.
    announced INTEGER NOT NULL DEFAULT 0
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_of ON sessions (principal, last_used_at);

  CREATE TABLE taints (
    session TEXT NOT NULL REFERENCES sessions (id),
    taint TEXT NOT NULL,
    reason TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (session, taint)
  ) STRICT, WITHOUT ROWID;
  `,
  `PRAGMA application_id = ${APPLICATION_ID}`,
  // The process that waits for the answer, as approval-store.ts writes it; NULL: none does, or it is not known.
  'ALTER TABLE approvals ADD COLUMN asker TEXT',
];
