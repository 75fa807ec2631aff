import { existsSync } from 'node:fs';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import {
  beginning,
  dayFileName,
  headPath,
  listDayFiles,
  parseRecord,
  type StoredRecord,
  TrailCursor,
} from '../../gate/index.ts';
import type { RecordStream } from '../../model/index.ts';
import { auditDirectory, openOwnStream, operatorPolicy } from '../../run/index.ts';

/**
 * The directory of the audit trail.
 * @throws {SandboxError} `audit.unreadable` if there is no trail.
 */
export function trailDirectory(): string {
  const directory = auditDirectory();
  const found = reading(
    () => existsSync(directory) && (existsSync(headPath(directory)) || listDayFiles(directory).length > 0),
  );
  if (!found)
    throw new SandboxError(
      'audit.unreadable',
      `there is no audit trail in ${directory}; a command with --audit begins one`,
    );
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

/**
 * Works with the audit stream of the fleet whose server the policy of the machine or the user names.
 * @throws {SandboxError} `policy.invalid` if it names none, `fleet.…`.
 */
export async function withFleetStream<T>(work: (stream: RecordStream) => Promise<T>): Promise<T> {
  const stream = await openOwnStream((await operatorPolicy()).state);
  try {
    return await work(stream);
  } finally {
    await stream.close();
  }
}

/** A record with its line. */
export interface ReadRecord {
  readonly record: StoredRecord;
  readonly line: Buffer;
  /** Of a fleet: whose trail it is in. */
  readonly trail?: string;
}

/** The records of a trail from a time on. Lines that are no records are left out: `verify` is there for them. */
export function* recordsSince(directory: string, since: number | undefined): Generator<ReadRecord> {
  // A record is never in a file of an earlier day.
  const start = since === undefined ? beginning() : beginning(dayFileName(since));
  for (const read of recordsFrom(new TrailCursor(directory, start).lines()))
    if (since === undefined || read.record.at >= since) yield read;
}

/** Those of the lines that are records. */
export function* recordsFrom(lines: Iterable<Buffer>): Generator<ReadRecord> {
  for (const line of lines) {
    const record = parseRecord(line);
    if (record !== undefined) yield { record, line };
  }
}
