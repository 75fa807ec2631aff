import { EnforcementReport } from '../model/enforcement-report.ts';
import { parsedJson } from '../util/parsed-json.ts';

/*
 * What is enforced is the same for all commands of a sandbox, and most of what a result says. So it travels as text: a worker
 * writes it once for each sandbox, and a submitter reads it once for all jobs that say the same.
 */

/** As many different ones as a submitter remembers. */
const MOST_KNOWN = 256;

const texts = new WeakMap<EnforcementReport, string>();

/** A report as JSON. */
export function reportText(report: EnforcementReport): string {
  let text = texts.get(report);
  if (text === undefined) {
    text = JSON.stringify(report);
    texts.set(report, text);
  }
  return text;
}

/** Reports that were read, by their text. */
export class KnownReports {
  readonly #known = new Map<string, EnforcementReport>();

  /** `undefined`: it is none. */
  read(text: string): EnforcementReport | undefined {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const read = EnforcementReport.safeParse(parsedJson(Buffer.from(text)));
    if (!read.success) return undefined;
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(text, read.data);
    return read.data;
  }
}
