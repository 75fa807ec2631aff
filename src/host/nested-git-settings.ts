import { type Dirent, readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { SandboxError } from '../errors/sandbox-error.ts';
import { errnoOf } from '../util/errno-of.ts';

/** A repository with more directories than this is refused: what is not looked through cannot be shut. */
const MAX_DIRECTORIES = 20_000;

/**
 * By each of these a directory is taken for a repository. A command may take `HEAD` away for a while; the others are shut
 * from the first command on, and so cannot be.
 */
const SIGNS = new Set(['HEAD', 'config', 'hooks']);
/** What of a repository git reads from there and obeys. */
const OBEYED = ['config', 'config.worktree', 'hooks'];
/** Directories of a repository in which there is no other one, unless they look like it. */
const OWN_DIRECTORIES = new Set(['objects', 'refs', 'logs', 'hooks', 'info', 'lfs', 'rr-cache']);

/**
 * What git obeys of submodules and worktrees inside a repository, relative to the workspace: their configuration and
 * hooks lie beneath `.git/modules` and `.git/worktrees`, and a `git status` outside reads them. What a command can make
 * there decides nothing but that more is shut.
 * @throws {SandboxError} `confinement.failed` where it cannot be seen what is there.
 */
export function nestedGitSettings(workspace: string): readonly string[] {
  const found: string[] = [];
  const seen = new Set<string>();
  const pending = [join(workspace, '.git/modules'), join(workspace, '.git/worktrees')];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    const identity = identityOf(directory);
    if (identity === undefined || seen.has(identity)) continue;
    seen.add(identity);
    if (seen.size > MAX_DIRECTORIES) throw unknown(directory, `there are more than ${MAX_DIRECTORIES}`);
    const entries = list(directory);
    const isRepository = entries.some(({ name }) => SIGNS.has(name));
    if (isRepository) found.push(...OBEYED.map((name) => relative(workspace, join(directory, name))));
    // One that no string can name is protected with all that lies beside it.
    if (!isRepository && entries.some((entry) => !entry.isFile() && entry.name.includes('\uFFFD')))
      found.push(relative(workspace, directory));
    for (const entry of entries) {
      const path = join(directory, entry.name);
      // Git follows a link; on some file systems only a look tells what an entry is.
      if (entry.isFile() || identityOf(path) === undefined) continue;
      if (isRepository && OWN_DIRECTORIES.has(entry.name) && !list(path).some(({ name }) => SIGNS.has(name)))
        continue;
      pending.push(path);
    }
  }
  return found;
}

/** Of a directory, by whatever name; `undefined`: there is none. */
function identityOf(path: string): string | undefined {
  try {
    const info = statSync(path, { throwIfNoEntry: false });
    return info?.isDirectory() ? `${info.dev}:${info.ino}` : undefined;
  } catch (error) {
    const errno = errnoOf(error);
    // A link that leads round, or on the way to something that is no directory: git does not get there either.
    if (errno === 'ENOTDIR' || errno === 'ELOOP') return undefined;
    throw unknown(path, errno, error);
  }
}

function list(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return [];
    throw unknown(directory, errnoOf(error), error);
  }
}

function unknown(directory: string, why: string | undefined, cause?: unknown): SandboxError {
  return new SandboxError(
    'confinement.failed',
    `${directory} cannot be looked through (${why}), so that git settings in it cannot be shut; make it accessible (chmod u+rwx), tidy it up, or move it out of the workspace`,
    { cause },
  );
}
