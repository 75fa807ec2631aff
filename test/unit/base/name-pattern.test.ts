import { describe, expect, it } from 'vitest';
import { matchesName, readNamePattern } from '../../../src/base/name-pattern.ts';

function matches(pattern: string, name: string): boolean {
  const read = readNamePattern(pattern);
  if (typeof read === 'string') throw new Error(`${pattern} ${read}`);
  return matchesName(read, name);
}

describe('a pattern of a name', () => {
  it.each([
    ['.env', ['.env', '.ENV'], ['.env.local', 'env', 'x.env']],
    ['*', ['a', '.env', 'line\nbreak'], []],
    ['*.pem', ['a.pem', '.pem', 'a.b.pem', 'A.PEM'], ['pem', 'a.pem~']],
    ['.env.*', ['.env.local', '.env.'], ['.env']],
    ['id_??', ['id_ab', 'id_😀é'], ['id_a', 'id_abc']],
    ['*a*b*c', ['abc', 'xaybzc', 'aabbcc'], ['acb', 'ab']],
    ['[a-c]x', ['ax', 'CX'], ['dx', '-x']],
    ['[!a-c]x', ['dx', '-x'], ['ax', 'x']],
    ['[]x]', [']', 'x'], ['[']],
    ['[a\\]]', ['a', ']'], ['\\']],
    ['[a-]', ['a', '-'], ['b']],
    ['*.{pem,key}', ['a.pem', 'b.key'], ['a.{pem,key}', 'a.p12']],
    ['{a,b{1,2},}x', ['ax', 'b1x', 'b2x', 'x'], ['bx']],
    ['\\*', ['*'], ['a']],
    ['a\\{b', ['a{b'], ['a\\{b']],
    // What is special in other languages of patterns is a letter here.
    ['a+(b).c', ['a+(b).c'], ['aab.c', 'abxc']],
    ['^$|', ['^$|'], ['']],
    ['u\u0308ber', ['\u00fcber', 'U\u0308BER'], ['uber']],
  ] as const)('%s', (pattern, names, others) => {
    for (const name of names) expect([name, matches(pattern, name)]).toEqual([name, true]);
    for (const name of others) expect([name, matches(pattern, name)]).toEqual([name, false]);
  });

  it.each(['a[b', 'a{b', 'a}b', '{b', 'x{a}', '[b-a]', '[[:digit:]]', 'a\\', '[', '{a,b', '{a,b}}'])(
    'that is none is refused: %s',
    (pattern) => {
      expect(readNamePattern(pattern)).toBeTypeOf('string');
    },
  );

  it('does not grow beyond measure', () => {
    expect(readNamePattern('{a,b}'.repeat(20))).toBe('stands for too many names');
    const slow = readNamePattern(`${'*a'.repeat(100)}b`);
    expect(typeof slow === 'string' ? slow : matchesName(slow, 'a'.repeat(255))).toBe(false);
  });
});
