import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { orElse } from '../../../../src/base/or-else.ts';
import { createPathLookup } from '../../../../src/workspace/host/resolve-path.ts';

const top = realpathSync(mkdtempSync(join(tmpdir(), 'sandbox-run-lookup-')));
afterAll(() => rmSync(top, { recursive: true, force: true }));

function link(name: string, content: string): void {
  mkdirSync(dirname(join(top, name)), { recursive: true });
  symlinkSync(content, join(top, name));
}

mkdirSync(join(top, 'real/inner/deep'), { recursive: true });
writeFileSync(join(top, 'real/file'), '');
link('to-real', 'real');
link('absolute', join(top, 'real'));
link('chain-1', 'chain-2');
link('chain-2', 'chain-3');
link('chain-3', 'real/inner');
link('real/inner/up', '../file');
link('real/inner/up-and-down', '../../real/./inner//deep/');
link('to-link-dir', 'to-real/inner');
link('loop-1', 'loop-2');
link('loop-2', 'loop-1');
link('self', 'self');
link('dangling', 'nowhere/at/all');
link('beyond-root', '../../../../../../../../../../../../../../..');
link('to-file', 'real/file');
for (let i = 0; i < 45; i++) link(`long/${i}`, i === 44 ? '../real' : String(i + 1));

function resolve(path: string) {
  const { kind, canonical, links } = createPathLookup().resolve(join(top, path));
  return {
    kind,
    canonical: canonical.replace(`${top}/`, ''),
    links: links.map((one) => `${one.path.replace(`${top}/`, '')} → ${one.content}`),
  };
}

describe('a path that the kernel would not take', () => {
  it.each(['/', '/x', '/..', '/.', 'x'])('is missing at once: many of %j', (piece) => {
    const start = performance.now();
    const { kind } = createPathLookup().resolve(`${top}${piece.repeat(500_000)}`);
    expect(kind).toBe('missing');
    expect(performance.now() - start).toBeLessThan(10_000);
  });

  it('leads to where its text leads, for programs that shorten it', () => {
    const path = `${top}/to-real/${'/'.repeat(10_000)}/file`;
    expect(createPathLookup().resolve(path)).toMatchObject({
      kind: 'missing',
      canonical: join(top, 'real/file'),
    });
  });
});

describe('`..` after a link', () => {
  const lookup = createPathLookup();
  it.each([
    ['to-link-dir/..', 'real'],
    ['chain-1/../file', 'real/file'],
    ['chain-1/../../to-file', 'real/file'],
    ['real/inner/../file', 'real/file'],
    ['missing/../real', 'real'],
  ])('%s leads where the kernel goes, not where the text points', (path, expected) => {
    // Not join(): that would take the text at its word.
    const { canonical } = lookup.resolve(`${top}/${path}`);
    expect(canonical).toBe(join(top, expected));
  });
});

describe('createPathLookup', () => {
  it.each([
    ['real', 'directory', 'real', []],
    ['real/inner/deep', 'directory', 'real/inner/deep', []],
    ['real/file', 'other', 'real/file', []],
    ['real/../real/./inner', 'directory', 'real/inner', []],
    ['to-real', 'directory', 'real', ['to-real → real']],
    ['to-real/inner/deep', 'directory', 'real/inner/deep', ['to-real → real']],
    ['to-file', 'other', 'real/file', ['to-file → real/file']],
    [
      'chain-1/deep',
      'directory',
      'real/inner/deep',
      ['chain-1 → chain-2', 'chain-2 → chain-3', 'chain-3 → real/inner'],
    ],
    ['to-link-dir', 'directory', 'real/inner', ['to-link-dir → to-real/inner', 'to-real → real']],
    ['real/inner/up', 'other', 'real/file', ['real/inner/up → ../file']],
    [
      'to-real/inner/up-and-down',
      'directory',
      'real/inner/deep',
      ['to-real → real', 'real/inner/up-and-down → ../../real/./inner//deep/'],
    ],
  ])('finds %s', (path, kind, canonical, links) => {
    expect(resolve(path)).toEqual({ kind, canonical, links });
  });

  it.each([
    ['nothing', 'nothing', []],
    ['nothing/at/all', 'nothing/at/all', []],
    ['to-real/nothing/more', 'real/nothing/more', ['to-real → real']],
    ['dangling', 'nowhere/at/all', ['dangling → nowhere/at/all']],
    ['dangling/more', 'nowhere/at/all/more', ['dangling → nowhere/at/all']],
    ['real/file/beyond', 'real/file/beyond', []],
    ['to-file/beyond', 'real/file/beyond', ['to-file → real/file']],
  ])('says how far %s exists', (path, canonical, links) => {
    expect(resolve(path)).toEqual({ kind: 'missing', canonical, links });
  });

  it.each(['loop-1', 'loop-2/x', 'self', 'long/0'])('gives up on %s, as the kernel does', (path) => {
    const resolved = resolve(path);
    expect(resolved.kind).toBe('missing');
    expect(resolved.links).toHaveLength(40);
  });

  it('follows as many links as the kernel follows', () => {
    expect(resolve('long/5')).toMatchObject({ kind: 'directory', canonical: 'real' });
    // Where a directory changes meanwhile, the kernel begins anew and goes on counting (nd->total_link_count in fs/namei.c), so that
    // now and then it follows fewer.
    const answers = Array.from({ length: 100 }, () =>
      orElse(() => realpathSync(join(top, 'long/5')), 'ELOOP'),
    );
    expect(answers).toContain(join(top, 'real'));
    expect(() => realpathSync.native(join(top, 'long/4'))).toThrow('ELOOP');
    expect(resolve('long/4').kind).toBe('missing');
  });

  it('does not leave the root', () => {
    expect(resolve('beyond-root')).toMatchObject({ kind: 'directory', canonical: '/' });
    expect(createPathLookup().resolve('/..')).toEqual({ kind: 'directory', canonical: '/', links: [] });
  });

  it('agrees with realpath on everything that exists', () => {
    for (const path of ['to-real/inner/up', 'chain-1', 'absolute/inner', 'to-link-dir/up-and-down']) {
      expect(createPathLookup().resolve(join(top, path)).canonical).toBe(realpathSync(join(top, path)));
    }
  });

  it('remembers what it saw, so that one plan sees one state', () => {
    const lookup = createPathLookup();
    const path = join(top, 'later');
    expect(lookup.resolve(path).kind).toBe('missing');
    mkdirSync(path);
    expect(lookup.resolve(path).kind).toBe('missing');
    expect(createPathLookup().resolve(path).kind).toBe('directory');
  });
});

