import { dirname, join } from 'node:path';
import { readOr } from '../../../base/errors/shortage.ts';
import { matchesAll, matchesName, type NamePattern, readNamePattern } from '../../../base/name-pattern.ts';
import { pathOf } from '../../../base/path-text.ts';
import { readRegular } from '../held-directory.ts';

/** Bytes of one file of patterns. */
const LARGEST = 64 * 1024;

interface Pattern {
  readonly isNegated: boolean;
  /** `**` stands for any number of directories. */
  readonly parts: readonly (NamePattern | '**')[];
}

/**
 * Which paths of a repository git ignores, by `.gitignore` and `info/exclude` and not by the settings of its user: gitignore(5).
 * What is tracked is not ignored, nor what is around it. `directory`: of git itself; `tracked`: relative to the root.
 */
export function ignoredPaths(
  root: string,
  directory: string,
  tracked: readonly string[],
): (path: string) => boolean {
  const files = new Map<string, readonly Pattern[]>();
  const known = new Map<string, boolean>();
  let kept: ReadonlySet<string> | undefined;

  const patternsOf = (file: string): readonly Pattern[] => {
    const before = files.get(file);
    if (before !== undefined) return before;
    const content = readOr(() => readRegular(pathOf(file), LARGEST), undefined);
    const patterns = content === undefined ? [] : content.toString().split('\n').flatMap(patternIn);
    files.set(file, patterns);
    return patterns;
  };

  const isMatched = (path: string): boolean => {
    const names = path.split('/');
    // The last matching pattern of the nearest directory decides.
    for (let depth = names.length - 1; depth >= -1; depth--) {
      const file =
        depth === -1 ? join(directory, 'info/exclude') : join(root, ...names.slice(0, depth), '.gitignore');
      const inside = names.slice(Math.max(0, depth));
      const last = patternsOf(file).findLast(({ parts }) =>
        matchesAll<NamePattern | '**', '**', string>(parts, '**', inside, matchesName),
      );
      if (last !== undefined) return !last.isNegated;
    }
    return false;
  };

  const ignores = (path: string): boolean => {
    if (path === '' || path === '.') return false;
    const before = known.get(path);
    if (before !== undefined) return before;
    kept ??= new Set(tracked.flatMap((one) => [one, ...around(one)]));
    // What is in a directory that is ignored is ignored.
    const isIgnored = !kept.has(path) && (ignores(dirname(path)) || isMatched(path));
    known.set(path, isIgnored);
    return isIgnored;
  };
  return ignores;
}

/** The directories that a path goes through. */
function around(path: string): readonly string[] {
  const names = path.split('/').slice(0, -1);
  return names.map((_, at) => names.slice(0, at + 1).join('/'));
}

/** The pattern of a line. An unreadable one ignores nothing; one for directories only counts for files too. */
function patternIn(line: string): readonly Pattern[] {
  const text = line.replace(/\r$/, '').replace(/(?<!\\) +$/, '');
  const isNegated = text.startsWith('!');
  const bare = (isNegated ? text.slice(1) : text).replace(/\/$/, '');
  if (bare === '' || bare.startsWith('#')) return [];
  const isAnchored = bare.includes('/');
  const parts = bare
    .replace(/^\//, '')
    .split('/')
    // Braces are letters there.
    .map((one) => (one === '**' ? one : readNamePattern(one.replace(/[{}]/g, '\\$&'))));
  const readable = parts.flatMap((one) => (typeof one === 'string' && one !== '**' ? [] : [one]));
  if (readable.length < parts.length) return [];
  return [{ isNegated, parts: (isAnchored ? readable : ['**', ...readable]) as Pattern['parts'] }];
}
