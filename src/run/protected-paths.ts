import { lstatSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { isBeneath } from '../util/absolute-path.ts';
import type { AfterRun } from './classify.ts';

/**
 * A path that does not exist cannot be mounted read-only. For git's hooks the gap is closed by an empty
 * directory, which `git init` makes as well and which means nothing to git.
 */
export function closeHooksGap(workspace: string): void {
  try {
    if (lstatSync(join(workspace, '.git')).isDirectory()) mkdirSync(join(workspace, '.git/hooks'));
  } catch {
    // No repository, hooks already there, or not ours to write: then a command cannot write there either.
  }
}

/**
 * Finds the protected paths that a command created; they did not exist, so they could not be shut. Those inside an
 * existing `.git` are renamed, so that git does not obey them (a `commondir` there leads git to another configuration).
 * A repository that the command made itself is left as it is.
 */
export function inspectProtectedPaths(
  workspace: string,
  protectedPaths: readonly string[],
  changedPaths: readonly string[],
): AfterRun {
  const created = changedPaths.filter((path) => protectedPaths.includes(path));
  const repository = join(workspace, '.git');
  const suspicious = changedPaths.includes(repository)
    ? []
    : created.filter((path) => isBeneath(path, repository));
  const warnings = suspicious.flatMap((path) => {
    const movedTo = `${path}.quarantined-${Date.now()}`;
    try {
      renameSync(path, movedTo);
      return [`the command created ${path}, which git would obey; it is now ${movedTo}`];
    } catch {
      // Gone already, or not ours: the path stays in the report.
      return [];
    }
  });
  return { createdProtectedPaths: created, warnings };
}
