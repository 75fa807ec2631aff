import { type Dirent, lstatSync, readdirSync, statfsSync } from 'node:fs';
import { isBeneath } from '../../base/absolute-path.ts';
import { orElse } from '../../base/or-else.ts';
import { pathOf, textOfPath } from '../../base/path-text.ts';
import { linkBytes } from '../../confine/link-bytes.ts';
import { createPathWalk, type Entry } from '../../confine/path-walk.ts';
import type { PathLookup } from '../../confine/plan/path-lookup.ts';

/** How many names in a directory are looked at one by one before the directory is read instead. */
const FEW_NAMES = 4;
/** A directory of this size may hold a thousand files, which takes longer to read than names take to look at. */
const LARGE_DIRECTORY = 64 * 1024;
/** A change of a directory later than that may not show in its time: some file systems have whole seconds only. */
const SETTLED_MS = 1_100;
/** AUTOFS_SUPER_MAGIC (statfs(2)): what is mounted there on demand need not be listed before. */
const AUTOFS = 0x0187;
/** Names for which a listing is enough: a file system that ignores case, or has short names (`GIT~1`), finds names that it does not list. */
const PLAIN_NAME = /^[\w.-]*[\w-]$/;

/**
 * Looks up the paths of one start: where many names of a directory are asked, what it lists tells which of them are missing. For
 * the moment of a start only, as a name that comes after the listing stays missing.
 */
export function createStartLookup(): PathLookup {
  const listings = new DirectoryListings();
  return createPathWalk([], undefined, (path) => listings.look(path));
}

/**
 * What directories list of which many names are asked. A hundred protected names are mostly missing, and to look at each takes
 * a round trip on a network file system.
 */
class DirectoryListings {
  readonly #asked = new Map<string, number>();
  readonly #listed = new Map<string, ReadonlyMap<string, Dirent<Buffer>> | undefined>();

  /** The entry at a path by its directory's listing; `undefined`: the listing does not tell, so the path must be looked up. */
  look(path: string): Entry | undefined {
    const end = path.lastIndexOf('/');
    const directory = path.slice(0, end) || '/';
    const name = path.slice(end + 1);
    const asked = (this.#asked.get(directory) ?? 0) + 1;
    this.#asked.set(directory, asked);
    if (asked <= FEW_NAMES || !PLAIN_NAME.test(name)) return undefined;
    if (!this.#listed.has(directory)) this.#listed.set(directory, listingOf(directory));
    const listing = this.#listed.get(directory);
    if (listing === undefined) return undefined;
    const entry = listing.get(name.toLowerCase());
    if (entry === undefined) return { kind: 'missing' };
    if (entry.name.toString('latin1') !== name) return undefined;
    if (entry.isSymbolicLink())
      return orElse(() => ({ kind: 'link', content: textOfPath(linkBytes(pathOf(path))) }), undefined);
    return { kind: entry.isDirectory() ? 'directory' : 'other' };
  }
}

/** Entries by name in lower case; `undefined`: the listing does not show which names are missing. */
function listingOf(directory: string): ReadonlyMap<string, Dirent<Buffer>> | undefined {
  // A thread is found in /proc, and is not listed there.
  if (isBeneath(directory, '/proc')) return undefined;
  return orElse(() => {
    const path = pathOf(directory);
    const began = Date.now();
    const before = lstatSync(path);
    if (before.size > LARGE_DIRECTORY || statfsSync(path).type === AUTOFS) return undefined;
    const entries = readdirSync(path, { withFileTypes: true, encoding: 'buffer' });
    // Fails where names can be listed and not looked at.
    const after = lstatSync(pathOf(`${directory}/.`));
    // A name that is given to another file meanwhile may be left out, although it was there all the time.
    if (before.ctimeMs !== after.ctimeMs || before.ctimeMs > began - SETTLED_MS) return undefined;
    const names = entries.map((entry) => entry.name.toString('latin1'));
    if (names.some((name) => /[^ -~]/.test(name))) return undefined;
    return new Map(entries.map((entry, at) => [names[at]?.toLowerCase() ?? '', entry]));
  }, undefined);
}
