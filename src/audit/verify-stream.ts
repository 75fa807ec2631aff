import { closeSync, openSync } from 'node:fs';
import type { AuditProblem, StreamVerification, TrailVerification } from '../model/audit-record.ts';
import type { RecordStream, StreamedLines } from '../model/record-stream.ts';
import { ChainCheck } from './chain-check.ts';
import { notedIn, trailName } from './publisher.ts';
import { openLine, readHead } from './record-line.ts';
import { parseRecord } from './stored-record.ts';
import { dayFileName, headPath } from './trail-files.ts';

/** Of each trail. */
const MOST_PROBLEMS = 1_000;

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
  if (directory !== undefined) checkOwn(directory, verified, problems, remarks);
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

/** What this machine knows of its own trail. */
function checkOwn(
  directory: string,
  verified: readonly TrailVerification[],
  problems: AuditProblem[],
  remarks: string[],
): void {
  const name = trailName(directory, false);
  if (name === undefined) return;
  const seen = verified.find(({ trail }) => trail === name)?.last?.seq ?? 0;
  const published = notedIn(directory)?.seq ?? 0;
  if (published > seen)
    problems.push({
      kind: 'truncated',
      message: `the trail ${name} ends with record ${seen}, but the stream had acknowledged record ${published}`,
    });
  const head = headOf(directory);
  if (head > Math.max(seen, published))
    remarks.push(`records ${Math.max(seen, published) + 1} to ${head} of ${name} are not published yet`);
}

function headOf(directory: string): number {
  const fd = openSync(headPath(directory), 'r');
  try {
    return readHead(fd)?.seq ?? 0;
  } finally {
    closeSync(fd);
  }
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
