import { constants, mkdtempSync, readdirSync, rmdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { directoryPath } from '../../base/directory-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import type { PathRule } from '../../confine/plan/grant.ts';
import type { NetworkRules } from '../../confine/plan/network-rules.ts';
import type { PathLookup } from '../../confine/plan/path-lookup.ts';
import { isListedVariable } from '../../judge/index.ts';
import type { Policy, SandboxOptions } from '../../model/index.ts';
import {
  type Entry,
  effectivePolicy,
  judgeHost,
  OBEYED_IN_HOME,
  OFFLINE_ENVIRONMENT,
  PACKAGE_CACHES,
  type PolicyLayer,
  PROTECTED_PATHS,
  TOOL_CHAINS,
} from '../../policy/index.ts';
import {
  type CarriedSettings,
  carrySettings,
  createPathLookup,
  createStartLookup,
  type Environment,
  exactRealPath,
  findRepository,
  homeDirectory,
  NO_SETTINGS,
  namedCurrentDirectory,
  privateParentIn,
  type RepositoryAround,
  type RepositorySearch,
  requireExactVariables,
  type Surroundings,
  TREE_AROUND,
} from '../../workspace/index.ts';
import { stateDirectory } from '../state.ts';
import { HostFindings } from './host-findings.ts';
import { realPath } from './own-program.ts';
import {
  callerLayer,
  loadOperatorLayers,
  loadOwnFile,
  userPolicyPath,
  workspaceNamed,
} from './policy-layers.ts';
import { lookAtProject, type Project, remarksOn } from './project-trust.ts';
import { hasNpmCache } from './seed-npm-cache.ts';
import { cacheDirectoryOf } from './workspace-cache.ts';

/** Options and files, made into one policy. */
export interface ResolvedPolicy {
  /** What the layers say. */
  readonly named: Policy;
  /** Each value of it, with the layer that said it. */
  readonly entries: readonly Entry[];
  /** `named`, completed with what is found on the host. */
  readonly policy: Policy;
  /** Weakest first, without the profile: files of the operator, the caller's options, the workspace's file. */
  readonly layers: readonly PolicyLayer[];
  /** Canonical. */
  readonly workspace: string;
  readonly workspaceAsNamed: string;
  readonly home: string;
  /** Canonical: where private directories are made. */
  readonly temporaryParent: string;
  /** What commands get of the repository that the workspace is a part of; `undefined`: it is not, or they get nothing. */
  readonly repository: RepositoryAround | undefined;
  /** What of the network commands may reach, where that is listed. */
  readonly networkRules: NetworkRules | undefined;
  /** What commands get of the settings of the user's tools. */
  readonly settings: CarriedSettings;
  /** What the workspace's file asks for; `undefined`: nothing. */
  readonly project: Project | undefined;
  /** Another policy, of which the result reports what it would deny. */
  readonly shadow: ResolvedPolicy | undefined;
  /** Where the call comes from that the policy was resolved for. */
  readonly around: Surroundings;
  /** Canonical: the same where commands may reach /tmp. `undefined`: there is no such place. It is tried, so on demand. */
  readonly parentBesideTmp: () => string | undefined;
}

/**
 * Reads the layers and merges them: built-in profile, the machine's file, the user's, the one named by the caller, the
 * caller's options, and last the workspace's file, which can only take away. What it asks for beyond that is the weakest of all
 * layers, and there is none of it until a person has trusted the file. `host`: what was found before for the same call.
 * @throws {SandboxError} for everything that is wrong with options, policy or workspace.
 */
export async function resolvePolicy(
  options: SandboxOptions,
  around: Surroundings,
  host: HostFindings = new HostFindings(),
): Promise<ResolvedPolicy> {
  const { env } = around;
  requireExactVariables(env);
  const home = homeDirectory();
  const temporary = realDirectory(tmpdir(), 'the temporary directory');
  const withFiles = options.policyFiles ?? true;
  const files = await loadOperatorLayers(home, options.policy, withFiles);
  const directory = directoryPath(options.workspace) ?? workspaceNamed(files)?.replace(/^~/, home);
  const workspaceAsNamed = resolve(directory ?? namedCurrentDirectory(around));
  const workspace = realDirectory(workspaceAsNamed, 'the workspace');
  const lookup = createStartLookup();
  refuseUnsafeWorkspace(workspace, home, temporary, lookup);

  const own = withFiles ? await loadOwnFile(workspace) : undefined;
  const others = [
    ...[...files, callerLayer(options), ...(own === undefined ? [] : [own.layer])],
    ...(await narrowingLayers(options)),
  ];
  const place = { workspace, home, backend: options.backend };
  const project = own?.wanted === undefined ? undefined : lookAtProject(own.wanted, others, place, env);
  const layers = project?.standing === 'trusted' ? [project.layer, ...others] : others;
  const effective = effectivePolicy(layers, place);
  const { entries } = effective;
  const named =
    options.narrow?.readOnly === true ? withReadOnlyWorkspace(effective.policy) : effective.policy;
  const repository = repositoryFor(named, options, { workspace, home, temporary, env }, lookup);
  const found = withFound(
    await withHostFindings(named, { home, workspace, env }, lookup, host),
    rulesOfRepository(repository.found, named, env),
  );
  const network = await listedNetwork(found, entries, { home, workspace, env });
  const settings = await settingsFor(found, network.rules, { workspace, home, env }, lookup);
  const policy = withSettings(withFound(found, network.found), settings);
  const temporaryParent = outOfReach([temporary, '/tmp', '/var/tmp'], policy, workspace, lookup) ?? temporary;
  return {
    networkRules: network.rules,
    project,
    named,
    entries,
    policy,
    layers,
    workspace,
    workspaceAsNamed,
    home,
    repository: repository.found,
    around,
    temporaryParent,
    parentBesideTmp: placesOf(policy, workspace),
    settings: {
      ...settings,
      remarks: [
        ...ofAnotherUser(workspace, policy),
        ...(repository.refused === undefined ? [] : [repository.refused]),
        ...takenNames([temporaryParent, '/dev/shm']),
        ...settings.remarks,
        ...network.remarks,
        ...(project === undefined ? [] : remarksOn(project)),
      ],
    },
    shadow:
      options.shadow === undefined
        ? undefined
        : await resolvePolicy({ workspace, policy: options.shadow, policyFiles: false }, around),
  };
}

/** Finds `parentBesideTmp` of a policy for a workspace. */
export function placesOf(policy: Policy, workspace: string): ResolvedPolicy['parentBesideTmp'] {
  const temporary = realDirectory(tmpdir(), 'the temporary directory');
  return () => outOfReach([temporary, '/var/tmp'], policy, workspace, createPathLookup(), [realPath('/tmp')]);
}

/** Root may write what another user's is by a capability, and commands have none, in containers with a mounted workspace say. */
function ofAnotherUser(workspace: string, { filesystem }: Policy): readonly string[] {
  const { uid, gid, mode } = statSync(workspace);
  if (process.geteuid?.() !== 0 || uid === 0 || filesystem.workspaceAccess !== 'write') return [];
  const isOfGroup = gid === process.getegid?.() || process.getgroups?.().includes(gid) === true;
  const toMakeFiles = constants.W_OK | constants.X_OK;
  if (((isOfGroup ? mode >> 3 : mode) & toMakeFiles) === toMakeFiles) return [];
  return [
    `the workspace belongs to user ${uid}: commands of root have no capabilities and cannot write there. Run sandbox-run as that user`,
  ];
}

/** Where something else has the name of the directory for private directories. */
const takenNames = (places: readonly string[]): readonly string[] =>
  places.flatMap((place) => {
    const { path, exists, usable } = privateParentIn(place);
    if (usable || !exists) return [];
    return [
      `${path} is not a directory that only this user can use, so that private directories of commands are made beside it, in reach of sandboxes that are granted ${place}; remove it`,
    ];
  });

/** Whose call a policy is resolved for, and where. */
interface From {
  readonly workspace: string;
  readonly home: string;
  readonly env: Environment;
}

/** The repository around a workspace, as far as the policy wants it. Who sends a job from elsewhere has the workspace only. */
function repositoryFor(
  { filesystem }: Policy,
  { narrow, isCopy }: SandboxOptions,
  { workspace, home, temporary, env }: From & { readonly temporary: string },
  lookup: PathLookup,
): RepositorySearch {
  if (filesystem.repository === 'none' || narrow !== undefined || isCopy === true) return {};
  const own = [home, stateDirectory(), userPolicyPath(home, env.XDG_CONFIG_HOME), temporary];
  const places = [...own, ...SHARED_DIRECTORIES].map((path) => lookup.resolve(path).canonical);
  return findRepository(
    workspace,
    (path) =>
      places.some((place) => isBeneath(place, path)) ||
      SYSTEM_DIRECTORIES.some((system) => isBeneath(path, system)) ||
      placesObeyed(home, lookup).some((place) => isBeneath(path, place)),
  );
}

/** Settings of git (git-config(1), ENVIRONMENT): nothing is taken out of the reflogs of a repository. */
const REFLOGS_STAY = {
  GIT_CONFIG_COUNT: '2',
  GIT_CONFIG_KEY_0: 'gc.reflogExpire',
  GIT_CONFIG_VALUE_0: 'never',
  GIT_CONFIG_KEY_1: 'gc.reflogExpireUnreachable',
  GIT_CONFIG_VALUE_1: 'never',
};

/** What commands get of it, with the reason that a plan shows. */
function rulesOfRepository(
  repository: RepositoryAround | undefined,
  { filesystem }: Policy,
  env: Environment,
): Found {
  if (repository === undefined) return NOTHING;
  const { top, directory, ofOthers, filesOfOthers } = repository;
  const rule = (path: string, access: PathRule['access'], reason: string): PathRule => ({
    ...{ path, access, reason, required: false },
  });
  return {
    rules: [
      ...(top === undefined ? [] : [rule(top, 'read', TREE_AROUND)]),
      ...(directory === undefined
        ? []
        : [
            rule(
              directory,
              filesystem.workspaceAccess,
              'git’s own files of the repository that the workspace is a part of',
            ),
          ]),
      ...filesOfOthers.map((path) =>
        rule(path, 'data', 'shows git that another working tree is still there'),
      ),
    ],
    env: {
      // With a layer over it the workspace is another file system to git, which does not look beyond that.
      ...(top === undefined ? {} : { GIT_DISCOVERY_ACROSS_FILESYSTEM: '1' }),
      // `git gc` expires reflogs in the directories of other worktrees, and fails if it cannot write there.
      ...(ofOthers.length === 0 || env.GIT_CONFIG_COUNT !== undefined ? {} : REFLOGS_STAY),
    },
  };
}

/** What a submitter takes away: of the same kind as the file of a workspace, so that it cannot give anything. */
async function narrowingLayers({ narrow }: SandboxOptions): Promise<readonly PolicyLayer[]> {
  if (narrow?.policy === undefined) return [];
  const { checkNarrowingPolicy } = await import('../validation.ts');
  return [{ name: 'workspace', says: await checkNarrowingPolicy(narrow.policy) }];
}

function withReadOnlyWorkspace(policy: Policy): Policy {
  return { ...policy, filesystem: { ...policy.filesystem, workspaceAccess: 'read' } };
}

/**
 * The first directory that no command can write, for the private ones: what lies in a place of its own a command could
 * rename. Where all can be written the policy leaves nothing out of reach, and the addon notices what was renamed.
 * `also`: what commands may write beside what the policy says.
 */
function outOfReach(
  candidates: readonly string[],
  policy: Policy,
  workspace: string,
  lookup: PathLookup,
  also: readonly string[] = [],
): string | undefined {
  const { rules, workspaceAccess } = policy.filesystem;
  const real = (path: string) => realPath(path, lookup);
  const written = [
    ...also,
    ...(workspaceAccess === 'write' ? [workspace] : []),
    ...rules.filter((rule) => rule.access === 'write').map((rule) => real(rule.path)),
  ];
  const usable = candidates.filter(isDirectory).map(real);
  const isOut = (path: string) => !written.some((root) => isBeneath(path, root));
  // The one that was named fails with its own name; another one only takes its place if it works.
  return usable.find((path, at) => isOut(path) && (at === 0 || canMakeDirectory(path)));
}

/** Tried, because in a sandbox around us access(2) says nothing about it. */
function canMakeDirectory(parent: string): boolean {
  try {
    rmdirSync(mkdtempSync(join(parent, 'sandbox-run-try-')));
    return true;
  } catch {
    return false;
  }
}

/** What the network's entries stand for. */
interface ListedNetwork {
  /** `undefined`: none is listed. */
  readonly rules: NetworkRules | undefined;
  /** What commands get to see of it. */
  readonly found: Found;
  /** Sentences. */
  readonly remarks: readonly string[];
}

/** @throws {SandboxError} `policy.invalid` for an entry that is none, and for what cannot be held together. */
async function listedNetwork(
  policy: Policy,
  entries: readonly Entry[],
  { home, workspace, env }: From,
): Promise<ListedNetwork> {
  const { mode, deny, unix, unixSockets, verify } = policy.network;
  // A file in the workspace may take the network away, and with it the sockets.
  const isNarrowed = entries.some(({ key, layer }) => key === 'network.mode' && layer.name === 'workspace');
  if (mode !== 'listed' && unix.length > 0 && !isNarrowed)
    throw new SandboxError(
      'policy.invalid',
      `network.unix lists sockets, which can be held with network.mode = "listed" only, not "${mode}"; set mode = "listed" (allow may stay empty), or take unix away`,
    );
  if (mode === 'open' && deny.length > 0)
    throw new SandboxError(
      'policy.invalid',
      'network.deny holds nothing back with network.mode = "open"; set mode = "listed" with allow = ["*", "0.0.0.0/0", "[::/0]"], or take deny away',
    );
  if (mode === 'open' && verify === 'sni')
    throw new SandboxError(
      'policy.invalid',
      'network.verify = "sni" looks at nothing with network.mode = "open"; set mode = "listed" with allow = ["*"], or take verify away',
    );
  if (mode !== 'listed') return { rules: undefined, found: NOTHING, remarks: [] };
  if (unixSockets === 'allowed')
    throw new SandboxError(
      'policy.invalid',
      'network.unix_sockets = "allowed" and network.mode = "listed" cannot be held together; take one of them away',
    );
  const { readRules, hostsOfTool, listedSockets } = await import('../listed-network.ts');
  const { rows, variables, remarks } = listedSockets(unix, {
    home,
    environment: env,
    writable: writableRoots(policy, workspace),
  });
  const visible = rows.map(
    ({ named, rule }): PathRule => ({
      path: named,
      access: 'data',
      required: false,
      reason: `socket ${rule}`,
    }),
  );
  return {
    rules: {
      ...readRules(policy.network, (preset) => hostsOfTool(preset, { home, etc: '/etc', environment: env })),
      sockets: rows,
    },
    found: { rules: visible, env: variables },
    remarks,
  };
}

/** Canonical. */
function writableRoots(
  { filesystem }: Policy,
  workspace: string,
  lookup: PathLookup = createPathLookup(),
): readonly string[] {
  return [
    ...(filesystem.workspaceAccess === 'write' ? [workspace] : []),
    ...(filesystem.tmp === 'host' ? [realPath(tmpdir(), lookup)] : []),
    ...filesystem.rules.flatMap(({ path, access }) => (access === 'write' ? [realPath(path, lookup)] : [])),
  ];
}

async function withHostFindings(
  policy: Policy,
  { home, workspace, env }: From,
  lookup: PathLookup,
  host: HostFindings,
): Promise<Policy> {
  const named = withTopDirectories(policy);
  const caches = named.network.mode === 'off' ? packageCaches(home, ownCaches(named, workspace)) : NOTHING;
  // A thread of the addon walks it while this one looks at the rest. None of its rules opens programs.
  const system = named.filesystem.system === 'listed' ? [] : host.systemTree(workspace);
  const chains = installedToolChains(home);
  const { secret } = named.filesystem;
  const { rules } = [caches, chains].reduce(withFound, named).filesystem;
  const programs = host.programsOnPath({ home, workspace, secret, env }, rules, lookup);
  return [{ rules: await system, env: {} }, caches, chains, { rules: programs, env: {} }].reduce(
    withFound,
    named,
  );
}

/** `/` stands for what lies in it: mounted as a whole it would leave no room for what is a command's own. */
function withTopDirectories(policy: Policy): Policy {
  const { rules, tmp } = policy.filesystem;
  const own = ['proc', 'sys', 'dev', ...(tmp === 'host' ? [] : ['tmp'])];
  const inRoot = (rule: PathRule) =>
    readdirSync('/')
      .filter((name) => !own.includes(name))
      .map((name): PathRule => ({ ...rule, path: `/${name}`, required: false }));
  const expanded = rules.flatMap((rule) => (rule.path === '/' ? inRoot(rule) : [rule]));
  return { ...policy, filesystem: { ...policy.filesystem, rules: expanded } };
}

/** The policy's own rules and variables come last: they hold where both speak of the same. */
function withFound(policy: Policy, { rules, env }: Found): Policy {
  const { filesystem, environment } = policy;
  return {
    ...policy,
    filesystem: { ...filesystem, rules: [...rules, ...filesystem.rules] },
    environment: { ...environment, set: { ...env, ...environment.set } },
  };
}

/** Where commands have the user's home they have its settings as well. */
async function settingsFor(
  policy: Policy,
  rules: NetworkRules | undefined,
  { workspace, home, env }: From,
  lookup: PathLookup,
): Promise<CarriedSettings> {
  const { filesystem, network, environment } = policy;
  const real = (path: string) => realPath(path, lookup);
  if (filesystem.home === 'host') return NO_SETTINGS;
  const set = new Set(Object.keys(environment.set).map((name) => name.toLowerCase()));
  const isPassed = (name: string) => set.has(name.toLowerCase()) || isListedVariable(name, environment.pass);
  return carrySettings({
    home,
    machine: '/',
    environment: env,
    // What the policy speaks of is as it says.
    variables: Object.keys(env).filter((name) => !isPassed(name)),
    hasNetwork: network.mode !== 'off',
    reaches: (host, port) =>
      network.mode === 'open' || (rules !== undefined && judgeHost(rules.names, host, port).allowed),
    writable: writableRoots(policy, workspace, lookup),
    // A name that begins a canonical path is canonical, too: then nothing has to be looked up.
    isGranted: (path) =>
      [workspace, ...filesystem.rules.map((rule) => rule.path)].some((root) => isBeneath(path, root)) ||
      filesystem.rules.some((rule) => isBeneath(path, real(rule.path))),
  });
}

function withSettings(policy: Policy, { readable, variables }: CarriedSettings): Policy {
  const rules = readable.map(
    (path): PathRule => ({ path, access: 'data', required: false, reason: CERTIFICATES }),
  );
  return withFound(policy, { rules, env: variables });
}

const CERTIFICATES = 'certificates that settings of the user name';

function realDirectory(path: string, what: string): string {
  const real = isDirectory(path) ? exactRealPath(path, what) : undefined;
  if (real !== undefined) return real;
  throw new SandboxError('workspace.missing', `${what} ${path} is not an existing directory`);
}

function isDirectory(path: string): boolean {
  return orElse(() => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true, false);
}

/** Directories whose content the whole system trusts. */
const SYSTEM_DIRECTORIES = [
  '/usr',
  '/etc',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/proc',
  '/sys',
  '/dev',
  '/boot',
  '/run',
];
/** Directories with everybody's things in them; one level deeper is fine. */
const SHARED_DIRECTORIES = ['/', '/home', '/var', '/var/tmp', '/opt', '/srv', '/mnt', '/media', '/tmp'];

/** Where timers and mail of the system are. */
const OBEYED_IN_SYSTEM = ['/var/spool', '/var/lib/systemd'];

function placesObeyed(home: string, lookup: PathLookup): readonly string[] {
  const realHome = realPath(home, lookup);
  return [...OBEYED_IN_HOME.map((name) => join(realHome, name)), ...OBEYED_IN_SYSTEM];
}

/** The directory around the workspace whose contents trusted programs run or obey; `undefined`: there is none. */
function obeyedPlace(workspace: string, home: string, lookup: PathLookup): string | undefined {
  const realHome = realPath(home, lookup);
  const place = placesObeyed(home, lookup).find((path) => isBeneath(workspace, realPath(path, lookup)));
  if (place !== undefined || !isBeneath(workspace, realHome)) return place;
  // `.git`, `.claude`, … of any project count too, by their whole relative paths: a project may be called `mise` or `.github`.
  const whole = `${workspace.slice(realHome.length)}/`;
  // Claude Code makes worktrees in `.claude/worktrees` and obeys nothing there: only the path within the worktree counts.
  const [outer = ''] = /^.*\/\.claude\/worktrees(?=\/[^/]+\/)/s.exec(whole) ?? [];
  const beneath = whole.slice(outer.length);
  const found = ['.git', ...PROTECTED_PATHS].find((path) => beneath.includes(`/${path}/`));
  return found === undefined
    ? undefined
    : join(realHome, outer, beneath.slice(0, beneath.indexOf(`/${found}/`)), found);
}

function refuseUnsafeWorkspace(
  workspace: string,
  home: string,
  temporaryParent: string,
  lookup: PathLookup,
): void {
  const obeyed = obeyedPlace(workspace, home, lookup);
  if (obeyed !== undefined)
    throw new SandboxError(
      'workspace.unsafe',
      `${workspace} lies in ${obeyed}, from which something trusted runs or obeys files, and cannot be the workspace; choose a project directory with the option workspace`,
    );
  const system = SYSTEM_DIRECTORIES.find((directory) => isBeneath(workspace, directory));
  const shared = [...SHARED_DIRECTORIES, temporaryParent].includes(workspace);
  // By where it leads, also if it is not there yet: HOME may be a link.
  const holdsHome = isBeneath(lookup.resolve(home).canonical, workspace);
  if (system === undefined && !shared && !holdsHome) return;
  const what =
    holdsHome && workspace !== '/' ? 'holds the whole home directory' : 'belongs to the whole system';
  throw new SandboxError(
    'workspace.unsafe',
    `${workspace} ${what} and cannot be the workspace; choose a project directory with the option workspace`,
  );
}

/** Rules and variables for what is found on this host. */
interface Found {
  readonly rules: readonly PathRule[];
  readonly env: Readonly<Record<string, string>>;
}

const NOTHING: Found = { rules: [], env: {} };

function installedToolChains(home: string): Found {
  const rules: PathRule[] = [];
  const env: Record<string, string> = {};
  // One look for what most homes have few of.
  const names = new Set(orElse(() => readdirSync(home), []));
  for (const chain of TOOL_CHAINS) {
    const path = resolve(home, chain.path);
    if (!names.has(chain.path.split('/', 1)[0] ?? '') || !isDirectory(path)) continue;
    rules.push({ path, access: 'read', required: false, reason: chain.reason });
    for (const [name, value] of Object.entries(chain.env ?? {})) env[name] = value.replace('{}', path);
  }
  return { rules, env };
}

/** Tools for which the workspace's commands have filled their own cache and find it in their home. */
function ownCaches({ filesystem }: Policy, workspace: string): readonly string[] {
  const { cache, home, workspaceAccess } = filesystem;
  const isKept = cache === 'workspace' && home === 'private' && workspaceAccess === 'write';
  return isKept && hasNpmCache(cacheDirectoryOf(workspace)) ? ['npm'] : [];
}

function packageCaches(home: string, own: readonly string[]): Found {
  const rules: PathRule[] = [];
  const env: Record<string, string> = { ...OFFLINE_ENVIRONMENT };
  for (const cache of PACKAGE_CACHES) {
    const path = resolve(home, cache.path);
    if (!isDirectory(path) || own.includes(cache.tool)) continue;
    const { reason, shownAs } = cache;
    rules.push({
      path,
      access: 'data',
      required: false,
      reason,
      ...(shownAs === undefined ? {} : { shownAs }),
    });
    for (const [name, value] of Object.entries(cache.env)) env[name] = value.replace('{home}', home);
  }
  return { rules, env };
}
