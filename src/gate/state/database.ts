import { join } from 'node:path';
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { MIGRATIONS } from './migrations.ts';

/** How long another process may hold the database before we give up. It holds it for well under a millisecond. */
const BUSY_TIMEOUT_MS = 5_000;

/** A value that SQLite stores. */
export type SqlValue = string | number | null;
/** One row as SQLite gives it. */
export type SqlRow = Readonly<Record<string, SqlValue>>;

/** The database of one state directory. Every failure becomes a `SandboxError` `state.unusable`. */
export interface Database {
  /** Rows of a query. Statements are prepared once. */
  all(sql: string, ...values: readonly SqlValue[]): readonly SqlRow[];
  /** Runs a statement; returns how many rows it changed. */
  run(sql: string, ...values: readonly SqlValue[]): number;
  /** Several statements at once, or none of them; others wait meanwhile. Must not be nested. */
  transaction<T>(work: () => T): T;
  close(): void;
}

/**
 * Opens, or makes, `gate.db` in a state directory.
 * @throws {SandboxError} `state.unusable`.
 */
export async function openDatabase(directory: string): Promise<Database> {
  const path = join(directory, 'gate.db');
  try {
    const sqlite = await import('@photostructure/sqlite');
    const database = new sqlite.DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
    try {
      prepareFile(database, path);
      return wrap(database, path);
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    throw unusable(path, error);
  }
}

function prepareFile(database: DatabaseSyncInstance, path: string): void {
  // Readers do not wait for writers. A commit is in the log of the file system when it returns and on the disk soon
  // after: what a power cut can lose is the last actions of the budget and the last answers, not the file.
  whenNotBusy(() => database.exec('PRAGMA journal_mode = WAL'));
  database.exec('PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF');
  if (versionOf(database) === MIGRATIONS.length) return;
  database.exec('BEGIN IMMEDIATE');
  try {
    // Again: another process may have done it while we waited.
    const version = versionOf(database);
    if (version > MIGRATIONS.length)
      throw new SandboxError(
        'state.unusable',
        `the state database ${path} was made by a newer sandbox-run (version ${version}, known: ${MIGRATIONS.length}); update this one`,
      );
    for (const migration of MIGRATIONS.slice(version)) database.exec(migration);
    database.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** The change to a write-ahead log does not wait where another process makes it at the same time. */
function whenNotBusy(work: () => void): void {
  const end = performance.now() + BUSY_TIMEOUT_MS;
  for (;;) {
    try {
      work();
      return;
    } catch (error) {
      if (resultCode(error) !== SQLITE_BUSY || performance.now() > end) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

function versionOf(database: DatabaseSyncInstance): number {
  return Number(database.prepare('PRAGMA user_version').get()?.user_version);
}

function wrap(database: DatabaseSyncInstance, path: string): Database {
  const statements = new Map<string, StatementSyncInstance>();
  function prepared(sql: string): StatementSyncInstance {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const statement = database.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }
  function guarded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw unusable(path, error);
    }
  }
  return {
    all: (sql, ...values) => guarded(() => prepared(sql).all(...values) as readonly SqlRow[]),
    run: (sql, ...values) => guarded(() => Number(prepared(sql).run(...values).changes)),
    transaction: (work) =>
      guarded(() => {
        prepared('BEGIN IMMEDIATE').run();
        try {
          const result = work();
          prepared('COMMIT').run();
          return result;
        } catch (error) {
          // A full disk has ended the transaction already.
          if (database.isTransaction) prepared('ROLLBACK').run();
          throw error;
        }
      }),
    close: () => database.close(),
  };
}

/** Result codes of SQLite (sqlite.org/rescode.html); the lower eight bits of an extended one. */
const SQLITE_BUSY = 5;
const WHY: Readonly<Record<number, string>> = {
  [SQLITE_BUSY]: 'another process keeps it locked; end that one (fuser shows it)',
  8: 'it cannot be written; make it writable or set XDG_STATE_HOME',
  10: 'reading or writing it failed; look at the disk',
  11: 'it is damaged; move it away, approvals and taints in it are lost',
  13: 'the disk is full; make room',
  14: 'it cannot be opened; look at its owner and mode',
  26: 'it is not a database; move it away',
};

function resultCode(error: unknown): number | undefined {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined;
  return typeof code === 'number' ? code & 0xff : undefined;
}

function unusable(path: string, error: unknown): SandboxError {
  if (error instanceof SandboxError) return error;
  const why = WHY[resultCode(error) ?? 0] ?? (error instanceof Error ? error.message : String(error));
  return new SandboxError('state.unusable', `the state database ${path} cannot be used: ${why}`, {
    cause: error,
  });
}
