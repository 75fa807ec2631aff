import { commandText, isObject, type StoredRecord, textOf } from '../../audit/stored-record.ts';
import { visibleText } from '../../util/visible-text.ts';
import { type Mood, moodOf, type Paint } from '../shared/style.ts';

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
