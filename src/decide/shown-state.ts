import { randomUUID } from 'node:crypto';
import { type BigIntStats, type Dirent, lstatSync, readdirSync, statSync } from 'node:fs';
import { createPathLookup } from '../host/resolve-path.ts';

/** Objects of directories that go, or matches of a pattern, which an approval is bound to one by one. */
const MOST_OBJECTS = 20_000;

/**
 * Which file a path names, and in which state: the time of its last change of any kind cannot be set by a program
 * (utimensat(2) changes it to now), so new content is noticed without reading it.
 */
export function identityOf(path: string): string {
  return identified(path, statSync, stateOf);
}

/** Which directory a path names, whatever is in it. */
export function directoryIdentityOf(path: string): string {
  return identified(path, statSync, ({ dev, ino }) => `${dev}:${ino}`);
}

/**
 * The object at a path, which may be a pattern, with all that is in it: what goes with it where it is removed. `itself`: only
 * that, as what is written into a directory leaves alone what is there.
 */
export function treeIdentityOf(path: string, itself = false): readonly string[] {
  const found: string[] = [];
  const pending = [...expanded(path)].reverse();
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (found.length >= MOST_OBJECTS) return [...found, randomUUID()];
    const isDirectory = identified(next, lstatSync, (info) => (info.isDirectory() ? 'yes' : '')) === 'yes';
    // The time of a directory says no more than what is in it.
    found.push(next, isDirectory ? directoryIdentityOf(next) : identified(next, lstatSync, stateOf));
    if (isDirectory && !itself)
      for (const { name } of entriesOf(next).toReversed()) pending.push(`${next}/${name}`);
  }
  return found;
}

const stateOf = ({ dev, ino, mode, uid, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, mode, uid, size, mtimeNs, ctimeNs].join(':');

function identified(
  path: string,
  look: (path: string, options: { bigint: true; throwIfNoEntry: false }) => BigIntStats | undefined,
  identity: (info: BigIntStats) => string,
): string {
  let info: BigIntStats | undefined;
  try {
    info = look(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // What cannot be looked at is never the same as before: an answer about it is void.
    return randomUUID();
  }
  return info === undefined ? 'missing' : identity(info);
}

/** The paths that a pattern of the shell matches, or may match: brackets count as any characters. A plain path is itself. */
export function expanded(pattern: string): readonly string[] {
  if (!/[*?[]/.test(pattern)) return [pattern];
  // What cannot be told is never the same as before.
  return createPathLookup().expand(pattern)?.toSorted() ?? [randomUUID()];
}

function entriesOf(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).toSorted((one, other) =>
      one.name < other.name ? -1 : 1,
    );
  } catch {
    return [];
  }
}
