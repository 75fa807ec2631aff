import { dirname, join } from 'node:path';

/** Of an entry for a repository within the repository (gitformat-index(5): a 4-bit type, unused bits, permissions). */
const GITLINK = 0o160000;
const GITLINK_BYTES = Buffer.from([0, 0, 0xe0, 0]);

/** In an entry: where the mode is, and the name's flags behind object ids of both kinds. */
const MODE_AT = 24;
const FLAGS_AT = [60, 72] as const;

/**
 * The repositories that an index names, whatever else it holds, relative to its worktree: `git status` runs what their
 * configuration says. `undefined`: it is no index that git would read.
 */
export function gitlinksOf(index: Buffer): readonly string[] | undefined {
  if (index.toString('latin1', 0, 4) !== 'DIRC' || index.length < 12) return undefined;
  // Almost every index: there is none, and nothing has to be read.
  if (!index.includes(GITLINK_BYTES)) return [];
  for (const flagsAt of FLAGS_AT) {
    const found = readEntries(index, flagsAt);
    if (found !== undefined) return found;
  }
  return undefined;
}

function readEntries(index: Buffer, flagsAt: number): readonly string[] | undefined {
  const version = index.readUInt32BE(4);
  if (version < 2 || version > 4) return undefined;
  const found: string[] = [];
  let at = 12;
  let name = Buffer.alloc(0);
  for (let left = index.readUInt32BE(8); left > 0; left--) {
    if (at + flagsAt + 2 > index.length) return undefined;
    const mode = index.readUInt32BE(at + MODE_AT);
    if (![0o040000, 0o100000, 0o120000, GITLINK].includes(mode & 0o170000) || mode > 0o177777)
      return undefined;
    const isExtended = version >= 3 && (index.readUInt16BE(at + flagsAt) & 0x4000) !== 0;
    let from = at + flagsAt + (isExtended ? 4 : 2);
    let kept = Buffer.alloc(0);
    if (version === 4) {
      const dropped = readVarint(index, from);
      if (dropped === undefined || dropped.value > name.length) return undefined;
      kept = name.subarray(0, name.length - dropped.value);
      from = dropped.end;
    }
    const end = index.indexOf(0, from);
    if (end < 0) return undefined;
    name = Buffer.concat([kept, index.subarray(from, end)]);
    if ((mode & 0o170000) === GITLINK) found.push(name.toString('utf8'));
    // Older versions fill up to a multiple of eight, with at least one NUL.
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
  }
  return found;
}

/** git's `decode_varint`. */
function readVarint(bytes: Buffer, at: number): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  for (let end = at; ; end++) {
    const byte = bytes[end];
    if (byte === undefined || end - at > 6) return undefined;
    value = value * 128 + (byte & 127);
    if ((byte & 128) === 0) return { value, end: end + 1 };
    value += 1;
  }
}

/** An index larger than this is not read. */
const INDEX_BYTES = 256 * 1024 * 1024;

/**
 * Where the repositories are, absolute, that the index of a `.git` names and that nobody else would look at. `read`: its
 * content, at most so many bytes.
 */
export function repositoriesOutOfSight(
  index: string,
  read: (path: string, limit: number) => Buffer | undefined,
): readonly string[] {
  const content = read(index, INDEX_BYTES);
  const links = content === undefined ? [] : (gitlinksOf(content) ?? []);
  return links.filter(isOutOfSight).map((link) => join(dirname(dirname(index)), link, '.git'));
}

/** Whether a repository at that path would be looked at by nobody else: see TreePlaces in native/process/tree_places.cc. */
export function isOutOfSight(path: string): boolean {
  return /(^|\/)node_modules\/(@[^/]+\/[^/]+|[^@/][^/]*)\/./.test(path);
}
