import type { AuditRecord } from '../model/audit-record.ts';
import { createRecognizer, REMEMBERED_MS } from './patterns/recognize.ts';
import { parseRecord } from './stored-record.ts';
import { createCursor, type Place, somewhatBefore, type TrailCursor } from './trail-cursor.ts';
import type { Written } from './trail-writer.ts';

/** How much of the trail before our first record is looked at, so that a process knows what others did before it. */
const LOOK_BACK_BYTES = 128 * 1024;
/** The command shall start first. */
const DELAY_MS = 5;

/** Looks for patterns in what was written, by us and by others, after it was written. */
export interface Observer {
  wrote(written: Written, count: number): void;
  /** Looks at what was not looked at yet, and at nothing from then on. */
  finish(): void;
}

/** Raises events through `append`; one that cannot be written is lost, the next append says why. */
export function createObserver(
  directory: string,
  append: (record: AuditRecord) => Promise<void>,
  clock: () => number,
): Observer {
  const recognizer = createRecognizer();
  const own: { readonly first: number; readonly end: number }[] = [];
  let begin: Place | undefined;
  let cursor: TrailCursor | undefined;
  let finished = false;
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    timer = undefined;
    if (begin === undefined) return;
    const since = clock() - REMEMBERED_MS;
    try {
      cursor ??= createCursor(directory, somewhatBefore(directory, begin, LOOK_BACK_BYTES));
      for (const line of cursor.lines()) lookAt(line, since);
    } catch {
      // The trail went away under us: whoever appends next is told.
    }
  }

  function lookAt(line: Buffer, since: number): void {
    const start = line.toString('latin1', 0, 160);
    const seq = Number(/^\{"seq":(\d+)/.exec(start)?.[1]);
    while (own[0] !== undefined && own[0].end <= seq) own.shift();
    const isOwn = own[0] !== undefined && own[0].first <= seq;
    if (isBefore(start, since) || isNothing(line, start, isOwn)) return;
    const record = parseRecord(line);
    if (record === undefined) return;
    for (const event of recognizer.show(record, isOwn)) append(event).catch(() => {});
  }

  return {
    wrote: ({ file, first, offset }, count) => {
      own.push({ first, end: first + count });
      begin ??= { name: file.name, offset };
      if (!finished) timer ??= setTimeout(look, DELAY_MS);
    },
    finish: () => {
      finished = true;
      if (timer === undefined) return;
      clearTimeout(timer);
      look();
    },
  };
}

/**
 * Records that no pattern needs, recognized without parsing them: results, and what others were allowed and wrote nothing.
 * In a text of a record the quotes would be escaped.
 */
function isNothing(line: Buffer, start: string, isOwn: boolean): boolean {
  if (start.includes('"type":"result"')) return true;
  return !isOwn && line.includes(',"verdict":"allow","risk":') && !line.includes(',"files":{"writes":["');
}

function isBefore(start: string, since: number): boolean {
  const time = /"time":"([^"]*)"/.exec(start)?.[1];
  return time !== undefined && Date.parse(time) < since;
}
