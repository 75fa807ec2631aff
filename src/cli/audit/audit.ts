import { InvalidArgumentError, Option } from 'commander';
import { isObject } from '../../base/is-object.ts';
import { visibleText } from '../../base/visible-text.ts';
import { VERDICTS } from '../../base/words.ts';
import { objectsOf, type StoredRecord, textOf } from '../../gate/index.ts';
import { wholeNumber } from '../shared/options.ts';
import { withSubcommands } from '../shared/parse.ts';
import { jsonText, printOut } from '../shared/print.ts';
import { recordsSince, withTrail } from './records.ts';
import { type SearchOptions, searchTrail, showRecords, type TailOptions, tailTrail } from './show.ts';
import type { VerifyOptions } from './verify.ts';

const HELP_AFTER = `
The trail is in $XDG_STATE_HOME/sandbox-run/audit (~/.local/state without it): a SQLite database, in
which each record is one line of JSON. Secrets are taken out by pattern before a record is written.

Examples:
  sandbox-run audit tail -f
  sandbox-run audit search --json >trail.jsonl
  sandbox-run audit search --verdict deny --since 2h
  sandbox-run audit show 1042
  sandbox-run audit verify && echo unchanged

Exit status: 0; 1 if verify finds something wrong or search and show find nothing; 125 if the trail
cannot be read or anything else failed.`;

const VERIFY_HELP = `
Finds records that were changed, removed or put in, and the end cut off: each record has the SHA-256 of
the one before, and the last one is noted apart. A process that can write the database can make a new
chain, unless records are signed (audit.hmac_key_file in the policy): then it needs the key. Without the
key it can still put back an older state of the database. Against that, note the number and hash that
verify prints in another place, and give them to --anchor later.

Where audit.keep_days has removed old records, verify says with which one the chain begins. With
--complete that is an error. A break at the end is acknowledged with sandbox-run audit acknowledge.
Another one stays: move the directory away to begin a new trail.

Examples:
  sandbox-run audit verify
  sandbox-run audit verify --key /etc/sandbox-run/audit.key --complete
  sandbox-run audit verify --anchor 1042:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  sandbox-run audit verify --json | jq '.problems[]'
  sandbox-run audit verify --fleet --complete

Exit status: 0 everything is as it was written, 1 it is not, 125 it cannot be verified.`;

const ACKNOWLEDGE_HELP = `
A person who wants records to disappear can remove the end of the trail. Nothing runs until you give this
command. It writes a record that says what is missing. From then on verify reports it as acknowledged.

Examples:
  sandbox-run audit verify; sandbox-run audit acknowledge

Exit status: 0, 1 nothing is missing at the end, 125 it cannot be written.`;

const SEARCH_HELP = `
Examples:
  sandbox-run audit search --text 'git push' --since 7d
  sandbox-run audit search --session 4f1c --type event
  sandbox-run audit search --outcome command.denied --json | jq -r .command
  sandbox-run audit search --fleet --type event --since 1d

Exit status: 0 something was found, 1 nothing, 125 the trail cannot be read.`;

const TAIL_HELP = `
Examples:
  sandbox-run audit tail
  sandbox-run audit tail -n 100 --json | jq -r 'select(.type == "event") | .message'
  sandbox-run audit tail -n 0 -f

Exit status: 0, 125 the trail cannot be read.`;

const SHOW_HELP = `
Examples:
  sandbox-run audit show 1042
  sandbox-run audit show 0b5d3c1e-6d1c-4a51-8a1c-0d7e3b8f7a52 --json

Exit status: 0, 1 there is no such record, 125 the trail cannot be read.`;

const STATS_HELP = `
Examples:
  sandbox-run audit stats --since 1d
  sandbox-run audit stats --json | jq .verdicts

Exit status: 0, 125 the trail cannot be read.`;

