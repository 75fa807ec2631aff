import { randomBytes } from 'node:crypto';
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { constants as systemConstants } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { errnoOf } from '../../base/errno-of.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { DatabaseKind } from './database-kind.ts';
import { VERSION_WITHOUT_ID } from './migrations.ts';

/** Result codes of SQLite (sqlite.org/rescode.html); the lower eight bits of an extended one. */
export const SQLITE_BUSY = 5;
const SQLITE_READONLY = 8;
const SQLITE_CANTOPEN = 14;
const COULD_BE_READ_ONLY: ReadonlySet<number> = new Set([SQLITE_READONLY, SQLITE_CANTOPEN]);
const FULL = 'the disk is full; make room';
const NOT_OPENED = 'it cannot be opened; look at its owner and mode';
const damaged = (kind: DatabaseKind) => `is damaged; move it away, ${kind.holds} in it are lost`;
/** SQLITE_ERROR and SQLITE_CORRUPT. Our statements are correct, so an error means that tables are missing, or exist already. */
const OF_DAMAGE: ReadonlySet<number> = new Set([1, 11]);
const WHY: Readonly<Record<number, string>> = {
  [SQLITE_BUSY]: 'another process keeps it locked; end that one (fuser shows it)',
  10: 'reading or writing it failed; look at the disk',
  13: FULL,
  [SQLITE_CANTOPEN]: NOT_OPENED,
  26: 'it is not a database; move it away',
};

/** SQLite's own code of an error; `undefined`: it is none of SQLite. */
export function resultCode(error: unknown): number | undefined {
  const code = error instanceof Error && 'errcode' in error ? error.errcode : undefined;
  return typeof code === 'number' ? code & 0xff : undefined;
}

function why(path: string, error: unknown, kind: DatabaseKind): string {
  const code = resultCode(error) ?? 0;
  // The file beside it that is shared memory is not written but made longer, which SQLite calls an error of the disk.
  const { ENOSPC, EDQUOT } = systemConstants.errno;
  const number = systemError(error);
  if (number === ENOSPC || number === EDQUOT) return FULL;
  // SQLite tries to read what it may not make, and then finds nothing.
  if (number === systemConstants.errno.EROFS || (COULD_BE_READ_ONLY.has(code) && isReadOnly(dirname(path))))
    return 'its file system is read-only; make it writable or set XDG_STATE_HOME';
  if (code === SQLITE_READONLY)
    return `${notWritable(path)} cannot be written; make it writable or set XDG_STATE_HOME`;
  // What Node looked at before SQLite did.
  if (number === systemConstants.errno.EACCES) return NOT_OPENED;
  if (OF_DAMAGE.has(code)) return `it ${damaged(kind)}`;
  return WHY[code] ?? errorMessage(error);
}

/** Of a database, what SQLite keeps beside it and its directory, the one that this process cannot write. */
function notWritable(path: string): string {
  const there = COMPANIONS.map((end) => `${path}${end}`).filter((file) => existsSync(file));
  const found = [path, ...there, dirname(path)].find((file) => !isWritable(file));
  return found === undefined || found === path ? 'it' : found;
}

/** The number of the system's error behind one of SQLite or of Node. */
function systemError(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('systemErrno' in error) return Number(error.systemErrno);
  // Node counts them downwards.
  return 'errno' in error ? -Number(error.errno) : undefined;
}

const isReadOnly = (directory: string) => whyNotWritable(directory) === 'EROFS';
const isWritable = (path: string) => whyNotWritable(path) === undefined;

function whyNotWritable(path: string): string | undefined {
  try {
    accessSync(path, constants.W_OK);
    return undefined;
  } catch (error) {
    return errnoOf(error) ?? String(error);
  }
}

/** What every failure of the database becomes: one line that says what, where and what to do. */
export function unusable(path: string, error: unknown, kind: DatabaseKind): SandboxError {
  if (error instanceof SandboxError) return error;
  return new SandboxError(kind.code, `${kind.name} ${path} cannot be used: ${why(path, error, kind)}`, {
    cause: error,
  });
}

type Sqlite = typeof import('@photostructure/sqlite');

/** How long another process may hold the database before we give up. It holds it for well under a millisecond. */
const BUSY_TIMEOUT_MS = 5_000;

