import { accessSync, constants } from 'node:fs';
import { constants as systemConstants } from 'node:os';
import { dirname, join } from 'node:path';
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
const SQLITE_READONLY = 8;
const SQLITE_CANTOPEN = 14;
const FULL = 'the disk is full; make room';
const DAMAGED = 'it is damaged; move it away, approvals and taints in it are lost';
const WHY: Readonly<Record<number, string>> = {
  // Of our statements none is wrong: tables are missing, or there already.
  1: DAMAGED,
  [SQLITE_BUSY]: 'another process keeps it locked; end that one (fuser shows it)',
  [SQLITE_READONLY]: 'it cannot be written; make it writable or set XDG_STATE_HOME',
  10: 'reading or writing it failed; look at the disk',
  11: DAMAGED,
  13: FULL,
  [SQLITE_CANTOPEN]: 'it cannot be opened; look at its owner and mode',
  26: 'it is not a database; move it away',
};

/** Result codes by their texts: an error that comes while rows are read has no more than that. */
const BY_TEXT: Readonly<Record<string, number>> = {
  'database is locked': SQLITE_BUSY,
  'attempt to write a readonly database': SQLITE_READONLY,
  'disk I/O error': 10,
  'database disk image is malformed': 11,
  'database or disk is full': 13,
  'unable to open database file': SQLITE_CANTOPEN,
  'file is not a database': 26,
};

function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  const code = 'errcode' in error ? error.errcode : BY_TEXT[error.message];
  return typeof code === 'number' ? code & 0xff : undefined;
}

function why(path: string, error: unknown): string {
  const code = resultCode(error) ?? 0;
  // The file beside it that is shared memory is not written but made longer, which SQLite calls an error of the disk.
  const { ENOSPC, EDQUOT } = systemConstants.errno;
  const number = error instanceof Error && 'systemErrno' in error ? error.systemErrno : undefined;
  if (number === ENOSPC || number === EDQUOT) return FULL;
  // SQLite tries to read what it may not make, and then finds nothing.
  if ((code === SQLITE_READONLY || code === SQLITE_CANTOPEN) && isReadOnly(dirname(path)))
    return 'its file system is read-only; make it writable or set XDG_STATE_HOME';
  return WHY[code] ?? (error instanceof Error ? error.message : String(error));
}

function isReadOnly(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return false;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EROFS';
  }
}

function unusable(path: string, error: unknown): SandboxError {
  if (error instanceof SandboxError) return error;
  return new SandboxError(
    'state.unusable',
    `the state database ${path} cannot be used: ${why(path, error)}`,
    {
      cause: error,
    },
  );
}
