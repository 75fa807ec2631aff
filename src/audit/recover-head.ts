import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { Position } from './head.ts';
import { readLines } from './read-lines.ts';
import type { Remark } from './reconcile.ts';
import { NO_HASH, openLine } from './record-line.ts';
import { listDayFiles } from './trail-files.ts';

/** Where a trail without a head ends; `undefined`: nothing was ever written to it. */
export function recoverHead(directory: string): Reconstructed | undefined {
  let end: Position | undefined;
  for (const file of listDayFiles(directory).toReversed()) {
    const last = lastRecord(join(directory, file));
    if (last.size > 0) end ??= { ...last, file };
    if (end === undefined || last.seq === 0) continue;
    end = { ...end, seq: last.seq, hash: last.hash };
    break;
  }
  if (end === undefined) return undefined;
  const remark: Remark = {
    code: 'audit_anchor_lost',
    message: 'the file head was missing or damaged: records before this one may be missing, too',
    details: { file: end.file, last: end.seq },
  };
  return { position: end, remarks: [remark] };
}

interface Reconstructed {
  readonly position: Position;
  readonly remarks: readonly Remark[];
}

/** The last record of a file and the length of its complete lines. */
function lastRecord(path: string): { readonly seq: number; readonly hash: string; readonly size: number } {
  const fd = openSync(path, 'r');
  try {
    let last = { seq: 0, hash: NO_HASH, size: 0 };
    for (const { bytes, offset, complete } of readLines(fd)) {
      if (!complete) break;
      const line = openLine(bytes);
      last = { ...last, size: offset + bytes.length + 1 };
      if (line !== undefined && line.seq > last.seq) last = { ...last, seq: line.seq, hash: line.hash };
    }
    return last;
  } finally {
    closeSync(fd);
  }
}
