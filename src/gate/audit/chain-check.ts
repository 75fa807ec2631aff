import { isObject } from '../../base/is-object.ts';
import type { AuditProblem } from '../../model/index.ts';
import { ACKNOWLEDGED, type Kept } from './break.ts';
import { type Head, macOf, NO_HASH, type OpenedLine, openLine } from './record-line.ts';
import { parseRecord, type StoredRecord, textOf } from './stored-record.ts';
import type { FileLine } from './trail-files.ts';

/** What a chain is compared with. */
interface Expected {
  readonly report: (problem: AuditProblem) => void;
  readonly key: Uint8Array | undefined;
  readonly head: Head | undefined;
  readonly anchor: { readonly seq: number; readonly hash: string } | undefined;
  /** Whether a file beside the trail is there with this hash. */
  readonly isKept: (file: Kept) => boolean;
}

/** What the trail says about itself when it was not what it had to be. */
const CONFESSIONS: Readonly<Record<string, string>> = {
  audit_records_lost: 'records before this one were missing when it was written',
  audit_anchor_lost: 'head was missing when it was written: records before it may have been removed',
};

/** The last record that was shown. */
interface LastRecord {
  readonly seq: number;
  /** Two records may claim one number: then either hash will do for the next. */
  readonly hashes: readonly string[];
  readonly prev: string;
  readonly file: string;
}

/** Compares the lines of a trail, shown in their order, with each other. Memory does not grow with the trail. */
export class ChainCheck {
  readonly #expected: Expected;
  readonly #gaps = new Gaps();
  #file = '';
  #line = 0;
  #records = 0;
  #first: { readonly seq: number; readonly file: string } | undefined;
  #last: LastRecord | undefined;
  #signedRecords = 0;
  #signedSince: number | undefined;
  #headSeen: boolean;
  #anchorSeen: boolean;
  #unfinished = 0;
  #torn = false;
  #tornAtHead = false;
  readonly #acknowledged: string[] = [];

  constructor(expected: Expected) {
    const { head, anchor } = expected;
    this.#expected = expected;
    this.#headSeen = head === undefined || head.seq === 0;
    this.#anchorSeen = anchor === undefined;
  }

  beginFile(name: string): void {
    this.#file = name;
    this.#line = 0;
  }

