import type { ErrorCode } from '../../base/errors/codes.ts';

/** The functions of a new database that its creation needs. */
export interface NewDatabase {
  exec(sql: string): void;
  prepare(sql: string): {
    run(...values: readonly (string | number | null)[]): unknown;
    get(): unknown;
  };
}

/** What a database is for, and how ours is told from a foreign one. */
export interface DatabaseKind {
  /** For messages, such as "the state database". */
  readonly name: string;
  /** The code of every failure. */
  readonly code: ErrorCode;
  /** What is lost if the database is removed, in the words of a message. */
  readonly holds: string;
  /** SQLite's `application_id`. */
  readonly applicationId: number;
  /** See `MIGRATIONS` of the state. */
  readonly migrations: readonly string[];
  /** Whether all of it is read when it is opened, so that damage is found at once. */
  readonly isChecked: boolean;
  /** Fills one that is being made, after its schema; nobody else sees it before that has ended. */
  readonly fill?: (database: NewDatabase, path: string) => void;
}
