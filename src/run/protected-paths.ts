import { lstatSync, mkdirSync, readlinkSync, realpathSync, renameSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LaunchPlan, WatchedLink } from '../model/launch-plan.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { type AfterRun, NOTHING_CHANGED } from './classify.ts';

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
 * Says what a command made of protected paths. `changedPaths`: watched ones that became something else, as the addon says;
 * `undefined`: none. What was said of a link is not said again.
 */
export type ProtectedPathsInspector = (changedPaths: readonly string[] | undefined) => AfterRun;

/** @see ProtectedPathsInspector */
export function createInspector({
  workspace,
  protectedPaths,
  watchedLinks,
}: LaunchPlan): ProtectedPathsInspector {
  const lastSeen = new Map(watchedLinks.map(({ path, content }) => [path, `link ${content}`]));
  return (changedPaths) => {
    if (changedPaths === undefined && watchedLinks.length === 0) return NOTHING_CHANGED;
    const links = watchedLinks.map((link) => inspectLink(link, lastSeen));
    const created =
      changedPaths === undefined ? NOTHING_CHANGED : inspectCreated(workspace, protectedPaths, changedPaths);
    return {
      createdProtectedPaths: [
        ...new Set([created, ...links].flatMap((found) => found.createdProtectedPaths)),
      ],
      warnings: [created, ...links].flatMap(({ warnings }) => warnings),
    };
  };
}

/**
 * Finds the protected paths that a command created; they did not exist, so they could not be shut. Those inside an
 * existing `.git` are renamed, so that git does not obey them (a `commondir` there leads git to another configuration).
 * A repository that the command made itself is left as it is.
 */
function inspectCreated(
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
    const movedTo = quarantine(path);
    // Gone already, or not ours: the path stays in the report.
    return movedTo === undefined
      ? []
      : [`the command created ${path}, which git would obey; it is now ${movedTo}`];
  });
  return { createdProtectedPaths: created, warnings };
}

/** Nothing can be mounted on a link, so that a command can put something else in its place. */
function inspectLink(link: WatchedLink, lastSeen: Map<string, string>): AfterRun {
  const { path, content } = link;
  const now = identityOf(path);
  const isNews = now !== lastSeen.get(path);
  lastSeen.set(path, now);
  if (!isNews || now === `link ${content}`) return NOTHING_CHANGED;
  const back = link.restored ? putBack(link, now) : undefined;
  if (back !== undefined) lastSeen.set(path, `link ${content}`);
  // What is not there is not obeyed.
  if (now === 'nothing' && back === undefined) return NOTHING_CHANGED;
  return {
    createdProtectedPaths: [path],
    warnings: [
      `the command replaced the link ${path}, which led to ${content}; ${back ?? 'a trusted program may execute what is there now: look at it'}`,
    ],
  };
}

/** What became of it, or `undefined` where the link cannot be put back. */
function putBack({ path, content }: WatchedLink, now: string): string | undefined {
  try {
    // Its directory is held in place by a mount; without one a command could lead us elsewhere.
    if (realpathSync(dirname(path)) !== dirname(path)) return undefined;
    const movedTo = now === 'nothing' ? undefined : quarantine(path);
    if (now !== 'nothing' && movedTo === undefined) return undefined;
    symlinkSync(content, path);
    return movedTo === undefined ? 'it is back' : `it is back, and what was there is now ${movedTo}`;
  } catch {
    return undefined;
  }
}

function quarantine(path: string): string | undefined {
  const movedTo = `${path}.quarantined-${Date.now()}`;
  try {
    renameSync(path, movedTo);
    return movedTo;
  } catch {
    return undefined;
  }
}

/** Changes with each other object of that name. */
function identityOf(path: string): string {
  try {
    const info = lstatSync(path, { throwIfNoEntry: false });
    if (info === undefined) return 'nothing';
    return info.isSymbolicLink() ? `link ${readlinkSync(path)}` : `${info.dev}:${info.ino}`;
  } catch {
    return 'nothing';
  }
}
