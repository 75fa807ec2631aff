import { setTimeout as sleep } from 'node:timers/promises';
import { isObject } from '../../base/is-object.ts';
import { visibleJson, visibleText } from '../../base/visible-text.ts';
import {
  commandText,
  linesOf,
  objectsOf,
  parseRecord,
  type StoredRecord,
  type Trail,
  textOf,
} from '../../gate/index.ts';
import type { Verdict } from '../../model/index.ts';
import { type Mood, moodOf, type Paint, paintFor, printError, printOut } from '../shared/print.ts';
import { type ReadRecord, recordsFrom, recordsSince, withFleetStream, withTrail } from './records.ts';

const DEFAULT_LINES = 20;
/** How often a growing trail is looked at. */
const INTERVAL_MS = 200;

/** Options of `audit tail`. */
export interface TailOptions {
  readonly lines?: number;
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** Output that is collected before it is written. */
const BUFFERED = 64 * 1024;

/** A line shows so many characters of a command or a message. */
const LONGEST = 2_000;
/** Behind time, number and type. */
const STATUS_PART = 3;

/** Prints the last records, and with `follow` new ones, until the reader is gone. */
export async function tailTrail({ lines = DEFAULT_LINES, follow, json }: TailOptions): Promise<number> {
  await withTrail(async (trail) => {
    let last = trail.beforeLast(lines);
    function* next(): Generator<string> {
      for (const { seq, line } of trail.lines(last)) {
        last = seq;
        yield line;
      }
    }
    while (printRecords(recordsFrom(next()), json) && follow === true) await sleep(INTERVAL_MS);
  });
  return 0;
}

/** Writes records to standard output; false as soon as the reader is gone. */
function printRecords(records: Iterable<ReadRecord>, json: boolean | undefined): boolean {
  let text = '';
  const paint = paintFor(1);
  for (const { record, line, trail } of records) {
    const whose = trail === undefined ? '' : `${visibleText(trail)}  `;
    // A trail's name needs no escapes.
    const stored = trail === undefined ? line : `{"trail":"${trail}",${line.slice(1)}`;
    text += json === true ? `${visibleJson(stored)}\n` : `${whose}${describeRecord(record, paint)}\n`;
    if (text.length < BUFFERED) continue;
    if (!printOut(text)) return false;
    text = '';
  }
  return text === '' || printOut(text);
}

/** One record on one line, safe for terminals. */
function describeRecord(record: StoredRecord, paint: Paint): string {
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
    // A record of a newer version, or a forged one, is shown too.
    default:
      return [JSON.stringify(fields)];
  }
}

function bytesOf(value: unknown): string {
  if (!isObject(value)) return '-';
  const counts = [value.stdout, value.stderr].map((bytes) => (typeof bytes === 'number' ? bytes : '?'));
  // What went to the caller's own streams was not counted.
  return counts.every((count) => count === '?') ? 'output not counted' : `${counts.join('+')} bytes`;
}

