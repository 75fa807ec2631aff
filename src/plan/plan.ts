import { SandboxError } from '../errors/sandbox-error.ts';
import { seccompGroupsFor } from '../kernel/seccomp/filter.ts';
import type { SeccompGroupName } from '../kernel/seccomp/groups.ts';
import type { BackendId, PassedOver } from '../model/backend.ts';
import type { HostFeatures } from '../model/host-features.ts';
import type {
  LaunchPlan,
  PlannedPath,
  PlannedTreeLimits,
  ResourceLimitName,
  WatchedLink,
} from '../model/launch-plan.ts';
import type { PathLookup, SymbolicLink } from '../model/path-lookup.ts';
import type { Policy, ProcessLimits, ResourceLimits } from '../model/policy.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { enforcementReport, requireDemands } from './enforcement.ts';
import { handledRights, landlockRules } from './landlock.ts';
import { chooseMechanisms, type Mechanisms } from './mechanisms.ts';
import { NOTHING, VIEW_HOME, VIEW_TMP, viewSteps } from './view.ts';

/** What a plan is made from. */
export interface PlanInput {
  readonly policy: Policy;
  readonly features: HostFeatures;
  readonly backend: BackendId;
  /** Stronger ones that cannot be used, for the report. */
  readonly passedOver: readonly PassedOver[];
  /** Canonical. */
  readonly workspace: string;
  /** As the user named it: its links are kept in the view. */
  readonly workspaceAsNamed: string;
  /** Canonical: where private directories are made. */
  readonly temporaryParent: string;
  /** Canonical; undefined: the host has none that we can write to. */
  readonly memoryParent: string | undefined;
  /** The launcher's own home and temporary directory, for policies that share them. */
  readonly hostHome: string;
  readonly seedFiles: LaunchPlan['seedFiles'];
  /**
   * Where this program keeps approvals, audit trail and policy: no command may change them, because whoever writes there
   * answers for the user. Absolute; need not exist.
   */
  readonly own: readonly OwnPath[];
  /** Those of them, canonical, that are not there and that nobody can make. */
  readonly impossible?: readonly string[];
  readonly lookup: PathLookup;
}

/** Something that belongs to this program, or to whoever runs it. */
export interface OwnPath {
  readonly path: string;
  /**
   * `state`: a directory that no workspace may hold; `settings`: a directory that may be in a workspace, if somebody works
   * on settings; `policy`: a file that is obeyed; `program`: what runs unconfined when this program is started again.
   */
  readonly kind: 'state' | 'settings' | 'policy' | 'program';
}

/**
 * Turns a policy into what the kernel has to do on this host.
 * @throws {SandboxError} `policy.path_missing`, `policy.read_only_inside_writable`, `enforcement.unavailable`.
 */
export function makePlan(input: PlanInput): LaunchPlan {
  const { policy, features, workspace } = input;
  const used = chooseMechanisms(policy, features, input.backend);
  const protection = protectedInWorkspace(input);
  const report = enforcementReport(
    policy,
    features,
    used,
    { replaceableLinks: [...new Set(protection.links.map(({ path }) => path))] },
    input.passedOver,
  );
  requireDemands(report);

  const links: SymbolicLink[] = [];
  const paths = resolveRules(input, links);
  if (!used.shutsInside) refuseReadOnlyInsideWritable(paths);
  const ownPaths = ownPathsWithin(input, paths, used.shutsInside);
  const protectedPaths = outermost([...protection.paths, ...ownPaths.readOnly]);
  const watchedLinks = linksByPath([
    ...protection.links.map((link) => ({ ...link, restored: isBeneath(link.path, `${workspace}/.git`) })),
    ...ownPaths.links.map((link) => ({ ...link, restored: true })),
  ]).filter(({ path }) => !protectedPaths.some((shut) => isBeneath(path, shut)));
  const hiddenPaths = ownPaths.hidden;
  const sharedMemory = input.memoryParent !== undefined && policy.filesystem.tmp === 'private';

  const slotDirectories = [
    ...(policy.filesystem.tmp === 'private' ? ['slot:tmp'] : []),
    ...(policy.filesystem.home === 'private' ? ['slot:home'] : []),
  ];

  return {
    workspace,
    paths,
    protectedPaths,
    watchedLinks,
    hiddenPaths,
    landlock: { ...handledRights(used), rules: landlockRules(used, paths, slotDirectories, sharedMemory) },
    namespaces: used.view
      ? {
          user: used.ownUser,
          network: used.networkNamespace,
          ipc: true,
          view: viewSteps({
            paths,
            links,
            protectedPaths,
            watchedLinks,
            hiddenPaths,
            policy,
            sharedMemory,
          }),
        }
      : undefined,
    network: used.inetSockets,
    links,
    seccompGroups: seccompGroups(used),
    limits: processLimitsOf(policy.limits),
    treeLimits: treeLimitsOf(policy, used, features),
    umask: policy.limits.umask,
    temporaryParent: input.temporaryParent,
    memoryParent: used.view && sharedMemory ? input.memoryParent : undefined,
    slotDirectories: hiddenPaths.length === 0 ? slotDirectories : [...slotDirectories, NOTHING],
    seedFiles: policy.filesystem.home === 'private' ? input.seedFiles : [],
    home: policy.filesystem.home === 'host' ? input.hostHome : used.view ? VIEW_HOME : 'slot:home',
    tmp: policy.filesystem.tmp === 'host' ? input.temporaryParent : used.view ? VIEW_TMP : 'slot:tmp',
    report,
  };
}

