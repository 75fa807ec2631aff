import { readdirSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { pathOf, textOfPath } from '../../base/path-text.ts';
import { componentsOf, createPathWalk, NOT_THERE } from '../../confine/path-walk.ts';
import type { PathSearch } from '../../model/index.ts';

/** The dot that begins the name of a hidden file: only a pattern that begins with it, too, matches such a name. */
const DOT = 0x2e;

/** Entries that an expansion looks at. */
const MOST_ENTRIES = 10_000;

/** The core's walk of paths (`createPathWalk`), with the expansion of patterns. */
export function createPathLookup(...how: Parameters<typeof createPathWalk>): PathSearch {
  return {
    ...createPathWalk(...how),
    expand(pattern: string): readonly string[] | undefined {
      let paths = ['/'];
      let looked = 0;
      for (const name of componentsOf(pattern)) {
        const isMatch = matcherOf(name);
        if (isMatch === undefined) {
          paths = paths.map((path) => `${path === '/' ? '' : path}/${name}`);
          continue;
        }
        const found: string[] = [];
        for (const path of paths) {
          const entries = entriesOf(path);
          looked += entries?.length ?? 0;
          if (entries === undefined || looked > MOST_ENTRIES) return undefined;
          for (const entry of entries)
            if ((name.startsWith('.') || entry[0] !== DOT) && isMatch(textOfPath(entry)))
              found.push(`${path === '/' ? '' : path}/${textOfPath(entry)}`);
        }
        paths = found;
      }
      return paths;
    },
  };
}

/** Which names a component with patterns in it matches, at least; `undefined`: there are none in it. */
function matcherOf(component: string): ((name: string) => boolean) | undefined {
  if (!/[*?[]/.test(component)) return undefined;
  // What a bracket means to the shell is not followed: anything may be there, and behind it.
  const pattern = component.replace(/\[.*/s, '*');
  return (name) => matches(name, pattern);
}

/** In time that grows with the product of the lengths, whatever the pattern: a command wrote it. */
function matches(name: string, pattern: string): boolean {
  let [at, of, star, retry] = [0, 0, -1, 0];
  while (at < name.length) {
    if (pattern[of] === '*') {
      star = of++;
      retry = at;
    } else if (of < pattern.length && (pattern[of] === '?' || pattern[of] === name[at])) {
      at++;
      of++;
    } else if (star >= 0) {
      of = star + 1;
      at = ++retry;
    } else return false;
  }
  return /^\**$/.test(pattern.slice(of));
}

/** Nothing in what is no directory, as the shell has it; `undefined`: it cannot be read. */
function entriesOf(path: string): readonly Buffer[] | undefined {
  try {
    return readdirSync(pathOf(path), { encoding: 'buffer' });
  } catch (error) {
    return NOT_THERE.has(errnoOf(error) ?? '') ? [] : undefined;
  }
}
