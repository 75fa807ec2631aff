import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { innermostAround, isBeneath } from '../../base/absolute-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import { pathOf, shownPath } from '../../base/path-text.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { OBEYED_FILES } from '../../policy/index.ts';
import {
  Baseline,
  createSettler,
  createStartLookup,
  Expected,
  GIT_NAMES,
  gitDirectories,
  HookCopies,
  type HooksOfGit,
  hookInstallerOf,
  identityOf,
  inDirectoryOf,
  isObeyedInRepository,
  Kept,
  keptHooksIn,
  type NativeIndex,
  type NativeIndexed,
  type NativeIndexSpec,
  NestedRepositories,
  type ObeyedByGit,
  type ObeyedNames,
  obeyedByGit,
  obeyedNames,
  ownParts,
  readRegular,
  repositoriesOutOfSight,
  rowAround,
  SEQUENCE_NAMES,
  type Settler,
  userConfigFiles,
} from '../../workspace/index.ts';
import { describeFailure } from '../launch/failure.ts';
import { stateDirectory } from '../state.ts';
import { realPath } from './own-program.ts';
import type { ResolvedPolicy } from './resolve-policy.ts';
import { createIndex, saveIndex } from './saved-index.ts';

/** More directories than this are not looked through; the report says so then. */
const MAX_DIRECTORIES = 50_000;
/** The limit for writable directories beside the workspace, like MAX_DIRECTORIES. */
const MAX_BESIDE = 20_000;

/** What a look through the workspace found, before its first command. */
export interface WorkspaceFindings {
  /** What is looked at again after each command. */
  readonly index: NativeIndex;
  /** Canonical: the directories that are looked through, the workspace among them if commands can write it. */
  readonly roots: readonly string[];
  /** Beside the policy's protected paths: what programs outside obey there, whether it is there or not. */
  readonly obeyed: readonly ObeyedByGit[];
  /** Directories of hooks that repositories in the workspace set instead of git's default. */
  readonly hooks: readonly HooksOfGit[];
  /** The same of repositories that are content of the workspace: it is settled when a command ends, and not shut. */
  readonly nested: readonly ObeyedByGit[];
  /** The git directories of nested repositories. */
  readonly nestedDirectories: readonly string[];
  /** The working trees of nested repositories. */
  readonly nestedTops: readonly string[];
  /** Configuration files of the repositories that are not. */
  readonly configurations: readonly string[];
  readonly names: ObeyedNames;
  /** The manifests of packages that are there, those that lie deepest last. */
  readonly manifests: readonly string[];
  /** Why not everything was looked at; `undefined`: it was. */
  readonly shortfall: string | undefined;
  /** How a person installs the project's hooks; `undefined`: it has no known installer. */
  readonly hookInstaller: string | undefined;
}

/** The trees that commands can write, with what is looked for in them. */
interface WritableTrees {
  readonly places: WritablePlaces;
  readonly names: ObeyedNames;
  readonly spec: NativeIndexSpec;
  readonly index: NativeIndex;
}

/** Where commands can write, canonical. */
interface WritablePlaces {
  /** The directories that are looked through, the workspace first if it can be written. */
  readonly roots: readonly string[];
  /** What else the policy grants that programs outside obey, or that others work in: it is left alone. */
  readonly untended: readonly string[];
}

/**
 * What is shared with all programs of the user is not looked through: what another one of them leaves there while a command
 * runs would be taken away from it. Nor is what somebody granted although, or because, a program obeys it.
 */
