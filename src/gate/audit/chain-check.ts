import { isObject } from '../../base/is-object.ts';
import type { AuditProblem } from '../../model/index.ts';
import { macOf, NO_HASH, type OpenedLine, openLine } from './record-line.ts';
import { parseRecord, type StoredRecord, textOf } from './stored-record.ts';

/** Code of the record that says which break was acknowledged, and when. */
export const ACKNOWLEDGED = 'audit_break_acknowledged';
/** Code of the record that says that older ones were removed, as `audit.keep_days` demands. */
export const DAYS_REMOVED = 'audit_days_removed';
/** Code of the record that says that earlier ones were taken over from files. */
export const IMPORTED = 'audit_imported';

/** Where a chain ends or has to pass. */
interface Place {
  readonly seq: number;
  readonly hash: string;
}

/** What a chain is compared with. */
interface Expected {
  readonly report: (problem: AuditProblem) => void;
  readonly key: Uint8Array | undefined;
  readonly head: Place | undefined;
  readonly anchor: Place | undefined;
}

/** Codes of records in which older versions reported damage of the trail, with the problem that each one is. */
const CONFESSIONS: Readonly<Record<string, string>> = {
  audit_records_lost: 'records before this one were missing when it was written',
  audit_anchor_lost: 'head was missing when it was written: records before it may have been removed',
};

/** The record before the next one to check. */
interface LastRecord {
  readonly seq: number;
  /** Two records may claim one number: then either hash will do for the next. */
  readonly hashes: readonly string[];
}

/** Checks the hash chain of a trail line by line, in order. Memory does not grow with the trail. */
export class ChainCheck {
  readonly #expected: Expected;
  readonly #gaps = new Gaps();
  #records = 0;
  #first: number | undefined;
  #last: LastRecord | undefined;
  #signedRecords = 0;
  #signedSince: number | undefined;
  #headSeen: boolean;
  #anchorSeen: boolean;
  /** Numbers with which the trail may begin, as its own records say. */
  readonly #beginnings = new Set([1]);
  readonly #acknowledged: string[] = [];

  constructor(expected: Expected) {
    const { head, anchor } = expected;
    this.#expected = expected;
    this.#headSeen = head === undefined || head.seq === 0;
    this.#anchorSeen = anchor === undefined;
  }

  /** `row`: the number that the line is stored under. */
  line(bytes: Buffer, row?: number): void {
    const opened = openLine(bytes);
    if (opened === undefined || (row !== undefined && opened.seq !== row)) {
      const where = row === undefined ? 'a line' : `the line of record ${row}`;
      this.#report('unreadable', `${where} is not that record: it was changed or put in`, row);
      return;
    }
    this.#records += 1;
    this.#checkRecord(opened, bytes);
  }

  finish() {
    this.#checkEnd();
    const signed =
      this.#expected.key === undefined
        ? undefined
        : { records: this.#signedRecords, since: this.#signedSince };
    const last = this.#last;
    return {
      records: this.#records,
      first: this.#first,
      /** Whether the trail says that it begins with its first record. */
      beginsAsSaid: this.#first === undefined || this.#beginnings.has(this.#first),
      acknowledged: this.#acknowledged,
      last: last && { seq: last.seq, hash: last.hashes[0] ?? '' },
      signed,
    };
  }

  #report(kind: AuditProblem['kind'], message: string, seq?: number): void {
    this.#expected.report({ kind, message, ...(seq === undefined ? {} : { seq }) });
  }

