import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { NativeAddon } from '../../confine/native/contract.ts';
import type { EventRecord } from '../../model/index.ts';
import { acknowledgement, brokenTrail, endsAsKnown, findBreak, keepTorn } from './break.ts';
import { auditFailure, DayFile } from './day-file.ts';
import { encodeRecord } from './encode-record.ts';
import { NO_HASH, openLine, type Position, readHead, sealRecord, writeHead } from './record-line.ts';
import { dayFileName, headPath, listDayFiles, readLines } from './trail-files.ts';

const DAY_MS = 24 * 3_600_000;

/** The exclusive lock of an open file; the addon has it. */
export type FileLock = Pick<NativeAddon, 'tryLock' | 'unlock'>;

/** What a trail is written with. */
interface TrailSettings {
  readonly lock: FileLock;
  readonly key: Uint8Array | undefined;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Days whose files stay when a new one begins; `undefined`: all. */
  readonly keepDays: number | undefined;
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

/** Something about the trail that has to be said in the trail itself. */
interface Remark {
  readonly code: 'audit_foreign_lines' | 'audit_days_removed';
  readonly message: string;
  readonly details: Readonly<Record<string, string | number>>;
}

/** A file whose end is known again. */
interface Reconciled {
  readonly position: Position;
  readonly remarks: readonly Remark[];
  /** The one that the position names, where it was looked at just now. */
  readonly file?: DayFile;
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

/**
 * Writes records under the lock of the trail. Nothing here waits, but for the disk when a new file is begun. Opens nothing
 * before it is needed. Every failure becomes a `SandboxError` `audit.failed`.
 */
export class TrailWriter {
  private readonly directory: string;
  private readonly settings: TrailSettings;
  private head: number | undefined;
  private day: DayFile | undefined;

  constructor(directory: string, settings: TrailSettings) {
    this.directory = directory;
    this.settings = settings;
  }

  /** False: another process has the lock. */
  lock(): boolean {
    try {
      for (;;) {
        const fd = this.openHead();
        if (!this.settings.lock.tryLock(fd)) return false;
        if (fstatSync(fd).nlink > 0) return true;
        // Deleted or replaced: the others lock the new one.
        closeSync(fd);
        this.head = undefined;
      }
    } catch (error) {
      throw auditFailure(headPath(this.directory), error);
    }
  }

  unlock(): void {
    this.settings.lock.unlock(this.openHead());
  }

  /** Writes encoded records, all of them or none. The caller has the lock. */
  write(records: readonly string[]): Written {
    try {
      return this.writeLocked(records, this.openHead());
    } catch (error) {
      throw auditFailure(this.directory, error);
    }
  }

  /**
   * Goes on after a break: keeps what is torn, and says in the trail what is missing. `undefined`: nothing is. The caller
   * has the lock.
   */
  acknowledge(principal: string): Acknowledged | undefined {
    try {
      return this.acknowledgeLocked(principal, this.openHead());
    } catch (error) {
      throw auditFailure(this.directory, error);
    }
  }

  close(): void {
    if (this.head !== undefined) closeSync(this.head);
    this.day?.retire();
    this.head = undefined;
    this.day = undefined;
  }

