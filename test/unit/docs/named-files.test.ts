import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { lacks } from '../../support/programs.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** What git has or would take: neither builds nor packages. */
const HAS_GIT = !lacks(join(ROOT, '.git'));
const FILES = (
  HAS_GIT
    ? execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
    : ''
)
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(ROOT, file)));
const ALL = new Set(FILES);
const NAMES = new Set(FILES.map((file) => basename(file)));
const TOP = new Set(FILES.filter((file) => file.includes('/')).map((file) => file.split('/')[0]));

/** The kernel's, the system's, other programs' and imagined ones of examples; `.h`: only what could be one of native/ is ours. */
const OTHERS: readonly RegExp[] = [
  /^(include\/|arch\/|fs\/|linux\/|asm(-generic)?\/|\/etc\/|\/usr\/)/,
  /^(napi|dlfcn|errno|fscrypt|fsverity|ext4|btrfs)\.h$/,
  /^(include\/)?own\.h$/,
  /^(AGENTS|CLAUDE|GEMINI)\.md$/,
  /^\/cases\.mjs$/,
  /^\.\/providers\.mjs$/,
];

/** Comments of a program, or the prose of a page: blocks of code there show what a user would write. */
function wordsOf(file: string): string {
  const text = readFileSync(join(ROOT, file), 'utf8');
  if (file.endsWith('.md')) return text.replace(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/\/\*[\s\S]*?\*\/|(?:^|\s)\/\/.*$/gm)].map(([comment]) => comment).join('\n');
}

/** Files that a text names and that are not there. `file`: where it stands; a path may begin there, at the top, in src/ or in native/. */
function missing(text: string, file: string): readonly string[] {
  const named = text.matchAll(
    /(?<![\w/.~$@>-])(?:\.{0,2}\/)?[\w.-]+(?:\/[\w.-]+)*\.(?:tsx?|mts|mjs|cc|h|md)(?![\w/-])/g,
  );
  return [...named].flatMap(([path]) => {
    const plain = normalize(path);
    const from = TOP.has(plain.split('/')[0] ?? '')
      ? [plain]
      : ['src', 'native'].map((top) => `${top}/${plain}`);
    const isThere =
      OTHERS.some((other) => other.test(path)) ||
      (plain.includes('/')
        ? [...from, normalize(join(dirname(file), plain))].some((one) => ALL.has(one))
        : NAMES.has(plain));
    return isThere ? [] : [path];
  });
}

describe.runIf(HAS_GIT)('a file that is named', () => {
  it('in a comment or on a page is there', () => {
    // What changed then names what was there then.
    const told = FILES.filter((file) => /\.(md|tsx?|mts|mjs|cc|h)$/.test(file) && file !== 'CHANGELOG.md');
    const broken = told.flatMap((file) => missing(wordsOf(file), file).map((path) => `${file}: ${path}`));
    expect(broken).toEqual([]);
    expect(told.length).toBeGreaterThan(500);
  });

  it.each([
    ['see `src/nothing.ts` and DESIGN.md', ['src/nothing.ts', 'DESIGN.md']],
    ['`native/launch.ts`, formats.ts', ['native/launch.ts', 'formats.ts']],
    [
      'KERNEL.md, docs/DESIGN.md, ../shared/PARSER.md',
      ['KERNEL.md', 'docs/DESIGN.md', '../shared/PARSER.md'],
    ],
    ['src/index.ts, docs/design.md, run/sandbox.ts, core/warden.h, (README.md), linux/fs.h', []],
  ])('would be told if it were not: %s', (text, told) => {
    expect(missing(text, 'README.md')).toEqual(told);
  });
});