function writablePlaces({ policy, workspace, home, temporaryParent }: ResolvedPolicy): WritablePlaces {
  const { rules, workspaceAccess } = policy.filesystem;
  const own = workspaceAccess === 'write' ? [workspace] : [];
  const lookup = createStartLookup();
  const real = (path: string) => realPath(path, lookup);
  const granted = new Set(rules.flatMap(({ path, access }) => (access === 'write' ? [real(path)] : [])));
  if (policy.filesystem.home === 'host') granted.add(real(home));
  const shared = new Set([home, '/tmp', '/var/tmp', '/dev/shm', tmpdir(), temporaryParent].map(real));
  const beside: string[] = [];
  const untended: string[] = [];
  for (const path of granted) {
    if (own.some((root) => isBeneath(path, root))) continue;
    const isDirectory = isDirectoryAt(path);
    const isShared = [...shared].some((one) => isBeneath(one, path));
    const isObeyed = rowAround(OBEYED_FILES, path) !== undefined || isObeyedInRepository(path);
    if (isObeyed || (isDirectory && isShared)) untended.push(path);
    else if (isDirectory) beside.push(path);
  }
  const isOutermost = (path: string) => !beside.some((other) => other !== path && isBeneath(path, other));
  return { roots: [...own, ...beside.filter(isOutermost)], untended };
}

/** False for what is too long to be there, which is refused where the policy's paths are resolved. Any other failure refuses now. */
function isDirectoryAt(path: string): boolean {
  try {
    return lstatSync(pathOf(path), { throwIfNoEntry: false })?.isDirectory() === true;
  } catch (error) {
    if (errnoOf(error) === 'ENAMETOOLONG') return false;
    throw error;
  }
}

function treesOf(addon: NativeAddon, places: WritablePlaces, workspace: string): WritableTrees | undefined {
  const [root, ...roots] = places.roots;
  if (root === undefined) return undefined;
  const beside = places.roots.filter((one) => one !== workspace);
  // A directory that cannot be read counts as a project, so that more names are looked for in it.
  const projects = beside.filter((one) => orElse(() => identityOf(join(one, '.git')) !== undefined, true));
  const names = obeyedNames(OBEYED_FILES, { workspace, beside, projects });
  const spec: NativeIndexSpec = {
    root,
    names: ['.git', ...SEQUENCE_NAMES, ...names.names],
    suffixes: names.suffixes,
    wholes: names.wholes,
    links: true,
    gitNames: GIT_NAMES,
    maxDirectories: MAX_DIRECTORIES,
    beside: roots.length === 0 ? undefined : { roots, maxDirectories: MAX_BESIDE },
  };
  return { places, names, spec, index: createIndex(addon, spec) };
}

/**
 * Looks through a workspace, and what else commands can write, for what programs outside obey; `undefined` where they can write
 * none of it.
 * @throws {SandboxError} `confinement.failed` where it cannot be seen what is there.
 */
export async function findInWorkspace(
  addon: NativeAddon,
  resolved: ResolvedPolicy,
): Promise<WorkspaceFindings | undefined> {
  const trees = treesOf(addon, writablePlaces(resolved), resolved.workspace);
  return trees && findIn(trees, resolved, await readIndex(addon, trees));
}

/** Looks through the same workspace again and again: directories that are as they were are not read again. */
export class RepeatedLook {
  #trees: WritableTrees | undefined;

  /** What `findInWorkspace` finds now; nothing is to run with its index. @throws {SandboxError} as that. */
  async find(addon: NativeAddon, resolved: ResolvedPolicy): Promise<WorkspaceFindings | undefined> {
    const places = writablePlaces(resolved);
    const before = this.#trees;
    if (before !== undefined && isDeepStrictEqual(before.places, places)) {
      const indexed = await readIndex(addon, before);
      if (indexed.unreadable.length === 0 && !indexed.spent && !indexed.spentBeside)
        return findIn(before, resolved, indexed);
    }
    this.#trees = undefined;
    const trees = treesOf(addon, places, resolved.workspace);
    if (trees === undefined) return undefined;
    const indexed = await readIndex(addon, trees);
    this.#trees = trees;
    return findIn(trees, resolved, indexed);
  }
}

