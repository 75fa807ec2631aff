import { existsSync } from 'node:fs';
import { parseRecord, type StoredRecord } from '../../audit/stored-record.ts';
import { beginning, createCursor } from '../../audit/trail-cursor.ts';
import { dayFileName, headPath, listDayFiles } from '../../audit/trail-files.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { auditDirectory } from '../../run/state.ts';
import { visibleJson } from '../../util/visible-text.ts';
import { printOut } from '../shared/print.ts';
import { paintFor } from '../shared/style.ts';
import { describeRecord } from './line.ts';

/** Output that is collected before it is written. */
const BUFFERED = 64 * 1024;

/**
 * The directory of the audit trail.
 * @throws {SandboxError} `audit.unreadable` if there is no trail.
 */
export function trailDirectory(): string {
  const directory = auditDirectory();
  const found = reading(
    () => existsSync(directory) && (existsSync(headPath(directory)) || listDayFiles(directory).length > 0),
  );
  if (!found) throw new SandboxError('audit.unreadable', `there is no audit trail in ${directory}`);
  return directory;
}

/** Reads; what fails becomes a `SandboxError` `audit.unreadable`. */
export function reading<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof SandboxError || !(error instanceof Error) || !('code' in error)) throw error;
    const path = 'path' in error ? ` ${String(error.path)}` : '';
    const why = error.code === 'ENOENT' ? 'it is not there' : `${String(error.code)}`;
    throw new SandboxError('audit.unreadable', `the audit trail${path} cannot be read: ${why}`, {
      cause: error,
    });
  }
}

/** A record with its line. */
export interface ReadRecord {
  readonly record: StoredRecord;
  readonly line: Buffer;
}

/** The records of a trail from a time on. Lines that are no records are left out: `verify` is there for them. */
export function* recordsSince(directory: string, since: number | undefined): Generator<ReadRecord> {
  // A record is never in a file of an earlier day.
  const start = since === undefined ? beginning() : beginning(dayFileName(since));
  for (const read of recordsFrom(createCursor(directory, start).lines()))
    if (since === undefined || read.record.at >= since) yield read;
}

/** Those of the lines that are records. */
export function* recordsFrom(lines: Iterable<Buffer>): Generator<ReadRecord> {
  for (const line of lines) {
    const record = parseRecord(line);
    if (record !== undefined) yield { record, line };
  }
}

/** Writes records to standard output; false as soon as the reader is gone. */
export function printRecords(records: Iterable<ReadRecord>, json: boolean | undefined): boolean {
  let text = '';
  const paint = paintFor(1);
  for (const { record, line } of records) {
    text += json === true ? `${visibleJson(line.toString())}\n` : `${describeRecord(record, paint)}\n`;
    if (text.length < BUFFERED) continue;
    if (!printOut(text)) return false;
    text = '';
  }
  return text === '' || printOut(text);
}
