import { readFileSync } from 'node:fs';
import type { RulesOfCommands } from '../../src/judge/index.ts';
import type { Autonomy, Taint } from '../../src/model/index.ts';
import { CLASSIC_ALLOW_LIST, type Judged, judgeText } from './policy-world.ts';

/** A row of a corpus of commands. */
export interface CorpusRow {
  readonly id: string;
  readonly command: string;
  readonly suite: 'productive' | 'evasion' | 'contain' | 'risk' | 'reach' | 'allowlist';
  readonly taint: readonly Taint[];
  readonly expect: string;
  readonly autonomy?: Autonomy;
  readonly why?: string;
}

/** Reads a corpus of `test/cases/`. */
export function readCorpus(name: string): readonly CorpusRow[] {
  return readFileSync(new URL(`../cases/${name}`, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as CorpusRow);
}

/** What the text checks make of a row, and whether that is what the row wants. */
export function judgeRow(row: CorpusRow): { readonly judged: Judged; readonly right: boolean } {
  const judged = judgeIn(row, row.suite === 'allowlist' ? { allow: CLASSIC_ALLOW_LIST } : {});
  // What works only with the network is productive where there is one: without, it is refused at every level.
  const needsNetwork = judged.reasons.some(({ code }) => /^(?:needs_network|unreachable)$/.test(code));
  if (row.suite === 'evasion' && judged.verdict === 'allow') return ratedAsHeldRead(row, judged);
  return row.suite === 'productive' && needsNetwork
    ? rated(row, judgeIn(row, { held: { files: true, network: false, signals: true } }))
    : rated(row, judged);
}

/** A line that only reads outside is let through where the kernel answers, and refused for that reading where nobody holds. */
function ratedAsHeldRead(row: CorpusRow, judged: Judged): ReturnType<typeof judgeRow> {
  const unheld = judgeIn(row, { held: { files: false, network: true, signals: true } });
  return { judged, right: unheld.reasons.some(({ code }) => code === 'escapes_workspace') };
}

const judgeIn = (row: CorpusRow, rules: Partial<RulesOfCommands>) =>
  judgeText(row.command, { autonomy: row.autonomy ?? 'supervised', taints: row.taint, rules });

const rated = (row: CorpusRow, judged: Judged) => ({ judged, right: isRight(row, judged) });

function isRight(row: CorpusRow, { verdict, risk, reach }: Judged): boolean {
  switch (row.suite) {
    case 'productive':
      return verdict === 'allow';
    case 'evasion':
      return verdict !== 'allow';
    case 'contain':
      return true;
    case 'risk':
      return risk === row.expect;
    case 'reach':
      return reach === row.expect;
    case 'allowlist':
      return (verdict === 'allow') === (row.expect === 'allow');
  }
}