function findIn(
  { places: { roots, untended }, names, index }: WritableTrees,
  { workspace, home, repository, around }: ResolvedPolicy,
  { entries, unreadable, spent, spentBeside }: NativeIndexed,
): WorkspaceFindings {
  const shut = unreadable.find((path) => `${path}/`.includes('/.git/'));
  if (shut !== undefined)
    throw new SandboxError(
      'confinement.failed',
      `${shownPath(shut)} cannot be looked through, so that git settings in it cannot be shut; make it accessible (chmod u+rwx), or move it out of the workspace`,
    );
  const lookup = createStartLookup();
  const directories = gitDirectories(
    // A directory of git that is granted by itself has no entry above it.
    [...roots.filter((root) => basename(root) === '.git'), ...entries.map(({ path }) => path)],
    lookup,
  );
  const leading = entries.filter(({ path, kind }) => path.endsWith('/.git') && kind !== 'directory');
  const surroundings = { workspace, roots, home, configFiles: userConfigFiles(home, around.env), lookup };
  const parts = { directories, links: leading.map(({ path }) => path) };
  const own = ownParts(parts, roots);
  const byGit = obeyedByGit(own, surroundings);
  const shutByGit = new Set(byGit.map(({ path }) => path));
  const nested = obeyedByGit(parts, surroundings).filter(({ path }) => !shutByGit.has(path));
  const outOfSight = entries
    .filter(({ path }) => path.endsWith('/.git/index'))
    .flatMap(({ path }) => repositoriesOutOfSight(path, (file, limit) => readRegular(pathOf(file), limit)))
    .map((path) => ({ path, reason: 'git status runs what this repository says' }));
  const nestedTops = [
    ...directories.filter((one) => !own.directories.includes(one)).map(({ path }) => path),
    ...parts.links.filter((path) => !own.links.includes(path)),
  ].flatMap((path) => (basename(path) === '.git' ? dirname(path) : []));
  // Obeyed files of a nested repository move and vanish with it, so they are settled later and not shut.
  const isContent = (path: string) => innermostAround(path, nestedTops) !== undefined;
  const byName = entries.flatMap(({ path }) => {
    const row = names.rowFor(path);
    return row?.treatment === 'shut' ? [{ path, reason: `${row.tool}: ${row.reason}` }] : [];
  });
  const besideWorkspace = names.paths.filter((path) => innermostAround(path, roots) !== workspace);
  const byPath = besideWorkspace.flatMap((path) => {
    const row = names.rowFor(path);
    return row?.treatment === 'shut' ? [{ path, reason: `${row.tool}: ${row.reason}` }] : [];
  });
  const configurations = own.directories
    .flatMap(({ path }) => [`${path}/config`, `${path}/config.worktree`])
    .filter((path) => lookup.resolve(path).kind === 'other' && lookup.resolve(path).canonical === path);
  return {
    index,
    roots,
    hooks: [...byGit, ...nested].flatMap(({ hooks }) => (hooks === undefined ? [] : [hooks])),
    obeyed: [...byGit, ...outOfSight, ...byName.filter(({ path }) => !isContent(path)), ...byPath],
    nested: [...nested, ...byName.filter(({ path }) => isContent(path))],
    nestedDirectories: directories.filter((one) => !own.directories.includes(one)).map(({ path }) => path),
    nestedTops,
    configurations,
    names,
    manifests: entries
      .flatMap(({ path, kind }) => (kind === 'file' && basename(path) === 'package.json' ? [path] : []))
      .sort((a, b) => a.split('/').length - b.split('/').length),
    shortfall: shortfallOf(roots, untended, spent, spentBeside),
    hookInstaller: hookInstallerOf(repository?.top === undefined ? [workspace] : [workspace, repository.top]),
  };
}

function shortfallOf(
  roots: readonly string[],
  untended: readonly string[],
  spent: boolean,
  spentBeside: boolean,
): string | undefined {
  const some = (most: number, of: string) =>
    `only ${most.toLocaleString('en-US')} directories of ${of} are looked through for what git and editors obey`;
  const parts = [
    ...(spent ? [some(MAX_DIRECTORIES, 'the workspace')] : []),
    ...(spentBeside ? [some(MAX_BESIDE, roots.slice(1).map(shownPath).join(', '))] : []),
    ...(untended.length === 0
      ? []
      : [
          `${untended.map(shownPath).join(', ')} can be written by the policy, and what commands leave there for programs outside is not looked for`,
        ]),
  ];
  return parts.length === 0 ? undefined : parts.join('; ');
}

