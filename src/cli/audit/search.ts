import { commandText, type StoredRecord, textOf } from '../../audit/stored-record.ts';
import type { Verdict } from '../../model/decision.ts';
import { printRecords, type ReadRecord, reading, recordsSince, trailDirectory } from './read.ts';

/** What a record has to have. */
export interface SearchOptions {
  readonly text?: string;
  readonly session?: string;
  readonly verdict?: Verdict;
  readonly outcome?: string;
  readonly type?: 'decision' | 'result' | 'event';
  readonly since?: number;
  readonly until?: number;
  readonly json?: boolean;
}

/** Prints what is found; 1 if nothing is. */
export async function searchTrail(options: SearchOptions): Promise<number> {
  const directory = trailDirectory();
  let found = 0;
  function* matches(): Generator<ReadRecord> {
    for (const read of recordsSince(directory, options.since)) {
      if (!isMatch(read.record, options)) continue;
      found += 1;
      yield read;
    }
  }
  reading(() => printRecords(matches(), options.json));
  return found > 0 ? 0 : 1;
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
  return [commandText(record), ...texts].some((one) => one.toLowerCase().includes(text));
}
