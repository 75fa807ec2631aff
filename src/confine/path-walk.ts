import { lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { errnoOf } from '../base/errno-of.ts';
import { orElse } from '../base/or-else.ts';
import { bytesOfPath, pathOf, textOfPath } from '../base/path-text.ts';
import { linkBytes } from './link-bytes.ts';
import type { SymbolicLink } from './plan/launch-plan.ts';
import type { PathLookup, ResolvedPath } from './plan/path-lookup.ts';

/** As many links as the kernel follows (path_resolution(7)). */
const MAX_LINKS = 40;

/** Bytes of a path with the NUL at its end (limits.h). */
const PATH_MAX = 4096;

/** What the kernel says of a name that is not there; ENAMETOOLONG: that cannot be there. */
export const NOT_THERE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG']);

/** What is at a path. */
export type Entry =
  | { readonly kind: 'directory' | 'other' }
  | { readonly kind: 'missing'; readonly unknown?: ResolvedPath['unknown'] }
  | { readonly kind: 'link'; readonly content: string };

/**
 * Looks paths up on this host, remembering what it saw: use one for one plan or decision. `directories`: canonical ones
 * that are taken to be there, so that they need not be looked at each time. `whereIs`: where each path is looked at, of a
 * directory with layers over it. `listed`: what is known of a path without looking at it.
 */
export function createPathWalk(
  directories: readonly string[] = [],
  whereIs: (path: string) => string = (path) => path,
  listed: (path: string) => Entry | undefined = () => undefined,
): PathLookup {
  const seen = new Map<string, Entry>(directories.map((path) => [path, { kind: 'directory' }]));

  function look(path: string): Entry {
    let entry = seen.get(path);
    if (entry === undefined) {
      entry = listed(path) ?? lookNow(whereIs(path));
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
  };
}

const isTooLong = (path: string): boolean => bytesOfPath(path).length >= PATH_MAX;

/** The names in a path, without those that change nothing. */
export function componentsOf(path: string): string[] {
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
    // A path that cannot be looked at cannot be granted, and must not count as missing where it has to be hidden.
    const errno = errnoOf(error) ?? 'unknown error';
    if (NOT_THERE.has(errno)) return { kind: 'missing' };
    const isShut = errno === 'EACCES' && isOfAnotherUser(dirname(path));
    return { kind: 'missing', unknown: { path, errno, ...(isShut ? { byAnother: true } : {}) } };
  }
}

/** Whether a directory belongs to another user, so that no command of this user can change its permissions. False if unknown, and for root. */
function isOfAnotherUser(directory: string): boolean {
  const user = process.geteuid?.();
  const owner = orElse(() => lstatSync(pathOf(directory), { throwIfNoEntry: false })?.uid, undefined);
  return user !== undefined && owner !== undefined && user !== 0 && owner !== user && owner !== OVERFLOW_UID;
}

/** The kernel shows owners without a mapping in the user namespace as this user. */
const OVERFLOW_UID = 65_534;
