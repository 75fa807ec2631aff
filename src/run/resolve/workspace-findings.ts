import { lstatSync, mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { caller } from '../../host/caller.ts';
import {
  GIT_NAMES,
  gitDirectories,
  type ObeyedByGit,
  obeyedByGit,
  SEQUENCE_NAMES,
  userConfigFiles,
} from '../../host/git/repositories.ts';
import { repositoriesOutOfSight } from '../../host/git/versions.ts';
import { inDirectoryOf, readRegular } from '../../host/held-directory.ts';
import { createPathLookup } from '../../host/resolve-path.ts';
import { Baseline } from '../../left-behind/baseline.ts';
import { Kept } from '../../left-behind/kept.ts';
import { type ObeyedNames, obeyedNames } from '../../left-behind/obeyed-names.ts';
import { createSettler, type Settler } from '../../left-behind/settle.ts';
import type { LaunchPlan } from '../../model/launch-plan.ts';
import type { NativeAddon, NativeIndex, NativeIndexed } from '../../native/contract.ts';
import { OBEYED_FILES } from '../../policy/profiles/obeyed-files.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { errnoOf } from '../../util/errno-of.ts';
import { pathOf, shownPath } from '../../util/path-text.ts';
import { describeFailure } from '../launch/failure.ts';
import { stateDirectory } from '../state.ts';
import type { ResolvedPolicy } from './resolve-policy.ts';

/** More directories than this are not looked through; the report says so then. */
const MAX_DIRECTORIES = 50_000;

/** What a look through the workspace found, before its first command. */
export interface WorkspaceFindings {
  /** What is looked at again after each command. */
  readonly index: NativeIndex;
  /** Beside the policy's protected paths: what programs outside obey there, whether it is there or not. */
  readonly obeyed: readonly ObeyedByGit[];
  /** Configuration files of the repositories in it. */
  readonly configurations: readonly string[];
  readonly names: ObeyedNames;
  /** Why not everything was looked at; `undefined`: it was. */
  readonly shortfall: string | undefined;
}

/** The tree of a workspace, with what is looked for in it. */
interface WorkspaceTree {
  readonly names: ObeyedNames;
  readonly index: NativeIndex;
}

function treeOf(addon: NativeAddon, workspace: string): WorkspaceTree {
  const names = obeyedNames(OBEYED_FILES, workspace);
  const index = addon.createIndex({
    root: workspace,
    names: ['.git', ...SEQUENCE_NAMES, ...names.names],
    suffixes: names.suffixes,
    gitNames: GIT_NAMES,
    maxDirectories: MAX_DIRECTORIES,
  });
  return { names, index };
}

/**
 * Looks through a workspace for what programs outside obey; `undefined` where commands cannot write it.
 * @throws {SandboxError} `confinement.failed` where it cannot be seen what is there.
 */
export async function findInWorkspace(
  addon: NativeAddon,
  resolved: ResolvedPolicy,
): Promise<WorkspaceFindings | undefined> {
  if (resolved.policy.filesystem.workspaceAccess !== 'write') return undefined;
  const tree = treeOf(addon, resolved.workspace);
  return findIn(tree, resolved, await readIndex(addon, tree.index));
}

/** Looks through the same workspace again and again: directories that are as they were are not read again. */
export class RepeatedLook {
  #tree: WorkspaceTree | undefined;

  /** What `findInWorkspace` finds now; nothing is to run with its index. @throws {SandboxError} as that. */
  async find(addon: NativeAddon, resolved: ResolvedPolicy): Promise<WorkspaceFindings | undefined> {
    if (resolved.policy.filesystem.workspaceAccess !== 'write') return undefined;
    const before = this.#tree;
    if (before !== undefined) {
      const indexed = await readIndex(addon, before.index);
      if (indexed.unreadable.length === 0 && !indexed.spent) return findIn(before, resolved, indexed);
    }
    const tree = treeOf(addon, resolved.workspace);
    this.#tree = undefined;
    const indexed = await readIndex(addon, tree.index);
    this.#tree = tree;
    return findIn(tree, resolved, indexed);
  }
}

function findIn(
  { names, index }: WorkspaceTree,
  { workspace, home }: ResolvedPolicy,
  { entries, unreadable, spent }: NativeIndexed,
): WorkspaceFindings {
  const shut = unreadable.find((path) => `${path}/`.includes('/.git/'));
  if (shut !== undefined)
    throw new SandboxError(
      'confinement.failed',
      `${shownPath(shut)} cannot be looked through, so that git settings in it cannot be shut; make it accessible (chmod u+rwx), or move it out of the workspace`,
    );
  const lookup = createPathLookup();
  const directories = gitDirectories(
    entries.map(({ path }) => path),
    lookup,
  );
  const leading = entries.filter(({ path, kind }) => path.endsWith('/.git') && kind !== 'directory');
  const byGit = obeyedByGit(
    directories,
    leading.map(({ path }) => path),
    { workspace, home, configFiles: userConfigFiles(home, caller().env), lookup },
  );
  const outOfSight = entries
    .filter(({ path }) => path.endsWith('/.git/index'))
    .flatMap(({ path }) => repositoriesOutOfSight(path, (file, limit) => readRegular(pathOf(file), limit)))
    .map((path) => ({ path, reason: 'git status runs what this repository says' }));
  const byName = entries.flatMap(({ path }) => {
    const row = names.rowFor(path);
    return row?.treatment === 'shut' ? [{ path, reason: `${row.tool}: ${row.reason}` }] : [];
  });
  const configurations = directories
    .flatMap(({ path }) => [`${path}/config`, `${path}/config.worktree`])
    .filter((path) => lookup.resolve(path).kind === 'other' && lookup.resolve(path).canonical === path);
  return {
    index,
    obeyed: [...byGit, ...outOfSight, ...byName],
    configurations,
    names,
    shortfall: spent
      ? `only ${MAX_DIRECTORIES.toLocaleString('en-US')} directories of the workspace are looked through for what git and editors obey`
      : undefined,
  };
}

function readIndex(addon: NativeAddon, index: NativeIndex): Promise<NativeIndexed> {
  return new Promise((resolve, reject) => {
    addon.readIndex(index, (indexed, failure) => {
      if (indexed !== undefined) resolve(indexed);
      else
        reject(
          new SandboxError(
            'confinement.failed',
            failure === undefined
              ? 'the workspace cannot be looked through'
              : describeFailure(failure).message,
          ),
        );
    });
  });
}

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
export function identityOf(path: string): string | undefined {
  try {
    const info = lstatSync(pathOf(path), { bigint: true, throwIfNoEntry: false });
    return info && `${info.dev}:${info.ino}:${info.birthtimeNs}`;
  } catch (error) {
    // A file is on the way, as the `.git` of a worktree.
    if (errnoOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
