import { closeSync, fstatSync, openSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditRecord } from '../model/audit-record.ts';
import { createRecognizer } from './patterns/recognize.ts';
import { type FileLine, readLines } from './read-lines.ts';
import { parseRecord } from './stored-record.ts';
import { listDayFiles } from './trail-files.ts';
import type { Written } from './trail-writer.ts';

/** How much of the trail before our first record is looked at, so that a process knows what others did before it. */
const LOOK_BACK_BYTES = 256 * 1024;
/** The command shall start first. */
const DELAY_MS = 5;

interface Place {
  readonly name: string;
  readonly offset: number;
}

/** Looks for patterns in what was written, by us and by others, after it was written. */
export interface Observer {
  wrote(written: Written, count: number): void;
  /** Looks at what was not looked at yet, and at nothing from then on. */
  finish(): void;
}

/** Raises events through `append`; one that cannot be written is lost, the next append says why. */
export function createObserver(directory: string, append: (record: AuditRecord) => Promise<void>): Observer {
  const recognizer = createRecognizer();
  const own: { readonly first: number; readonly end: number }[] = [];
  let at: Place | undefined;
  let begin: Place | undefined;
  let finished = false;
  let timer: NodeJS.Timeout | undefined;

  function look(): void {
    timer = undefined;
    try {
      at ??= begin && before(directory, begin);
      for (const name of listDayFiles(directory)) {
        if (at === undefined || name < at.name) continue;
        lookAt(name, name === at.name ? at.offset : 0);
      }
    } catch {
      // The trail went away under us: whoever appends next is told.
    }
  }

  function lookAt(name: string, from: number): void {
    const fd = openSync(join(directory, name), 'r');
    try {
      let end = from;
      for (const line of readLines(fd, from, fstatSync(fd).size)) {
        if (!line.complete) break;
        end = line.offset + line.bytes.length + 1;
        lookAtLine(line);
      }
      at = { name, offset: end };
    } finally {
      closeSync(fd);
    }
  }

  function lookAtLine({ bytes }: FileLine): void {
    // Results are half of the trail, and no pattern needs them.
    if (bytes.subarray(0, 160).includes('"type":"result"')) return;
    const record = parseRecord(bytes);
    if (record === undefined) return;
    while (own[0] !== undefined && own[0].end <= record.seq) own.shift();
    const isOwn = own[0] !== undefined && own[0].first <= record.seq;
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

/** Some way before a place: in the file of the day before if this one has just begun. */
function before(directory: string, { name, offset }: Place): Place {
  if (offset >= LOOK_BACK_BYTES) return { name, offset: offset - LOOK_BACK_BYTES };
  const yesterday = listDayFiles(directory).findLast((other) => other < name);
  if (yesterday === undefined) return { name, offset: 0 };
  const { size } = statSync(join(directory, yesterday));
  return { name: yesterday, offset: Math.max(0, size - LOOK_BACK_BYTES) };
}
