import { lstatSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { inDirectoryOf } from '../../host/held-directory.ts';
import { Baseline } from '../../left-behind/baseline.ts';
import { Kept } from '../../left-behind/kept.ts';
import { createSettler, type Settler } from '../../left-behind/settle.ts';
import type { LaunchPlan } from '../../model/launch-plan.ts';
import type { NativeAddon } from '../../native/contract.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { errnoOf } from '../../util/errno-of.ts';
import { stateDirectory } from '../state.ts';
import type { WorkspaceFindings } from './workspace-findings.ts';

/**
 * A path that does not exist cannot be mounted read-only. For git's hooks the gap is closed by an empty
 * directory, which `git init` makes as well and which means nothing to git.
 */
export function closeHooksGap(workspace: string): void {
  try {
    inDirectoryOf(workspace, join(workspace, '.git/hooks'), (at) => mkdirSync(at));
  } catch {
    // No repository, hooks already there, or not ours to write: then a command cannot write there either.
  }
}

/** Remembers what commands can change and shall not, and has the addon look at it after each of them. */
export function prepareSettler(
  addon: NativeAddon,
  { workspace, protectedPaths, watchedLinks, shutsInside }: LaunchPlan,
  findings: WorkspaceFindings | undefined,
): Settler {
  if (findings === undefined) return () => [];
  const inside = protectedPaths.filter((path) => isBeneath(path, workspace));
  const links = watchedLinks.map(({ path }) => path);
  const held = shutsInside
    ? protectedPaths.map((path) => ({ path, was: identityOf(path) })).filter(({ was }) => was !== undefined)
    : [];
  const holdOf = (path: string) => {
    const around = held.filter((one) => isBeneath(path, one.path));
    if (around.length === 0) return 'open';
    return around.some((one) => identityOf(one.path) === one.was) ? 'held' : 'lost';
  };
  const baseline = new Baseline([...links, ...(shutsInside ? findings.configurations : inside)]);
  const named = new Set(findings.names.names);
  // A name is found where it comes, and of a directory that is there the names tell nothing of what comes in it.
  const unnamed = [...inside, ...findings.names.paths, ...baseline.paths].filter(
    (path) => !named.has(basename(path)) || (!shutsInside && identityOf(path) !== undefined),
  );
  addon.watchPaths(findings.index, [...new Set(unnamed)]);
  const reasons = new Map(findings.obeyed.map(({ path, reason }) => [path, reason]));
  return createSettler({
    workspace,
    obeyed: new Map(inside.map((path) => [path, reasons.get(path) ?? 'the policy protects it'])),
    names: findings.names,
    holdOf,
    baseline,
    kept: new Kept(stateDirectory()),
  });
}

/**
 * Which file or directory it is; the time it was made tells it from one that got its number later. When another one takes its
 * place, what is mounted there for commands that run goes (rename(2), "EBUSY": not across mount namespaces).
 */
function identityOf(path: string): string | undefined {
  try {
    const info = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return info && `${info.dev}:${info.ino}:${info.birthtimeNs}`;
  } catch (error) {
    // A file is on the way, as the `.git` of a worktree.
    if (errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
