import { existsSync } from 'node:fs';
import { commandText, isObject, parseRecord, type StoredRecord, textOf } from '../../audit/stored-record.ts';
import { beginning, dayFileName, headPath, listDayFiles, TrailCursor } from '../../audit/trail-files.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { RecordStream } from '../../model/record-stream.ts';
import { operatorPolicy } from '../../run/resolve/policy-layers.ts';
import { auditDirectory, openOwnStream } from '../../run/state.ts';
import { visibleJson, visibleText } from '../../util/visible-text.ts';
import { printOut } from '../shared/print.ts';
import { type Mood, moodOf, type Paint, paintFor } from '../shared/style.ts';

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

/** Writes records to standard output; false as soon as the reader is gone. */
export function printRecords(records: Iterable<ReadRecord>, json: boolean | undefined): boolean {
  let text = '';
  const paint = paintFor(1);
  for (const { record, line, trail } of records) {
    const whose = trail === undefined ? '' : `${visibleText(trail)}  `;
    // A trail's name needs no escapes.
    const stored = trail === undefined ? line.toString() : `{"trail":"${trail}",${line.toString().slice(1)}`;
    text += json === true ? `${visibleJson(stored)}\n` : `${whose}${describeRecord(record, paint)}\n`;
    if (text.length < BUFFERED) continue;
    if (!printOut(text)) return false;
    text = '';
  }
  return text === '' || printOut(text);
}

/** A line shows so many characters of a command or a message. */
const LONGEST = 2_000;
/** Behind time, number and type. */
const STATUS_PART = 3;

/** One record on one line, safe for terminals. */
export function describeRecord(record: StoredRecord, paint: Paint): string {
  const time = Number.isNaN(record.at) ? 'no time' : new Date(record.at).toISOString();
  const parts = [time, `#${record.seq}`, record.type, ...partsOf(record)];
  return parts
    .map((part, index) => {
      const shown = visibleText(shorten(part));
      return index === STATUS_PART ? paint(moodOfStatus(part), shown) : shown;
    })
    .join('  ');
}

/** A verdict, or how a command ended. */
function moodOfStatus(status: string): Mood {
  if (status === 'timed-out' || status === 'limit-exceeded') return 'part';
  return status === 'denied' || status === 'setup-failed' ? 'bad' : moodOf(status);
}

function partsOf(record: StoredRecord): readonly string[] {
  const { fields, type } = record;
  const text = (name: string) => textOf(fields, name) ?? '-';
  switch (type) {
    case 'decision':
      return [text('verdict'), text('outcome'), text('request'), commandText(record)];
    case 'result': {
      const end = textOf(fields, 'signal') ?? textOf(fields, 'error') ?? String(fields.exitCode ?? '-');
      return [
        text('status'),
        end,
        text('request'),
        `${String(fields.durationMs)} ms`,
        bytesOf(fields.outputBytes),
      ];
    }
    case 'event':
      return [text('code'), text('session'), text('message')];
    // Of a newer version, or forged: shown all the same.
    default:
      return [JSON.stringify(fields)];
  }
}

function bytesOf(value: unknown): string {
  // What went to the caller's own streams was not counted.
  const count = (bytes: unknown) => (typeof bytes === 'number' ? String(bytes) : '?');
  return isObject(value) ? `${count(value.stdout)}+${count(value.stderr)} bytes` : '-';
}

function shorten(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length} characters)` : text;
}
