import { describe, expect, it } from 'vitest';
import { directoriesBetween, isBeneath } from '../../../src/base/absolute-path.ts';

describe('isBeneath', () => {
  it.each([
    ['/work', '/work', true],
    ['/work/a', '/work', true],
    ['/work/a/b', '/work/a', true],
    ['/work-evil', '/work', false],
    ['/work', '/work/a', false],
    ['/', '/work', false],
    ['/work', '/', true],
    ['/', '/', true],
    ['/workshop/a', '/work', false],
  ])('%s beneath %s: %s', (path, root, expected) => {
    expect(isBeneath(path, root)).toBe(expected);
  });
});

describe('directoriesBetween', () => {
  it.each([
    ['/w/a/b/c', '/w', ['/w/a', '/w/a/b']],
    ['/w/a', '/w', []],
    ['/w', '/w', []],
    ['/other/a/b', '/w', []],
    ['/w-evil/a/b', '/w', []],
    ['/w/a/b', '/', ['/w', '/w/a']],
  ])('from %s up to %s: %j', (path, root, expected) => {
    expect(directoriesBetween(path, root)).toEqual(expected);
  });
});