/** A database that is open, and whether its path still leads to it. */
export interface DatabaseFile {
  readonly database: DatabaseSyncInstance;
  /** @throws {SandboxError} `state.unusable`: others would go on with another file than we. */
  readonly checkPlace: () => void;
  readonly isInPlace: () => boolean;
}

/**
 * Opens the database at a path, or makes it. It comes into its place whole and on the disk, so that a file there that is
 * empty, or has no tables, is one that was lost: it is never filled again. To begin with nothing is for people to say, by
 * taking the file away.
 */
export function openDatabaseFile(sqlite: Sqlite, path: string, kind: DatabaseKind): DatabaseFile {
  const lost = (what: string) => new SandboxError(kind.code, `${kind.name} ${path} ${what}`);
  if (!isThere(path)) makeFile(sqlite, path, kind);
  if (lacksLog(path))
    throw lost(
      `was in use, and its log ${basename(path)}-wal is gone; put it back, or remove ${path}-shm to go on without the last ${kind.holds}`,
    );
  const before = lstatSync(path, { throwIfNoEntry: false });
  for (const end of ['', '-wal', '-shm'])
    if (lstatSync(`${path}${end}`, { throwIfNoEntry: false })?.isSymbolicLink() === true)
      throw lost(
        `${end === '' ? '' : `has a ${basename(path)}${end} that `}is a symbolic link; move that away`,
      );
  // A second name: the process that made the file was killed before it could remove that.
  if (before !== undefined && before.nlink > 1) removeUnfinished(path);
  const database = new sqlite.DatabaseSync(urlOf(path), { timeout: BUSY_TIMEOUT_MS });
  const isInPlace = () => isSame(before, statSync(path, { throwIfNoEntry: false }));
  const checkPlace = () => {
    if (!isInPlace()) throw lost('was moved away or replaced while it was in use; start again what uses it');
  };
  try {
    checkPlace();
    checkContent(database, kind, lost);
    // Readers do not wait for writers. A commit is in the log of the file system when it returns and on the disk soon
    // after; what must be there at once says so (`durable`).
    whenNotBusy(() => database.exec('PRAGMA journal_mode = WAL'));
    database.exec('PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF');
    migrate(database, kind);
    return { database, checkPlace, isInPlace };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Never makes a file. */
function urlOf(path: string): URL {
  const url = pathToFileURL(path);
  url.searchParams.set('mode', 'rw');
  return url;
}

/** A link to nowhere is there, too. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isSame(one: Stats | undefined, other: Stats | undefined): boolean {
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev;
}

/**
 * A process that was killed leaves a log with what the database does not have yet, and the index of that log beside it
 * (sqlite.org/walformat.html, 2.1): that one says how many pages there are, and how many of them the database has.
 */
function lacksLog(path: string): boolean {
  const log = `${path}-wal`;
  // SQLite's locks are on the index: closing a descriptor of it drops those of this process. Where it has any there is a log.
  if (existsSync(log) || !existsSync(`${path}-shm`)) return false;
  const before = pagesOfLogOnly(path);
  // Otherwise the last process that used it was about to take both away, or another one has begun to use it.
  return before !== undefined && !existsSync(log) && pagesOfLogOnly(path) === before;
}

/** `undefined`: nothing is in the log alone, or its index is being written. */
function pagesOfLogOnly(path: string): string | undefined {
  const index = readStart(`${path}-shm`, 100);
  if (index === undefined || !index.subarray(0, 48).equals(index.subarray(48, 96))) return undefined;
  const header = new Uint32Array(new Uint8Array(index).buffer);
  const [pages = 0, inDatabase = 0] = [header[4], header[24]];
  return pages > inDatabase ? `${inDatabase} of ${pages}` : undefined;
}

function readStart(path: string, length: number): Buffer | undefined {
  if (!existsSync(path)) return undefined;
  const fd = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(length);
    return readSync(fd, buffer, 0, length, 0) === length ? buffer : undefined;
  } finally {
    closeSync(fd);
  }
}

/** Whether it is a database of ours with something in it, before anything is written to it. */
function checkContent(
  database: DatabaseSyncInstance,
  kind: DatabaseKind,
  lost: (what: string) => SandboxError,
): void {
  const { applicationId, migrations, holds, isChecked } = kind;
  const application = numberOf(database, 'PRAGMA application_id');
  const version = versionOf(database);
  const tables = numberOf(database, 'SELECT count(*) FROM sqlite_schema');
  if (application === 0 && version === 0 && tables === 0)
    throw lost(
      `is empty, so that ${holds} in it are lost (a power cut, a full disk); remove it to begin with nothing`,
    );
  const isOfBefore =
    application === 0 &&
    version === VERSION_WITHOUT_ID &&
    numberOf(database, `SELECT count(*) FROM sqlite_schema WHERE name IN ('actions', 'grants', 'taints')`) ===
      3;
  if (application !== applicationId && !isOfBefore)
    throw lost(`belongs to another program or ${damaged(kind)}`);
  if (version > migrations.length)
    throw lost(
      `was made by a newer sandbox-run (version ${version}, known: ${migrations.length}); update this one`,
    );
  if (!isChecked) return;
  // A row that a disk lost in part is otherwise one that is not there. Takes 0.1 ms, 1.3 ms with 10,000 actions.
  const [found] = Object.values(database.prepare('PRAGMA quick_check(1)').get() ?? {});
  if (found !== 'ok') throw lost(damaged(kind));
}

function numberOf(database: DatabaseSyncInstance, query: string): number {
  return Number(Object.values(database.prepare(query).get() ?? {})[0]);
}

const versionOf = (database: DatabaseSyncInstance) => numberOf(database, 'PRAGMA user_version');

function migrate(database: DatabaseSyncInstance, { migrations }: DatabaseKind): void {
  if (versionOf(database) >= migrations.length) return;
  database.exec('BEGIN IMMEDIATE');
  try {
    // Again: another process may have done it while we waited.
    for (const migration of migrations.slice(versionOf(database))) database.exec(migration);
    database.exec(`PRAGMA user_version = ${migrations.length}`);
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

const UNFINISHED = '.new-';
const MAKING_TAKES_MS = 60_000;

/** What SQLite keeps beside a database that is in use. */
const COMPANIONS = ['-wal', '-shm', '-journal'];

function makeFile(sqlite: Sqlite, path: string, kind: DatabaseKind): void {
  const companion = COMPANIONS.map((end) => `${path}${end}`).find((other) => existsSync(other));
  // Another process may have made it since we looked.
  if (isThere(path)) return;
  if (companion !== undefined)
    throw new SandboxError(
      kind.code,
      `${kind.name} ${path} is gone, but not ${basename(companion)}, which belongs to it; put it back, or remove ${companion} to begin with nothing`,
    );
  removeUnfinished(path);
  const unfinished = `${path}${UNFINISHED}${randomBytes(8).toString('hex')}`;
  try {
    closeSync(openSync(unfinished, 'wx', 0o600));
    const database = new sqlite.DatabaseSync(urlOf(unfinished));
    try {
      // Nobody knows this file: there is nothing to go back to.
      database.exec('PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF');
      migrate(database, kind);
      kind.fill?.(database, path);
    } finally {
      database.close();
    }
    sync(unfinished);
    putInPlace(unfinished, path);
    sync(dirname(path));
  } finally {
    rmSync(unfinished, { force: true });
  }
}

/** Removes unfinished files of processes that were killed; a recent one may belong to a process that still writes it. */
function removeUnfinished(path: string): void {
  const start = `${basename(path)}${UNFINISHED}`;
  for (const name of readdirSync(dirname(path)).filter((other) => other.startsWith(start))) {
    const file = join(dirname(path), name);
    const made = statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? Date.now();
    if (Date.now() - made > MAKING_TAKES_MS) rmSync(file, { force: true });
  }
}

/** Gives the finished file its name; if several processes do so at once, one succeeds. */
function putInPlace(unfinished: string, path: string): void {
  try {
    linkSync(unfinished, path);
  } catch (error) {
    const code = errnoOf(error);
    if (code === 'EEXIST') return;
    if (code !== 'EPERM' && code !== 'EOPNOTSUPP' && code !== 'ENOSYS') throw error;
    // A file system without hard links: whose file is replaced at this moment is refused (`checkPlace`).
    renameSync(unfinished, path);
  }
}

function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
