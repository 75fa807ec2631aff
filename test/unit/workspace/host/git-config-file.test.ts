import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import {
  EMPTY_GIT_CONFIG,
  editGitConfig,
  type GitSetting,
  parseGitConfig,
  valuesByKey,
} from '../../../../src/workspace/host/git/config-file.ts';

const place = mkdtempSync(join(tmpdir(), 'git-config-'));
afterAll(() => rmSync(place, { recursive: true }));

/** What git itself reads, or `undefined` where it stops. */
function git(text: string | Buffer): readonly GitSetting[] | undefined {
  const file = join(place, 'config');
  writeFileSync(file, typeof text === 'string' ? Buffer.from(text, 'latin1') : text);
  const { status, stdout } = spawnSync('git', ['config', '--no-includes', '--file', file, '--list', '-z'], {
    encoding: 'latin1',
    env: { PATH: process.env.PATH, GIT_CONFIG_NOSYSTEM: '1' },
  });
  if (status !== 0) return undefined;
  return stdout
    .split('\0')
    .slice(0, -1)
    .map((entry) => {
      const at = entry.indexOf('\n');
      return at < 0
        ? { key: entry, value: undefined }
        : { key: entry.slice(0, at), value: entry.slice(at + 1) };
    });
}

const ours = (text: string) => parseGitConfig(Buffer.from(text, 'latin1'))?.settings;

/** Older releases of git make one blank of several in a value: not what these tests are about. */
const blanks = (settings: readonly GitSetting[] | undefined) =>
  settings?.map(({ key, value }) => ({ key, value: value?.replace(/[ \t\r]+/g, ' ') }));

const PARTS = [
  '[core]', '[a "b"]', '[a "B\\"c"]', '[A.b]', '[a "b]"]', '[', ']', '"', '\\', '\\n', '\\\n', '\\\r\n', '\n', '\r\n', '\r', '\t', ' ', '=', ' = ',
  'key', 'fsmonitor', 'Key-2', '#', ';', '.', 'x y', '\xef\xbb\xbf', '\xe9', '\x0b', '\x0c', '[include]\n', 'path = ../x', '-', '1', 'a=b\n', '!sh',
]; // biome-ignore format: a list
const noise = fc.array(fc.constantFrom(...PARTS), { maxLength: 14 }).map((parts) => parts.join(''));
const line = fc
  .tuple(fc.constantFrom('[core]\n', '[a "b"] ', '[a.b]\n', ''), fc.constantFrom('key', 'K2', 'url'), noise)
  .map(([header, key, rest]) => `${header}\t${key} = ${rest}\n`);
const file = fc.oneof(
  noise,
  fc.array(line, { maxLength: 5 }).map((lines) => `[core]\n${lines.join('')}`),
);

describe('a configuration file', () => {
  it('is read as git reads it', () => {
    let readable = 0;
    fc.assert(
      fc.property(file, (text) => {
        const expected = git(text);
        if (expected !== undefined && expected.length > 0) readable += 1;
        expect(blanks(ours(text))).toEqual(blanks(expected));
      }),
      { numRuns: 600, seed: 17 },
    );
    // The positive control: both kinds were there.
    expect(readable).toBeGreaterThan(80);
  }, 240_000);

  it('with a NUL is read by nobody', () => {
    expect(ours('[core]\n\tfsmonitor = ./x\0\n')).toBeUndefined();
  });
});

describe('an edit', () => {
  const key = fc.constantFrom(
    'core.key',
    'core.k2',
    'a.b.url',
    'a.b.key',
    'new.sec"t\\ion.x',
    'remote.o.url',
  );
  const value = fc.oneof(
    noise.filter((text) => !text.includes('\r')),
    fc.constant(undefined),
  );
  const edit = fc.record({ key, values: fc.array(value, { maxLength: 2 }) });

  it('gives a key the values that were asked for, as git reads them, and changes no other', () => {
    fc.assert(
      fc.property(file, fc.array(edit, { minLength: 1, maxLength: 3 }), (text, edits) => {
        const before = parseGitConfig(Buffer.from(text, 'latin1'));
        if (before === undefined) return;
        const after = git(editGitConfig(before, edits));
        expect(after).toBeDefined();
        const expected = valuesByKey(before.settings);
        for (const { key, values } of edits) {
          if (values.length === 0) expected.delete(key);
          else expected.set(key, values);
        }
        const sorted = (map: ReturnType<typeof valuesByKey>) =>
          [...map]
            .map(([name, values]) => `${name}=${JSON.stringify(values).replace(/( |\\t|\\r)+/g, ' ')}`)
            .sort();
        expect(sorted(valuesByKey(after ?? []))).toEqual(sorted(expected));
      }),
      { numRuns: 400, seed: 17 },
    );
  }, 240_000);

  it.each([
    ['[core]\n\tbare = false\n', 'user.name', ['A'], '[core]\n\tbare = false\n[user]\n\tname = "A"\n'],
    ['[core]\n\tbare = false\n[user]\n\tname = A\n', 'user.name', [], '[core]\n\tbare = false\n'],
    ['[core] bare = false\n', 'core.bare', [], ''],
    ['[a]\n\tx = 1 # why\n\ty = 2\n', 'a.y', ['3'], '[a]\n\tx = 1 # why\n\ty = "3"\n'],
    [
      '# mine\n[a]\n\tx = 1\n\n[b]\n\tz = 1\n',
      'a.w',
      ['2'],
      '# mine\n[a]\n\tx = 1\n\tw = "2"\n\n[b]\n\tz = 1\n',
    ],
  ])('of %j keeps what is around it', (text, key, values, expected) => {
    const parsed = parseGitConfig(Buffer.from(text));
    expect(parsed && editGitConfig(parsed, [{ key, values }]).toString()).toBe(expected);
  });

  it('makes a file where there is none', () => {
    expect(editGitConfig(EMPTY_GIT_CONFIG, [{ key: 'a.b.c', values: ['d'] }]).toString()).toBe(
      '[a "b"]\n\tc = "d"\n',
    );
  });
});
