import { createHash, randomUUID } from 'node:crypto';
import { type BigIntStats, type Dirent, lstatSync, readdirSync, statSync } from 'node:fs';
import { createPathLookup, readRegular } from '../../workspace/index.ts';

/** Objects of directories that go, or matches of a pattern, which an approval is bound to one by one. */
const MOST_OBJECTS = 20_000;

/** Files up to this many bytes are compared by content, larger ones by inode and time of change. Scripts written by people are smaller. */
const LARGEST_READ = 4 * 1024 ** 2;

/**
 * What a file that decides what a command does is: its content, owner and mode, so that a script which was changed and put
 * back is the same. Of a large file, and of what is no file, which object it is and in which state: the time of its last
 * change of any kind cannot be set by a program (utimensat(2) changes it to now).
 */
export function identityOf(path: string): string {
  return identified(path, statSync, (info) => {
    const content = info.isFile() ? readRegular(path, LARGEST_READ) : undefined;
    if (content === undefined) return stateOf(info);
    const { mode, uid, gid } = info;
    return [mode, uid, gid, createHash('sha256').update(content).digest('hex')].join(':');
  });
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
    // A file that cannot be looked at is never equal to its earlier state, so an approval is void.
    return randomUUID();
  }
  return info === undefined ? 'missing' : identity(info);
}

/** The paths that a pattern of the shell matches, or may match: brackets count as any characters. A plain path is itself. */
export function expanded(pattern: string): readonly string[] {
  if (!/[*?[]/.test(pattern)) return [pattern];
  // An unknown state is never equal to an earlier one.
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
