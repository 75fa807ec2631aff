import { describe, expect, it } from 'vitest';
import { grammarOf } from '../../../../src/judge/programs/grammars.ts';
import { findProgram, PROGRAM_ROWS } from '../../../../src/judge/programs/program-table.ts';

// Scripts have no types.
const { optionsOf } = (await import(
  /* @vite-ignore */ `${import.meta.dirname}/../../../../scripts/compare-options.mjs`
)) as { optionsOf: (text: string, singleDash?: boolean) => ReadonlySet<string> };

describe('where options of the table come from', () => {
  it('is said by every grammar that is complete', () => {
    const missing = PROGRAM_ROWS.filter((row) => {
      const grammar = grammarOf(row.behaviour());
      return grammar !== undefined && grammar.open !== true && grammar.source === undefined;
    });
    expect(missing.map(({ names }) => names)).toEqual([]);
  });
});

describe('each shell says its own manual', () => {
  it.each([
    ['bash', 'bash 5.2.15'],
    ['sandbox-sh', 'bash 5.2.15'],
    ['sh', 'dash 0.5.12'],
    ['dash', 'dash 0.5.12'],
    ['zsh', 'zsh 5.9'],
    ['ksh', 'ksh 93u+m 1.0.4'],
    ['mksh', 'mksh 59c'],
    ['tcsh', 'tcsh 6.24.07'],
    ['fish', 'fish 3.6.0'],
  ])('%s: %s', (name, source) => {
    expect(grammarOf(findProgram(name) ?? {})?.source).toBe(source);
  });
});

describe('the options that a help names', () => {
  it.each([
    ['  -a, --all        do not ignore -b or --other', 'a all'],
    ['  -c  --format=FORMAT   use it', 'c format'],
    ['  -u, -U NUM, --unified[=NUM]   output', 'u U unified'],
    ['       ·   --slurp/-s:', 'slurp s'],
    ['usage: ssh [-46Aa] [-B bind] host', '4 6 A a B'],
    ['Text with a-dash, and -x in it.', ''],
    ['--only-long', 'only-long'],
  ])('%j', (line, expected) => {
    expect([...optionsOf(line)].join(' ')).toBe(expected);
  });

  it('of one dash are whole words', () => {
    expect([...optionsOf('  -name PATTERN  -x', true)]).toContain('name');
  });
});
