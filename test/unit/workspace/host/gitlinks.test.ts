import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { gitlinksOf, isOutOfSight } from '../../../../src/workspace/host/git/index-file.ts';

const places: string[] = [];
afterEach(() => {
  for (const place of places.splice(0)) rmSync(place, { recursive: true });
});

const LINKS = ['a/b', 'node_modules/x/y/z', 'zz'];

/** The index that git makes of some files and repositories. */
function indexOf(version: number, format: string, links: readonly string[] = LINKS): Buffer {
  const place = mkdtempSync(join(tmpdir(), 'gitlinks-'));
  places.push(place);
  const git = (...args: string[]) => execFileSync('git', ['-C', place, ...args], { stdio: 'pipe' });
  git('init', '-q', `--object-format=${format}`);
  for (let at = 0; at < 50; at++) {
    const file = join(place, `files/${at % 7}/${'n'.repeat(at)}-${at}`);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${at}`);
  }
  git('add', '.');
  const id = '1'.repeat(format === 'sha256' ? 64 : 40);
  for (const path of links) git('update-index', '--add', '--cacheinfo', `160000,${id},${path}`);
  if (version === 3) git('update-index', '--skip-worktree', 'files/0/-0');
  git('update-index', '--index-version', `${version}`);
  return readFileSync(join(place, '.git/index'));
}

describe('the repositories that an index names', () => {
  it.each([
    [2, 'sha1'],
    [3, 'sha1'],
    [4, 'sha1'],
    [2, 'sha256'],
    [4, 'sha256'],
  ])('are read from version %d with %s', (version, format) => {
    const index = indexOf(version, format);
    expect(index.readUInt32BE(4)).toBe(version);
    expect(gitlinksOf(index)).toEqual(LINKS);
  });

  it('are none where there are none, and unknown where it is no index', () => {
    expect(gitlinksOf(indexOf(2, 'sha1', []))).toEqual([]);
    expect(gitlinksOf(Buffer.from('nothing'))).toBeUndefined();
    expect(gitlinksOf(indexOf(2, 'sha1').subarray(0, 400))).toBeUndefined();
  });
});

it('is out of sight deep in packages only', () => {
  const out = ['node_modules/x/y', 'a/node_modules/@s/x/y', 'node_modules/x/y/z'];
  const seen = ['node_modules/x', 'node_modules/@s/x', 'a/b', 'vendor/x/y/z'];
  expect([...out, ...seen].filter(isOutOfSight)).toEqual(out);
});
