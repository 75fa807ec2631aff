import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { orElse } from '../../base/or-else.ts';
import { pathOf, shownPath } from '../../base/path-text.ts';
import type { HooksOfGit } from '../host/git/repositories.ts';

/** More of git's log of a branch is not read: a commit is one line in it. */
const MOST_BYTES = 64 * 1024;
const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/** To be called when a command has ended: a sentence for each repository in which it committed and git ran no hooks. */
export type SkippedHooks = () => readonly string[];

/**
 * Git says nothing when the directory that `core.hooksPath` names is not there, and commits without the hooks, as in a fresh
 * checkout in which husky has not been installed. Looks at how far git's logs are, for a command that begins.
 */
export function beginLookingForSkippedHooks(hooks: readonly HooksOfGit[]): SkippedHooks {
  const began = hooks.filter(isMissing).map((one) => ({ ...one, at: sizeOf(logOf(one)) }));
  return () =>
    began
      .filter((one) => isMissing(one) && /\tcommit\b/.test(readFrom(logOf(one), one.at)))
      .map(
        ({ path, config }) =>
          `git ran no hooks for a commit: core.hooksPath in ${shownPath(config)} names ${shownPath(path)}, which is not there; make it outside of the sandbox${isOfHusky(path) ? ' (npx husky)' : ''}, and look at what was committed`,
      );
}

const logOf = ({ git }: HooksOfGit) => join(git, 'logs/HEAD');
const isOfHusky = (path: string) => /\/\.husky(?:\/_)?$/.test(path);
/** Whether the hooks' directory does not exist; false also if it cannot be looked at. */
const isMissing = ({ path }: HooksOfGit) =>
  orElse(() => lstatSync(pathOf(path), { throwIfNoEntry: false }) === undefined, false);
const sizeOf = (path: string) =>
  orElse(() => lstatSync(pathOf(path), { throwIfNoEntry: false })?.size ?? 0, Number.POSITIVE_INFINITY);

/** A command may have put anything there. */
function readFrom(path: string, at: number): string {
  let fd: number | undefined;
  try {
    fd = openSync(pathOf(path), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const info = fstatSync(fd);
    if (!info.isFile() || info.size <= at) return '';
    const buffer = Buffer.alloc(Math.min(info.size - at, MOST_BYTES));
    return buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, at));
  } catch {
    return '';
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
