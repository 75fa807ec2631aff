import { dirname, join } from 'node:path';
import { parseIndex } from './index-file.ts';

const GITLINK_MODE = Buffer.from([0, 0, 0xe0, 0]);

/**
 * The repositories that an index names, whatever else it holds, relative to its worktree: `git status` runs what their
 * configuration says. `undefined`: it is no index that git would read.
 */
export function gitlinksOf(index: Buffer): readonly string[] | undefined {
  // Almost every index: there is none, and nothing has to be read.
  if (index.toString('latin1', 0, 4) === 'DIRC' && !index.includes(GITLINK_MODE)) return [];
  return parseIndex(index)
    ?.entries.filter(({ kind }) => kind === 'repository')
    .map(({ path }) => path);
}

/** An index larger than this is not read. */
export const INDEX_BYTES = 256 * 1024 * 1024;

/**
 * Where the repositories are, absolute, that the index of a `.git` names and that are not looked at otherwise. `read`: its
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

/** Whether a repository at that path would not be looked at otherwise: see TreePlaces in native/process/tree_places.cc. */
export function isOutOfSight(path: string): boolean {
  return /(^|\/)node_modules\/(@[^/]+\/[^/]+|[^@/][^/]*)\/./.test(path);
}
