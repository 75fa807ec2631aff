import { describe, expect, it } from 'vitest';
import { filesOfAwkProgram } from '../../../../src/judge/programs/families/awk.ts';

describe('filesOfAwkProgram', () => {
  it.each([
    ['{getline x < "/a"; print x}', 'reads /a'],
    ['BEGIN{while((getline l < "/a") > 0) print l}', 'reads /a'],
    ['{print > "b"}', 'writes b'],
    ['{print "x;y" >> "b"}', 'writes b'],
    ['{ if ($2 > "/a") print }', ''],
    ['$1 > "abc" {print $2}', ''],
  ])('of %s are %s', (program, expected) => {
    expect(
      filesOfAwkProgram(program)
        .map(({ path, effect }) => `${effect} ${path}`)
        .join(' '),
    ).toBe(expected);
  });

  it.each(['print ', 'getline ', 'print "a" ', 'print "', 'getline < "'])(
    'takes little time for many of %s',
    (text) => {
      const start = performance.now();
      filesOfAwkProgram(text.repeat(10_000));
      expect(performance.now() - start).toBeLessThan(2_000);
    },
  );
});
