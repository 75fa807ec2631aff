// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseArgv, parseShell } from '../../../../src/judge/shell/parse.ts';
import type { Parsed } from '../../../../src/model/index.ts';
import { mutatedScript, noise } from '../../../support/shell-generator.ts';

/** Milliseconds of this process's own time: others share the machine. */
function spent(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

describe('ten thousand strings', () => {
  it.each([
    ['noise', noise, 4000],
    ['mutated scripts', mutatedScript, 6000],
  ] as const)(
    'are read without a crash and without a hang (%s)',
    (_, strings, numRuns) => {
      const property = fc.property(strings, (source) => {
        let parsed: Parsed | undefined;
        const first = spent(() => {
          parsed = parseShell(source);
        });
        if (parsed?.understood === false) {
          expect(parsed.problem.code, source).not.toBe('internal');
          expect(parsed.problem.message).toMatch(/^.{10,400}\.$/s);
        }
        // A pause of the garbage collector is no hang: what is slow must be slow again.
        if (first > 50)
          expect(
            spent(() => parseShell(source)),
            source,
          ).toBeLessThan(250);
      });
      fc.assert(property, { numRuns });
    },
    120_000,
  );

  it('are read as argument vectors too', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'binary' })),
        fc.constantFrom('env', 'sh', 'git', 'find', 'xargs', 'sudo', 'make', 'ssh', 'npx'),
        (words, name) => {
          const parsed = parseArgv([name, ...words]);
          expect(parsed.understood || parsed.problem.code !== 'internal').toBe(true);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe('texts that are made to be slow', () => {
  it.each([
    '$(',
    '"$(',
    '`',
    '((',
    '$((',
    '{ ',
    '(',
    '<(',
    '${x:-',
    '"${x:-',
    'if ',
    '[[ (',
    'a=(',
    '{',
    '<<E ',
    '<<E\n',
    'coproc ',
    'f() { ',
    'cat <(',
    'eval ',
    'env ',
    "'",
    '"',
    '{a,',
    '*',
    '~',
    'a b ',
  ])('%s, many times', (text) => {
    const source = text.repeat(1500);
    parseShell(source);
    // What grows faster than the text takes seconds; a busy machine takes a few times 50 ms.
    expect(spent(() => parseShell(source))).toBeLessThan(1_000);
  });
});

describe('speed', () => {
  it('is far below 0.1 ms for everyday commands', () => {
    const commands = [
      'ls -la',
      'cd web && npm test 2>&1 | tail -20',
      'git diff --stat HEAD~1',
      "find . -name '*.ts' | wc -l",
      'for f in src/*.rs; do wc -l "$f"; done',
    ];
    const times: number[] = [];
    for (let round = 0; round < 400; round += 1) {
      for (const command of commands) {
        const start = performance.now();
        parseShell(command);
        times.push(performance.now() - start);
      }
    }
    const late = times.slice(1000).sort((a, b) => a - b);
    expect(late[late.length >> 1]).toBeLessThan(1);
  });
});
