import { existsSync } from 'node:fs';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { loadAddon } from '../../confine/native/load.ts';
import {
  hasTrail,
  openTrail,
  parseRecord,
  type StoredRecord,
  type Trail,
  trailPath,
} from '../../gate/index.ts';
import type { RecordStream } from '../../model/index.ts';
import { auditDirectory, openOwnStream, operatorPolicy } from '../../run/index.ts';
import { loadAuditKey } from '../../workspace/index.ts';

/** Whether this user has a trail on this machine. */
export const hasOwnTrail = () => hasTrail(auditDirectory());

/**
 * Works with the trail of this user on this machine. `keyFile`: what it is signed with; default: what the policy names.
 * @throws {SandboxError} `audit.unreadable` if there is none, `audit.failed`.
 */
export async function withTrail<T>(work: (trail: Trail) => T | Promise<T>, keyFile?: string): Promise<T> {
  const directory = auditDirectory();
  if (!hasTrail(directory))
    throw new SandboxError(
      'audit.unreadable',
      `there is no audit trail in ${directory}; a command with --audit begins one`,
    );
  // A trail in files is taken over, and the new database signed with the key.
  const key = existsSync(trailPath(directory)) ? undefined : await signingKey(keyFile);
  const trail = await openTrail(directory, { lock: loadAddon(), key });
  try {
    return await work(trail);
  } finally {
    trail.close();
  }
}

/** The key that is named, or that of the policy: without it a trail that was made anew looks right. */
export async function signingKey(named: string | undefined): Promise<Uint8Array | undefined> {
  const path = named ?? (await operatorPolicy()).audit.hmacKeyFile;
  return path === undefined ? undefined : loadAuditKey(path);
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
  readonly line: string;
  /** Of a fleet: whose trail it is in. */
  readonly trail?: string;
}

/** The records of a trail from a time on. Lines that are no records are left out: `verify` is there for them. */
export function* recordsSince(trail: Trail, since: number | undefined): Generator<ReadRecord> {
  for (const { line } of trail.lines()) {
    const record = parseRecord(line);
    if (record !== undefined && (since === undefined || record.at >= since)) yield { record, line };
  }
}

/** Those of the lines that are records. */
export function* recordsFrom(lines: Iterable<string>): Generator<ReadRecord> {
  for (const line of lines) {
    const record = parseRecord(line);
    if (record !== undefined) yield { record, line };
  }
}
