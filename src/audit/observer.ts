import type { AuditRecord } from '../model/audit-record.ts';
import { REMEMBERED_MS, Recognizer } from './patterns.ts';
import { parseRecord } from './stored-record.ts';
import { type Place, somewhatBefore, TrailCursor } from './trail-files.ts';
import type { Written } from './trail-writer.ts';

/**
 * How much of the trail before our first record is looked at, so that a process knows what others did before it: what is
 * remembered, in steps that double. So long that no burst pushes it out of sight at once, and is read in a few milliseconds.
 */
const FIRST_LOOK_BYTES = 128 * 1024;
const MOST_LOOK_BYTES = 4 * 1024 * 1024;
/** The command shall start first, and one after it perhaps as well. */
const DELAY_MS = 50;

/**
 * Looks for patterns in what was written, by us and by others, after it was written. Raises events through `append`; one that
 * cannot be written is lost, the next append says why.
 */
export class TrailObserver {
  private readonly directory: string;
  private readonly append: (record: AuditRecord) => Promise<void>;
  private readonly clock: () => number;
  private readonly recognizer = new Recognizer();
  private readonly own: { readonly first: number; readonly end: number }[] = [];
  private ahead: TrailCursor | undefined;
  private cursor: TrailCursor | undefined;
  private finished = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(directory: string, append: (record: AuditRecord) => Promise<void>, clock: () => number) {
    this.directory = directory;
    this.append = append;
    this.clock = clock;
  }

  wrote({ file, first, offset }: Written, count: number): void {
    this.own.push({ first, end: first + count });
    this.ahead ??= new TrailCursor(this.directory, { name: file.name, offset });
    if (!this.finished) this.timer ??= setTimeout(() => this.look(), DELAY_MS);
  }

  /** Looks at what was not looked at yet, and at nothing from then on. */
  finish(): void {
    this.finished = true;
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    this.look();
  }

  private look(): void {
    this.timer = undefined;
    const since = this.clock() - REMEMBERED_MS;
    try {
      this.cursor ??= this.cursorBeforeConspicuous(since);
      for (const line of this.cursor?.lines() ?? []) this.lookAt(line, since);
    } catch {
      // The trail was removed while it was open: the next append reports it.
    }
  }

  /** As long as nothing that we wrote can raise an event, what was before it does not have to be known. */
  private cursorBeforeConspicuous(since: number): TrailCursor | undefined {
    if (this.ahead === undefined) return undefined;
    let { place } = this.ahead;
    for (const line of this.ahead.lines()) {
      const start = startOf(line);
      if (this.isOwn(start) && isConspicuous(line, start))
        return new TrailCursor(this.directory, placeBefore(this.directory, place, since));
      ({ place } = this.ahead);
    }
    return undefined;
  }

  /** Asked in the order of the trail. */
  private isOwn(start: string): boolean {
    const { own } = this;
    const seq = Number(/^\{"seq":(\d+)/.exec(start)?.[1]);
    while (own[0] !== undefined && own[0].end <= seq) own.shift();
    return own[0] !== undefined && own[0].first <= seq;
  }

  private lookAt(line: Buffer, since: number): void {
    const start = startOf(line);
    const ours = this.isOwn(start);
    if (isBefore(start, since) || isNothing(line, start, ours)) return;
    const record = parseRecord(line);
    if (record === undefined) return;
    for (const event of this.recognizer.show(record, ours)) this.append(event).catch(() => {});
  }
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
  for (const line of new TrailCursor(directory, place).lines()) {
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
