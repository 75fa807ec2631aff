import type {
  AuditProblem,
  RecordStream,
  StreamedLines,
  StreamVerification,
  TrailVerification,
  Verification,
} from '../../model/index.ts';
import { ChainCheck } from './chain-check.ts';
import { notedIn, trailName } from './publisher.ts';
import { headMac, linesOf } from './record-line.ts';
import type { Trail } from './trail.ts';

/** How to verify. */
interface VerifyOptions {
  readonly key?: Uint8Array | undefined;
  /** A record that was noted elsewhere and must be there. */
  readonly anchor?: { readonly seq: number; readonly hash: string } | undefined;
  /** The chain has to begin with record 1. */
  readonly complete?: boolean | undefined;
  /** Called now and then while records are checked. */
  readonly onProgress?: (done: number, of: number) => void;
}

/** Problems reported of one trail at most. */
const MOST_PROBLEMS = 1_000;

/**
 * Walks a whole trail and says which records were changed, removed or put in, and whether its end is there. May run while
 * others write.
 * @throws {SandboxError} `audit.failed` if it cannot be read.
 */
export function verifyTrail(
  trail: Trail,
  { key, anchor, complete, onProgress }: VerifyOptions,
): Verification {
  return trail.snapshot(() => {
    const { problems, count, report } = problemList();
    const head = trail.head();
    const check = new ChainCheck({ report, key, head, anchor });
    let done = 0;
    for (const { seq, line } of trail.lines()) {
      if (done % 10_000 === 0) onProgress?.(seq, head?.seq ?? seq);
      done += 1;
      check.line(Buffer.from(line), seq);
    }
    const { acknowledged: remarks, beginsAsSaid, ...end } = check.finish();
    const { first = 1 } = end;
    if (first !== 1) remarks.unshift(`the chain begins with record ${first}: older records were removed`);
    if (first !== 1 && (complete === true || !beginsAsSaid))
      report({
        kind: 'removed',
        message: `the chain begins with record ${first}; older records were removed${beginsAsSaid ? '' : ', and no record says so'}`,
      });
    if (head === undefined)
      report({
        kind: 'anchor',
        message:
          'it is unknown which record was written last: records may be missing at the end. Nothing runs until it is acknowledged: sandbox-run audit acknowledge',
      });
    else if (key !== undefined && head.mac !== headMac(key, head))
      report({
        kind: 'mac',
        message:
          head.mac === undefined
            ? 'the end has no MAC: it was written without the key, by a forger or under another policy'
            : 'the end has a MAC that was not made with this key',
      });
    return { problems, problemCount: count(), remarks, ...end };
  });
}

function problemList() {
  const problems: AuditProblem[] = [];
  let problemCount = 0;
  return {
    problems,
    count: () => problemCount,
    report: (problem: AuditProblem) => {
      problemCount += 1;
      if (problems.length < MOST_PROBLEMS) problems.push(problem);
    },
  };
}

interface VerifyStreamOptions {
  readonly key?: Uint8Array | undefined;
  /** Every chain has to begin with record 1. */
  readonly complete?: boolean | undefined;
  /** The trail of this machine and user; what it has published has to be there. `undefined`: there is none. */
  readonly own?: Trail | undefined;
  /** Called now and then while records are read. */
  readonly onProgress?: (read: number, of: number) => void;
}

/**
 * Walks the audit stream of a fleet and says, trail by trail, which records were changed, removed, reordered or put in. That
 * entries are missing is seen by the stream's own count, too: also those at the end of a trail, and whole trails.
 */
export async function verifyStream(
  stream: RecordStream,
  { key, complete = false, own: trail, onProgress }: VerifyStreamOptions,
): Promise<StreamVerification> {
  const trails = new Map<string, TrailCheck>();
  const problems: AuditProblem[] = [];
  // Before what the stream has: what is published meanwhile lies behind that.
  const own = trail && publishedOf(trail);
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
function publishedOf(trail: Trail) {
  const name = trailName(trail.directory, false);
  if (name === undefined) return undefined;
  return { name, published: notedIn(trail.directory)?.seq ?? 0, head: trail.head()?.seq ?? 0 };
}

function checkOwn(
  { name, published, head }: NonNullable<ReturnType<typeof publishedOf>>,
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
  readonly #list = problemList();
  readonly #check: ChainCheck;

  constructor(trail: string, key: Uint8Array | undefined) {
    this.#trail = trail;
    this.#check = new ChainCheck({ report: this.#list.report, key, head: undefined, anchor: undefined });
  }

  entry({ lines }: StreamedLines): void {
    for (const line of linesOf(lines)) this.#check.line(line);
  }

  finish(complete: boolean): TrailVerification {
    const { acknowledged: remarks, beginsAsSaid: _, ...end } = this.#check.finish();
    const { problems, count, report } = this.#list;
    if (complete && end.first !== undefined && end.first !== 1)
      report({
        kind: 'removed',
        message: `the chain begins with record ${end.first}; older records are not there`,
      });
    return { trail: this.#trail, problems, problemCount: count(), remarks, ...end };
  }
}
