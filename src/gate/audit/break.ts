import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  readSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { EventRecord } from '../../model/index.ts';
import { closingHash, type Head, NO_HASH, openLine, type Position, TAIL_BYTES } from './record-line.ts';
import { listDayFiles, readLines } from './trail-files.ts';

/** A trail whose end is not the one that was written: a power cut or a person removed it. */
interface Break {
  /** `undefined`: the file head is missing or damaged, so it is unknown what was written. */
  readonly head: Head | undefined;
  /** The last whole record that is there. */
  readonly last: number;
  /** Where the chain goes on, so that what is missing stays a gap. */
  readonly position: Position;
  /** Bytes in its file behind that place. */
  readonly torn: number;
}

/** Whether a file has, where the trail ends, the record that it ends with. */
export function endsAsKnown(fd: number, size: number, known: Position): boolean {
  if (known.size === 0) return true;
  if (size < known.size) return false;
  const tail = Buffer.alloc(Math.min(TAIL_BYTES, known.size));
  readSync(fd, tail, 0, tail.length, known.size - tail.length);
  return closingHash(tail) === known.hash;
}

/** The break at the end of a trail; `undefined`: there is none. The caller has the lock. */
export function findBreak(directory: string, head: Head | undefined): Break | undefined {
  if (head === undefined) return withoutHead(directory);
  const path = join(directory, head.file);
  if (!existsSync(path)) {
    if (head.size === 0) return undefined;
    return { ...brokenAt(head, 0, lastRecordBefore(directory, head.file)), torn: 0 };
  }
  const fd = openSync(path, 'r');
  try {
    let last = 0;
    let end = 0;
    let size = 0;
    for (const { bytes, offset, complete } of readLines(fd)) {
      size = offset + bytes.length + (complete ? 1 : 0);
      const line = complete ? openLine(bytes) : undefined;
      if (line?.intact !== true || line.seq > head.seq) continue;
      last = line.seq;
      end = size;
    }
    if (endsAsKnown(fd, size, head)) return undefined;
    const before = end === 0 ? lastRecordBefore(directory, head.file) : last;
    return { ...brokenAt(head, end, before), torn: size - end };
  } finally {
    closeSync(fd);
  }
}

const brokenAt = (head: Head, size: number, last: number) => ({
  ...{ head, last },
  position: { seq: head.seq, hash: head.hash, file: head.file, size },
});

function withoutHead(directory: string): Break | undefined {
  const found = recoverHead(directory);
  return found && { head: undefined, last: found.position.seq, ...found };
}

/** What every process says that would write to such a trail. */
export function brokenTrail(directory: string, { head, last }: Break): SandboxError {
  const what =
    head === undefined
      ? 'its file head is missing or damaged, and so may be records at the end'
      : last === head.seq
        ? `record ${last}, the last one, is not the one that was written`
        : `it ends with record ${last}, but record ${head.seq} was written: a power cut or a person removed the end`;
  return new SandboxError(
    'audit.failed',
    `the audit trail ${directory} is broken: ${what}; look at it with "sandbox-run audit verify", and go on with "sandbox-run audit acknowledge"`,
  );
}

/** Code of the record that says what was acknowledged, and when. */
export const ACKNOWLEDGED = 'audit_break_acknowledged';

/** The record that goes on after a break. `kept`: see {@link keepTorn}. */
export function acknowledgement(found: Break, kept: Kept | undefined, principal: string): EventRecord {
  const { head, last, position, torn } = found;
  const what =
    head === undefined
      ? `the file head was missing or damaged; the trail goes on after record ${last}`
      : `${position.file} ended with record ${last} instead of ${head.seq}`;
  return {
    ...{ type: 'event', code: ACKNOWLEDGED, principal, session: undefined },
    message: `acknowledged: ${what}`,
    details: {
      ...{ file: position.file, last, missing: position.seq - last, headLost: head === undefined },
      ...{ bytes: torn, kept: kept?.name ?? '', sha256: kept?.sha256 ?? '' },
    },
  };
}

/** A file beside the trail with what is no record any more. */
export interface Kept {
  readonly name: string;
  readonly sha256: string;
}

const KEPT = /^\d{4}-\d\d-\d\d\.torn-\d{1,16}(?:-\d{1,3})?$/;

/** Keeps what stands behind the last whole record, on the disk, before it is cut off. `undefined`: nothing does. */
export function keepTorn(directory: string, { position, torn }: Break): Kept | undefined {
  if (torn === 0) return undefined;
  const bytes = readFileSync(join(directory, position.file)).subarray(position.size);
  const plain = `${position.file.replace(/\.jsonl$/, '')}.torn-${position.seq + 1}`;
  const names = [plain, ...Array.from({ length: 999 }, (_, index) => `${plain}-${index + 1}`)];
  const name = names.find((candidate) => !existsSync(join(directory, candidate))) ?? plain;
  const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const fd = openSync(join(directory, name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  return { name, sha256: hashOf(bytes) };
}

/** Whether what an acknowledgement says that it kept is there as it was. */
export function isKept(directory: string, { name, sha256 }: Kept): boolean {
  if (!KEPT.test(name) || !existsSync(join(directory, name))) return false;
  return hashOf(readFileSync(join(directory, name))) === sha256;
}

const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/**
 * Where a trail without a head ends, and the bytes of its file behind that; `undefined`: it never began. One whose files are
 * all empty did: the head is on the disk before there is a file.
 */
function recoverHead(directory: string): { readonly position: Position; readonly torn: number } | undefined {
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
function lastRecordBefore(directory: string, file: string): number {
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