describe('what a pattern may match', () => {
  const place = join(top, 'patterns');
  const names = [
    'a',
    'ab',
    'abc',
    'b.txt',
    '.hidden',
    'a b',
    '*',
    '[x]',
    'é',
    'dir',
    'dir/a',
    'dir/c.txt',
    'dir/sub/a',
  ];
  for (const name of names) {
    mkdirSync(dirname(join(place, name)), { recursive: true });
    if (/dir$/.test(name)) mkdirSync(join(place, name), { recursive: true });
    else writeFileSync(join(place, name), '');
  }
  symlinkSync('/etc', join(place, 'outside'));

  it('is all that bash finds, whatever the pattern', () => {
    const parts = ['a', 'b', '*', '?', '[a-c]', '[!a]', '.', 'c', '/', 'dir', '*', '/'];
    const patterns = Array.from({ length: 300 }, (_, seed) =>
      Array.from(
        { length: 1 + (seed % 6) },
        (_, at) => parts[(seed * 7 + at * (1 + (seed % 11))) % parts.length],
      ).join(''),
    ).filter((pattern) => pattern !== '' && !pattern.startsWith('/') && !pattern.includes('..'));
    const script = 'shopt -s nullglob; while IFS= read -r p; do printf "%s\\0" "$p" $p ""; done';
    const said = execFileSync('bash', ['-c', script], {
      cwd: place,
      input: `${patterns.join('\n')}\n`,
    }).toString();
    let found = 0;
    for (const block of said.split('\0\0')) {
      const [pattern, ...matches] = block.split('\0');
      if (pattern === undefined || pattern === '' || !/[*?[]/.test(pattern)) continue;
      const expanded = createPathLookup().expand(`${place}/${pattern}`);
      const plain = (path: string) => join(place, path).replace(/\/+$/, '');
      found += matches.length;
      expect(expanded, pattern).toEqual(expect.arrayContaining(matches.map(plain)));
    }
    expect(found).toBeGreaterThan(200);
  });

  it('takes no time that a pattern could choose', () => {
    const name = 'a'.repeat(250);
    writeFileSync(join(top, name), '');
    const begun = process.cpuUsage();
    createPathLookup().expand(join(top, `${'*a'.repeat(60)}b`));
    expect(process.cpuUsage(begun).user).toBeLessThan(1_000_000);
  });

  it('has names that are no text, and leads to what they are', () => {
    const bytes = join(top, 'bytes');
    mkdirSync(bytes);
    writeFileSync(Buffer.concat([Buffer.from(`${bytes}/`), Buffer.from([0xff])]), '');
    symlinkSync('/etc/passwd', Buffer.concat([Buffer.from(`${bytes}/`), Buffer.from([0xfe])]));
    const lookup = createPathLookup();
    const found = lookup.expand(`${bytes}/*`) ?? [];
    expect(found.map((path) => lookup.resolve(path).kind)).toEqual(['other', 'other']);
    expect(found.map((path) => lookup.resolve(path).canonical)).toContain('/etc/passwd');
    expect(createPathLookup().expand(`${bytes}/a*`)).toEqual([]);
    expect(createPathLookup().expand(`${place}/nowhere/*`)).toEqual([]);
  });
});
