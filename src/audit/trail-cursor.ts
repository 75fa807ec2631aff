import { closeSync, fstatSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { offsetOfLastLines, readLines } from './read-lines.ts';
import { listDayFiles } from './trail-files.ts';

/** A place in a trail. */
export interface Place {
  /** Of a day's file. */
  readonly name: string;
  readonly offset: number;
}

/** Walks a trail that may be growing. */
export interface TrailCursor {
  /** The complete lines since the last call, without their line breaks. Throws if a file cannot be read. */
  lines(): Generator<Buffer>;
  /** Behind the last line that was given. */
  place(): Place;
}

/** Begins at a place, with the rest of its line. */
export function createCursor(directory: string, start: Place): TrailCursor {
  let at = start;
  function* linesOf(name: string): Generator<Buffer> {
    const fd = openSync(join(directory, name), 'r');
    try {
      if (name !== at.name) at = { name, offset: 0 };
      for (const { bytes, offset, complete } of readLines(fd, at.offset, fstatSync(fd).size)) {
        if (!complete) break;
        at = { name, offset: offset + bytes.length + 1 };
        yield bytes;
      }
    } finally {
      closeSync(fd);
    }
  }
  return {
    *lines() {
      for (const name of listDayFiles(directory)) if (name >= at.name) yield* linesOf(name);
    },
    place: () => at,
  };
}

/** The complete lines of one file. */
export function* linesOfFile(directory: string, name: string): Generator<Buffer> {
  const fd = openSync(join(directory, name), 'r');
  try {
    for (const { bytes, complete } of readLines(fd)) if (complete) yield bytes;
  } finally {
    closeSync(fd);
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
