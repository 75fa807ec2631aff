import { basename, dirname } from 'node:path';
import { directoriesBetween, isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { PROGRAMS_IN_HOME } from '../../base/words.ts';
import { seccompGroupsFor } from '../kernel/seccomp/filter.ts';
import type { SeccompGroupName } from '../kernel/seccomp/groups.ts';
import { enforcementReport, requireDemands, requireSupervisor } from './enforcement.ts';
import type { EnforcementReport, PassedOver } from './enforcement-report.ts';
import type { Demands, FullGrant, HiddenFiles, PathRule, SharedDirectory } from './grant.ts';
import type { HostFeatures } from './host-features.ts';
import { handledRights, landlockRules } from './landlock.ts';
import type { LaunchPlan, PlannedCache, PlannedPath, SymbolicLink } from './launch-plan.ts';
import {
  chooseMechanisms,
  type Mechanisms,
  supervisesModes,
  supervisesProcesses,
  type TmpOfHost,
  tellsRefusedSockets,
  type Way,
} from './mechanisms.ts';
import { ownPathsWithin, protectedInWorkspace, tmpOfHost } from './own-paths.ts';
import type { PathLookup, ResolvedPath } from './path-lookup.ts';
import { processLimitsOf, treeLimitsOf } from './planned-limits.ts';
import {
  CACHE,
  COPIES,
  directoriesTo,
  NOTHING,
  VIEW_CACHE,
  VIEW_COPIES,
  type ViewHome,
  viewHome,
  viewSteps,
  viewTmp,
} from './view.ts';

/** What a plan is made from. */
export interface PlanInput extends FullGrant {
  readonly demands: Demands;
  readonly features: HostFeatures;
  readonly way: Way;
  /** Stronger ones that cannot be used, for the report. */
  readonly passedOver: readonly PassedOver[];
  readonly lookup: PathLookup;
  readonly impossible?: readonly string[];
}

/**
 * Turns a grant into what the kernel has to do on this host.
 * @throws {SandboxError} `policy.path_missing`, `policy.path_replaceable`, `policy.read_only_inside_writable`,
 * `enforcement.unavailable`.
 */
export function makePlan(input: PlanInput): LaunchPlan {
  const { features, workspace } = input;
  const used = mechanismsFor(input);
  const { paths: named, links, except } = resolveRules(input, used);
  const tmp = tmpOfHost(input, used, named);
  const granted = tmp !== undefined && 'granted' in tmp ? withPath(named, tmp.granted) : named;
  const { paths, hidden } = withoutHidden(layeredOnly(granted, input), input.hidden);
  const protection = input.onlyReads === true ? NOTHING_TO_PROTECT : protectedInWorkspace(input);
  const report = reportOn(input, used, {
    replaceableLinks: [...new Set(protection.links.map(({ path }) => path))],
    tmp,
    hidden,
    layer: input.layer && { shut: granted.filter((path) => isShut(path, input)).map(({ path }) => path) },
    onlyReads: input.onlyReads,
  });

  const { protectedPaths, watchedLinks, hiddenPaths } = shutPaths(input, paths, used, protection);
  const plainCopies = copiesOf(input, protectedPaths, used);
  const emptied = hidden?.paths ?? [];
  const { home, between, seedFiles, places } = homeOf(input, used, paths, links);
  const cache = plannedCache(input, used, hiddenPaths, places);
  const copies = cache.kind === 'workspace' ? withHooksPath(plainCopies, input) : plainCopies;
  const sharedMemory = input.memoryParent !== undefined && input.tmp !== 'host';

  const slotDirectories = slotDirectoriesOf(input, copies);

  return {
    workspace,
    workspaceAsNamed: nameThatLasts(input, paths),
    paths,
    protectedPaths,
    shutsInside: used.shutsInside,
    watchedLinks,
    hiddenPaths,
    emptied,
    layer: input.layer,
    onlyReads: input.onlyReads ?? false,
    copies,
    landlock: {
      ...handledRights(used),
      rules: landlockRules(
        used,
        paths,
        cache.kind === 'private' ? slotDirectories : [...slotDirectories, CACHE],
        sharedMemory,
        input.layer && workspace,
      ),
    },
    namespaces: namespacesOf(used, {
      paths,
      links,
      protectedPaths,
      watchedLinks,
      hiddenPaths,
      ...{ emptied: [...except, ...emptied], refused: hidden?.tracked ?? [] },
      copies,
      copiedDirectories: copiedDirectoriesOf(input, protectedPaths, cache),
      grant: input,
      home,
      between,
      sharedMemory,
      cache,
      layer: input.layer && { workspace, over: input.layer },
    }),
    network: used.inetSockets,
    networkRules: used.inetSockets === 'listed' ? input.networkRules : undefined,
    links,
    seccompGroups: seccompGroups(used, input.sharedByGroup ?? false),
    exitTracing: used.tracing === 'own',
    observed: used.observed,
    limits: processLimitsOf(input.limits),
    treeLimits: treeLimitsOf(input, used, features),
    umask: input.limits.umask,
    ...privateParents(input, used, { tmp, sharedMemory }),
    slotDirectories: withNothing(slotDirectories, [hiddenPaths, emptied, except]),
    toldDirectories: input.home === 'private' ? TOLD_IN_HOME : [],
    seedFiles,
    cache,
    home: input.home === 'host' ? input.hostHome : (home?.named ?? 'slot:home'),
    homes: home?.places ?? [],
    tmp: input.tmp === 'host' ? input.temporaryParent : used.view ? viewTmp(paths) : 'slot:tmp',
    report,
  };
}

/** Where private directories are made. */
function privateParents(
  { way, temporaryParent, parentBesideTmp, memoryParent, privateParents: ofUser }: PlanInput,
  { view }: Mechanisms,
  { tmp, sharedMemory }: { readonly tmp: TmpOfHost | undefined; readonly sharedMemory: boolean },
): Pick<LaunchPlan, 'temporaryParent' | 'memoryParent'> {
  const privateIn = (parent: string) => (way.ownMounts === true ? undefined : ofUser?.get(parent)) ?? parent;
  return {
    // Also where this policy shuts /tmp: another one of the user may not, and the directories of both lie side by side.
    temporaryParent: privateIn((tmp === undefined ? undefined : parentBesideTmp?.()) ?? temporaryParent),
    memoryParent: view && sharedMemory && memoryParent !== undefined ? privateIn(memoryParent) : undefined,
  };
}

/** The message proposes `mkdir`: most missing paths in a grant are meant to be directories. */
const missingPath = (path: string) =>
  `the policy requires ${path}, which does not exist; make it first: mkdir -p ${readableWord(path)} (a file: touch ${readableWord(path)}), or take the rule away`;

/** With the empty directory that is shown in place of `hidden`, where there is some. */
function withNothing(directories: readonly string[], hidden: readonly (readonly string[])[]) {
  return hidden.every(({ length }) => length === 0) ? directories : [...directories, NOTHING];
}

/** The user's name of the workspace, unless commands could change what it leads to: a shell takes `cd ..` for the directory of the link. */
function nameThatLasts({ workspace, workspaceAsNamed }: PlanInput, paths: readonly PlannedPath[]): string {
  const isInGranted = paths.some(({ path }) => isBeneath(dirname(workspaceAsNamed), path));
  return isInGranted ? workspace : workspaceAsNamed;
}

/** What the host and the backend have for it. */
function mechanismsFor(input: PlanInput): Mechanisms {
  const { features, way, ...wanted } = input;
  const chosen = chooseMechanisms(input, features, way);
  const { observed } = chosen;
  const looked = wanted.looksAtReads && observed === 'changes' ? 'everything' : observed;
  const used: Mechanisms = {
    ...chosen,
    observed: wanted.tellsUses && observed !== 'nothing' ? 'uses' : looked,
  };
  if (input.network.mode === 'listed') requireSupervisor(used, input, features);
  return used;
}

/** The report of what holds. @throws {SandboxError} where that is too little. */
function reportOn(
  input: PlanInput,
  used: Mechanisms,
  planned: Omit<Parameters<typeof enforcementReport>[5], 'shortfall' | 'sharedByGroup'>,
): EnforcementReport {
  const { demands, features, way, shortfall, sharedByGroup = false, passedOver } = input;
  const all = { ...planned, shortfall, sharedByGroup };
  const report = enforcementReport(input, demands, features, way, used, all, passedOver);
  requireDemands(report);
  if (input.layer !== undefined && (!used.view || features.layersRefused !== undefined))
    throw noPreview(report);
  return report;
}

/** What commands may not change, or see, of what lies where they may write. */
function shutPaths(
  input: PlanInput,
  paths: readonly PlannedPath[],
  used: Mechanisms,
  protection: ReturnType<typeof protectedInWorkspace>,
) {
  if (!used.shutsInside) refuseReadOnlyInsideWritable(paths);
  const ownPaths = ownPathsWithin(input, paths, used.shutsInside);
  // Only with mounts: without them, restoring these paths would undo what people did in other worktrees.
  const ofOthers = used.shutsInside && input.onlyReads !== true ? (input.ofOtherWorktrees ?? []) : [];
  const protectedPaths = outermost([...protection.paths, ...ownPaths.readOnly, ...ofOthers]);
  const watchedLinks = linksByPath([...protection.links, ...ownPaths.links]).filter(
    ({ path }) => !protectedPaths.some((shut) => isBeneath(path, shut)),
  );
  return { protectedPaths, watchedLinks, hiddenPaths: ownPaths.hidden };
}

function namespacesOf(used: Mechanisms, view: Parameters<typeof viewSteps>[0]): LaunchPlan['namespaces'] {
  if (!used.view) return undefined;
  return { user: used.ownUser, network: used.networkNamespace, ipc: true, view: viewSteps(view) };
}

const TOLD_IN_HOME = ['slot:home', ...PROGRAMS_IN_HOME.map((path) => `slot:home/${path}`)];
const inHome = (path: string) => path.slice('slot:home/'.length);

/** What leads to the workspace in private places of a view. `contents`: what is put into the home, relative to it. */
function betweenOf(
  { tmp, workspace, workspaceAsNamed }: PlanInput,
  paths: readonly PlannedPath[],
  home: ViewHome | undefined,
  contents: readonly string[],
): readonly string[] {
  const places = [...(home?.places ?? []), ...(tmp === 'host' ? [] : [viewTmp(paths)])];
  const ways = places.flatMap((place) =>
    directoriesTo([workspace, workspaceAsNamed], place, paths, contents),
  );
  // A home may lie beneath /tmp.
  return [...new Set(ways)].filter((way) => !places.some((place) => isBeneath(place, way)));
}

/** The private home: where it lies in a view (`undefined`: there is none of both), and what is put into it. */
function homeOf(
  input: PlanInput,
  used: Mechanisms,
  paths: readonly PlannedPath[],
  links: readonly SymbolicLink[],
): {
  readonly home: ViewHome | undefined;
  readonly between: readonly string[];
  readonly seedFiles: LaunchPlan['seedFiles'];
  readonly places: SharedDirectory['places'];
} {
  const { hostHome, databaseHome, cache, lookup } = input;
  if (input.home === 'host')
    return { home: undefined, between: betweenOf(input, paths, undefined, []), seedFiles: [], places: [] };
  const places = 'reason' in cache ? [] : cache.places;
  if (!used.view) return { home: undefined, between: [], seedFiles: input.seedFiles, places };
  const seedFiles = joined([...input.seedFiles, ...(input.seedsOfPlace ?? [])]);
  const contents = [...seedFiles.map(({ path }) => inHome(path)), ...places.map(({ path }) => path)];
  const home = viewHome({
    homes: databaseHome === undefined ? [hostHome] : [hostHome, databaseHome],
    paths,
    links,
    contents,
    lookup,
  });
  // What the policy shows of the user's home is there in place of ours.
  const shown = paths.map(({ path, shownAs = path }) => shownAs);
  const isFree = (inner: string) =>
    !home.places
      .map((place) => `${place}/${inner}`)
      .some((at) => shown.some((path) => isBeneath(at, path) || isBeneath(path, at)));
  return {
    home,
    between: betweenOf(input, paths, home, contents),
    seedFiles: seedFiles.filter(({ path }) => isFree(inHome(path))),
    places: places.filter(({ path }) => isFree(path)),
  };
}

/** Files with the same path as one. */
function joined(files: LaunchPlan['seedFiles']): LaunchPlan['seedFiles'] {
  const contents = new Map<string, string>();
  for (const { path, content } of files) contents.set(path, `${contents.get(path) ?? ''}${content}`);
  return [...contents].map(([path, content]) => ({ path, content }));
}

/** Private directories that each command gets. */
function slotDirectoriesOf({ tmp, home }: FullGrant, copies: LaunchPlan['copies']): readonly string[] {
  return [
    ...(tmp === 'host' ? [] : ['slot:tmp']),
    ...(home === 'private' ? ['slot:home'] : []),
    ...(copies.length === 0 ? [] : [COPIES]),
  ];
}

/** In a preview they stay shut: an overlay over a part of an overlay is not supported by every kernel. */
function copiedDirectoriesOf(
  { layer, onlyReads, features, hooks }: PlanInput,
  protectedPaths: readonly string[],
  cache: PlannedCache,
): NonNullable<PlanInput['hooks']>['directories'] {
  if (hooks === undefined || layer !== undefined || onlyReads === true) return [];
  if (features.layersRefused !== undefined) return [];
  return hooks.directories
    .filter(({ path }) => protectedPaths.some((shut) => isBeneath(path, shut)))
    .map(({ path, kept }) => ({ path, kept: cache.kind === 'workspace' ? kept : undefined }));
}

/** A file is not copied if it may be linked elsewhere, or lies in a directory that is shut as a whole. */
function copiesOf(
  { copied = [], features, hidden }: PlanInput,
  protectedPaths: readonly string[],
  used: Mechanisms,
): LaunchPlan['copies'] {
  if (!used.view || features.linkMounts === false) return [];
  const isHidden = (path: string) => hidden?.paths.some((over) => isBeneath(path, over)) === true;
  return copied
    .filter((path) => protectedPaths.includes(path) && !isHidden(path))
    .map((source, at) => ({
      source,
      path: `${COPIES}/${at}/${basename(source)}`,
      shownAs: `${VIEW_COPIES}/${at}/${basename(source)}`,
    }));
}

/** Where git looks for hooks as earlier commands set it, unless a person did. */
function withHooksPath(
  copies: LaunchPlan['copies'],
  { hooks, layer, features }: PlanInput,
): LaunchPlan['copies'] {
  if (hooks === undefined || layer !== undefined || features.layersRefused !== undefined) return copies;
  return copies.map((copy) =>
    basename(copy.source) === 'config' ? { ...copy, hooksPath: hooks.settingOf(copy.source) } : copy,
  );
}

function plannedCache(
  { home, workspaceAccess, noCache, cache, way }: PlanInput,
  used: Mechanisms,
  hiddenPaths: readonly string[],
  places: SharedDirectory['places'],
): PlannedCache {
  const without = (reason: string) => ({ kind: 'private', reason }) as const;
  if (home === 'host') return without('the home directory is the host’s, with its caches');
  if (noCache !== undefined) return without(noCache);
  // Commands that may write less must not leave anything to those that may do more.
  if (workspaceAccess === 'read') return without('the workspace cannot be written');
  if (way.noCache !== undefined) return without(way.noCache);
  if ('reason' in cache) return without(cache.reason);
  if (!used.view && hiddenPaths.some((path) => isBeneath(cache.directory, path)))
    return without(`${cache.directory} is hidden as a whole; set XDG_STATE_HOME to a directory outside`);
  return {
    kind: 'workspace',
    directory: cache.directory,
    links: places.map(({ name, path }) => ({
      path: `slot:home/${path}`,
      content: `${used.view ? VIEW_CACHE : CACHE}/${name}`,
    })),
  };
}

function seccompGroups(used: Mechanisms, sharedByGroup: boolean): readonly SeccompGroupName[] {
  if (!used.seccomp) return [];
  const asked = (sockets: 'refused') => (tellsRefusedSockets(used) ? ('asked' as const) : sockets);
  return seccompGroupsFor({
    network: used.inetSockets === 'refused' ? asked('refused') : used.inetSockets,
    unixSockets: used.unixSockets === 'refused' ? asked('refused') : used.unixSockets,
    tracing: used.tracing,
    ipcObjects: used.ownIpc ? 'own' : 'shared',
    otherProcesses: supervisesProcesses(used) ? 'supervised' : 'refused',
    setGroupId: supervisesModes(used) ? 'supervised' : sharedByGroup ? 'kept' : 'refused',
  });
}

const ACCESS_ORDER = ['data', 'read', 'device', 'write'] as const;

/** Canonical, one entry per object (the widest access wins), links collected; what is taken out of them again. */
function resolveRules(
  input: PlanInput,
  used: Mechanisms,
): {
  readonly paths: readonly PlannedPath[];
  readonly links: readonly SymbolicLink[];
  readonly except: readonly string[];
} {
  const planned = new Map<string, PlannedPath>();
  const links: SymbolicLink[] = [];
  const shared = (path: string, what: string): PathRule => ({
    ...{ path, access: 'write', required: true },
    reason: `the shared ${what} directory`,
  });
  const { rules: granted, except } = takenApart(input.paths, used);
  const rules = [
    ...granted,
    {
      path: input.workspaceAsNamed,
      access: input.workspaceAccess,
      required: true,
      reason: 'the workspace',
    },
    ...(input.tmp === 'host' ? [shared(input.temporaryParent, 'temporary')] : []),
    ...(input.home === 'host' ? [shared(input.hostHome, 'home')] : []),
  ];
  const isReplaceable = linksOfCommands(input, rules);
  for (const rule of rules) {
    const resolved = input.lookup.resolve(rule.path);
    const replaceable = rule.path === input.workspaceAsNamed ? undefined : isReplaceable(resolved);
    if (replaceable !== undefined) {
      // A rule that nobody asked for by name is left out.
      if (!rule.required) continue;
      throw new SandboxError(
        'policy.path_replaceable',
        `the policy grants ${rule.path}, and ${replaceable} is a link that a command could lead elsewhere; grant where it leads: ${readableWord(resolved.canonical)}`,
      );
    }
    if (resolved.kind === 'missing') {
      if (rule.required) {
        throw new SandboxError(
          'policy.path_missing',
          resolved.unknown === undefined
            ? missingPath(rule.path)
            : `the policy requires ${rule.path}, and ${resolved.unknown.path} cannot be looked at (${resolved.unknown.errno}); make it accessible or take the rule away`,
        );
      }
      continue;
    }
    links.push(...resolved.links);
    const before = planned.get(resolved.canonical);
    if (before !== undefined && ACCESS_ORDER.indexOf(before.access) >= ACCESS_ORDER.indexOf(rule.access))
      continue;
    const { access, required, reason, shownAs } = rule;
    planned.set(resolved.canonical, {
      ...{ path: resolved.canonical, access, required, reason },
      ...(shownAs === undefined ? {} : { shownAs }),
    });
  }
  // What is granted by itself is granted.
  return {
    paths: [...planned.values()],
    links: linksByPath(links),
    except: except.filter((path) => !planned.has(path)),
  };
}

/**
 * Finds, on the way to a path, a link that lies where commands can write and leads out of there: the next sandbox would grant
 * whatever a command of this one had it lead to.
 */
function linksOfCommands(
  { workspace, workspaceAccess, lookup }: PlanInput,
  rules: readonly PathRule[],
): (resolved: ResolvedPath) => string | undefined {
  const writable = [
    ...(workspaceAccess === 'write' ? [workspace] : []),
    ...rules.flatMap(({ path, access }) => (access === 'write' ? lookup.resolve(path).canonical : [])),
  ];
  return ({ canonical, links }) =>
    links.find((link) =>
      writable.some(
        (place) => place !== canonical && isBeneath(link.path, place) && !isBeneath(canonical, place),
      ),
    )?.path;
}

/**
 * Trees of which something is not granted: as a whole with what is taken out of them where there is a view, and in parts where
 * there is none, or where something in what is taken out is granted.
 */
function takenApart(
  rules: readonly PathRule[],
  { view, landlockAbi }: Mechanisms,
): { readonly rules: readonly PathRule[]; readonly except: readonly string[] } {
  const except: string[] = [];
  const covered: ReadonlySet<string>[] = [];
  const apart = rules.flatMap((rule): readonly PathRule[] => {
    const { except: out, parts, covers, ...whole } = rule;
    if (out === undefined || parts === undefined || covers === undefined) return [rule];
    // What holds neither by a view nor by Landlock has what the policy lists, and nothing that is found.
    if (!view && landlockAbi === 0) return [];
    covered.push(covers);
    const inner = rules.filter((other) => other.path !== rule.path && isBeneath(other.path, rule.path));
    const holdsGranted = (path: string) =>
      inner.some((other) => other.path !== path && isBeneath(other.path, path));
    if (!view || out.some(holdsGranted)) return parts.map((path) => ({ ...whole, path }));
    except.push(...out);
    return [whole];
  });
  const isCovered = ({ path, access }: PathRule) =>
    access === 'data' && covered.some((paths) => paths.has(path));
  return { rules: apart.filter((rule) => !isCovered(rule) || !rules.includes(rule)), except };
}

/** What is hidden is hidden from what else is granted in it too; where nothing is granted, nothing need be hidden. */
function withoutHidden(
  granted: readonly PlannedPath[],
  hidden: HiddenFiles | undefined,
): { readonly paths: readonly PlannedPath[]; readonly hidden: HiddenFiles | undefined } {
  if (hidden === undefined) return { paths: granted, hidden };
  const paths = granted.filter(({ path }) => !hidden.paths.some((over) => isBeneath(path, over)));
  const isGranted = (inner: string) => paths.some(({ path }) => isBeneath(inner, path));
  return { paths, hidden: { ...hidden, paths: hidden.paths.filter(isGranted) } };
}

/** With a layer over the workspace, other writable paths would change at once, so they are read-only unless `leavesOpen`. */
function layeredOnly(granted: readonly PlannedPath[], input: PlanInput): readonly PlannedPath[] {
  return granted.map((path) => (isShut(path, input) ? { ...path, access: 'read' } : path));
}

function isShut(
  { path, access }: PlannedPath,
  { layer, leavesOpen, onlyReads, workspace }: PlanInput,
): boolean {
  if (access !== 'write') return false;
  if (onlyReads === true) return true;
  return layer !== undefined && leavesOpen !== true && !isBeneath(path, workspace);
}

/** Nothing of the workspace can be written. */
const NOTHING_TO_PROTECT: ReturnType<typeof protectedInWorkspace> = { paths: [], links: [] };

function noPreview({ controls }: EnforcementReport): SandboxError {
  const why = controls.find(({ id }) => id === 'workspace-changes')?.reason ?? '';
  return new SandboxError('changes.unavailable', why);
}

/** In place of an entry for the same object. */
function withPath(paths: readonly PlannedPath[], added: PlannedPath): readonly PlannedPath[] {
  return [...paths.filter(({ path }) => path !== added.path), added];
}

/** Landlock adds up rights on the way to the root: what lies inside a writable tree is writable. */
function refuseReadOnlyInsideWritable(paths: readonly PlannedPath[]): void {
  for (const inner of paths) {
    if (inner.access === 'write' || inner.access === 'device') continue;
    const outer = paths.find(
      (path) => path.access === 'write' && path.path !== inner.path && isBeneath(inner.path, path.path),
    );
    if (outer !== undefined) {
      throw new SandboxError(
        'policy.read_only_inside_writable',
        `${inner.path} is read-only inside the writable ${outer.path}, which needs namespaces that this host refuses; run sandbox-run doctor`,
      );
    }
  }
}

/** Without what lies in another of them: to hold it in place would open what is around it again. */
function outermost(paths: readonly string[]): readonly string[] {
  const all = new Set(paths);
  return [...all].filter(
    (path) => path === '/' || !['/', ...directoriesBetween(path, '/')].some((above) => all.has(above)),
  );
}

function linksByPath(links: readonly SymbolicLink[]): readonly SymbolicLink[] {
  return [...new Map(links.map((link) => [link.path, link])).values()];
}
