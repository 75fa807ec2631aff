import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Position } from './head.ts';
import { readLines } from './read-lines.ts';
import { NO_HASH, openLine } from './record-line.ts';
import { listDayFiles } from './trail-files.ts';

/**
 * Where a trail without a head ends, and the bytes of its file behind that; `undefined`: it never began. One whose files are
 * all empty did: the head is on the disk before there is a file.
 */
export function recoverHead(
  directory: string,
): { readonly position: Position; readonly torn: number } | undefined {
  let end: { readonly position: Position; readonly torn: number } | undefined;
  for (const file of listDayFiles(directory).toReversed()) {
    const { seq, hash, size, torn } = lastRecord(join(directory, file));
    end ??= { position: { seq, hash, file, size }, torn };
    if (end === undefined || seq === 0) continue;
    return { ...end, position: { ...end.position, seq, hash } };
  }
  return end;
}

/** The number of the last record in the files before one; 0: there is none. */
export function lastRecordBefore(directory: string, file: string): number {
  for (const name of listDayFiles(directory).toReversed()) {
    const { seq } = name < file ? lastRecord(join(directory, name)) : { seq: 0 };
    if (seq > 0) return seq;
  }
  return 0;
}

/** The last record of a file, the length of its complete lines, and what is behind them. */
function lastRecord(path: string) {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    let last = { seq: 0, hash: NO_HASH, size: 0 };
    for (const { bytes, offset, complete } of readLines(fd)) {
      if (!complete) break;
      const line = openLine(bytes);
      last = { ...last, size: offset + bytes.length + 1 };
      if (line !== undefined && line.seq > last.seq) last = { ...last, seq: line.seq, hash: line.hash };
    }
    return { ...last, torn: fstatSync(fd).size - last.size };
  } finally {
    closeSync(fd);
  }
}
