import { lstatSync } from 'node:fs';
import { errnoOf } from '../util/errno-of.ts';
import { pathOf } from '../util/path-text.ts';

/**
 * Which file or directory it is; the time it was made tells it from one that got its number later. When another one takes its
 * place, what is mounted there for commands that run goes (rename(2), "EBUSY": not across mount namespaces).
 */
export function identityOf(path: string | Buffer): string | undefined {
  try {
    const info = lstatSync(typeof path === 'string' ? pathOf(path) : path, {
      bigint: true,
      throwIfNoEntry: false,
    });
    return info && `${info.dev}:${info.ino}:${info.birthtimeNs}`;
  } catch (error) {
    // A file is on the way, as the `.git` of a worktree.
    if (errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
