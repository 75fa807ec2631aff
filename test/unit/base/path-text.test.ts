import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bytesOfPath, pathOf, shownPath, textOfPath } from '../../../src/base/path-text.ts';
import { loadAddon } from '../../../src/confine/native/index.ts';

const NAMES = [
  'plain',
  'é😀\u{10ffff}',
  '\ufffd',
  Buffer.from([0xff]),
  Buffer.from([0xc3]),
  // Half of a surrogate pair, and a NUL and an "a" that are longer than they need be, in the form of UTF-8.
  Buffer.from([0xed, 0xb3, 0xbf]),
  Buffer.from([0xc0, 0xaf, 0xc1, 0xa1, 0xe0, 0x80, 0xaf, 0xf0, 0x80, 0x80, 0xaf]),
  Buffer.from([0xf4, 0x90, 0x80, 0x80, 0xf5, 0xf8]),
  Buffer.concat([Buffer.from('é'), Buffer.from([0xe2, 0x82]), Buffer.from('😀'), Buffer.from([0x80])]),
].map((name) => Buffer.from(name));

/** Every sequence of so many bytes, of those at which UTF-8 changes its mind, none of which ends or divides a name. */
function* sequences(length: number): Generator<number[]> {
  const edges = [
    0x41, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff,
  ];
  if (length === 0) yield [];
  else for (const rest of sequences(length - 1)) for (const edge of edges) yield [...rest, edge];
}

describe('a path as text', () => {
  it.each(NAMES.map((bytes) => [bytes.toString('hex'), bytes] as const))(
    '%s has its bytes back',
    (_, bytes) => {
      expect(bytesOfPath(textOfPath(bytes))).toEqual(bytes);
      expect(Buffer.from(pathOf(textOfPath(bytes)))).toEqual(bytes);
      expect(JSON.parse(JSON.stringify(textOfPath(bytes)))).toBe(textOfPath(bytes));
    },
  );

  it('keeps apart what Node shows alike, and is what Node shows where that is all', () => {
    const alike = [Buffer.from([0xff]), Buffer.from([0xfe]), Buffer.from('\ufffd')];
    expect(new Set(alike.map(textOfPath)).size).toBe(3);
    expect(alike.map((one) => shownPath(textOfPath(one)))).toEqual(['\ufffd', '\ufffd', '\ufffd']);
    expect(textOfPath(Buffer.from('é/😀'))).toBe('é/😀');
    expect(pathOf('é/😀')).toBe('é/😀');
  });

  it('is the same in the addon, in both directions', async () => {
    const root = mkdtempSync(join(tmpdir(), 'path-text-'));
    try {
      const all = [...NAMES, ...[...sequences(3)].map((bytes) => Buffer.from(bytes))];
      const chosen = all.filter((_, at) => at < NAMES.length || at % 7 === 0);
      for (const name of chosen)
        mkdirSync(Buffer.concat([Buffer.from(`${root}/`), name, Buffer.from('/.git')]), { recursive: true });
      const addon = loadAddon();
      const spec = { names: ['.git'], suffixes: [], gitNames: [], maxDirectories: 50_000 };
      const index = addon.createIndex({ root, ...spec });
      const found = await new Promise<readonly string[]>((resolve, reject) => {
        addon.readIndex(index, (indexed, failure) => {
          if (indexed === undefined) reject(new Error(failure?.stage));
          else resolve(indexed.entries.map(({ path }) => path));
        });
      });
      expect(new Set(found)).toEqual(new Set(chosen.map((name) => `${root}/${textOfPath(name)}/.git`)));
      // A root is a path that goes in: what is found in it is found where it is.
      for (const name of NAMES) {
        const inner = addon.createIndex({ root: `${root}/${textOfPath(name)}`, ...spec });
        const paths = await new Promise((resolve) => {
          addon.readIndex(inner, (indexed) => resolve(indexed?.entries.map(({ path }) => path)));
        });
        expect(paths).toEqual([`${root}/${textOfPath(name)}/.git`]);
      }
    } finally {
      rmSync(root, { recursive: true });
    }
  });
});
