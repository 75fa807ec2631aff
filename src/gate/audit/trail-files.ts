import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The lock file and anchor of a trail. */
export function headPath(directory: string): string {
  return join(directory, 'head');
}

/** The file of a day (UTC). */
export function dayFileName(time: number): string {
  return `${new Date(time).toISOString().slice(0, 10)}.jsonl`;
}

const DAY_FILE = /^\d{4}-\d\d-\d\d\.jsonl$/;

/** Names of the files of a trail, oldest first. Throws if the directory cannot be read. */
export function listDayFiles(directory: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => DAY_FILE.test(name))
    .sort();
}

/** One line of a file, without its line break. */
export interface FileLine {
  readonly bytes: Buffer;
  /** Where it begins in the file. */
  readonly offset: number;
  /** It ends with a line break; otherwise it is the torn last one. */
  readonly complete: boolean;
}

const CHUNK = 256 * 1024;
/** A line of the trail is shorter. What is longer is given in pieces, which are no records. */
const LONGEST = 4 * 1024 * 1024;

/** The lines of an open file between two offsets. A whole file is never in memory. */
export function* readLines(fd: number, from = 0, to = Number.POSITIVE_INFINITY): Generator<FileLine> {
  let rest: Buffer = Buffer.alloc(0);
  let restOffset = from;
  for (;;) {
    const end = restOffset + rest.length;
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(0, to - end)));
    const length = chunk.length === 0 ? 0 : readSync(fd, chunk, 0, chunk.length, end);
    if (length === 0) break;
    const text =
      rest.length === 0 ? chunk.subarray(0, length) : Buffer.concat([rest, chunk.subarray(0, length)]);
    let start = 0;
    for (let at = text.indexOf(10, rest.length); at !== -1; at = text.indexOf(10, start)) {
      yield { bytes: text.subarray(start, at), offset: restOffset + start, complete: true };
      start = at + 1;
    }
    rest = text.subarray(start);
    restOffset += start;
    if (rest.length > LONGEST) {
      yield { bytes: rest, offset: restOffset, complete: true };
      restOffset += rest.length;
      rest = Buffer.alloc(0);
    }
  }
  if (rest.length > 0) yield { bytes: rest, offset: restOffset, complete: false };
}

/** The lines of a file, as far as it goes now. */
export function* linesOfFile(path: string, from = 0): Generator<FileLine> {
  const fd = openSync(path, 'r');
  try {
    yield* readLines(fd, from, fstatSync(fd).size);
  } finally {
    closeSync(fd);
  }
}

/** Where the last lines of a file begin: at most `count` of them, none of them torn at its beginning. */
function offsetOfLastLines(fd: number, size: number, count: number): number {
  let left = count + 1;
  const chunk = Buffer.allocUnsafe(CHUNK);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - CHUNK);
    const length = readSync(fd, chunk, 0, end - start, start);
    for (let at = length - 1; at >= 0; at -= 1) {
      if (chunk[at] !== 10) continue;
      left -= 1;
      if (left === 0) return start + at + 1;
    }
    end = start;
  }
  return 0;
}

/** A place in a trail. */
export interface Place {
  /** Of a day's file. */
  readonly name: string;
  readonly offset: number;
}

/** Walks a trail that may be growing. */
export class TrailCursor {
  private readonly directory: string;
  private at: Place;

  /** Begins at a place, with the rest of its line. */
  constructor(directory: string, start: Place) {
    this.directory = directory;
    this.at = start;
  }

  /** Behind the last line that was given. */
  get place(): Place {
    return this.at;
  }

  /** The complete lines since the last call, without their line breaks. Throws if a file cannot be read. */
  *lines(): Generator<Buffer> {
    for (const name of listDayFiles(this.directory)) {
      if (name < this.at.name) continue;
      const from = name === this.at.name ? this.at.offset : 0;
      for (const { bytes, offset, complete } of linesOfFile(join(this.directory, name), from)) {
        if (!complete) break;
        this.at = { name, offset: offset + bytes.length + 1 };
        yield bytes;
      }
    }
  }
}

/** The beginning of a trail, or of what was written on a day and later. */
export const beginning = (day = ''): Place => ({ name: day, offset: 0 });

/** Where the last lines of a trail begin: at most `count` of them. */
export function lastLines(directory: string, count: number): Place {
  let left = count;
  let place = beginning();
  for (const name of listDayFiles(directory).toReversed()) {
    const fd = openSync(join(directory, name), 'r');
    try {
      const { size } = fstatSync(fd);
      const offset = offsetOfLastLines(fd, size, left);
      place = { name, offset };
      if (offset > 0) break;
      for (const _ of readLines(fd, 0, size)) left -= 1;
    } finally {
      closeSync(fd);
    }
    if (left <= 0) break;
  }
  return place;
}

/** Some bytes before a place: in the file before if this one has just begun. Rarely the beginning of a line. */
export function somewhatBefore(directory: string, { name, offset }: Place, bytes: number): Place {
  if (offset >= bytes) return { name, offset: offset - bytes };
  const before = listDayFiles(directory).findLast((other) => other < name);
  if (before === undefined) return { name, offset: 0 };
  return { name: before, offset: Math.max(0, statSync(join(directory, before)).size - bytes) };
}
