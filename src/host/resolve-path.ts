import { lstatSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SymbolicLink } from '../model/launch-plan.ts';
import type { PathSearch, ResolvedPath } from '../model/surroundings.ts';
import { errnoOf } from '../util/errno-of.ts';
import { bytesOfPath, pathOf, textOfPath } from '../util/path-text.ts';
import { linkBytes } from './link-bytes.ts';

/** As many links as the kernel follows (path_resolution(7)). */
const MAX_LINKS = 40;

/** Bytes of a path with the NUL at its end (limits.h). */
const PATH_MAX = 4096;

/** Of a hidden file, which only a pattern that begins with it matches. */
const DOT = 0x2e;

/** Entries that an expansion looks at. */
const MOST_ENTRIES = 10_000;

/** What the kernel says of a name that is not there; ENAMETOOLONG: that cannot be there. */
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG']);

type Entry =
  | { readonly kind: 'directory' | 'other' }
  | { readonly kind: 'missing'; readonly unknown?: ResolvedPath['unknown'] }
  | { readonly kind: 'link'; readonly content: string };

/**
 * Looks paths up on this host, remembering what it saw: use one for one plan or decision. `directories`: canonical ones
 * that are taken to be there, so that they need not be looked at each time. `whereIs`: where each path is looked at, of a
 * directory with layers over it.
 */
export function createPathLookup(
  directories: readonly string[] = [],
  whereIs: (path: string) => string = (path) => path,
): PathSearch {
  const seen = new Map<string, Entry>(directories.map((path) => [path, { kind: 'directory' }]));

  function look(path: string): Entry {
    let entry = seen.get(path);
    if (entry === undefined) {
      entry = lookNow(whereIs(path));
      seen.set(path, entry);
    }
    return entry;
  }

  function walk(path: string): ResolvedPath {
    const links: SymbolicLink[] = [];
    // Not normalised by text: `..` after a link leads to the parent of what the link names. The next one is the last.
    const pending = componentsOf(path).reverse();
    let at = '/';
    let kind: 'directory' | 'other' = 'directory';
    for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
      if (name === '..') {
        at = dirname(at);
        kind = 'directory';
        continue;
      }
      const next = at === '/' ? `/${name}` : `${at}/${name}`;
      const entry = look(next);
      if (entry.kind === 'missing')
        return { ...entry, canonical: join(`${next}/${pending.reverse().join('/')}`, '.'), links };
      if (entry.kind === 'link') {
        if (links.length >= MAX_LINKS) return { kind: 'missing', canonical: next, links };
        links.push({ path: next, content: entry.content });
        pending.push(...componentsOf(entry.content).reverse());
        if (entry.content.startsWith('/')) at = '/';
        continue;
      }
      kind = entry.kind;
      at = next;
    }
    return { kind, canonical: at, links };
  }

  return {
    resolve(path: string): ResolvedPath {
      if (!isTooLong(path)) return walk(path);
      // The kernel takes no such path (ENAMETOOLONG), but a program may shorten it by its text first.
      const text = join('/', path);
      return isTooLong(text)
        ? { kind: 'missing', canonical: text, links: [] }
        : { ...walk(text), kind: 'missing' };
    },
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

const isTooLong = (path: string): boolean => bytesOfPath(path).length >= PATH_MAX;

function componentsOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}

function lookNow(path: string): Entry {
  try {
    const info = lstatSync(pathOf(path), { throwIfNoEntry: false });
    if (info === undefined) return { kind: 'missing' };
    if (info.isSymbolicLink()) {
      return { kind: 'link', content: textOfPath(linkBytes(pathOf(path))) };
    }
    return { kind: info.isDirectory() ? 'directory' : 'other' };
  } catch (error) {
    // What we cannot look at cannot be granted; code that has to shut it must not take it for missing.
    const errno = errnoOf(error) ?? 'unknown error';
    return NOT_THERE.has(errno) ? { kind: 'missing' } : { kind: 'missing', unknown: { path, errno } };
  }
}
