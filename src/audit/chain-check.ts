import type { AuditProblem } from '../model/audit-record.ts';
import { ACKNOWLEDGED, type Kept } from './break.ts';
import { type Head, macOf, NO_HASH, type OpenedLine, openLine } from './record-line.ts';
import { isObject, parseRecord, type StoredRecord, textOf } from './stored-record.ts';
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

/** Compares the lines of a trail, shown in their order, with each other. Memory does not grow with the trail. */
export function createChainCheck({ report, key, head, anchor, isKept }: Expected) {
  const gaps = new Gaps();
  let file = '';
  let line = 0;
  let beyond = false;
  let records = 0;
  let first: { readonly seq: number; readonly file: string } | undefined;
  // Two records may claim one number: then either hash will do for the next.
  let last:
    | {
        readonly seq: number;
        readonly hashes: readonly string[];
        readonly prev: string;
        readonly file: string;
      }
    | undefined;
  let signedRecords = 0;
  let signedSince: number | undefined;
  let headSeen = head === undefined || head.seq === 0;
  let anchorSeen = anchor === undefined;
  let unfinished = 0;
  let torn = false;
  let tornAtHead = false;
  const acknowledged: string[] = [];

  /** Of the line that is looked at; `seq`: of this record. */
  const reportHere = (kind: AuditProblem['kind'], message: string, seq?: number) =>
    report({ kind, message, file, line, ...(seq === undefined ? {} : { seq }) });

  function checkLine({ bytes, offset, complete }: FileLine): void {
    line += 1;
    beyond = head !== undefined && (file > head.file || (file === head.file && offset >= head.size));
    if (!complete) {
      // Behind the head: a process was killed, or is writing.
      if (beyond) torn = true;
      else if (head?.file === file) tornAtHead = true;
      else reportHere('truncated', 'the file ends in the middle of a record');
      return;
    }
    const opened = openLine(bytes);
    if (opened === undefined) {
      reportHere('unreadable', 'this line is no record: it was changed or put in');
      return;
    }
    records += 1;
    if (beyond) unfinished += 1;
    checkRecord(opened, bytes);
  }

  function checkRecord(record: OpenedLine, bytes: Buffer): void {
    const { seq, hash, intact } = record;
    first ??= { seq, file };
    if (!intact) reportHere('changed', `record ${seq} was changed`, seq);
    checkPlace(record);
    if (line === 1 && record.follows === undefined)
      reportHere('removed', `records before record ${seq} were removed from the beginning of the file`, seq);
    if (line !== 1 && record.follows !== undefined)
      reportHere('inserted', `record ${seq} is the first of a file, but others stand before it`, seq);
    checkMac(record);
    if (head !== undefined && seq === head.seq && hash === head.hash) headSeen = true;
    if (anchor !== undefined && seq === anchor.seq && hash === anchor.hash) anchorSeen = true;
    checkConfession(bytes, record);
  }

  function checkPlace({ seq, prev, hash }: OpenedLine): void {
    if (last === undefined) {
      if (seq === 1 && prev !== NO_HASH)
        reportHere('changed', 'record 1 says that another one goes before it', seq);
    } else if (seq > last.seq + 1) {
      gaps.all.push({ first: last.seq + 1, last: seq - 1, file, line });
    } else if (seq === last.seq + 1) {
      if (!last.hashes.includes(prev))
        reportHere(
          'changed',
          `record ${last.seq} is not the one that record ${seq} was written after`,
          last.seq,
        );
    } else {
      if (gaps.takeOne(seq)) reportHere('reordered', `record ${seq} stands behind record ${last.seq}`, seq);
      else reportHere('inserted', `two records have the number ${seq}`, seq);
      if (seq === last.seq) last = { ...last, hashes: [...last.hashes, hash].slice(-8) };
      return;
    }
    last = { seq, hashes: [hash], prev, file };
  }

  function checkMac({ seq, hash, mac }: OpenedLine): void {
    if (key === undefined) return;
    if (mac === undefined) {
      if (signedSince !== undefined)
        reportHere('mac', `record ${seq} has no MAC: it was written without the key`, seq);
      return;
    }
    signedSince ??= seq;
    signedRecords += 1;
    if (mac !== macOf(key, 'record', hash))
      reportHere('mac', `record ${seq} has a MAC that was not made with this key`, seq);
  }

  function checkConfession(bytes: Buffer, { seq, intact, mac, hash }: OpenedLine): void {
    if (!bytes.toString('latin1', 0, 240).includes('"type":"event","code":"audit_')) return;
    const record = parseRecord(bytes);
    const code = textOf(record?.fields ?? {}, 'code') ?? '';
    const isOurs = intact && (key === undefined || mac === macOf(key, 'record', hash));
    if (record !== undefined && code === ACKNOWLEDGED && isOurs) acknowledge(record);
    const message = CONFESSIONS[code];
    if (message !== undefined) reportHere('truncated', `record ${seq} says: ${message}`, seq);
  }

  /** What a person has acknowledged as missing is no problem any more, as long as there is what was kept of it. */
  function acknowledge(record: StoredRecord): void {
    const { seq, fields } = record;
    if (!gaps.acknowledge(record, first?.seq === seq)) return;
    acknowledged.push(tellAcknowledged(record));
    const details = isObject(fields.details) ? fields.details : {};
    const [name = '', sha256 = ''] = [textOf(details, 'kept'), textOf(details, 'sha256')];
    if (name !== '' && !isKept({ name, sha256 }))
      reportHere('removed', `${name}, which record ${seq} kept, is not there as it was`, seq);
  }

  /** The line that is not whole, and nothing else, is what a power cut leaves. */
  function checkTorn(): void {
    const until = head?.seq ?? 0;
    const missing = until - (last?.seq ?? 0);
    if (!tornAtHead || missing < 1) return;
    reportHere(
      'torn',
      `the file ends in the middle of record ${until - missing + 1}${missing === 1 ? ', the last one' : `, and those up to ${until} are missing`}: a power cut or a person did that. Nothing runs until it is acknowledged: sandbox-run audit acknowledge`,
    );
  }

  function checkEnd(): void {
    checkTorn();
    for (const { first: from, last: to, file: where, line: number } of gaps.all) {
      const which = from === to ? `record ${from} is` : `records ${from} to ${to} are`;
      report({ kind: 'removed', message: `${which} missing`, file: where, line: number, seq: from });
    }
    // A torn end has been told.
    if (head !== undefined && !headSeen && !(tornAtHead && (last?.seq ?? 0) < head.seq))
      report({
        kind: (last?.seq ?? 0) < head.seq ? 'truncated' : 'changed',
        message:
          (last?.seq ?? 0) < head.seq
            ? `the trail ends with record ${last?.seq ?? 0}, but record ${head.seq} was written: whole records are missing, and no line is torn. Nothing runs until it is acknowledged: sandbox-run audit acknowledge`
            : `record ${head.seq} is not the one that head knows`,
      });
    if (anchor !== undefined && !anchorSeen)
      report({ kind: 'anchor', message: `record ${anchor.seq} with the hash that was noted is not there` });
    if (key !== undefined && signedRecords === 0 && records > 0)
      report({ kind: 'mac', message: 'no record was signed with a key' });
  }

  return {
    beginFile: (name: string) => {
      file = name;
      line = 0;
    },
    line: checkLine,
    finish: () => {
      checkEnd();
      const signed = key === undefined ? undefined : { records: signedRecords, since: signedSince };
      const [hash = ''] = last?.hashes ?? [];
      return { records, first, acknowledged, last: last && { seq: last.seq, hash, file: last.file }, signed };
    },
    /** What lies behind the head while no process is writing. */
    remarksOnEnd: (): string[] => [
      ...(unfinished > 0
        ? [
            `${unfinished} records at the end are not in head yet: they are being written, or their process was killed and the next one adopts them`,
          ]
        : []),
      ...(torn
        ? [
            'the last line is not complete: it is being written, or its process was killed and the next one cuts it off',
          ]
        : []),
    ],
  };
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
