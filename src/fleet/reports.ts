import { createHash } from 'node:crypto';
import { parsedJson } from '../base/parsed-json.ts';
import { EnforcementReport } from '../confine/plan/enforcement-report.ts';
import { patiently } from '../gate/nats/index.ts';
import type { SentExecution } from '../model/fleet.ts';
import { type Queue, REPORT_KEPT } from './queue.ts';

/*
 * What is enforced is the same for all commands of a sandbox, and most of what a result says. So a worker puts it beside the
 * records of jobs once, and a submitter reads it once for all jobs that say its name.
 */

/** Different reports that a submitter remembers at most. */
const MOST_KNOWN = 256;

type SentReport = SentExecution['report'];

const digestOf = (text: string) => createHash('sha256').update(text).digest('hex');

/** A report that was told before. */
interface Told {
  readonly text: string;
  readonly digest: string;
  /** When it was put beside the records; milliseconds since 1970. */
  keptAt: number;
}

/** Tells reports to submitters. */
export class ReportTeller {
  readonly #queue: Queue;
  readonly #told = new WeakMap<EnforcementReport, Told>();

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** A report as it is sent: itself at first, as many sandboxes have one job only, and from then on where it is kept. */
  async tell(report: EnforcementReport): Promise<SentReport> {
    const told = this.#told.get(report);
    if (told === undefined) {
      const text = JSON.stringify(report);
      this.#told.set(report, { text, digest: digestOf(text), keptAt: Number.NEGATIVE_INFINITY });
      return text;
    }
    const now = Date.now();
    if (Math.abs(now - told.keptAt) > REPORT_KEPT) {
      const { names, publisher } = this.#queue;
      try {
        await publisher.publish(`$KV.${names.records}.${names.report(told.digest)}`, told.text, {});
      } catch {
        // Whether it is there is unknown.
        return told.text;
      }
      told.keptAt = now;
    }
    return { kept: told.digest };
  }
}

/** Reports that were read, by the digest of their text. */
export class KnownReports {
  readonly #queue: Queue;
  readonly #known = new Map<string, EnforcementReport>();

  constructor(queue: Queue) {
    this.#queue = queue;
  }

  /** `undefined`: it is not a report, or no longer exists. @throws the server's error. */
  async read(sent: SentReport): Promise<EnforcementReport | undefined> {
    const digest = typeof sent === 'string' ? digestOf(sent) : sent.kept;
    const known = this.#known.get(digest);
    if (known !== undefined) return known;
    const text = typeof sent === 'string' ? sent : await this.#kept(digest);
    const read = EnforcementReport.safeParse(parsedJson(text));
    if (!read.success) return undefined;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(digest, read.data);
    return read.data;
  }

  async #kept(digest: string): Promise<string> {
    const { names, records } = this.#queue;
    const entry = await patiently(() => records.get(names.report(digest)));
    const text = entry === null ? '' : Buffer.from(entry.value).toString('utf8');
    // Under its name may be what somebody else wrote there.
    return digestOf(text) === digest ? text : '';
  }
}