  private openHead(): number {
    const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
    this.head ??= openSync(headPath(this.directory), O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
    return this.head;
  }

  /** The file of that name as it is now; a descriptor of one that was moved or deleted is given up. */
  private dayFile(name: string, create: boolean): OpenedFile | undefined {
    const size = this.day?.name === name ? this.day.size() : undefined;
    if (this.day !== undefined && size !== undefined) return { file: this.day, size };
    this.day?.retire();
    this.day = undefined;
    this.day = DayFile.open(this.directory, name, create);
    return this.day && { file: this.day, size: this.day.size() ?? 0 };
  }

  /**
   * The end of the trail, after what a killed process left behind is put in order. Throws if it is not the end that was
   * written: to go on is for people to say (`acknowledge`).
   */
  private findEnd(fd: number, today: string): Reconciled {
    const known = readHead(fd);
    const opened = known && this.dayFile(known.file, known.size === 0);
    if (known !== undefined && opened !== undefined && endsAsKnown(opened.file.fd, opened.size, known))
      return reconcile(opened.file, known, opened.size);
    const found = findBreak(this.directory, known);
    if (found !== undefined) throw brokenTrail(this.directory, found);
    if (known !== undefined) throw new Error('it was changed this moment by what does not take its lock');
    // Before the first record, and on the disk, so that a trail with records and without a head is one that lost it.
    const position = { seq: 0, hash: NO_HASH, file: today, size: 0 };
    writeHead(fd, position, this.settings.key);
    fsyncSync(fd);
    return { position, remarks: [] };
  }

  /** Goes on to a new file if the day is over. A clock that was set back never leads to an older one. */
  private findPlace(end: Reconciled, today: string): Place {
    const { file: previous, size: used } = end.position;
    const name = previous < today ? today : previous;
    const follows = end.position.seq === 0 ? null : previous;
    if (name === previous && used !== 0 && end.file !== undefined) return { ...end, file: end.file, follows };
    const opened = this.dayFile(name, true);
    if (opened === undefined) throw new Error('it was taken away this moment');
    const { file, size } = opened;
    // A record counts only once the entry of its file is in the directory on the disk. Once a day, under the lock.
    if (name !== previous || used === 0) this.syncDirectories();
    if (name === previous) return { ...end, file, follows };
    const begun = reconcile(file, { ...end.position, file: name, size: 0 }, size);
    return {
      ...begun,
      remarks: [...end.remarks, ...begun.remarks, ...this.removeOldDays(previous)],
      file,
      follows,
    };
  }

  /** The oldest first, never the one that the new file follows: what is left is the end of the chain without a gap. */
  private removeOldDays(previous: string): readonly Remark[] {
    const { keepDays, clock } = this.settings;
    if (keepDays === undefined) return [];
    const first = dayFileName(clock() - keepDays * DAY_MS);
    const old = listDayFiles(this.directory).filter((name) => name < first && name < previous);
    for (const name of old) unlinkSync(join(this.directory, name));
    if (old.length === 0) return [];
    const [oldest = '', newest = ''] = [old[0], old.at(-1)];
    const message = `${old.length} files of days before ${first} were removed (audit.keep_days)`;
    return [{ code: 'audit_days_removed', message, details: { files: old.length, oldest, newest } }];
  }

  private syncDirectories(): void {
    for (const path of [this.directory, dirname(this.directory)]) {
      const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
      try {
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
    }
  }

  private writeLocked(records: readonly string[], fd: number, after?: Reconciled): Written {
    const { key, clock } = this.settings;
    const now = clock();
    const today = dayFileName(now);
    const { position, remarks, file, follows } = this.findPlace(after ?? this.findEnd(fd, today), today);
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
  private acknowledgeLocked(principal: string, fd: number): Acknowledged | undefined {
    const found = findBreak(this.directory, readHead(fd));
    if (found === undefined) return undefined;
    const { position } = found;
    const record = acknowledgement(found, keepTorn(this.directory, found), principal);
    this.syncDirectories();
    const opened = this.dayFile(position.file, false);
    if (opened !== undefined) ftruncateSync(opened.file.fd, position.size);
    const written = this.writeLocked([encodeRecord(record)], fd, { position, remarks: [] });
    return { written, record };
  }
}

/**
 * Looks at what a file has behind the end that the head knows, which is there (`endsAsKnown`). A process that was killed may have left records that the head does
 * not know: those that continue the chain are adopted, a torn last line, which was never reported as written, is cut off.
 * Nothing else is ever taken away: `verify` has to find it. The caller has the lock.
 */
function reconcile(file: DayFile, position: Position, size: number): Reconciled {
  if (size === position.size) return { position, remarks: [], file };
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
  return { position: end, remarks, file };
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
