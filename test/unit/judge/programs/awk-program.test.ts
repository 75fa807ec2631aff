import { describe, expect, it } from 'vitest';
import { inspectAwkProgram, withoutLiterals } from '../../../../src/judge/programs/families/awk.ts';

const effectsOf = (program: string) =>
  [...new Set(inspectAwkProgram(program, program).map(({ effect }) => effect))].join(' ');

describe('inspectAwkProgram', () => {
  it.each([
    '{print $2}',
    '/a|b/',
    '/start/,/end/ {print}',
    '$1 ~ /x|y/ {n++} END {print n / 2}',
    'NR>=10 && NR<=20',
    '$3 > 5',
    'END {for (k in a) print k | "sort -rn -k2,2"}',
    '{ if ($1 > 2) print $1 }',
    '{print "a | b > c"}',
    '# system("x")\n{print}',
    'a || b {print}',
    '{print > "/dev/stderr"}',
    'BEGIN { OFS="|" } { print $1, $2 }',
    '/"/ {print "x"}',
  ])('%s only prints', (program) => {
    expect(effectsOf(program)).toBe('');
  });

  it.each([
    ['BEGIN{system("id")}', 'executes'],
    ['BEGIN{system ("id")}', 'executes'],
    ['{print | "sh"}', 'executes'],
    ['{print | "sort -o x"}', 'executes'],
    ['{print | "sort; id"}', 'executes'],
    ['{"id" | getline x}', 'executes'],
    ['{print |& "sh"}', 'executes'],
    ['/"/ {print | "sh"}', 'executes'],
    ['{x = y /1|"sh"/ 1}', 'executes'],
    ['{x = y                              /1|"sh"/ 1}', 'executes'],
    ['{x = y \\\n /1|"sh"/ 1}', 'executes'],
    ['{x = y\t \t/1|"sh"/ 1}', 'executes'],
    ['{print (1) /2 | "sh"}', 'executes'],
    ['/a\\/b/ {print | "sh"}', 'executes'],
    ['{ print / 2\nprint | "sh" }', 'executes'],
    ['@load "x"', 'executes'],
    ['BEGIN{f="system"; @f("id")}', 'executes'],
    ['{print > "x"}', 'writes'],
    ['{print $1 >> "x"}', 'writes'],
    ['{printf("%s", $1) > "x"}', 'writes'],
    ['{print > "/dev/stderr"; print > "x"}', 'writes'],
    ['BEGIN{s="/inet/tcp/0/h/1"; getline < s}', 'network'],
  ])('%s does: %s', (program, expected) => {
    expect(effectsOf(program)).toContain(expected);
  });

  it.each(['/\\', 'print ', '"', '/', '#\n/'])('takes no time over many of %j', (piece) => {
    const start = performance.now();
    withoutLiterals(piece.repeat(15_000));
    inspectAwkProgram(piece.repeat(15_000), '');
    expect(performance.now() - start).toBeLessThan(10_000);
  });
});
