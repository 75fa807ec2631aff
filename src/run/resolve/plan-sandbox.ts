import { accessSync, constants, lstatSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { INDEX_BYTES, parseIndex } from '../../host/git/index-file.ts';
import { readPointer } from '../../host/git/repositories.ts';
import { readRegular } from '../../host/held-directory.ts';
import { probeHost } from '../../host/probe.ts';
import { createPathLookup } from '../../host/resolve-path.ts';
import { homeInDatabase } from '../../host/user-directories.ts';
import { SET_GROUP_ID } from '../../kernel/mode-bits.ts';
import { keptHooksIn, keptHooksOf } from '../../left-behind/hook-copies.ts';
import type { HostFeatures } from '../../model/host-features.ts';
import type { LaunchPlan, PlannedLayer } from '../../model/launch-plan.ts';
import type { NativeAddon } from '../../native/contract.ts';
import { loadAddon } from '../../native/load.ts';
import type { HiddenFiles } from '../../plan/mechanisms.ts';
import type { OwnPath } from '../../plan/own-paths.ts';
import { makePlan, type PlanInput } from '../../plan/plan.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { orElse } from '../../util/or-else.ts';
import type { HiddenFinder, Looked } from '../hidden-files.ts';
import { layersRefused, stateDirectory } from '../state.ts';
import { goDownLadder, isOfTheRung, type Rung } from './ladder.ts';
import { ownProgram, realPath } from './own-program.ts';
import { userPolicyPath } from './policy-layers.ts';
import type { ResolvedPolicy } from './resolve-policy.ts';
import { tryCommand } from './try-command.ts';
import { cachePlaceOf, type OpenCache, storeOfPnpm } from './workspace-cache.ts';
import { findInWorkspace, type WorkspaceFindings } from './workspace-findings.ts';

/** Policy, host and plan, without touching the kernel. */
export interface PlannedSandbox {
  readonly addon: NativeAddon;
  readonly resolved: ResolvedPolicy;
  readonly features: HostFeatures;
  /** `undefined`: commands cannot write the workspace. */
  readonly findings: WorkspaceFindings | undefined;
  /** `undefined`: the policy hides nothing. */
  readonly finder: HiddenFinder | undefined;
  readonly hidden: Looked | undefined;
  readonly shadow: LaunchPlan | undefined;
  /**
   * The plan for one rung of the ladder. `hidden`: in place of what was found at first; `changes`: where those of the
   * workspace go, instead of into it; `none`: it cannot be written; `looked-at`: into it, and what is denied to read is told.
   */
  readonly planFor: (
    rung: Rung,
    impossible?: readonly string[],
    hidden?: HiddenFiles,
    changes?: PlannedLayer | 'none' | 'looked-at',
  ) => LaunchPlan;
}

/** A way to plan a policy that is resolved. Without a cache that is open, the plan says where it would be. */
export async function planResolved(
  resolved: ResolvedPolicy,
  cache: OpenCache['place'] = cachePlaceOf(resolved.workspace),
): Promise<PlannedSandbox> {
  const {
    policy,
    workspace,
    workspaceAsNamed,
    home,
    temporaryParent,
    parentBesideTmp,
    settings,
    repository,
  } = resolved;
  const isWritable = policy.filesystem.workspaceAccess === 'write';
  const addon = loadAddon();
  const features: HostFeatures = { ...probeHost(addon), layersRefused: layersRefused() };
  const findings = await findInWorkspace(addon, resolved);
  const own = ownPaths(resolved);
  const finder = await hiddenFinder(resolved);
  const found = finder?.look();
  const planFor: PlannedSandbox['planFor'] = (
    { backend, features: wanted, passedOver },
    impossible = [],
    hidden = found?.files,
    changes = undefined,
  ) =>
    makePlan({
      policy,
      features: wanted,
      backend: backend.id,
      passedOver,
      workspace,
      workspaceAsNamed,
      networkRules: resolved.networkRules,
      temporaryParent,
      parentBesideTmp: wanted.namespaces.available ? undefined : parentBesideTmp(),
      memoryParent: writableDirectory('/dev/shm'),
      hostHome: home,
      databaseHome: homeInDatabase(),
      seedFiles: settings.files.map(({ path, content }) => ({ path: `slot:home/${path}`, content })),
      seedsOfPlace: storeOfPnpm(home, workspace),
      cache,
      own,
      impossible,
      obeyed: findings?.obeyed.map(({ path }) => path) ?? [],
      beside: findings?.roots.filter((root) => root !== workspace) ?? [],
      copied: findings?.configurations ?? [],
      hooks: findings && hooksOf(findings, cache),
      ofOtherWorktrees: isWritable ? (repository?.ofOthers ?? []) : [],
      shortfall: findings?.shortfall,
      sharedByGroup:
        isWritable && isSharedByGroup([workspace, repository?.directory ?? join(workspace, '.git')]),
      hidden: hidden && { ...hidden, tracked: trackedAmong(hidden.paths, repository?.top ?? workspace) },
      layer: typeof changes === 'string' ? undefined : changes,
      looksAtReads: changes === 'looked-at',
      onlyReads: changes === 'none',
      tellsUses: resolved.shadow !== undefined,
      lookup: createPathLookup(),
    });
  const shadow = resolved.shadow && (await planOnly(await planResolved(resolved.shadow)));
  return { addon, resolved, features, findings, finder, hidden: found, shadow, planFor };
}

/** What an installer of hooks may write as a copy. Husky's own directory only: what lies beside it is the project's, and tracked. */
function hooksOf(
  { hookInstaller, configurations, hooks, roots }: WorkspaceFindings,
  cache: OpenCache['place'],
): PlanInput['hooks'] {
  if (hookInstaller === undefined) return undefined;
  const kept = 'directory' in cache ? keptHooksIn(cache.directory) : undefined;
  const directories = new Set([
    ...configurations.flatMap((path) => (basename(path) === 'config' ? join(dirname(path), 'hooks') : [])),
    ...roots.map((root) => join(root, '.husky/_')),
    ...hooks.flatMap(({ path }) => (basename(path) === '_' ? path : [])),
  ]);
  return {
    directories: [...directories].map((path) => ({ path, kept: kept && keptHooksOf(kept, path) })),
    settingOf: (configuration) => (kept === undefined ? '' : keptHooksOf(kept, configuration)),
  };
}

/** Which of some paths are files that git tracks in a working tree. What says so may be a command's: it opens nothing. */
function trackedAmong(paths: readonly string[], top: string): readonly string[] {
  const inside = paths.filter((path) => isBeneath(path, top));
  if (inside.length === 0) return [];
  const named = join(top, '.git');
  const [, pointer] = /^gitdir: (.+)$/s.exec(orElse(() => readPointer(named), undefined) ?? '') ?? [];
  const directory = pointer === undefined ? named : resolve(top, pointer);
  const index = orElse(() => readRegular(join(directory, 'index'), INDEX_BYTES), undefined);
  const entries = new Set((index && parseIndex(index))?.entries.map(({ path }) => path));
  return inside.filter((path) => entries.has(path.slice(top.length + 1)));
}

/** What looks for hidden files is loaded where the policy hides some only. */
async function hiddenFinder({
  policy: { filesystem },
  workspace,
  home,
  temporaryParent,
  repository,
}: ResolvedPolicy): Promise<HiddenFinder | undefined> {
  if (filesystem.hide.length === 0) return undefined;
  const { HiddenFinder } = await import('../hidden-files.ts');
  const shared = [
    ...(filesystem.home === 'host' ? [home] : []),
    ...(filesystem.tmp === 'host' ? [temporaryParent] : []),
    ...(repository?.top === undefined ? [] : [repository.top]),
  ];
  const canonical = (paths: readonly string[]) => [...new Set(paths.map((path) => realPath(path)))];
  return new HiddenFinder(filesystem.hide, {
    workspace,
    home,
    own: canonical([workspace, ...filesystem.read, ...filesystem.write, ...shared]),
    all: canonical([workspace, ...filesystem.rules.map(({ path }) => path), ...shared]),
  });
}

/** The plan of the first rung that has one, without touching the kernel: what turns out when it is prepared is not in it. */
export async function planOnly({ resolved, features, planFor }: PlannedSandbox): Promise<LaunchPlan> {
  return goDownLadder(resolved.policy, features, async ({ backend, passedOver, ...known }) => {
    const probed = await backend.probe(known.features, tryCommand);
    try {
      if (probed.usable) return { result: planFor({ backend, passedOver, features: probed.features }) };
      throw new SandboxError('backend.unavailable', probed.reason);
    } catch (error) {
      if (isOfTheRung(error)) return { refused: error, features: known.features };
      throw error;
    }
  });
}

/** What this program keeps and obeys. The policy of the machine belongs to root. */
function ownPaths({ home, layers, policy, workspace }: ResolvedPolicy): readonly OwnPath[] {
  const userPolicy = userPolicyPath(home, process.env.XDG_CONFIG_HOME);
  const { filesystem } = policy;
  const writableNames = [
    ...(filesystem.workspaceAccess === 'write' ? [workspace] : []),
    ...(filesystem.home === 'host' ? [home] : []),
    ...(filesystem.tmp === 'host' ? [tmpdir()] : []),
    ...(filesystem.tmp === 'auto' ? [realPath('/tmp')] : []),
    ...filesystem.rules.flatMap(({ access, path }) => (access === 'write' ? [realPath(path)] : [])),
  ];
  const files = new Set([
    userPolicy,
    ...layers.flatMap(({ name, path }) => (name === 'workspace' ? [] : (path ?? []))),
  ]);
  return [
    { path: stateDirectory(), kind: 'state' },
    { path: dirname(userPolicy), kind: 'settings' },
    ...[...files].map((path) => ({
      path: resolve(path),
      kind: 'policy' as const,
      hasOtherNames: hasOtherNames(path),
    })),
    ...ownProgram(writableNames).map((path) => ({ path, kind: 'program' as const })),
  ];
}

/** What cannot be looked at is not known to have only one. */
function hasOtherNames(path: string): boolean {
  return orElse(() => (statSync(path, { throwIfNoEntry: false })?.nlink ?? 1) > 1, true);
}

/**
 * Whether several people share the workspace or its repository by a set-group-ID directory (`git init --shared`). Links
 * are not followed: a command may have planted one.
 */
function isSharedByGroup(directories: readonly string[]): boolean {
  return directories.some((path) => {
    try {
      const info = lstatSync(path);
      return info.isDirectory() && (info.mode & SET_GROUP_ID) !== 0;
    } catch {
      return false;
    }
  });
}

function writableDirectory(path: string): string | undefined {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}
