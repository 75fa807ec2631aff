import { isObject, objectsOf, type StoredRecord, textOf } from '../../audit/stored-record.ts';
import { visibleText } from '../../util/visible-text.ts';
import { jsonText, printOut } from '../shared/print.ts';
import { reading, recordsSince, trailDirectory } from './records.ts';

/** Of a table with names from outside, so many rows are shown; more are counted. */
const MOST_ROWS = 12;
/** Names that are told apart; a forged trail could have any number. */
const MOST_NAMES = 10_000;

type Counts = Map<string, number>;
type Tables = Map<Table, Counts>;

/** The tables, in the order in which they are shown. */
const TABLES = ['types', 'verdicts', 'outcomes', 'approvals', 'objections', 'results', 'events'] as const;

type Table = (typeof TABLES)[number];

interface Statistics {
  records: number;
  first: string | undefined;
  last: string | undefined;
  /** Those in which something was counted. */
  readonly tables: Tables;
  readonly sessions: Set<string>;
  outputBytes: number;
  durationMs: number;
}

/** Prints how much of what the trail has. */
export async function trailStatistics({
  since,
  json,
}: {
  readonly since?: number;
  readonly json?: boolean;
}): Promise<number> {
  const directory = trailDirectory();
  const statistics: Statistics = {
    records: 0,
    first: undefined,
    last: undefined,
    tables: new Map(),
    sessions: new Set(),
    outputBytes: 0,
    durationMs: 0,
  };
  reading(() => {
    for (const { record } of recordsSince(directory, since)) count(record, statistics);
  });
  printOut(json === true ? jsonText(asJson(statistics)) : describe(statistics));
  return 0;
}

function count({ fields, type }: StoredRecord, statistics: Statistics): void {
  statistics.records += 1;
  statistics.first ??= textOf(fields, 'time');
  statistics.last = textOf(fields, 'time');
  const { tables, sessions } = statistics;
  add(tables, 'types', type);
  const session = textOf(fields, 'session');
  if (session !== undefined && sessions.size < MOST_NAMES) sessions.add(session);
  if (type === 'decision') {
    add(tables, 'verdicts', textOf(fields, 'verdict') ?? 'not judged');
    add(tables, 'outcomes', textOf(fields, 'outcome') ?? '-');
    if (isObject(fields.approval))
      add(
        tables,
        'approvals',
        fields.approval.approved === true
          ? `approved (${String(fields.approval.scope)}) by ${String(fields.approval.by)}`
          : `${String(fields.approval.reason)} (${String(fields.approval.by)})`,
      );
    for (const { check, code, verdict } of objectsOf(fields, 'checks'))
      if (verdict === 'ask' || verdict === 'deny')
        add(tables, 'objections', `${verdict} ${String(check)}.${String(code)}`);
  } else if (type === 'result') {
    add(tables, 'results', textOf(fields, 'status') ?? '-');
    const { outputBytes: bytes, durationMs } = fields;
    if (isObject(bytes)) statistics.outputBytes += numberOf(bytes.stdout) + numberOf(bytes.stderr);
    statistics.durationMs += numberOf(durationMs);
  } else if (type === 'event') {
    add(tables, 'events', textOf(fields, 'code') ?? '-');
  }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function add(tables: Tables, table: Table, name: string): void {
  const counts = tables.get(table) ?? new Map<string, number>();
  tables.set(table, counts);
  const key = counts.has(name) || counts.size < MOST_NAMES ? name : 'others';
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function asJson({ tables, sessions, outputBytes, durationMs, ...range }: Statistics): object {
  const counted = TABLES.map((name) => [name, Object.fromEntries(tables.get(name) ?? [])]);
  return { ...range, ...Object.fromEntries(counted), outputBytes, durationMs, sessions: sessions.size };
}

function describe({ records, first, last, tables, sessions, durationMs, outputBytes }: Statistics): string {
  return [
    `${records} records from ${first ?? '-'} to ${last ?? '-'}`,
    `${sessions.size} sessions; commands ran for ${(durationMs / 1000).toFixed(1)} s and wrote ${outputBytes} bytes`,
    ...TABLES.flatMap((name) => tableRows(name, tables.get(name))),
  ]
    .map((line) => `${visibleText(line)}\n`)
    .join('');
}

function tableRows(name: Table, counts: Counts = new Map()): readonly string[] {
  const rows = [...counts].sort(([, a], [, b]) => b - a);
  if (rows.length === 0) return [];
  const more = rows.length > MOST_ROWS ? [`  … and ${rows.length - MOST_ROWS} more`] : [];
  return [
    `${name}:`,
    ...rows.slice(0, MOST_ROWS).map(([key, value]) => `  ${String(value).padStart(8)}  ${key}`),
    ...more,
  ];
}