  line({ bytes, offset, complete }: FileLine): void {
    const { head } = this.#expected;
    const file = this.#file;
    this.#line += 1;
    const isBeyond = head !== undefined && (file > head.file || (file === head.file && offset >= head.size));
    if (!complete) {
      // Behind the head: a process was killed, or is writing.
      if (isBeyond) this.#torn = true;
      else if (head?.file === file) this.#tornAtHead = true;
      else this.#reportHere('truncated', 'the file ends in the middle of a record');
      return;
    }
    const opened = openLine(bytes);
    if (opened === undefined) {
      this.#reportHere('unreadable', 'this line is no record: it was changed or put in');
      return;
    }
    this.#records += 1;
    if (isBeyond) this.#unfinished += 1;
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
      acknowledged: this.#acknowledged,
      last: last && { seq: last.seq, hash: last.hashes[0] ?? '', file: last.file },
      signed,
    };
  }

  /** What lies behind the head while no process is writing. */
  remarksOnEnd(): string[] {
    return [
      ...(this.#unfinished > 0
        ? [
            `${this.#unfinished} records at the end are not in head yet: they are being written, or their process was killed and the next one adopts them`,
          ]
        : []),
      ...(this.#torn
        ? [
            'the last line is not complete: it is being written, or its process was killed and the next one cuts it off',
          ]
        : []),
    ];
  }

  /** Of the line that is looked at; `seq`: of this record. */
  #reportHere(kind: AuditProblem['kind'], message: string, seq?: number): void {
    const here = { file: this.#file, line: this.#line };
    this.#expected.report({ kind, message, ...here, ...(seq === undefined ? {} : { seq }) });
  }

  #checkRecord(record: OpenedLine, bytes: Buffer): void {
    const { head, anchor } = this.#expected;
    const { seq, hash, intact } = record;
    this.#first ??= { seq, file: this.#file };
    if (!intact) this.#reportHere('changed', `record ${seq} was changed`, seq);
    this.#checkPlace(record);
    const isFirst = this.#line === 1;
    if (isFirst && record.follows === undefined)
      this.#reportHere(
        'removed',
        `records before record ${seq} were removed from the beginning of the file`,
        seq,
      );
    if (!isFirst && record.follows !== undefined)
      this.#reportHere('inserted', `record ${seq} is the first of a file, but others stand before it`, seq);
    this.#checkMac(record);
    if (head !== undefined && seq === head.seq && hash === head.hash) this.#headSeen = true;
    if (anchor !== undefined && seq === anchor.seq && hash === anchor.hash) this.#anchorSeen = true;
    this.#checkConfession(bytes, record);
  }

  #checkPlace({ seq, prev, hash }: OpenedLine): void {
    const last = this.#last;
    if (last === undefined) {
      if (seq === 1 && prev !== NO_HASH)
        this.#reportHere('changed', 'record 1 says that another one goes before it', seq);
    } else if (seq > last.seq + 1) {
      this.#gaps.all.push({ first: last.seq + 1, last: seq - 1, file: this.#file, line: this.#line });
    } else if (seq === last.seq + 1) {
      if (!last.hashes.includes(prev))
        this.#reportHere(
          'changed',
          `record ${last.seq} is not the one that record ${seq} was written after`,
          last.seq,
        );
    } else {
      if (this.#gaps.takeOne(seq))
        this.#reportHere('reordered', `record ${seq} stands behind record ${last.seq}`, seq);
      else this.#reportHere('inserted', `two records have the number ${seq}`, seq);
      if (seq === last.seq) this.#last = { ...last, hashes: [...last.hashes, hash].slice(-8) };
      return;
    }
    this.#last = { seq, hashes: [hash], prev, file: this.#file };
  }

  #checkMac({ seq, hash, mac }: OpenedLine): void {
    const { key } = this.#expected;
    if (key === undefined) return;
    if (mac === undefined) {
      if (this.#signedSince !== undefined)
        this.#reportHere('mac', `record ${seq} has no MAC: it was written without the key`, seq);
      return;
    }
    this.#signedSince ??= seq;
    this.#signedRecords += 1;
    if (mac !== macOf(key, 'record', hash))
      this.#reportHere('mac', `record ${seq} has a MAC that was not made with this key`, seq);
  }

  #checkConfession(bytes: Buffer, { seq, intact, mac, hash }: OpenedLine): void {
    const { key } = this.#expected;
    if (!bytes.toString('latin1', 0, 240).includes('"type":"event","code":"audit_')) return;
    const record = parseRecord(bytes);
    const code = textOf(record?.fields ?? {}, 'code') ?? '';
    const isOurs = intact && (key === undefined || mac === macOf(key, 'record', hash));
    if (record !== undefined && code === ACKNOWLEDGED && isOurs) this.#acknowledge(record);
    const message = CONFESSIONS[code];
    if (message !== undefined) this.#reportHere('truncated', `record ${seq} says: ${message}`, seq);
  }

  /** What a person has acknowledged as missing is no problem any more, as long as there is what was kept of it. */
  #acknowledge(record: StoredRecord): void {
    const { seq, fields } = record;
    if (!this.#gaps.acknowledge(record, this.#first?.seq === seq)) return;
    this.#acknowledged.push(tellAcknowledged(record));
    const details = isObject(fields.details) ? fields.details : {};
    const [name = '', sha256 = ''] = [textOf(details, 'kept'), textOf(details, 'sha256')];
    if (name !== '' && !this.#expected.isKept({ name, sha256 }))
      this.#reportHere('removed', `${name}, which record ${seq} kept, is not there as it was`, seq);
  }

  /** The line that is not whole, and nothing else, is what a power cut leaves. */
  #checkTorn(): void {
    const until = this.#expected.head?.seq ?? 0;
    const missing = until - (this.#last?.seq ?? 0);
    if (!this.#tornAtHead || missing < 1) return;
    this.#reportHere(
      'torn',
      `the file ends in the middle of record ${until - missing + 1}${missing === 1 ? ', the last one' : `, and those up to ${until} are missing`}: a power cut or a person did that. Nothing runs until it is acknowledged: sandbox-run audit acknowledge`,
    );
  }

  #checkEnd(): void {
    const { report, key, head, anchor } = this.#expected;
    const lastSeq = this.#last?.seq ?? 0;
    this.#checkTorn();
    for (const { first, last, file, line } of this.#gaps.all) {
      const which = first === last ? `record ${first} is` : `records ${first} to ${last} are`;
      report({ kind: 'removed', message: `${which} missing`, file, line, seq: first });
    }
    // A torn end has been told.
    if (head !== undefined && !this.#headSeen && !(this.#tornAtHead && lastSeq < head.seq))
      report({
        kind: lastSeq < head.seq ? 'truncated' : 'changed',
        message:
          lastSeq < head.seq
            ? `the trail ends with record ${lastSeq}, but record ${head.seq} was written: whole records are missing, and no line is torn. Nothing runs until it is acknowledged: sandbox-run audit acknowledge`
            : `record ${head.seq} is not the one that head knows`,
      });
    if (anchor !== undefined && !this.#anchorSeen)
      report({ kind: 'anchor', message: `record ${anchor.seq} with the hash that was noted is not there` });
    if (key !== undefined && this.#signedRecords === 0 && this.#records > 0)
      report({ kind: 'mac', message: 'no record was signed with a key' });
  }
}

/** Records that are missing in a trail. */
interface Gap {
  readonly first: number;
  readonly last: number;
  readonly file: string;
  readonly line: number;
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
  acknowledge({ seq, fields }: StoredRecord, isFirst: boolean): boolean {
    const details = isObject(fields.details) ? fields.details : {};
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

/** An acknowledgement in a sentence. */
function tellAcknowledged({ seq, fields }: StoredRecord): string {
  const kept = isObject(fields.details) ? (textOf(fields.details, 'kept') ?? '') : '';
  const torn = kept === '' ? '' : `; what was torn is in ${kept}`;
  return `record ${seq} (${textOf(fields, 'time')}) says ${textOf(fields, 'message') ?? 'that the trail was broken'}${torn}`;
}
