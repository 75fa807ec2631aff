import { lstatSync, statSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { readOr } from '../../base/errors/shortage.ts';
import { pathOf } from '../../base/path-text.ts';

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
    // A part of the path is a file, like the `.git` of a worktree.
    if (errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}

/**
 * True for a socket of the user, whose server does what a client asks with the rights of the user (an agent of keys, a session
 * bus), and for one of root, whose server has those of the machine (Docker). That of an account of a service, which a database
 * is, acts for neither. What cannot be looked at is taken to act for the user.
 */
export function actsForUser(path: string): boolean {
  const owner = readOr(() => statSync(path, { throwIfNoEntry: false })?.uid, undefined);
  return owner === undefined || owner === 0 || owner === process.geteuid?.();
}
