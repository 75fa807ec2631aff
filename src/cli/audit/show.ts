import { isObject, objectsOf, type StoredRecord, textOf } from '../../audit/stored-record.ts';
import { linesOfFile } from '../../audit/trail-cursor.ts';
import { listDayFiles } from '../../audit/trail-files.ts';
import { visibleJson, visibleText } from '../../util/visible-text.ts';
import { printError, printOut } from '../shared/print.ts';
import { moodOf, type Paint, paintFor } from '../shared/style.ts';
import { describeRecord } from './line.ts';
import { type ReadRecord, reading, recordsFrom, trailDirectory } from './read.ts';

/** Prints all records of a request, or the record with a number; 1 if there is none. */
export async function showRecords(id: string, { json }: { readonly json?: boolean }): Promise<number> {
  const directory = trailDirectory();
  const found = reading(() => find(directory, id));
  if (found.length === 0) {
    printError(`the audit trail has no record ${id}`);
    return 1;
  }
  const paint = paintFor(1);
  for (const { record, line } of found)
    printOut(json === true ? `${visibleJson(line.toString())}\n` : describeWhole(record, paint));
  return 0;
}

/** Newest file first: what is asked about is mostly young. The records of one request may lie in files that follow. */
function find(directory: string, id: string): readonly ReadRecord[] {
  const isNumber = /^[1-9]\d{0,15}$/.test(id);
  const isWanted = ({ seq, fields }: StoredRecord) =>
    isNumber ? seq === Number(id) : textOf(fields, 'request') === id;
  let found: readonly ReadRecord[] = [];
  for (const name of listDayFiles(directory).toReversed()) {
    const lines = withMark(linesOfFile(directory, name), isNumber ? `{"seq":${id},` : JSON.stringify(id));
    const here = [...recordsFrom(lines)].filter(({ record }) => isWanted(record));
    found = [...here, ...found];
    if (here.some(({ record }) => isNumber || record.type === 'decision')) break;
  }
  return found;
}

/** Most lines need not be parsed. */
function* withMark(lines: Iterable<Buffer>, mark: string): Generator<Buffer> {
  for (const line of lines) if (line.includes(mark)) yield line;
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
