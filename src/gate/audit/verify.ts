import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import type {
  AuditProblem,
  RecordStream,
  StreamedLines,
  StreamVerification,
  TrailVerification,
  Verification,
} from '../../model/index.ts';
import { isKept, type Kept } from './break.ts';
import { ChainCheck } from './chain-check.ts';
import { notedIn, trailName } from './publisher.ts';
import { type Head, headMac, openLine, readHead } from './record-line.ts';
import { parseRecord } from './stored-record.ts';
import { dayFileName, headPath, linesOfFile, listDayFiles } from './trail-files.ts';

/** How to verify. */
interface VerifyOptions {
  readonly key?: Uint8Array | undefined;
  /** A record that was noted elsewhere and must be there. */
  readonly anchor?: { readonly seq: number; readonly hash: string } | undefined;
  /** The chain has to begin with record 1. */
  readonly complete?: boolean | undefined;
  /** Before each file. */
  readonly onFile?: (name: string, done: number, of: number) => void;
}

/** Of each trail. */
const MOST_PROBLEMS = 1_000;
/** So long a process may take from making the head to writing it: a second. */
const BEGINNING_TRIES = 50;
const BEGINNING_WAIT_MS = 20;

/**
 * Walks a whole trail and says which records were changed, removed, reordered or put in, and whether its end is there.
 * May run while others write. Throws if a file cannot be read.
 */
export function verifyTrail(directory: string, options: VerifyOptions): Verification {
  // A trail that had no head before and has one after was begun meanwhile: what was seen is no state of it.
  const hadHead = readHeadOf(directory) !== undefined;
  if (!hadHead) waitForBeginning(directory);
  const found = walk(directory, options);
  return hadHead || readHeadOf(directory) === undefined ? found : walk(directory, options);
}

/** A head without anything in it, and no file: the process that begins the trail is about to write it. */
function waitForBeginning(directory: string): void {
  for (let tries = 0; tries < BEGINNING_TRIES; tries += 1) {
    if (readHeadOf(directory) !== undefined || listDayFiles(directory).length > 0) return;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BEGINNING_WAIT_MS);
  }
}

function walk(directory: string, { key, anchor, complete, onFile }: VerifyOptions): Verification {
  const problems: AuditProblem[] = [];
  let problemCount = 0;
  const report = (problem: AuditProblem) => {
    problemCount += 1;
    if (problems.length < MOST_PROBLEMS) problems.push(problem);
  };
  // Before the files: whatever is written meanwhile lies behind it.
  const head = readHeadOf(directory);
  const files = listDayFiles(directory);
  const isKeptHere = (file: Kept) => isKept(directory, file);
  const check = new ChainCheck({ report, key, head, anchor, isKept: isKeptHere });
  for (const [index, name] of files.entries()) {
    onFile?.(name, index, files.length);
    check.beginFile(name);
    for (const line of linesOfFile(join(directory, name))) check.line(line);
  }
  const { acknowledged, ...end } = check.finish();
  if (complete === true && end.first !== undefined && end.first.seq !== 1)
    report({
      kind: 'removed',
      message: `the chain begins with record ${end.first.seq}; older files were removed`,
    });
  if (head === undefined)
    report({
      kind: 'anchor',
      message:
        'head is missing or damaged: records may be missing at the end. Nothing runs until it is acknowledged: sandbox-run audit acknowledge',
    });
  else if (key !== undefined && head.mac !== headMac(key, head))
    report({
      kind: 'mac',
      message:
        head.mac === undefined
          ? 'head has no MAC: it was written without the key, by a forger or under another policy'
          : 'head has a MAC that was not made with this key',
    });
  // Records behind the head that we knew are all right if the head has moved on meanwhile.
  const now = readHeadOf(directory);
  const remarks = [...acknowledged, ...(now?.seq === head?.seq ? check.remarksOnEnd() : [])];
  if (end.first !== undefined && end.first.seq !== 1)
    remarks.unshift(
      `the chain begins with record ${end.first.seq} in ${end.first.file}: older files were removed`,
    );
  return { problems, problemCount, files: files.length, remarks, ...end };
}

function readHeadOf(directory: string): Head | undefined {
  let fd: number;
  try {
    fd = openSync(headPath(directory), 'r');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    // Without the lock: what was read twice alike was not being written.
    for (let tries = 0, last = readHead(fd); ; tries += 1) {
      const head = readHead(fd);
      if (JSON.stringify(head) === JSON.stringify(last) || tries === 100) return head;
      last = head;
    }
  } finally {
    closeSync(fd);
  }
}

interface VerifyStreamOptions {
  readonly key?: Uint8Array | undefined;
  /** Every chain has to begin with record 1. */
  readonly complete?: boolean | undefined;
  /** The trail of this machine and user; what it has published has to be there. `undefined`: there is none. */
  readonly directory?: string | undefined;
  /** Every so often. */
  readonly onProgress?: (read: number, of: number) => void;
}

/**
 * Walks the audit stream of a fleet and says, trail by trail, which records were changed, removed, reordered or put in. That
 * entries are missing is seen by the stream's own count, too: also those at the end of a trail, and whole trails.
 */