/** `sandbox-run audit`: what was decided and done. */
export async function audit(args: readonly string[]): Promise<number> {
  const { command, does, run } = withSubcommands(
    'sandbox-run audit',
    'Shows, searches and verifies the audit trail.',
    HELP_AFTER,
  );
  command('tail', 'the last records', TAIL_HELP)
    .option('-n, --lines <count>', 'how many (default: 20)', parseCount)
    .option('-f, --follow', 'also print new records, until a signal ends it')
    .option('--json', 'print the records as they are stored')
    .action((options: TailOptions) => does(() => tailTrail(options)));
  command('show <id>', 'everything about a request id, or the record of a number', SHOW_HELP)
    .option('--json', 'print the records as they are stored')
    .action((id: string, options: { readonly json?: boolean }) => does(() => showRecords(id, options)));
  command('search', 'the records that have all of this', SEARCH_HELP)
    .option(
      '--text <text>',
      'text in the command, the directory, the request id, the job or the message; upper and lower case are the same',
    )
    .option('--session <id>', 'records of this session')
    .addOption(new Option('--verdict <verdict>', 'what the policy said').choices(VERDICTS))
    .option(
      '--outcome <outcome>',
      'launch, allow (by the gate), or the code of the refusal; or how a command ended (exited, …)',
    )
    .addOption(new Option('--type <type>', 'kind of record').choices(['decision', 'result', 'event']))
    .option(
      '--since <time>',
      'records after this time: 30s, 10m, 2h, 7d ago, or 2025-01-31, 2025-01-31T12:00',
      parseTime,
    )
    .option('--until <time>', 'records before this time, in the same form', parseTime)
    .option('--fleet', 'in the trails of all machines (audit.stream in the policy)')
    .option('--json', 'print the records as they are stored')
    .action((options: SearchOptions) => does(() => searchTrail(options)));
  command('verify', 'whether the trail is as it was written', VERIFY_HELP)
    .option('--key <file>', 'the key that the records were signed with')
    .option('--anchor <seq:hash>', 'a record that you noted elsewhere; it must be in the trail')
    .option('--complete', 'the trail must begin with record 1')
    .option('--fleet', 'the trails of all machines (audit.stream in the policy), each by itself')
    .option('--json', 'one JSON object')
    .action((options: VerifyOptions) => does(async () => (await import('./verify.ts')).verify(options)));
  command('acknowledge', 'go on after a break at the end of the trail', ACKNOWLEDGE_HELP)
    .option('--key <file>', 'the key that records are signed with')
    .action((options: { readonly key?: string }) =>
      does(async () => (await import('./verify.ts')).acknowledge(options)),
    );
  command('stats', 'how much of what', STATS_HELP)
    .option('--since <time>', 'records after this time: 30s, 10m, 2h, 7d ago, or a date', parseTime)
    .option('--json', 'one JSON object')
    .action((options: { readonly since?: number; readonly json?: boolean }) =>
      does(() => trailStatistics(options)),
    );
  return run(args);
}

const parseCount = wholeNumber(0, 999_999_999, 'It must be a whole number.');

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `10m` ago, a date (its beginning, UTC), or a date and a time. */
function parseTime(text: string): number {
  const [, count, unit = ''] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return Date.now() - Number(count) * (UNITS[unit] ?? 0);
  const isDate = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)?)?$/.test(text);
  const isZoned = /(?:Z|[+-]\d\d:\d\d)$/.test(text.slice(10)) || text.length === 10;
  const time = isDate ? Date.parse((isZoned ? text : `${text}Z`).replace(' ', 'T')) : Number.NaN;
  if (Number.isNaN(time))
    throw new InvalidArgumentError('Use 30s, 10m, 2h, 7d, 2025-01-31 or 2025-01-31T12:00.');
  return time;
}

/** Of a table with names from outside, so many rows are shown; more are counted. */
const MOST_ROWS = 12;
/** Names that are told apart; a forged trail could have any number. */
const MOST_NAMES = 10_000;

type Counts = Map<string, number>;

/** The tables, in the order in which they are shown. */
const TABLES = ['types', 'verdicts', 'outcomes', 'approvals', 'objections', 'results', 'events'] as const;

type Table = (typeof TABLES)[number];

/** Prints how much of what the trail has. */
async function trailStatistics({
  since,
  json,
}: {
  readonly since?: number;
  readonly json?: boolean;
}): Promise<number> {
  const statistics = new Statistics();
  await withTrail((trail) => {
    for (const { record } of recordsSince(trail, since)) statistics.count(record);
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