async function readIndex(addon: NativeAddon, { index, spec }: WritableTrees): Promise<NativeIndexed> {
  const indexed = await new Promise<NativeIndexed>((resolve, reject) => {
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
  await saveIndex(addon, index, spec, indexed);
  return indexed;
}

/**
 * A path that does not exist cannot be mounted read-only. For git's hooks the gap is closed by an empty
 * directory, which `git init` makes as well and which means nothing to git.
 */
export function closeHooksGap(root: string): void {
  try {
    const isOfGit = ['HEAD', 'objects', 'refs'].every((name) => identityOf(join(root, name)) !== undefined);
    const hooks = isOfGit ? 'hooks' : '.git/hooks';
    inDirectoryOf(root, join(root, hooks), (at) => mkdirSync(at));
  } catch {
    // No repository, hooks already there, or not ours to write: then a command cannot write there either.
  }
}

/** Remembers what commands can change and shall not, and has the addon look at it after each of them. */
export function prepareSettler(
  addon: NativeAddon,
  { workspace, protectedPaths, watchedLinks, shutsInside, cache, copies }: LaunchPlan,
  findings: WorkspaceFindings | undefined,
): Settler {
  if (findings === undefined) return () => [];
  const { roots } = findings;
  const inside = protectedPaths.filter((path) => roots.some((root) => isBeneath(path, root)));
  const links = watchedLinks.map(({ path }) => path);
  const lookup = createStartLookup();
  const mayBeThere = (path: string) => {
    const { kind, links, unknown } = lookup.resolve(path);
    return kind !== 'missing' || links.length > 0 || unknown !== undefined;
  };
  // Most paths are missing, which one listing of their directory shows.
  const held = shutsInside
    ? protectedPaths
        .filter(mayBeThere)
        .map((path) => ({ path, was: identityOf(path) }))
        .filter(({ was }) => was !== undefined)
    : [];
  const holdOf = (path: string) => {
    const around = held.filter((one) => isBeneath(path, one.path));
    if (around.length === 0) return 'open';
    return around.some((one) => identityOf(one.path) === one.was) ? 'held' : 'lost';
  };
  // What leads to a repository is judged by where it leads: `git worktree move` changes it.
  const nested = findings.nested.flatMap(({ path }) =>
    ['.git', 'gitdir'].includes(basename(path)) ? [] : path,
  );
  const baseline = new Baseline([...links, ...(shutsInside ? findings.configurations : inside), ...nested]);
  const named = new Set(findings.names.names);
  // A name is found where it comes, and of a directory that is there the names tell nothing of what comes in it.
  const unnamed = [...inside, ...nested, ...findings.names.paths, ...baseline.paths].filter(
    (path) => !named.has(basename(path)) || (!shutsInside && identityOf(path) !== undefined),
  );
  addon.watchPaths(findings.index, [...new Set(unnamed)]);
  const reasons = new Map([...findings.nested, ...findings.obeyed].map(({ path, reason }) => [path, reason]));
  return createSettler({
    workspace,
    roots,
    obeyed: new Map(
      [...inside, ...nested].map((path) => [path, reasons.get(path) ?? 'the policy protects it']),
    ),
    names: findings.names,
    holdOf,
    baseline,
    nested: new NestedRepositories(findings.nestedDirectories, findings.nestedTops, nested),
    expected: new Expected(findings.manifests),
    isShut: (path) => inside.some((shut) => isBeneath(path, shut)),
    kept: new Kept(stateDirectory()),
    hooks: new HookCopies({
      directory: cache.kind === 'workspace' ? keptHooksIn(cache.directory) : undefined,
      workspace,
      installer: findings.hookInstaller,
      isShown: copies.some(({ hooksPath }) => hooksPath !== undefined),
    }),
  });
}
