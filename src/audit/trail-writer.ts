import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { EventRecord } from '../model/audit-record.ts';
import type { NativeAddon } from '../native/contract.ts';
import { acknowledgement, brokenTrail, endsAsKnown, findBreak, keepTorn } from './break.ts';
import { type DayFile, openDayFile } from './day-file.ts';
import { encodeRecord } from './encode-record.ts';
import { auditFailure } from './failure.ts';
import { readHead, writeHead } from './head.ts';
import { type Reconciled, type Remark, reconcile } from './reconcile.ts';
import { NO_HASH, sealRecord } from './record-line.ts';
import { dayFileName, headPath } from './trail-files.ts';

/** The exclusive lock of an open file; the addon has it. */
export type FileLock = Pick<NativeAddon, 'tryLock' | 'unlock'>;

/** What a trail is written with. */
interface TrailSettings {
  readonly lock: FileLock;
  readonly key: Uint8Array | undefined;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
}

/** Records that are in the log of the file system now. */
export interface Written {
  readonly file: DayFile;
  /** Sequence number of the first of them; the others follow without a gap. */
  readonly first: number;
  /** Where in the file they begin. */
  readonly offset: number;
}

interface OpenedFile {
  readonly file: DayFile;
  readonly size: number;
}

/** Where the next record goes. */
interface Place extends Reconciled {
  readonly file: DayFile;
  readonly follows: string | null;
}

/** A break that was acknowledged, and the record that says so. */
export interface Acknowledged {
  readonly written: Written;
  readonly record: EventRecord;
}

/** Writes records under the lock of the trail. Nothing here waits, but for the disk when a new file is begun. */
interface TrailWriter {
  /** False: another process has the lock. */
  lock(): boolean;
  unlock(): void;
  /** Writes encoded records, all of them or none. The caller has the lock. */
  write(records: readonly string[]): Written;
  /**
   * Goes on after a break: keeps what is torn, and says in the trail what is missing. `undefined`: nothing is. The caller
   * has the lock.
   */
  acknowledge(principal: string): Acknowledged | undefined;
  close(): void;
}

/** Opens nothing yet. Every failure becomes a `SandboxError` `audit.failed`. */
export function createTrailWriter(directory: string, { lock, key, clock }: TrailSettings): TrailWriter {
  let head: number | undefined;
  let day: DayFile | undefined;

  function openHead(): number {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
    head ??= openSync(headPath(directory), O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
    return head;
  }

  /** The file of that name as it is now; a descriptor of one that was moved or deleted is given up. */
  function dayFile(name: string, create: boolean): OpenedFile | undefined {
    const size = day?.name === name ? day.size() : undefined;
    if (day !== undefined && size !== undefined) return { file: day, size };
    day?.retire();
    day = undefined;
    day = openDayFile(directory, name, create);
    return day && { file: day, size: day.size() ?? 0 };
  }

  /**
   * The end of the trail, after what a killed process left behind is put in order. Throws if it is not the end that was
   * written: to go on is for people to say (`acknowledge`).
   */
  function findEnd(fd: number, today: string): Reconciled {
    const known = readHead(fd);
    const opened = known && dayFile(known.file, known.size === 0);
    if (known !== undefined && opened !== undefined && endsAsKnown(opened.file.fd, opened.size, known))
      return reconcile(opened.file, known, opened.size);
    const found = findBreak(directory, known);
    if (found !== undefined) throw brokenTrail(directory, found);
    if (known !== undefined) throw new Error('it was changed this moment by what does not take its lock');
    // Before the first record, and on the disk, so that a trail with records and without a head is one that lost it.
    const position = { seq: 0, hash: NO_HASH, file: today, size: 0 };
    writeHead(fd, position, key);
    fsyncSync(fd);
    return { position, remarks: [] };
  }

  /** Goes on to a new file if the day is over. A clock that was set back never leads to an older one. */
  function findPlace(end: Reconciled, today: string): Place {
    const { file: previous, size: used } = end.position;
    const [, name = today] = [previous, today].sort();
    const opened = dayFile(name, true);
    if (opened === undefined) throw new Error('it was taken away this moment');
    const { file, size } = opened;
    const follows = end.position.seq === 0 ? null : previous;
    // A record counts only once the entry of its file is in the directory on the disk. Once a day, under the lock.
    if (name !== previous || used === 0) syncDirectories();
    if (name === previous) return { ...end, file, follows };
    const begun = reconcile(file, { ...end.position, file: name, size: 0 }, size);
    return { ...begun, remarks: [...end.remarks, ...begun.remarks], file, follows };
  }

  function syncDirectories(): void {
    for (const path of [directory, dirname(directory)]) {
      const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
      try {
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
    }
  }

  function writeLocked(records: readonly string[], fd: number, after?: Reconciled): Written {
    const now = clock();
    const today = dayFileName(now);
    const { position, remarks, file, follows } = findPlace(after ?? findEnd(fd, today), today);
    let { seq, hash } = position;
    let text = '';
    for (const fields of [...remarks.map(encodeRemark), ...records]) {
      const isFirst = position.size === 0 && seq === position.seq;
      const envelope = { seq: seq + 1, time: now, follows: isFirst ? follows : undefined, prev: hash };
      const sealed = sealRecord(fields, envelope, key);
      ({ hash } = sealed);
      seq += 1;
      text += sealed.text;
    }
    const bytes = Buffer.from(text);
    try {
      writeWhole(file.fd, bytes);
      writeHead(fd, { seq, hash, file: file.name, size: position.size + bytes.length }, key);
    } catch (error) {
      ftruncateSync(file.fd, position.size);
      throw auditFailure(file.path, error);
    }
    return { file, first: position.seq + remarks.length + 1, offset: position.size };
  }

  /** The head is written last: a process that is killed before it has acknowledged nothing. */
  function acknowledgeLocked(principal: string, fd: number): Acknowledged | undefined {
    const found = findBreak(directory, readHead(fd));
    if (found === undefined) return undefined;
    const { position } = found;
    const record = acknowledgement(found, keepTorn(directory, found), principal);
    syncDirectories();
    const opened = dayFile(position.file, false);
    if (opened !== undefined) ftruncateSync(opened.file.fd, position.size);
    const written = writeLocked([encodeRecord(record)], fd, { position, remarks: [] });
    return { written, record };
  }

  return {
    acknowledge: (principal) => {
      try {
        return acknowledgeLocked(principal, openHead());
      } catch (error) {
        throw auditFailure(directory, error);
      }
    },
    lock: () => {
      try {
        for (;;) {
          const fd = openHead();
          if (!lock.tryLock(fd)) return false;
          if (fstatSync(fd).nlink > 0) return true;
          // Deleted or replaced: the others lock the new one.
          closeSync(fd);
          head = undefined;
        }
      } catch (error) {
        throw auditFailure(headPath(directory), error);
      }
    },
    unlock: () => lock.unlock(openHead()),
    write: (records) => {
      try {
        return writeLocked(records, openHead());
      } catch (error) {
        throw auditFailure(directory, error);
      }
    },
    close: () => {
      if (head !== undefined) closeSync(head);
      day?.retire();
      head = undefined;
      day = undefined;
    },
  };
}

/** What the trail says about itself. */
function encodeRemark({ code, message, details }: Remark): string {
  return encodeRecord({ type: 'event', code, principal: 'audit', session: undefined, message, details });
}

function writeWhole(fd: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) {
    // A short write is followed by one that says why.
    done += writeSync(fd, bytes, done);
  }
}