function seccompGroups(used: Mechanisms): readonly SeccompGroupName[] {
  if (!used.seccomp) return [];
  return seccompGroupsFor({
    network: used.inetSockets,
    unixSockets: used.unixSockets,
    ipcObjects: used.ownIpc ? 'own' : 'shared',
  });
}

const ACCESS_ORDER = ['data', 'read', 'device', 'write'] as const;

/** Canonical, one entry per object (the widest access wins), links collected. */
function resolveRules(input: PlanInput, links: SymbolicLink[]): readonly PlannedPath[] {
  const planned = new Map<string, PlannedPath>();
  const { filesystem } = input.policy;
  const rules = [
    ...filesystem.rules,
    {
      path: input.workspaceAsNamed,
      access: filesystem.workspaceAccess,
      required: true,
      reason: 'the workspace',
    },
    ...(filesystem.tmp === 'host'
      ? [
          {
            path: input.temporaryParent,
            access: 'write' as const,
            required: true,
            reason: 'the shared temporary directory',
          },
        ]
      : []),
    ...(filesystem.home === 'host'
      ? [
          {
            path: input.hostHome,
            access: 'write' as const,
            required: true,
            reason: 'the shared home directory',
          },
        ]
      : []),
  ];
  for (const rule of rules) {
    const resolved = input.lookup.resolve(rule.path);
    if (resolved.kind === 'missing') {
      if (rule.required) {
        throw new SandboxError(
          'policy.path_missing',
          `the policy requires ${rule.path}, which does not exist; create it or take the rule away`,
        );
      }
      continue;
    }
    links.push(...resolved.links);
    const before = planned.get(resolved.canonical);
    if (before !== undefined && ACCESS_ORDER.indexOf(before.access) >= ACCESS_ORDER.indexOf(rule.access))
      continue;
    planned.set(resolved.canonical, {
      path: resolved.canonical,
      access: rule.access,
      required: rule.required,
      reason: rule.reason,
    });
  }
  const unique = new Map(links.map((link) => [link.path, link]));
  links.splice(0, links.length, ...unique.values());
  return [...planned.values()];
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

/** What has to be done about our own paths in what the policy grants. */
interface OwnPathsWithin {
  /** Directories in whose place the view puts nothing. */
  readonly hidden: readonly string[];
  /** Files and directories that are shut for writing. */
  readonly readOnly: readonly string[];
  /** By which this program is started or finds its parts, where commands can replace them. */
  readonly links: readonly SymbolicLink[];
}

const DIRECTORY_REACHABLE = {
  what: 'reach {}, where sandbox-run keeps what it trusts,',
  instead:
    'set XDG_STATE_HOME and XDG_CONFIG_HOME to directories outside, or choose another workspace or path',
};
/** What is said where commands could get at each kind; `{}` is its path. */
const REACHABLE: Readonly<Record<OwnPath['kind'], { readonly what: string; readonly instead: string }>> = {
  state: DIRECTORY_REACHABLE,
  settings: DIRECTORY_REACHABLE,
  policy: { what: 'change the policy {}', instead: 'move it to where commands cannot write' },
  program: {
    what: 'change {}, which sandbox-run itself runs,',
    instead: 'install it where commands cannot write (npm install --global)',
  },
};

/** @throws {SandboxError} `state.reachable` where our own paths cannot be kept from commands. */
function ownPathsWithin(
  { workspace, lookup, own, impossible = [] }: PlanInput,
  paths: readonly PlannedPath[],
  hasView: boolean,
): OwnPathsWithin {
  const hidden: string[] = [];
  const readOnly: string[] = [];
  const replaceable: SymbolicLink[] = [];
  const isHidden = (path: string) => hidden.some((directory) => isBeneath(path, directory));
  for (const { path: named, kind } of own) {
    const { canonical, links } = lookup.resolve(named);
    const refuse = (because: string): never => {
      const { what, instead } = REACHABLE[kind];
      throw new SandboxError(
        'state.reachable',
        `commands could ${what.replace('{}', () => canonical)} ${because}; ${instead}`,
      );
    };
    const writable = (path: string) =>
      paths.find((grant) => grant.access === 'write' && isBeneath(path, grant.path) && !isHidden(path));
    if (kind === 'program') {
      replaceable.push(...links.filter((link) => writable(link.path) !== undefined));
      const grant = writable(canonical);
      if (grant === undefined) continue;
      if (!hasView)
        refuse(
          `because they can write ${grant.path}, and this host refuses the namespaces that could shut it`,
        );
      readOnly.push(canonical);
      continue;
    }
    // Whoever writes where a link is makes it lead to something else.
    for (const link of links) {
      if (writable(link.path) !== undefined)
        refuse(`by way of the link ${link.path}, which they could replace`);
    }
    if (kind === 'policy') {
      const grant = writable(canonical);
      if (grant === undefined) continue;
      if (!isBeneath(canonical, workspace) || !hasView)
        refuse(
          `because they can write ${grant.path}${hasView ? '' : ', and this host refuses the namespaces that could shut it'}`,
        );
      readOnly.push(canonical);
      continue;
    }
    const inside = paths.find(({ path }) => isBeneath(path, canonical));
    if (inside !== undefined) refuse(`through ${inside.path}`);
    // A workspace changes hands as a whole: it is copied, mounted elsewhere, given to others.
    if (isBeneath(canonical, workspace) && kind === 'state') refuse('because it lies in the workspace');
    const around = paths.find(({ path }) => isBeneath(canonical, path));
    if (around === undefined || impossible.includes(canonical)) continue;
    if (!hasView)
      refuse(
        `because the policy grants ${around.path} and this host refuses the namespaces that could hide it`,
      );
    // Who works on settings sees them: what is missing in a workspace looks as if somebody had deleted it.
    (isBeneath(canonical, workspace) ? readOnly : hidden).push(canonical);
  }
  return { hidden, readOnly, links: replaceable };
}

interface Protection {
  readonly paths: readonly string[];
  /** Links inside the workspace on the way to a protected path: nothing can be mounted on a link to keep it. */
  readonly links: readonly SymbolicLink[];
}

/** Without what lies in another of them: to hold it in place would open what is around it again. */
function outermost(paths: readonly string[]): readonly string[] {
  return [...new Set(paths)].filter(
    (path) => !paths.some((other) => other !== path && isBeneath(path, other)),
  );
}

function linksByPath(links: readonly WatchedLink[]): readonly WatchedLink[] {
  return [...new Map(links.map((link) => [link.path, link])).values()];
}

/** Protected paths by the names that exist; a link is followed, but only within the workspace. */
function protectedInWorkspace(input: PlanInput): Protection {
  const { workspace, policy, lookup } = input;
  if (policy.filesystem.workspaceAccess !== 'write') return { paths: [], links: [] };
  const inside = (path: string) => path !== workspace && isBeneath(path, workspace);
  // The `.git` of a worktree or submodule is a file that names the repository.
  const gitFile = lookup.resolve(`${workspace}/.git`).kind === 'other' ? ['.git'] : [];
  const resolved = [...gitFile, ...policy.filesystem.protected].map((relative) =>
    lookup.resolve(`${workspace}/${relative}`),
  );
  return {
    paths: [...new Set(resolved.map((path) => path.canonical))].filter(inside),
    links: resolved.flatMap((path) => path.links).filter(({ path }) => inside(path)),
  };
}

/** Of the host's memory, where the policy says nothing: beyond it the kernel would soon end something, perhaps not this. */
const MEMORY_SHARE = 0.8;

function treeLimitsOf({ limits }: Policy, used: Mechanisms, features: HostFeatures): PlannedTreeLimits {
  return {
    memoryBytes: limits.memory ?? Math.floor(features.memoryBytes * MEMORY_SHARE),
    processes: limits.processes,
    cpuSeconds: limits.cpuSeconds,
    tmpBytes: limits.tmpBytes,
    idleTimeoutMs: limits.idleTimeoutMs === 0 ? undefined : limits.idleTimeoutMs,
    cgroup: used.cgroup,
  };
}

const LIMIT_NAMES: Readonly<Record<keyof ProcessLimits, ResourceLimitName>> = {
  coreSize: 'core',
  userProcesses: 'nproc',
  openFiles: 'nofile',
  fileSize: 'fsize',
  addressSpace: 'as',
};

function processLimitsOf(limits: ResourceLimits): LaunchPlan['limits'] {
  const own = (Object.keys(LIMIT_NAMES) as (keyof ProcessLimits)[]).flatMap((key) => {
    const value = limits[key];
    return value === undefined ? [] : [{ name: LIMIT_NAMES[key], value }];
  });
  // What the whole tree may use no process may use alone. A second more, so that whoever watches the tree is first.
  return limits.cpuSeconds === undefined ? own : [...own, { name: 'cpu', value: limits.cpuSeconds + 1 }];
}
