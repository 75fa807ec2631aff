import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { atPlaceOf, chmodItself, makeAt, replaceAt } from '../../../../src/workspace/host/written-file.ts';

describe('a file that is written where commands can write', () => {
  let root: string;
  let work: string;
  let outside: string;
  beforeEach(() => {
    root = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-written-')));
    work = join(root, 'work');
    outside = join(root, 'outside');
    for (const directory of [work, outside, join(work, 'sub')]) mkdirSync(directory);
    writeFileSync(join(outside, 'victim'), 'of the user');
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const put = (path: string, meanwhile = () => {}) =>
    atPlaceOf(path, { commandsWrite: [work] }, (place) => {
      meanwhile();
      return replaceAt(place, 'ours', { mode: 0o640 });
    });

  it('is made with its mode, and replaced as a whole', () => {
    expect(put(join(work, 'sub/file'))).toBe(true);
    expect(put(join(work, 'sub/file'))).toBe(true);
    expect([readFileSync(join(work, 'sub/file'), 'utf8'), readdirSync(join(work, 'sub'))]).toEqual([
      'ours',
      ['file'],
    ]);
    expect(statSync(join(work, 'sub/file')).mode & 0o777).toBe(0o640);
  });

  it('is not the file whose second name was there', () => {
    linkSync(join(outside, 'victim'), join(work, 'sub/file'));
    expect(put(join(work, 'sub/file'))).toBe(true);
    expect(readFileSync(join(outside, 'victim'), 'utf8')).toBe('of the user');
  });

  it('stays in its directory when a command puts a link in place of that one meanwhile', () => {
    const swap = () => {
      renameSync(join(work, 'sub'), join(work, 'moved'));
      symlinkSync(outside, join(work, 'sub'));
    };
    expect(put(join(work, 'sub/victim'), swap)).toBe(true);
    expect(readFileSync(join(outside, 'victim'), 'utf8')).toBe('of the user');
    expect(readFileSync(join(work, 'moved/victim'), 'utf8')).toBe('ours');
  });

  it('replaces a link that a command puts there meanwhile, and nothing that it leads to', () => {
    const plant = () => symlinkSync(join(outside, 'victim'), join(work, 'sub/file'));
    expect(put(join(work, 'sub/file'), plant)).toBe(true);
    expect(readFileSync(join(outside, 'victim'), 'utf8')).toBe('of the user');
    expect(statSync(join(work, 'sub/file')).isFile()).toBe(true);
  });

  it.each(['sub/link', 'sub/link/file', 'sub/round'])('is refused by way of a link: %s', (path) => {
    symlinkSync(outside, join(work, 'sub/link'));
    symlinkSync('round', join(work, 'sub/round'));
    expect(() => put(`${work}/${path}`)).toThrow(expect.objectContaining({ code: 'file.unusable' }));
    expect(readdirSync(outside)).toEqual(['victim']);
  });

  it('is not made where something is that was to be new', () => {
    symlinkSync('/nowhere', join(work, 'sub/link'));
    const make = (name: string) =>
      atPlaceOf(join(work, 'sub', name), { commandsWrite: [work] }, (place) =>
        makeAt(place, 'ours', { mode: 0o644 }),
      );
    make('new');
    expect(() => make('new')).toThrow(expect.objectContaining({ code: 'EEXIST' }));
    expect(() => make('link')).toThrow(expect.objectContaining({ code: 'file.unusable' }));
  });

  it('changes the mode of a file and of nothing that a link leads to', () => {
    chmodSync(join(outside, 'victim'), 0o600);
    symlinkSync(join(outside, 'victim'), join(work, 'link'));
    expect(() => chmodItself(join(work, 'link'), 0o666)).toThrow(
      expect.objectContaining({ code: 'file.unusable' }),
    );
    expect(statSync(join(outside, 'victim')).mode & 0o777).toBe(0o600);
    chmodItself(join(outside, 'victim'), 0o644);
    expect(statSync(join(outside, 'victim')).mode & 0o777).toBe(0o644);
  });
});
