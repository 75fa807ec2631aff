import type { AuditRecord } from '../model/audit-record.ts';
import { createRecognizer, REMEMBERED_MS } from './patterns/recognize.ts';
import { parseRecord } from './stored-record.ts';
import { createCursor, type Place, somewhatBefore, type TrailCursor } from './trail-cursor.ts';
import type { Written } from './trail-writer.ts';

/**
 * How much of the trail before our first record is looked at, so that a process knows what others did before it: what is
 * remembered, in steps that double. So long that no burst pushes it out of sight at once, and is read in a few milliseconds.
 */
const FIRST_LOOK_BYTES = 128 * 1024;
const MOST_LOOK_BYTES = 4 * 1024 * 1024;
/** The command shall start first, and one after it perhaps as well. */
const DELAY_MS = 50;

/** Looks for patterns in what was written, by us and by others, after it was written. */
interface Observer {
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
  let ahead: TrailCursor | undefined;
  let cursor: TrailCursor | undefined;
  let finished = false;
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    timer = undefined;
    const since = clock() - REMEMBERED_MS;
    try {
      cursor ??= cursorBeforeConspicuous(since);
      for (const line of cursor?.lines() ?? []) lookAt(line, since);
    } catch {
      // The trail was removed while it was open: the next append reports it.
    }
  }

  /** As long as nothing that we wrote can raise an event, what was before it does not have to be known. */
  function cursorBeforeConspicuous(since: number): TrailCursor | undefined {
    if (ahead === undefined) return undefined;
    let place = ahead.place();
    for (const line of ahead.lines()) {
      const start = startOf(line);
      if (isOwn(start) && isConspicuous(line, start))
        return createCursor(directory, placeBefore(directory, place, since));
      place = ahead.place();
    }
    return undefined;
  }

  /** Asked in the order of the trail. */
  function isOwn(start: string): boolean {
    const seq = Number(/^\{"seq":(\d+)/.exec(start)?.[1]);
    while (own[0] !== undefined && own[0].end <= seq) own.shift();
    return own[0] !== undefined && own[0].first <= seq;
  }

  function lookAt(line: Buffer, since: number): void {
    const start = startOf(line);
    const ours = isOwn(start);
    if (isBefore(start, since) || isNothing(line, start, ours)) return;
    const record = parseRecord(line);
    if (record === undefined) return;
    for (const event of recognizer.show(record, ours)) append(event).catch(() => {});
  }

  return {
    wrote: ({ file, first, offset }, count) => {
      own.push({ first, end: first + count });
      ahead ??= createCursor(directory, { name: file.name, offset });
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

/** A place before `begin` where a record is from before `since`. */
function placeBefore(directory: string, begin: Place, since: number): Place {
  let place = begin;
  for (let bytes = FIRST_LOOK_BYTES; bytes <= MOST_LOOK_BYTES; bytes *= 2) {
    const earlier = somewhatBefore(directory, begin, bytes);
    if (earlier.name === place.name && earlier.offset === place.offset) break;
    place = earlier;
    if (beginsBefore(directory, place, since)) break;
  }
  return place;
}

function beginsBefore(directory: string, place: Place, since: number): boolean {
  let lines = 0;
  for (const line of createCursor(directory, place).lines()) {
    lines += 1;
    // The first one is the rest of a line.
    if (lines === 2) return isBefore(startOf(line), since);
  }
  return false;
}

/** What tells records apart without parsing them. */
function startOf(line: Buffer): string {
  return line.toString('latin1', 0, 160);
}

/** A pattern may end with it: a person was asked, it was not launched, or it runs a file. In a text, quotes are escaped. */
function isConspicuous(line: Buffer, start: string): boolean {
  if (!start.includes('"type":"decision"')) return false;
  const isLaunched = line.includes(',"outcome":"launch",') || line.includes(',"outcome":"allow",');
  return !isLaunched || line.includes(',"approval":{') || line.includes(',"executes":["');
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
