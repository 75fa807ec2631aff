import { isObject, objectsOf, type StoredRecord, textOf } from '../../audit/stored-record.ts';
import { visibleText } from '../../util/visible-text.ts';
import { jsonText, printOut } from '../shared/print.ts';
import { reading, recordsSince, trailDirectory } from './read.ts';

/** Of a table with names from outside, so many rows are shown; more are counted. */
const MOST_ROWS = 12;
/** Names that are told apart; a forged trail could have any number. */
const MOST_NAMES = 10_000;

type Counts = Map<string, number>;

interface Statistics {
  records: number;
  first: string | undefined;
  last: string | undefined;
  readonly types: Counts;
  readonly verdicts: Counts;
  readonly outcomes: Counts;
  readonly approvals: Counts;
  readonly objections: Counts;
  readonly results: Counts;
  readonly events: Counts;
  readonly sessions: Counts;
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
  const statistics = emptyStatistics();
  reading(() => {
    for (const { record } of recordsSince(directory, since)) count(record, statistics);
  });
  printOut(json === true ? jsonText(asJson(statistics)) : describe(statistics));
  return 0;
}

function emptyStatistics(): Statistics {
  const counts = (): Counts => new Map();
  return {
    records: 0,
    first: undefined,
    last: undefined,
    types: counts(),
    verdicts: counts(),
    outcomes: counts(),
    approvals: counts(),
    objections: counts(),
    results: counts(),
    events: counts(),
    sessions: counts(),
    outputBytes: 0,
    durationMs: 0,
  };
}

function count({ fields, type }: StoredRecord, statistics: Statistics): void {
  statistics.records += 1;
  statistics.first ??= textOf(fields, 'time');
  statistics.last = textOf(fields, 'time');
  add(statistics.types, type);
  const session = textOf(fields, 'session');
  if (session !== undefined) add(statistics.sessions, session);
  if (type === 'decision') {
    add(statistics.verdicts, textOf(fields, 'verdict') ?? 'not judged');
    add(statistics.outcomes, textOf(fields, 'outcome') ?? '-');
    if (isObject(fields.approval))
      add(
        statistics.approvals,
        fields.approval.approved === true
          ? `approved (${String(fields.approval.scope)}) by ${String(fields.approval.by)}`
          : `${String(fields.approval.reason)} (${String(fields.approval.by)})`,
      );
    for (const { check, code, verdict } of objectsOf(fields, 'checks'))
      if (verdict === 'ask' || verdict === 'deny')
        add(statistics.objections, `${verdict} ${String(check)}.${String(code)}`);
  } else if (type === 'result') {
    add(statistics.results, textOf(fields, 'status') ?? '-');
    const { outputBytes: bytes, durationMs } = fields;
    if (isObject(bytes)) statistics.outputBytes += numberOf(bytes.stdout) + numberOf(bytes.stderr);
    statistics.durationMs += numberOf(durationMs);
  } else if (type === 'event') {
    add(statistics.events, textOf(fields, 'code') ?? '-');
  }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
}

function add(counts: Counts, name: string): void {
  const key = counts.has(name) || counts.size < MOST_NAMES ? name : 'others';
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function asJson({ sessions, ...statistics }: Statistics): object {
  const members = Object.entries(statistics).map(([name, value]) => [
    name,
    value instanceof Map ? Object.fromEntries(value) : value,
  ]);
  return { ...Object.fromEntries(members), sessions: sessions.size };
}

function describe(statistics: Statistics): string {
  const { records, first = '-', last = '-', sessions, durationMs, outputBytes } = statistics;
  const tables = (
    ['types', 'verdicts', 'outcomes', 'approvals', 'objections', 'results', 'events'] as const
  ).flatMap((name) => table(name, statistics[name]));
  return [
    `${records} records from ${first} to ${last}`,
    `${sessions.size} sessions; commands ran for ${(durationMs / 1000).toFixed(1)} s and wrote ${outputBytes} bytes`,
    ...tables,
  ]
    .map((line) => `${visibleText(line)}\n`)
    .join('');
}

function table(name: string, counts: Counts): readonly string[] {
  const rows = [...counts].sort(([, a], [, b]) => b - a);
  if (rows.length === 0) return [];
  const more = rows.length > MOST_ROWS ? [`  … and ${rows.length - MOST_ROWS} more`] : [];
  return [
    `${name}:`,
    ...rows.slice(0, MOST_ROWS).map(([key, value]) => `  ${String(value).padStart(8)}  ${key}`),
    ...more,
  ];
}
