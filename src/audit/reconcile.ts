import { ftruncateSync } from 'node:fs';
import type { DayFile } from './day-file.ts';
import type { Position } from './head.ts';
import { readLines } from './read-lines.ts';
import { openLine } from './record-line.ts';

/** Something about the trail that has to be said in the trail itself. */
export interface Remark {
  readonly code: 'audit_foreign_lines';
  readonly message: string;
  readonly details: Readonly<Record<string, string | number>>;
}

/** A file whose end is known again. */
export interface Reconciled {
  readonly position: Position;
  readonly remarks: readonly Remark[];
}

/**
 * Looks at what a file has behind the end that the head knows, which is there (`endsAsKnown`). A process that was killed may have left records that the head does
 * not know: those that continue the chain are adopted, a torn last line, which was never reported as written, is cut off.
 * Nothing else is ever taken away: `verify` has to find it. The caller has the lock.
 */
export function reconcile(file: DayFile, position: Position, size: number): Reconciled {
  if (size === position.size) return { position, remarks: [] };
  let end: Position = { ...position, file: file.name };
  let foreign = 0;
  for (const { bytes, offset, complete } of readLines(file.fd, position.size, size)) {
    if (!complete) {
      ftruncateSync(file.fd, offset);
      break;
    }
    const line = openLine(bytes);
    const continues = line?.intact === true && line.seq === end.seq + 1 && line.prev === end.hash;
    if (!continues) foreign += 1;
    end = {
      ...end,
      size: offset + bytes.length + 1,
      ...(continues ? { seq: line.seq, hash: line.hash } : {}),
    };
  }
  const remarks: readonly Remark[] =
    foreign === 0
      ? []
      : [
          {
            code: 'audit_foreign_lines',
            message: `${file.name} had lines that no process of ours wrote; they are left as they are`,
            details: { file: file.name, lines: foreign, after: end.seq },
          },
        ];
  return { position: end, remarks };
}
