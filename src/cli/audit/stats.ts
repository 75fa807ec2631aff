import { isObject, objectsOf, type StoredRecord, textOf } from '../../audit/stored-record.ts';
import { visibleText } from '../../util/visible-text.ts';
import { jsonText, printOut } from '../shared/print.ts';
import { reading, recordsSince, trailDirectory } from './records.ts';

/** Of a table with names from outside, so many rows are shown; more are counted. */
const MOST_ROWS = 12;
/** Names that are told apart; a forged trail could have any number. */
const MOST_NAMES = 10_000;

type Counts = Map<string, number>;

/** The tables, in the order in which they are shown. */
const TABLES = ['types', 'verdicts', 'outcomes', 'approvals', 'objections', 'results', 'events'] as const;

type Table = (typeof TABLES)[number];

/** Prints how much of what the trail has. */
export async function trailStatistics({
  since,
  json,
}: {
  readonly since?: number;
  readonly json?: boolean;
}): Promise<number> {
  const directory = trailDirectory();
  const statistics = new Statistics();
  reading(() => {
    for (const { record } of recordsSince(directory, since)) statistics.count(record);
  });
  printOut(json === true ? jsonText(statistics) : statistics.describe());
  return 0;
}

class Statistics {
  private records = 0;
  private first: string | undefined;
  private last: string | undefined;
  /** Those in which something was counted. */
  private readonly tables = new Map<Table, Counts>();
  private readonly sessions = new Set<string>();
  private outputBytes = 0;
  private durationMs = 0;

  count({ fields, type }: StoredRecord): void {
    this.records += 1;
    this.first ??= textOf(fields, 'time');
    this.last = textOf(fields, 'time');
    this.add('types', type);
    const session = textOf(fields, 'session');
    if (session !== undefined && this.sessions.size < MOST_NAMES) this.sessions.add(session);
    if (type === 'decision') {
      this.add('verdicts', textOf(fields, 'verdict') ?? 'not judged');
      this.add('outcomes', textOf(fields, 'outcome') ?? '-');
      if (isObject(fields.approval)) this.add('approvals', describeApproval(fields.approval));
      for (const { check, code, verdict } of objectsOf(fields, 'checks'))
        if (verdict === 'ask' || verdict === 'deny')
          this.add('objections', `${verdict} ${String(check)}.${String(code)}`);
    } else if (type === 'result') {
      this.add('results', textOf(fields, 'status') ?? '-');
      const { outputBytes: bytes, durationMs } = fields;
      if (isObject(bytes)) this.outputBytes += numberOf(bytes.stdout) + numberOf(bytes.stderr);
      this.durationMs += numberOf(durationMs);
    } else if (type === 'event') {
      this.add('events', textOf(fields, 'code') ?? '-');
    }
  }

  private add(table: Table, name: string): void {
    const counts = this.tables.get(table) ?? new Map<string, number>();
    this.tables.set(table, counts);
    const key = counts.has(name) || counts.size < MOST_NAMES ? name : 'others';
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }

  toJSON(): object {
    const { records, first, last, outputBytes, durationMs, sessions } = this;
    const counted = TABLES.map((name) => [name, Object.fromEntries(this.tables.get(name) ?? [])]);
    return {
      ...{ records, first, last, ...Object.fromEntries(counted) },
      ...{ outputBytes, durationMs, sessions: sessions.size },
    };
  }

  describe(): string {
    const ran = `commands ran for ${(this.durationMs / 1000).toFixed(1)} s and wrote ${this.outputBytes} bytes`;
    return [
      `${this.records} records from ${this.first ?? '-'} to ${this.last ?? '-'}`,
      `${this.sessions.size} sessions; ${ran}`,
      ...TABLES.flatMap((name) => tableRows(name, this.tables.get(name))),
    ]
      .map((line) => `${visibleText(line)}\n`)
      .join('');
  }
}

function describeApproval(approval: Readonly<Record<string, unknown>>): string {
  const by = String(approval.by);
  return approval.approved === true
    ? `approved (${String(approval.scope)}) by ${by}`
    : `${String(approval.reason)} (${by})`;
}

function numberOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) ? value : 0;
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
