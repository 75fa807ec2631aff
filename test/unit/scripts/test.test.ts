import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const script = (name: string) => import(/* @vite-ignore */ `${ROOT}/scripts/${name}.mjs`);
const { AS_BOTH, AS_USER, filesOf, homeOf, PROJECTS, QUICK, testFiles } = await script('test-projects');
const { outcomeOf } = await script('test-outcome');

const file = (name: string, failures: readonly string[] = []) => ({
  ...{ project: 'quick', file: name, seconds: 1, passed: 3, skipped: 1, failures },
});
const run = (...files: readonly object[]) => ({
  ...{
    user: 'root',
    status: files.some((one) => (one as { failures: string[] }).failures.length > 0) ? 1 : 0,
  },
  ...{ files, unhandled: [] as string[] },
});

describe('the table of projects', () => {
  it('has a home for each file, and each file in one', () => {
    const names = Object.keys(PROJECTS);
    expect(testFiles().filter((name: string) => homeOf(name) === undefined)).toEqual([]);
    const listed = names.flatMap((name) => filesOf(name, false));
    expect(listed.toSorted()).toEqual(testFiles());
    expect(listed.length).toBeGreaterThan(300);
  });

  it('has no project, and no beginning of a path, that no file fits', () => {
    const beginnings = Object.values(PROJECTS as Record<string, { tests: string[] }>).flatMap(
      ({ tests }) => tests,
    );
    const isUsed = (beginning: string) => testFiles().some((name: string) => name.startsWith(beginning));
    expect(
      [...beginnings, ...QUICK, ...AS_BOTH, ...AS_USER].filter((beginning) => !isUsed(beginning)),
    ).toEqual([]);
    expect(Object.keys(PROJECTS).filter((name) => filesOf(name, false).length === 0)).toEqual([]);
  });

  it('names rooms that there are', () => {
    const rooms = Object.values(PROJECTS as Record<string, { rooms: string[] }>).flatMap(
      ({ rooms }) => rooms,
    );
    const place = (room: string) => join(ROOT, /^(native\/|docs$)/.test(room) ? room : `src/${room}`);
    expect(rooms.filter((room) => room !== 'native/*' && !existsSync(place(room)))).toEqual([]);
  });
});

describe('a run of the tests', () => {
  it('is green where everything passed, and says how much that was', () => {
    const { lines, isGreen, rows } = outcomeOf({ runs: [run(file('a'), file('b'))] });
    expect(isGreen).toBe(true);
    expect(lines.at(-1)).toBe('6 passed, 0 failed, 2 skipped');
    expect(rows).toEqual({ 'quick, root': { files: 2, tests: 6, failed: 0, skipped: 2, seconds: 2 } });
  });

  it.each([
    ['a test failed', run(file('a', ['b > c'])), 'failed: a (root): b > c'],
    [
      'something was thrown outside of the tests',
      { ...run(file('a')), unhandled: ['late'] },
      'failed: outside of a test: late',
    ],
    [
      'vitest failed and says no more',
      { ...run(file('a')), status: 1 },
      'failed: vitest did not end well, and said no more',
    ],
    ['there was no file', run(), 'failed: no file was run'],
  ])('is red where %s', (_, one, line) => {
    const { lines, isGreen } = outcomeOf({
      runs: [one, run(file('other'))].slice(0, line.includes('no file') ? 1 : 2),
    });
    expect(isGreen).toBe(false);
    expect(lines).toContain(line);
    expect(lines.at(-1)).toMatch(/ passed, [1-9]\d* failed, /);
  });

  it('is green where what failed passed alone, and names it', () => {
    const runs = [run(file('a', ['b > c']), file('d'))];
    const { lines, isGreen } = outcomeOf({ runs, flaky: [{ file: 'a', user: 'root' }], noted: ['a b > c'] });
    expect(isGreen).toBe(true);
    expect(lines.slice(-3)).toEqual([
      '6 passed, 0 failed, 2 skipped',
      'flaky: a b > c',
      'flaky tests: 1, 2 are let pass',
    ]);
  });

  it('is red where the same file passed alone as another user only', () => {
    const runs = [run(file('a', ['b > c']))];
    expect(outcomeOf({ runs, flaky: [{ file: 'a', user: 'nobody' }], noted: ['a b > c'] }).isGreen).toBe(
      false,
    );
  });

  it('is red where more than two were flaky, those of runs before it counted', () => {
    expect(outcomeOf({ runs: [run(file('a'))], noted: ['a', 'b'] }).isGreen).toBe(true);
    expect(outcomeOf({ runs: [run(file('a'))], noted: ['a', 'b', 'c'] }).isGreen).toBe(false);
  });

  it('names in one line the programs that were not there, and the files that need them', () => {
    const { lines } = outcomeOf({
      runs: [run(file('a'))],
      lacking: [
        ['python3', 'a'],
        ['python3', 'b'],
        ['python3', 'a'],
        ['fish', 'b'],
      ],
    });
    expect(lines.filter((line: string) => line.startsWith('not run'))).toEqual([
      'not run, because a program is not there: python3 (a, b); fish (b)',
    ]);
  });
});
