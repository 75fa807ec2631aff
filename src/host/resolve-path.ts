import { isUtf8 } from 'node:buffer';
import { lstatSync, readlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SymbolicLink } from '../model/launch-plan.ts';
import type { PathLookup, ResolvedPath } from '../model/surroundings.ts';
import { errnoOf } from '../util/errno-of.ts';

/** As many links as the kernel follows (path_resolution(7)). */
const MAX_LINKS = 40;

/** Bytes of a path with the NUL at its end (limits.h). */
const PATH_MAX = 4096;

/** What the kernel says of a name that is not there; ENAMETOOLONG: that cannot be there. */
const NOT_THERE = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG']);

type Entry =
  | { readonly kind: 'directory' | 'other' }
  | { readonly kind: 'missing'; readonly unknown?: ResolvedPath['unknown'] }
  | { readonly kind: 'link'; readonly content: string; readonly isLost: boolean };

/**
 * Looks paths up on this host, remembering what it saw: use one for one plan or decision. `directories`: canonical ones
 * that are taken to be there, so that they need not be looked at each time. `whereIs`: where each path is looked at, of a
 * directory with layers over it.
 */
export function createPathLookup(
  directories: readonly string[] = [],
  whereIs: (path: string) => string = (path) => path,
): PathLookup {
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
        // What it leads to cannot be named: what has the name that is like it is not meant.
        if (entry.isLost)
          return { kind: 'missing', canonical: join(`${at}/${pending.reverse().join('/')}`, '.'), links };
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
  };
}

const isTooLong = (path: string): boolean => Buffer.byteLength(path) >= PATH_MAX;

function componentsOf(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}

function lookNow(path: string): Entry {
  try {
    const info = lstatSync(path, { throwIfNoEntry: false });
    if (info === undefined) return { kind: 'missing' };
    if (info.isSymbolicLink()) {
      const content = readlinkSync(path, 'buffer');
      return { kind: 'link', content: content.toString(), isLost: !isUtf8(content) };
    }
    return { kind: info.isDirectory() ? 'directory' : 'other' };
  } catch (error) {
    // What we cannot look at cannot be granted; code that has to shut it must not take it for missing.
    const errno = errnoOf(error) ?? 'unknown error';
    return NOT_THERE.has(errno) ? { kind: 'missing' } : { kind: 'missing', unknown: { path, errno } };
  }
}
