import { describe, expect, it } from 'vitest';
import { judgeRow, readCorpus } from '../../support/policy-corpus.ts';

/** Rows that are wrong by the rules: containers are refused in every autonomy level, and `docker ps` is one. */
const WRONG_ROWS: readonly string[] = ['ceb0454'];

/** Rows that wait for the parser: `**` in a glob, and what perf and hyperfine run. */
const WAITING_ROWS: readonly string[] = ['o430143', 'o070bb9', 'o621411', 'od558a3'];

const LEFT_OUT: ReadonlySet<string> = new Set([...WRONG_ROWS, ...WAITING_ROWS]);

describe.each(['policy.jsonl', 'own-policy.jsonl'])('%s', (name) => {
  const rows = readCorpus(name).filter(({ id }) => !LEFT_OUT.has(id));

  it.each(['productive', 'evasion', 'contain', 'risk', 'reach', 'allowlist'] as const)(
    '%s is right',
    (suite) => {
      const wrong = rows
        .filter((row) => row.suite === suite)
        .map((row) => ({ row, ...judgeRow(row) }))
        .filter(({ right }) => !right)
        .map(
          ({ row, judged }) =>
            `${row.command}: ${judged.verdict} ${judged.risk} ${judged.reach}, not ${row.expect}`,
        );
      expect(wrong).toEqual([]);
    },
  );
});
