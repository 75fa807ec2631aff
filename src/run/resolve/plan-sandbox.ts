import { accessSync, constants, lstatSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { type Confiner, confine, isUnenforceable, type Unenforceable } from '../../confine/confine.ts';
import { SET_GROUP_ID } from '../../confine/kernel/mode-bits.ts';
import type { NativeAddon, NativeFailure } from '../../confine/native/contract.ts';
import { loadAddon } from '../../confine/native/load.ts';
import type { Demands, FullGrant, Grant, HiddenFiles, OwnPath } from '../../confine/plan/grant.ts';
import type { HostFeatures } from '../../confine/plan/host-features.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { PathLookup } from '../../confine/plan/path-lookup.ts';
import { probeHost } from '../../confine/probe.ts';
import {
  createStartLookup,
  homeInDatabase,
  INDEX_BYTES,
  keptHooksIn,
  keptHooksOf,
  parseIndex,
  privateParentIn,
  readPointer,
  readRegular,
} from '../../workspace/index.ts';
import type { HiddenFinder, Looked } from '../hidden-files.ts';
import { describeFailure } from '../launch/failure.ts';
import { withPublished } from '../network/published-in-plan.ts';
import { BACKENDS } from '../other-backends/all-backends.ts';
import { layersRefused, stateDirectory } from '../state.ts';
import { demandsOf, grantOf } from './grant.ts';
import { ownProgram, realPath } from './own-program.ts';
import { userPolicyPath } from './policy-layers.ts';
import type { ResolvedPolicy } from './resolve-policy.ts';
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
  /** What commands get. Others differ from it in what is hidden by then, or in where changes of the workspace go. */
  readonly grant: Grant;
  readonly demands: Demands;
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
  const lookup = createStartLookup();
  const privateParents = privateParentsOf(resolved, lookup);
  const own = [...ownPaths(resolved, lookup), ...privateParents.own];
  const finder = await hiddenFinder(resolved);
  const found = finder?.look();
  const grant: Grant = {
    ...grantOf(policy, workspace),
    workspace,
    workspaceAsNamed,
    networkRules: resolved.networkRules,
    temporaryParent,
    parentBesideTmp,
    pathLookup: createStartLookup,
    privateParents: privateParents.usable,
    memoryParent: writableDirectory(SHARED_MEMORY),
    hostHome: home,
    databaseHome: homeInDatabase(),
    seedFiles: settings.files.map(({ path, content }) => ({ path: `slot:home/${path}`, content })),
    seedsOfPlace: storeOfPnpm(home, workspace),
    cache,
    own,
    obeyed: findings?.obeyed.map(({ path }) => path) ?? [],
    beside: findings?.roots.filter((root) => root !== workspace) ?? [],
    copied: findings?.configurations ?? [],
    hooks: findings && hooksOf(findings, cache),
    ofOtherWorktrees: isWritable ? (repository?.ofOthers ?? []) : [],
    shortfall: findings?.shortfall,
    sharedByGroup:
      isWritable && isSharedByGroup([workspace, repository?.directory ?? join(workspace, '.git')]),
    hidden: found && hiddenIn(resolved, found.files),
    tellsUses: resolved.shadow !== undefined,
  };
  const shadow = resolved.shadow && (await planOnly(await planResolved(resolved.shadow)));
  const demands = demandsOf(policy);
  return { addon, resolved, features, findings, finder, hidden: found, shadow, grant, demands };
}

/** What an installer of hooks may write as a copy. Husky's own directory only: what lies beside it is the project's, and tracked. */
function hooksOf(
  { hookInstaller, configurations, hooks, roots }: WorkspaceFindings,
  cache: OpenCache['place'],
): FullGrant['hooks'] {
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

/** What was found to be hidden, as a grant has it. */
export const hiddenIn = ({ repository, workspace }: ResolvedPolicy, files: HiddenFiles): HiddenFiles => ({
  ...files,
  tracked: trackedAmong(files.paths, repository?.top ?? workspace),
});

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

/** Who confines the commands of a sandbox. */
export const confinerOf = ({ features }: Pick<PlannedSandbox, 'features'>, backends = BACKENDS): Confiner =>
  confine({ backends, features, describe: confinementFailed });

function confinementFailed(failure: NativeFailure): SandboxError {
  const { code, message } = describeFailure(failure);
  return new SandboxError(code === 'launch.failed' ? 'confinement.failed' : code, message);
}

/** Returns what a confiner made of a grant: a plan, or kernel objects. @throws {SandboxError} no backend can enforce the grant. */
export function enforceable<Made>(made: Made | Unenforceable): Made {
  if (isUnenforceable(made)) throw made.error;
  return made;
}

/** The plan of the first backend that has one, without touching the kernel: what turns out when it is prepared is not in it. */
export async function planOnly(planned: PlannedSandbox): Promise<LaunchPlan> {
  const plan = enforceable(await confinerOf(planned).plan(planned.grant, planned.demands));
  return withPublished(plan, planned.resolved.policy);
}

const SHARED_MEMORY = '/dev/shm';

/** Where private directories of this and of other sandboxes of the user lie. */
function privateParentsOf(
  { temporaryParent, workspace }: ResolvedPolicy,
  lookup: PathLookup,
): {
  readonly usable: ReadonlyMap<string, string>;
  readonly own: readonly OwnPath[];
} {
  const places = new Set(
    [temporaryParent, tmpdir(), '/tmp', '/var/tmp', SHARED_MEMORY].map((path) => realPath(path, lookup)),
  );
  const found = [...places]
    .flatMap((place) => writableDirectory(place) ?? [])
    .map((place) => ({ place, ...privateParentIn(place) }))
    .filter(({ usable }) => usable);
  return {
    usable: new Map(found.map(({ place, path }) => [place, path])),
    // A missing parent is hidden too, but never created inside the workspace for that.
    own: found.flatMap(({ path, exists }) =>
      exists || !isBeneath(path, workspace) ? [{ path, kind: 'private' as const }] : [],
    ),
  };
}

/** What this program keeps and obeys. The policy of the machine belongs to root. */
function ownPaths(
  { home, layers, policy, workspace }: ResolvedPolicy,
  lookup: PathLookup,
): readonly OwnPath[] {
  const userPolicy = userPolicyPath(home, process.env.XDG_CONFIG_HOME);
  const { filesystem } = policy;
  const writableNames = [
    ...(filesystem.workspaceAccess === 'write' ? [workspace] : []),
    ...(filesystem.home === 'host' ? [home] : []),
    ...(filesystem.tmp === 'host' ? [tmpdir()] : []),
    ...(filesystem.tmp === 'auto' ? [realPath('/tmp', lookup)] : []),
    ...filesystem.rules.flatMap(({ access, path }) => (access === 'write' ? [realPath(path, lookup)] : [])),
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
