import { sep } from 'node:path';

/**
 * True if `path` is `root` or lies beneath it. Both are absolute and normalized. Compared by components:
 * `/work-evil` is not beneath `/work`.
 */
export function isBeneath(path: string, root: string): boolean {
  if (path === root) return true;
  // Asked thousands of times for a plan: without making strings.
  return path.startsWith(root) && (root.endsWith(sep) || path[root.length] === sep);
}

/** The innermost of some directories that a path is, or lies in; `undefined`: it lies in none. */
export const innermostAround = (path: string, directories: readonly string[]): string | undefined =>
  directories
    .filter((one) => isBeneath(path, one))
    .reduce<string | undefined>(
      (inner, one) => (one.length > (inner?.length ?? -1) ? one : inner),
      undefined,
    );

/** The directories strictly between `root` and `path`, outermost first: `(/w/a/b/c, /w)` gives `/w/a`, `/w/a/b`. */
export function directoriesBetween(path: string, root: string): readonly string[] {
  if (!isBeneath(path, root) || path === root) return [];
  const parts = path
    .slice(root.length)
    .split(sep)
    .filter((part) => part !== '');
  const above = root === sep ? '' : root;
  return parts.slice(0, -1).map((_, index) => [above, ...parts.slice(0, index + 1)].join(sep));
}

/** What a variable names, where that is absolute: a relative path is none, for us as for most tools. */
export const absoluteOr = (named: string | undefined, otherwise: string): string =>
  named?.startsWith('/') === true ? named : otherwise;