function shorten(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length} characters)` : text;
}

/** What a record has to have. */
export interface SearchOptions {
  readonly text?: string;
  readonly session?: string;
  readonly verdict?: Verdict;
  readonly outcome?: string;
  readonly type?: 'decision' | 'result' | 'event';
  readonly since?: number;
  readonly until?: number;
  readonly fleet?: boolean;
  readonly json?: boolean;
}

/** Prints what is found; 1 if nothing is. */
export async function searchTrail(options: SearchOptions): Promise<number> {
  if (options.fleet === true) return searchFleet(options);
  let found = 0;
  function* matches(trail: Trail): Generator<ReadRecord> {
    for (const read of recordsSince(trail, options.since)) {
      if (!isMatch(read.record, options)) continue;
      found += 1;
      yield read;
    }
  }
  await withTrail((trail) => printRecords(matches(trail), options.json));
  return found > 0 ? 0 : 1;
}

/** The same in the trails of a fleet, in the order in which the stream got them. */
async function searchFleet(options: SearchOptions): Promise<number> {
  let found = 0;
  await withFleetStream(async (stream) => {
    // Nothing is in the stream before it was written.
    for await (const { trail, lines } of stream.read(options.since)) {
      const inTrail = [...recordsFrom(textsOf(lines))].filter(
        ({ record }) =>
          (options.since === undefined || record.at >= options.since) && isMatch(record, options),
      );
      found += inTrail.length;
      if (
        !printRecords(
          inTrail.map((read) => ({ ...read, trail })),
          options.json,
        )
      )
        break;
    }
  });
  return found > 0 ? 0 : 1;
}

function* textsOf(lines: Buffer): Generator<string> {
  for (const line of linesOf(lines)) yield line.toString();
}

function isMatch(record: StoredRecord, wanted: SearchOptions): boolean {
  const { fields, type, at } = record;
  const has = (value: string | undefined, ...names: readonly string[]) =>
    value === undefined || names.some((name) => textOf(fields, name) === value);
  return (
    (wanted.type === undefined || wanted.type === type) &&
    (wanted.until === undefined || at <= wanted.until) &&
    has(wanted.session, 'session') &&
    has(wanted.verdict, 'verdict') &&
    has(wanted.outcome, 'outcome', 'status') &&
    (wanted.text === undefined || hasText(record, wanted.text.toLowerCase()))
  );
}

function hasText(record: StoredRecord, text: string): boolean {
  const texts = ['request', 'cwd', 'message', 'code'].map((name) => textOf(record.fields, name) ?? '');
  const { job } = record.fields;
  const ofJob = isObject(job) ? ['queue', 'id', 'worker'].map((name) => textOf(job, name) ?? '') : [];
  return [commandText(record), ...texts, ...ofJob].some((one) => one.toLowerCase().includes(text));
}

/** Prints all records of a request, or the record with a number; 1 if there is none. */
export async function showRecords(id: string, { json }: { readonly json?: boolean }): Promise<number> {
  const found = await withTrail((trail) => find(trail, id));
  if (found.length === 0) {
    printError(`the audit trail has no record ${id}`);
    return 1;
  }
  const paint = paintFor(1);
  for (const { record, line } of found)
    printOut(json === true ? `${visibleJson(line)}\n` : describeWhole(record, paint));
  return 0;
}

/** The newest first: what is asked about is mostly young. The decision of a request is its first record. */
function find(trail: Trail, id: string): readonly ReadRecord[] {
  if (/^[1-9]\d{0,15}$/.test(id)) {
    const seq = Number(id);
    return [...recordsFrom([...trail.lines(seq - 1, seq)].map(({ line }) => line))];
  }
  const found: ReadRecord[] = [];
  for (const { line } of trail.linesWith(JSON.stringify(id))) {
    const record = parseRecord(line);
    if (record === undefined || textOf(record.fields, 'request') !== id) continue;
    found.unshift({ record, line });
    if (record.type === 'decision') break;
  }
  return found;
}

function describeWhole(record: StoredRecord, paint: Paint): string {
  const checks = objectsOf(record.fields, 'checks').map((check) => {
    const verdict = visibleText(String(check.verdict ?? '-').padEnd(6));
    const rest = `${String(check.check).padEnd(12)} ${String(check.code).padEnd(18)} ${textOf(check, 'message') ?? ''}`;
    return `  ${paint(moodOf(check.verdict), verdict)} ${visibleText(rest)}`;
  });
  const rows = Object.entries(record.fields)
    .filter(([name]) => name !== 'checks')
    .flatMap(([name, value]) => rowsOf(name, value))
    .map((row) => visibleText(row));
  return [describeRecord(record, paint), ...rows, ...(checks.length > 0 ? ['  checks:', ...checks] : []), '']
    .map((row) => `${row.trimEnd()}\n`)
    .join('');
}

function rowsOf(name: string, value: unknown): readonly string[] {
  if (name === 'report.controls' && isObject(value)) return controlRows(value);
  if (isObject(value))
    return Object.entries(value).flatMap(([inner, one]) => rowsOf(`${name}.${inner}`, one));
  return [`  ${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`];
}

/** One row for each state that a control can have. */
function controlRows(controls: Readonly<Record<string, unknown>>): readonly string[] {
  const states = [...new Set(Object.values(controls).map(String))];
  return states.map((state) => {
    const ids = Object.keys(controls).filter((id) => String(controls[id]) === state);
    return `  report.${state}: ${ids.join(', ')}`;
  });
}
