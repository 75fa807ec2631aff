import { ftruncateSync, readSync } from 'node:fs';
import type { DayFile } from './day-file.ts';
import type { Position } from './head.ts';
import { readLines } from './read-lines.ts';
import { openLine } from './record-line.ts';

/** Something about the trail that has to be said in the trail itself. */
export interface Remark {
  readonly code: 'audit_records_lost' | 'audit_anchor_lost' | 'audit_foreign_lines';
  readonly message: string;
  readonly details: Readonly<Record<string, string | number>>;
}

/** A file whose end is known again. */
export interface Reconciled {
  readonly position: Position;
  readonly remarks: readonly Remark[];
  /** The file ends in the middle of a line that must stay as it is. */
  readonly torn: boolean;
}

/**
 * Compares a file with what the head says about it. A process that was killed may have left records that the head does
 * not know: those that continue the chain are adopted, a torn last line, which nobody was told was written, is cut off.
 * Nothing else is ever taken away: `verify` has to find it. The caller has the lock.
 */
export function reconcile(file: DayFile, position: Position, size: number): Reconciled {
  if (size === position.size) return { position, remarks: [], torn: false };
  if (size < position.size) return afterLoss(file, position, size);
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
  return { position: end, remarks, torn: false };
}

/** The chain goes on from the record that was the last one, so that what is lost stays a gap. */
function afterLoss(file: DayFile, position: Position, size: number): Reconciled {
  return {
    position: { ...position, size },
    remarks: [lossOf(position, size)],
    torn: size > 0 && lastByte(file.fd, size) !== 10,
  };
}

/** What is said about a file that is shorter than it was, or gone. */
export function lossOf({ file, seq, size: expected }: Position, size: number): Remark {
  return {
    code: 'audit_records_lost',
    message: `${file} was shorter than it had been; the last records before this one are missing`,
    details: { file, bytes: expected - size, last: seq },
  };
}

function lastByte(fd: number, size: number): number | undefined {
  const byte = Buffer.alloc(1);
  readSync(fd, byte, 0, 1, size - 1);
  return byte[0];
}
