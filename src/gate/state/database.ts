import { closeSync, fdatasync, openSync } from 'node:fs';
import type { StatementSyncInstance } from '@photostructure/sqlite';
import { errnoOf } from '../../base/errno-of.ts';
import { oneAtATime } from '../../base/one-at-a-time.ts';
import { type DatabaseFile, openDatabaseFile, unusable } from './database-file.ts';
import type { DatabaseKind } from './database-kind.ts';

/** A value that SQLite stores. */
type SqlValue = string | number | null;
/** One row as SQLite gives it. */
export type SqlRow = Readonly<Record<string, SqlValue>>;

/** A database of ours. Every failure becomes a `SandboxError` with the code of its kind. */
export interface Database {
  /** Rows of a query. Statements are prepared once. */
  all(sql: string, ...values: readonly SqlValue[]): readonly SqlRow[];
  /** Runs a statement; returns how many rows it changed. */
  run(sql: string, ...values: readonly SqlValue[]): number;
  /** Several statements at once, or none of them; others wait meanwhile. Must not be nested. */
  transaction<T>(work: () => T): T;
  /** Several queries that see the same rows, whatever others write meanwhile. Must not be nested. */
  snapshot<T>(work: () => T): T;
  /**
   * Settles when all that was written until now is on the disk: for what a power cut must not take back. Callers that ask
   * while the disk is waited for share the next wait.
   */
  durable(): Promise<void>;
  close(): void;
}

/** One that several users in this process share. */
interface Shared {
  readonly database: Database;
  readonly file: DatabaseFile;
  users: number;
}

/** What is open in this process, by path. */
const shared = new Map<string, Shared>();

/**
 * Opens, or makes, the database at a path. Who has it open in this process shares it, and the last one closes it: that
 * writes out SQLite's log, and waits for the disk.
 * @throws {SandboxError} with the code of its kind.
 */
export async function openDatabase(path: string, kind: DatabaseKind): Promise<Database> {
  try {
    const sqlite = await import('@photostructure/sqlite');
    const known = shared.get(path);
    if (known?.file.isInPlace() === true) return shareOf(known, path, kind);
    const file = openDatabaseFile(sqlite, path, kind);
    const opened = { file, database: wrap(file, path, kind), users: 0 };
    shared.set(path, opened);
    return shareOf(opened, path, kind);
  } catch (error) {
    throw unusable(path, error, kind);
  }
}

function shareOf(one: Shared, path: string, kind: DatabaseKind): Database {
  const { database } = one;
  one.users += 1;
  let isOpen = true;
  const whileOpen =
    <A extends readonly unknown[], R>(work: (...args: A) => R) =>
    (...args: A): R => {
      if (isOpen) return work(...args);
      throw unusable(path, new Error('it was closed'), kind);
    };
  return {
    all: whileOpen(database.all),
    run: whileOpen(database.run),
    transaction: <T>(work: () => T) => whileOpen(database.transaction<T>)(work),
    snapshot: <T>(work: () => T) => whileOpen(database.snapshot<T>)(work),
    durable: whileOpen(database.durable),
    close: () => {
      if (!isOpen) return;
      isOpen = false;
      one.users -= 1;
      if (one.users > 0) return;
      if (shared.get(path) === one) shared.delete(path);
      database.close();
    },
  };
}

function wrap({ database, checkPlace }: DatabaseFile, path: string, kind: DatabaseKind): Database {
  const statements = new Map<string, StatementSyncInstance>();
  function prepared(sql: string): StatementSyncInstance {
    const known = statements.get(sql);
    if (known !== undefined) return known;
    const statement = database.prepare(sql);
    statements.set(sql, statement);
    return statement;
  }
  function rowsOf(sql: string, values: readonly SqlValue[]): readonly SqlRow[] {
    const statement = prepared(sql);
    try {
      return statement.all(...values) as readonly SqlRow[];
    } catch (error) {
      // The library tells SQLite's code of what fails in get(), not of what fails in all(). The first row of those that
      // have to be sorted is there once all of them are read, so that the same failure comes again.
      prepared(`SELECT * FROM (${sql}) ORDER BY random()`).get(...values);
      throw error;
    }
  }
  function guarded<T>(work: () => T): T {
    try {
      if (!database.isTransaction) checkPlace();
      return work();
    } catch (error) {
      throw unusable(path, error, kind);
    }
  }
  const between = <T>(begin: string, work: () => T) =>
    guarded(() => {
      prepared(begin).run();
      try {
        const result = work();
        prepared('COMMIT').run();
        return result;
      } catch (error) {
        // A full disk has ended the transaction already.
        if (database.isTransaction) prepared('ROLLBACK').run();
        throw error;
      }
    });
  return {
    all: (sql, ...values) => guarded(() => rowsOf(sql, values)),
    run: (sql, ...values) => guarded(() => Number(prepared(sql).run(...values).changes)),
    transaction: (work) => between('BEGIN IMMEDIATE', work),
    snapshot: (work) => between('BEGIN', work),
    durable: oneAtATime(() => syncLog(path, kind, () => database.isOpen)),
    close: () => {
      try {
        // Its statements keep SQLite from doing it by itself.
        if (database.isOpen) database.exec('PRAGMA wal_checkpoint(PASSIVE)');
      } catch {
        // The next one that opens it finds the log.
      }
      database.close();
    },
  };
}

/** The log has what was written, or had it and it is in the database by now, which SQLite syncs. */
function syncLog(path: string, kind: DatabaseKind, isOpen: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    try {
      // SQLite holds its locks elsewhere: closing this descriptor drops none.
      const fd = openSync(`${path}-wal`, 'r');
      fdatasync(fd, (error) => {
        closeSync(fd);
        if (error === null) resolve();
        else reject(unusable(path, error, kind));
      });
    } catch (error) {
      // It was closed meanwhile, which writes the log out and removes it.
      if (!isOpen() && errnoOf(error) === 'ENOENT') resolve();
      else reject(unusable(path, error, kind));
    }
  });
}
