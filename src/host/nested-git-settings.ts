import { type Dirent, readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import { SandboxError } from '../errors/sandbox-error.ts';
import { errnoOf } from '../util/errno-of.ts';

/** A repository with more submodules than this is not looked through to the end. */
const MAX_DIRECTORIES = 2000;

/**
 * What git obeys of submodules and worktrees inside a repository, relative to the workspace: their configuration and
 * hooks lie beneath `.git/modules` and `.git/worktrees`, and a `git status` outside reads them.
 * @throws {SandboxError} `confinement.failed` where it cannot be seen what is there.
 */
export function nestedGitSettings(workspace: string): readonly string[] {
  const found: string[] = [];
  const pending = [join(workspace, '.git/modules'), join(workspace, '.git/worktrees')];
  for (let visited = 0; pending.length > 0 && visited < MAX_DIRECTORIES; visited += 1) {
    const directory = pending.pop() ?? '';
    const entries = list(directory);
    const isRepository = entries.some((entry) => entry.name === 'HEAD');
    if (isRepository) {
      for (const name of ['config', 'config.worktree', 'hooks'])
        found.push(relative(workspace, join(directory, name)));
    }
    // One that no string can name is protected with all that lies beside it.
    if (!isRepository && entries.some((entry) => entry.isDirectory() && entry.name.includes('\uFFFD')))
      found.push(relative(workspace, directory));
    for (const entry of entries) {
      // Submodules of submodules lie in `modules`, those with a slash in their name in directories on the way.
      if (entry.isDirectory() && (!isRepository || entry.name === 'modules'))
        pending.push(join(directory, entry.name));
    }
  }
  return found;
}

function list(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ENOENT' || errno === 'ENOTDIR') return [];
    throw new SandboxError(
      'confinement.failed',
      `${directory} cannot be listed (${errno}), so that git settings in it cannot be shut; make it accessible (chmod u+rwx) or move it out of the workspace`,
      { cause: error },
    );
  }
}
