import { existsSync, statSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { EventRecord } from '../../model/index.ts';
import { type Database, openDatabase } from '../state/database.ts';
import type { DatabaseKind } from '../state/database-kind.ts';
import { ACKNOWLEDGED, DAYS_REMOVED } from './chain-check.ts';
import { encodeRecord } from './encode-record.ts';
import { dayFileName, type FileLock, listDayFiles, takeOver } from './older-files.ts';
import { headMac, NO_HASH, sealRecord } from './record-line.ts';

/** SQLite's `application_id` of a trail: "SbRt". */
const APPLICATION_ID = 0x53625274;

/** Like the migrations of the state database: only ever added to. */
const MIGRATIONS: readonly string[] = [
  `
  PRAGMA application_id = ${APPLICATION_ID};
  -- A line of JSON, without its line break, and the hash that the next one refers to.
  CREATE TABLE trail (
    seq INTEGER PRIMARY KEY,
    hash TEXT NOT NULL,
    line TEXT NOT NULL
  ) STRICT;
  -- The last record that was written: rows that are taken away at the end are missed.
  CREATE TABLE head (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL,
    mac TEXT
  ) STRICT;
  `,
];

/** The database of a trail, in its directory. */
export const trailPath = (directory: string) => join(directory, 'trail.db');

/**
 * Whether a directory has a trail, as a database or in files of an older version.
 * @throws {SandboxError} `audit.unreadable`: the directory cannot be read.
 */
export function hasTrail(directory: string): boolean {
  try {
    return isThere(trailPath(directory)) || (isThere(directory) && listDayFiles(directory).length > 0);
  } catch (error) {
    const why = errnoOf(error) ?? errorMessage(error);
    throw new SandboxError(
      'audit.unreadable',
      `the audit trail in ${directory} cannot be read (${why}); look at the owner and the mode of the directory`,
      { cause: error },
    );
  }
}

/** Unlike `existsSync`, it does not take what is behind a shut directory as missing. */
const isThere = (path: string) => statSync(path, { throwIfNoEntry: false }) !== undefined;

/** How a trail is opened. */
export interface TrailOptions {
  /** The addon's; for a trail in files that is taken over. */
  readonly lock: FileLock;
  readonly key?: Uint8Array | undefined;
}

/** Where a trail ends. */
export interface Head {
  readonly seq: number;
  readonly hash: string;
  readonly mac: string | undefined;
}

/** A row of the trail. */
export interface TrailLine {
  readonly seq: number;
  readonly line: string;
}

/** How records are written. */
interface Writing {
  readonly key: Uint8Array | undefined;
  /** The present time in milliseconds since 1970. */
  readonly clock: () => number;
  /** Days to retain when a new one begins; `undefined`: all. */
  readonly keepDays?: number | undefined;
}

const DAY_MS = 24 * 3_600_000;
/** Rows that are read into memory at once. */
const PAGE = 256;
/** SQL for the time of a line: ISO 8601, so that texts sort by time. */
const TIME = `substr(line, instr(line, '"time":"') + 8, 24)`;

/** What every failure to record becomes: one line that says what and where. */
export function auditFailure(directory: string, error: unknown): SandboxError {
  if (error instanceof SandboxError) return error;
  const message = `the audit trail ${directory} cannot be written: ${errorMessage(error)}`;
  return new SandboxError('audit.failed', message, { cause: error });
}

/**
 * Opens the trail of a directory, or makes it. A trail in files, as older versions wrote it, is taken over.
 * @throws {SandboxError} `audit.failed`.
 */
export async function openTrail(directory: string, { lock, key }: TrailOptions): Promise<Trail> {
  if (!existsSync(directory)) throw auditFailure(directory, new Error('its directory is gone'));
  const kind: DatabaseKind = {
    ...{ name: 'the audit trail', code: 'audit.failed', holds: 'records' },
    // Each record has a hash, and a trail is too long to be read at each start.
    ...{ applicationId: APPLICATION_ID, migrations: MIGRATIONS, isChecked: false },
    fill: (database) => takeOver(directory, database, { lock, key }),
  };
  return new Trail(directory, await openDatabase(trailPath(directory), kind));
}

/** An open trail. Any number of processes may have it open. Every failure is a `SandboxError` `audit.failed`. */
export class Trail {
  readonly directory: string;
  readonly #database: Database;

  constructor(directory: string, database: Database) {
    this.directory = directory;
    this.#database = database;
  }

  /** `undefined`: somebody took it away. One that is whole and empty has a head with number 0. */
  head(): Head | undefined {
    const [row] = this.#database.all('SELECT seq, hash, mac FROM head');
    return (
      row && { seq: Number(row.seq), hash: String(row.hash), mac: row.mac ? String(row.mac) : undefined }
    );
  }

  /** Rows behind a number, up to another one, in their order; those that are written meanwhile among them. */
  *lines(after = 0, until = Number.MAX_SAFE_INTEGER): Generator<TrailLine> {
    for (let last = after; ; ) {
      const rows = this.#database.all(
        'SELECT seq, line FROM trail WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?',
        ...[last, until, PAGE],
      );
      for (const { seq, line } of rows) yield { seq: Number(seq), line: String(line) };
      if (rows.length < PAGE) return;
      last = Number(rows.at(-1)?.seq);
    }
  }

  /** The rows that contain a text, the last first. */
  *linesWith(text: string): Generator<TrailLine> {
    for (let before = Number.MAX_SAFE_INTEGER; ; ) {
      const [row] = this.#database.all(
        'SELECT seq, line FROM trail WHERE seq < ? AND instr(line, ?) > 0 ORDER BY seq DESC LIMIT 1',
        ...[before, text],
      );
      if (row === undefined) return;
      before = Number(row.seq);
      yield { seq: before, line: String(row.line) };
    }
  }

  /** The number before the last rows, `count` of them at most. */
  beforeLast(count: number): number {
    const [row] = this.#database.all('SELECT seq FROM trail ORDER BY seq DESC LIMIT 1 OFFSET ?', count);
    return row === undefined ? 0 : Number(row.seq);
  }

  /** The number of the last record from before a time, among those from `first` to `last`; `first` if there is none. */
  lastBefore(time: number, first: number, last: number): number {
    const [row] = this.#database.all(
      `SELECT seq FROM trail WHERE seq BETWEEN ? AND ? AND ${TIME} < ? ORDER BY seq DESC LIMIT 1`,
      ...[first, last, new Date(time).toISOString()],
    );
    return row === undefined ? first : Number(row.seq);
  }

  /** Lets all that `work` reads be of one moment. */
  snapshot<T>(work: () => T): T {
    return this.#database.snapshot(work);
  }

  /** Writes encoded records, all of them or none; the number of the first. */
  append(records: readonly string[], writing: Writing): number {
    return this.#database.transaction(() => {
      const head = this.#end();
      const removed = this.#removeOldDays(writing);
      const lines = removed === undefined ? records : [encodeRecord(removed), ...records];
      this.#seal(head, lines, writing);
      return head.seq + lines.length - records.length + 1;
    });
  }

  /** Settles when all that was written is on the disk. */
  durable(): Promise<void> {
    return this.#database.durable();
  }

  /**
   * Goes on after a break, with a record that says what is missing. `undefined`: nothing is.
   */
  acknowledge(principal: string, writing: Writing): EventRecord | undefined {
    return this.#database.transaction(() => {
      const [head, last] = [this.head(), this.#last()];
      if (head !== undefined && isSame(head, last)) return undefined;
      const end = head === undefined || head.seq < last.seq ? last : head;
      const [first] = this.#database.all('SELECT min(seq) AS seq FROM trail');
      const record: EventRecord = {
        ...{ type: 'event', code: ACKNOWLEDGED, principal, session: undefined },
        message: `acknowledged: ${head === undefined ? `what was written last was unknown; the trail goes on after record ${last.seq}` : `the trail ended with record ${last.seq} instead of ${head.seq}`}`,
        details: {
          ...{ last: last.seq, missing: end.seq - last.seq, headLost: head === undefined },
          first: Number(first?.seq ?? end.seq + 1),
        },
      };
      this.#seal(end, [encodeRecord(record)], writing);
      return record;
    });
  }

  close(): void {
    this.#database.close();
  }

  /** Where the next record goes. Throws if the end is not the one that was written: to go on is for people to say. */
  #end(): Pick<Head, 'seq' | 'hash'> {
    const [head, last] = [this.head(), this.#last()];
    if (head !== undefined && isSame(head, last)) return head;
    const what =
      head === undefined
        ? 'it is unknown which record was written last'
        : `it ends with record ${last.seq}, but ${last.seq === head.seq ? 'another one' : `record ${head.seq}`} was written last: somebody changed it`;
    throw new SandboxError(
      'audit.failed',
      `the audit trail ${this.directory} is broken: ${what}; look at it with "sandbox-run audit verify", and go on with "sandbox-run audit acknowledge"`,
    );
  }

  #last(): Pick<Head, 'seq' | 'hash'> {
    const [row] = this.#database.all('SELECT seq, hash FROM trail ORDER BY seq DESC LIMIT 1');
    return row === undefined ? { seq: 0, hash: NO_HASH } : { seq: Number(row.seq), hash: String(row.hash) };
  }

  #seal(end: Pick<Head, 'seq' | 'hash'>, records: readonly string[], { key, clock }: Writing): void {
    const time = clock();
    let { seq, hash } = end;
    for (const fields of records) {
      const sealed = sealRecord(fields, { seq: seq + 1, time, prev: hash }, key);
      ({ hash } = sealed);
      seq += 1;
      this.#database.run('INSERT INTO trail (seq, hash, line) VALUES (?, ?, ?)', seq, hash, sealed.text);
    }
    const mac = key === undefined ? null : headMac(key, { seq, hash });
    this.#database.run('REPLACE INTO head (one, seq, hash, mac) VALUES (1, ?, ?, ?)', seq, hash, mac);
  }

  /** With the first record of a day; the record that says which were removed. The last one always stays. */
  #removeOldDays({ keepDays, clock }: Writing): EventRecord | undefined {
    if (keepDays === undefined) return undefined;
    const [last] = this.#database.all(`SELECT ${TIME} AS time FROM trail ORDER BY seq DESC LIMIT 1`);
    const today = new Date(clock()).toISOString().slice(0, 10);
    if (last === undefined || String(last.time).slice(0, 10) >= today) return undefined;
    const since = new Date(clock() - keepDays * DAY_MS).toISOString().slice(0, 10);
    for (const name of listDayFiles(this.directory))
      if (name < dayFileName(since)) unlinkSync(join(this.directory, name));
    const [kept] = this.#database.all(
      `SELECT min(seq) AS first FROM trail WHERE ${TIME} >= ? OR seq = (SELECT max(seq) FROM trail)`,
      since,
    );
    const first = Number(kept?.first);
    const records = this.#database.run('DELETE FROM trail WHERE seq < ?', first);
    if (records === 0) return undefined;
    return {
      ...{ type: 'event', code: DAYS_REMOVED, principal: 'audit', session: undefined },
      message: `${records} records of days before ${since} were removed (audit.keep_days)`,
      details: { records, first },
    };
  }
}

const isSame = (one: Pick<Head, 'seq' | 'hash'>, other: Pick<Head, 'seq' | 'hash'>) =>
  one.seq === other.seq && one.hash === other.hash;
