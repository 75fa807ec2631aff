import { describe, expect, it } from 'vitest';
import { judgeRow, readCorpus } from '../../../support/policy-corpus.ts';

/** Rows that are wrong by the rules: containers are refused in every autonomy level, and `docker ps` is one. */
const WRONG_ROWS: ReadonlySet<string> = new Set(['ceb0454']);

describe.each(['policy.jsonl', 'own-policy.jsonl'])('%s', (name) => {
  const rows = readCorpus(name).filter(({ id }) => !WRONG_ROWS.has(id));

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
