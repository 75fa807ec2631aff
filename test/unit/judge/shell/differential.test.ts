import { existsSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseShell } from '../../../../src/judge/shell/parse.ts';
import { createBench } from '../../../support/shell-differential.ts';
import { mutatedScript, script } from '../../../support/shell-generator.ts';

/** `npm run fuzz:shell` makes it longer. */
const SECONDS = Number(process.env.SHELL_FUZZ_SECONDS ?? '12');
/** So many strings have to be understood and run, or the test has shown nothing. */
const ENOUGH = 5;

function understood(source: string) {
  const parsed = parseShell(source);
  if (!parsed.understood) throw new Error(parsed.problem.message);
  return parsed;
}

function quote(text: string): string {
  return `'${text.replace(/'/g, "'\\''")}'`;
}

describe('what a shell runs', () => {
  it('is seen by the bench: a list that lacks something is told apart', () => {
    using bench = createBench();
    const { line } = understood('c0 a; cd d0 && c1');
    expect(bench.compare('bash', 'c0 a; cd d0 && c1', line)).toEqual([]);
    expect(bench.compare('bash', 'c0 b', line)).toEqual([expect.stringContaining('not listed')]);
    expect(bench.compare('bash', 'c1', line)).toEqual([expect.stringContaining('not expected')]);
    expect(bench.compare('dash', 'c0 a >f', line)).toEqual([expect.stringContaining('created f')]);
  });

  it('leaves nothing in the root of the host', () => {
    using bench = createBench();
    const source = 'c0 a >"$V1"/made-by-the-bench';
    bench.compare('bash', source, understood(source).line);
    expect(existsSync('/made-by-the-bench')).toBe(false);
  });

  it.each([
    ['bash', script],
    ['bash', mutatedScript],
    ['dash', script],
  ] as const)(
    'was listed, or the string was not understood (%s)',
    (shell, scripts) => {
      using bench = createBench();
      let accepted = 0;
      let generated = 0;
      const property = fc.property(scripts, (source) => {
        generated += 1;
        const parsed = parseShell(shell === 'bash' ? source : `sh -c ${quote(source)}`);
        if (!parsed.understood) return;
        accepted += 1;
        expect(bench.compare(shell, source, parsed.line), source).toEqual([]);
      });
      // The time counts once it has been of use: on a busy machine the first shells alone have taken all of it.
      const atLatest = Date.now() + (SECONDS + 30) * 1000;
      do {
        fc.assert(property, {
          numRuns: 10_000_000,
          interruptAfterTimeLimit: (SECONDS * 1000) / 3,
          markInterruptAsFailure: false,
        });
      } while (accepted <= ENOUGH && Date.now() < atLatest);
      expect(accepted).toBeGreaterThan(ENOUGH);
      if (process.env.SHELL_FUZZ_SECONDS !== undefined)
        process.stderr.write(`${shell}: ${accepted} of ${generated} run\n`);
    },
    (SECONDS + 60) * 1000,
  );
});
