import { closeSync, constants, fstatSync, fsyncSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import type { NativeAddon } from '../native/contract.ts';
import { type DayFile, openDayFile } from './day-file.ts';
import { encodeRecord } from './encode-record.ts';
import { auditFailure } from './failure.ts';
import { readHead, writeHead } from './head.ts';
import { lossOf, type Reconciled, type Remark, reconcile } from './reconcile.ts';
import { NO_HASH, sealRecord } from './record-line.ts';
import { recoverHead } from './recover-head.ts';
import { dayFileName, headPath } from './trail-files.ts';

/** The exclusive lock of an open file; the addon has it. */
export type FileLock = Pick<NativeAddon, 'tryLock' | 'unlock'>;

/** What a trail is written with. */
export interface TrailSettings {
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

/** Writes records under the lock of the trail. Nothing here waits, but for the disk when a new file is begun. */
export interface TrailWriter {
  /** False: another process has the lock. */
  lock(): boolean;
  unlock(): void;
  /** Writes encoded records, all of them or none. The caller has the lock. */
  write(records: readonly string[]): Written;
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

  /** The end of the trail, after what a killed process left behind is put in order. */
  function findEnd(fd: number, today: string): Reconciled {
    const known = readHead(fd);
    const start = known === undefined ? recoverHead(directory) : { position: known, remarks: [] };
    if (start === undefined) {
      // Before the first record, so that a trail with records and without a head is always one that lost it.
      const position = { seq: 0, hash: NO_HASH, file: today, size: 0 };
      writeHead(fd, position, key);
      return { position, remarks: [], torn: false };
    }
    const opened = dayFile(start.position.file, start.position.size === 0);
    const found: Reconciled =
      opened === undefined
        ? { position: { ...start.position, size: 0 }, remarks: [lossOf(start.position, 0)], torn: false }
        : reconcile(opened.file, start.position, opened.size);
    return { ...found, remarks: [...start.remarks, ...found.remarks] };
  }

  /** Goes on to a new file if the day is over. A clock that was set back never leads to an older one. */
  function findPlace(fd: number, now: number): Place {
    const today = dayFileName(now);
    const end = findEnd(fd, today);
    const { file: previous, size: used } = end.position;
    const [, name = today] = [previous, today].sort();
    const opened = dayFile(name, true);
    if (opened === undefined) throw new Error('it was taken away this moment');
    const { file, size } = opened;
    const follows = end.position.seq === 0 ? null : previous;
    // Nobody may rely on a record whose file is not in its directory on the disk. Once a day, under the lock.
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

  function writeLocked(records: readonly string[], fd: number): Written {
    const now = clock();
    const { position, remarks, torn, file, follows } = findPlace(fd, now);
    let { seq, hash } = position;
    let text = torn ? '\n' : '';
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

  return {
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