export async function verifyStream(
  stream: RecordStream,
  { key, complete = false, directory, onProgress }: VerifyStreamOptions,
): Promise<StreamVerification> {
  const trails = new Map<string, TrailCheck>();
  const problems: AuditProblem[] = [];
  // Before what the stream has: what is published meanwhile lies behind that.
  const own = directory === undefined ? undefined : ownTrailIn(directory);
  const before = await stream.extent();
  let read = 0;
  // Without limits it begins with the first that there ever was.
  let expected = before.dropsOld ? before.first : 1;
  for await (const entry of stream.read()) {
    if (entry.position > before.last) break;
    if (entry.position > expected) problems.push(missing(expected, entry.position - 1));
    expected = entry.position + 1;
    const check = trails.get(entry.trail) ?? new TrailCheck(entry.trail, key);
    trails.set(entry.trail, check);
    check.entry(entry);
    read += 1;
    if (read % 1_000 === 0) onProgress?.(read, before.count);
  }
  if (expected <= before.last) problems.push(missing(expected, before.last));
  const verified = [...trails.values()].map((check) => check.finish(complete));
  const remarks: string[] = [];
  if (!before.deletesNothing)
    remarks.push(
      `the server lets users delete and purge in ${before.name} (nats stream edit ${before.name} --deny-delete --deny-purge, or make it anew)`,
    );
  if (before.first > 1 && before.dropsOld)
    remarks.push(`the stream begins with position ${before.first}: it drops what is older, by its limits`);
  if (own !== undefined) checkOwn(own, verified, problems, remarks);
  return {
    problems,
    problemCount: verified.reduce((sum, trail) => sum + trail.problemCount, problems.length),
    trails: verified,
    records: verified.reduce((sum, trail) => sum + trail.records, 0),
    remarks,
  };
}

const missing = (first: number, last: number): AuditProblem => ({
  kind: 'removed',
  message:
    first === last
      ? `position ${first} of the stream is missing`
      : `positions ${first} to ${last} of the stream are missing`,
});

/** What this machine knows of its own trail; `undefined`: it was never published. */
function ownTrailIn(directory: string) {
  const name = trailName(directory, false);
  if (name === undefined) return undefined;
  return { name, published: notedIn(directory)?.seq ?? 0, head: readHeadOf(directory)?.seq ?? 0 };
}

function checkOwn(
  { name, published, head }: NonNullable<ReturnType<typeof ownTrailIn>>,
  verified: readonly TrailVerification[],
  problems: AuditProblem[],
  remarks: string[],
): void {
  const seen = verified.find(({ trail }) => trail === name)?.last?.seq ?? 0;
  if (published > seen)
    problems.push({
      kind: 'truncated',
      message: `the trail ${name} ends with record ${seen}, but the stream had acknowledged record ${published}`,
    });
  if (head > Math.max(seen, published))
    remarks.push(`records ${Math.max(seen, published) + 1} to ${head} of ${name} are not published yet`);
}

/** The chain of one trail. */
class TrailCheck {
  readonly #trail: string;
  readonly #problems: AuditProblem[] = [];
  readonly #check: ChainCheck;
  #problemCount = 0;
  #hasBegun = false;

  constructor(trail: string, key: Uint8Array | undefined) {
    this.#trail = trail;
    this.#check = new ChainCheck({
      report: (problem) => {
        this.#problemCount += 1;
        if (this.#problems.length < MOST_PROBLEMS) this.#problems.push(problem);
      },
      key,
      head: undefined,
      anchor: undefined,
      // Beside the trail, on its own machine.
      isKept: () => true,
    });
  }

  entry({ lines }: StreamedLines): void {
    let start = 0;
    for (let end = lines.indexOf(10); end !== -1; end = lines.indexOf(10, start)) {
      this.#line(lines.subarray(start, end));
      start = end + 1;
    }
    if (start < lines.length) this.#line(lines.subarray(start));
  }

  #line(bytes: Buffer): void {
    // The first record of a file says so; what the stream begins with need not be one.
    const opened = openLine(bytes);
    if (!this.#hasBegun || opened?.follows !== undefined) {
      const time = parseRecord(bytes)?.at ?? Number.NaN;
      this.#check.beginFile(Number.isNaN(time) ? '' : dayFileName(time));
    }
    this.#hasBegun = true;
    this.#check.line({ bytes, offset: 0, complete: true });
  }

  finish(complete: boolean): TrailVerification {
    const { acknowledged, records, first, last, signed } = this.#check.finish();
    const problems = [...this.#problems];
    if (complete && first !== undefined && first.seq !== 1) {
      this.#problemCount += 1;
      problems.push({
        kind: 'removed',
        message: `the chain begins with record ${first.seq}; older records are not there`,
      });
    }
    return {
      trail: this.#trail,
      ...{ problems, problemCount: this.#problemCount, records, remarks: acknowledged },
      ...{ first: first?.seq, last: last && { seq: last.seq, hash: last.hash }, signed },
    };
  }
}