  #checkRecord(record: OpenedLine, bytes: Buffer): void {
    const { head, anchor } = this.#expected;
    const { seq, hash, intact } = record;
    this.#first ??= seq;
    if (!intact) this.#report('changed', `record ${seq} was changed`, seq);
    this.#checkPlace(record);
    this.#checkMac(record);
    if (head !== undefined && seq === head.seq && hash === head.hash) this.#headSeen = true;
    if (anchor !== undefined && seq === anchor.seq && hash === anchor.hash) this.#anchorSeen = true;
    this.#checkConfession(bytes, record);
  }

  #checkPlace({ seq, prev, hash }: OpenedLine): void {
    const last = this.#last;
    if (last === undefined) {
      if (seq === 1 && prev !== NO_HASH)
        this.#report('changed', 'record 1 says that another one goes before it', seq);
    } else if (seq > last.seq + 1) {
      this.#gaps.all.push({ first: last.seq + 1, last: seq - 1 });
    } else if (seq === last.seq + 1) {
      if (!last.hashes.includes(prev))
        this.#report(
          'changed',
          `record ${last.seq} is not the one that record ${seq} was written after`,
          last.seq,
        );
    } else {
      if (this.#gaps.takeOne(seq))
        this.#report('reordered', `record ${seq} stands behind record ${last.seq}`, seq);
      else this.#report('inserted', `two records have the number ${seq}`, seq);
      if (seq === last.seq) this.#last = { ...last, hashes: [...last.hashes, hash].slice(-8) };
      return;
    }
    this.#last = { seq, hashes: [hash] };
  }

  #checkMac({ seq, hash, mac }: OpenedLine): void {
    const { key } = this.#expected;
    if (key === undefined) return;
    if (mac === undefined) {
      if (this.#signedSince !== undefined)
        this.#report('mac', `record ${seq} has no MAC: it was written without the key`, seq);
      return;
    }
    this.#signedSince ??= seq;
    this.#signedRecords += 1;
    if (mac !== macOf(key, 'record', hash))
      this.#report('mac', `record ${seq} has a MAC that was not made with this key`, seq);
  }

  #checkConfession(bytes: Buffer, { seq, intact, mac, hash }: OpenedLine): void {
    const { key } = this.#expected;
    if (!bytes.toString('latin1', 0, 240).includes('"type":"event","code":"audit_')) return;
    const record = parseRecord(bytes);
    const code = textOf(record?.fields ?? {}, 'code') ?? '';
    const isOurs = intact && (key === undefined || mac === macOf(key, 'record', hash));
    if (record === undefined) return;
    if (isOurs && code === ACKNOWLEDGED && this.#gaps.acknowledge(record, this.#first === seq))
      this.#acknowledged.push(tellRecord(record));
    const { first, problems } = detailsOf(record);
    if (intact && SAYING_FIRST.has(code) && typeof first === 'number') this.#beginnings.add(first);
    const message = CONFESSIONS[code];
    if (message !== undefined) this.#report('truncated', `record ${seq} says: ${message}`, seq);
    if (code === IMPORTED && problems !== 0) this.#report('changed', tellRecord(record), seq);
  }

  #checkEnd(): void {
    const { report, key, head, anchor } = this.#expected;
    const lastSeq = this.#last?.seq ?? 0;
    for (const { first, last } of this.#gaps.all) {
      const which = first === last ? `record ${first} is` : `records ${first} to ${last} are`;
      report({ kind: 'removed', message: `${which} missing`, seq: first });
    }
    if (head !== undefined && (!this.#headSeen || lastSeq > head.seq))
      report({
        kind: lastSeq < head.seq ? 'truncated' : lastSeq > head.seq ? 'inserted' : 'changed',
        message:
          lastSeq === head.seq
            ? `record ${head.seq} is not the one that was written last`
            : `the trail ends with record ${lastSeq}, but record ${head.seq} was written last. Nothing runs until it is acknowledged: sandbox-run audit acknowledge`,
      });
    if (anchor !== undefined && !this.#anchorSeen)
      report({ kind: 'anchor', message: `record ${anchor.seq} with the hash that was noted is not there` });
    if (key !== undefined && this.#signedRecords === 0 && this.#records > 0)
      report({ kind: 'mac', message: 'no record was signed with a key' });
  }
}

const SAYING_FIRST: ReadonlySet<string> = new Set([ACKNOWLEDGED, DAYS_REMOVED, IMPORTED]);

const detailsOf = ({ fields }: StoredRecord) => (isObject(fields.details) ? fields.details : {});

/** Records that are missing in a trail. */
interface Gap {
  readonly first: number;
  readonly last: number;
}

/** The gaps of a trail, as its records are shown in their order. */
class Gaps {
  readonly all: Gap[] = [];

  /** A record that was missing until now; false: it was not. */
  takeOne(seq: number): boolean {
    const index = this.all.findIndex((gap) => gap.first <= seq && seq <= gap.last);
    const gap = this.all[index];
    if (gap === undefined) return false;
    const parts = [
      { ...gap, last: seq - 1 },
      { ...gap, first: seq + 1 },
    ];
    this.all.splice(index, 1, ...parts.filter((part) => part.first <= part.last));
    return true;
  }

  /** What a record acknowledges is none any more, if it is exactly that; false: it is not. */
  acknowledge(record: StoredRecord, isFirst: boolean): boolean {
    const { seq } = record;
    const details = detailsOf(record);
    // What is missing before the first record that is there are older files.
    if (isFirst) return true;
    const index = this.all.findIndex((gap) => gap.last === seq - 1);
    const gap = this.all[index];
    if (gap === undefined) return details.missing === 0;
    if (details.last !== gap.first - 1 || details.missing !== gap.last - gap.first + 1) return false;
    this.all.splice(index, 1);
    return true;
  }
}

/** What the trail says of itself, in a sentence. */
function tellRecord({ seq, fields }: StoredRecord): string {
  return `record ${seq} (${textOf(fields, 'time')}) says ${textOf(fields, 'message') ?? 'that the trail was broken'}`;
}
