import type { BackendId, ControlId, Demand } from './enforcement-report.ts';
import type { LaunchPlan, PathAccess, PlannedLayer } from './launch-plan.ts';
import type { NetworkRules } from './network-rules.ts';
import type { PathLookup } from './path-lookup.ts';

/** What commands may use; they reach nothing else. Paths are absolute. Only `workspace` is required. */
export interface Grant extends Partial<Omit<FullGrant, 'workspace' | 'network' | 'limits'>> {
  /** Canonical: where commands work. They may write it, unless `workspaceAccess` is `read`. */
  readonly workspace: string;
  /** May be read, executed, written, and everything in it removed. */
  readonly write?: readonly string[];
  /** May be read and executed. */
  readonly read?: readonly string[];
  /** May be read. */
  readonly data?: readonly string[];
  /** Device nodes that may be read and written. */
  readonly devices?: readonly string[];
  /** Missing: no network, and only those Unix sockets that lie in granted paths. */
  readonly network?: Partial<GrantedNetwork>;
  /** Missing: only the limits that keep the host usable. */
  readonly limits?: Partial<GrantedLimits>;
}

/** A grant with all defaults filled in: the input of a plan. */
export interface FullGrant {
  readonly workspace: string;
  /** As the user named it: its links are kept in the view. */
  readonly workspaceAsNamed: string;
  readonly workspaceAccess: 'read' | 'write';
  /** Paths that commands may use beside the workspace. If two rules name a path, the wider access counts. */
  readonly paths: readonly PathRule[];
  /** Other writable directories that are protected like the workspace. Canonical. */
  readonly beside?: readonly string[];
  /** Paths in the workspace that are read-only because trusted programs run or obey them. They may be missing. */
  readonly readOnlyInside: readonly string[];
  /** Further read-only paths, found by looking for files that programs outside obey. */
  readonly obeyed?: readonly string[];
  /** Why the search for `obeyed` is incomplete; `undefined`: it is complete. */
  readonly shortfall?: string | undefined;
  /** Paths in the repository's git directory that belong to other worktrees, in which people may be working. Canonical. */
  readonly ofOtherWorktrees?: readonly string[];
  /** Files and directories that commands see as empty; `undefined`: none. */
  readonly hidden?: HiddenFiles | undefined;
  /** Paths shown as files that exist and that commands cannot open. */
  readonly masked: readonly string[];
  /** Paths of the launcher or its user, to hide or make read-only; where that is impossible, nothing starts. */
  readonly own: readonly OwnPath[];
  readonly network: GrantedNetwork;
  /** What may be connected to where the network is listed. */
  readonly networkRules?: NetworkRules | undefined;
  readonly home: 'private' | 'host';
  /** The launcher's own home, for grants that share it, and as the place of a private one. */
  readonly hostHome: string;
  /** The home that the user database names; `undefined`: it names none. */
  readonly databaseHome?: string | undefined;
  /** `auto`: private, or the host's where commands cannot have their own. */
  readonly tmp: 'auto' | 'private' | 'host';
  /** Canonical: where private directories are made. */
  readonly temporaryParent: string;
  /** Finds a place for private directories outside /tmp, for commands that can reach /tmp. Canonical. */
  readonly parentBesideTmp?: (() => string | undefined) | undefined;
  /** Makes the lookup of paths for one plan. Default: each path is looked up separately. */
  readonly pathLookup?: (() => PathLookup) | undefined;
  /** By parent directory: the one in it that only this user can use. Missing: private directories are made directly in the parent. */
  readonly privateParents?: ReadonlyMap<string, string> | undefined;
  /** Where private directories on shared memory are made. Canonical; `undefined`: the host has no such directory that we can write to. */
  readonly memoryParent: string | undefined;
  /** Put into the private home before each command: `slot:home/NAME`. */
  readonly seedFiles: LaunchPlan['seedFiles'];
  /** More `seedFiles`, used only where the private home is at the path of the user's own. Appended to a seed file with the same path. */
  readonly seedsOfPlace?: LaunchPlan['seedFiles'] | undefined;
  /** The directory that commands of the workspace share, canonical, with what is in it; or why there is none. */
  readonly cache: SharedDirectory | { readonly reason: string };
  /** Why these commands do not get the cache. */
  readonly noCache?: string | undefined;
  /** Files that commands with a view get as private copies. Canonical. */
  readonly copied?: readonly string[];
  /**
   * For an installer of hooks: the directories that it may write as copies, and where the changed copies are stored. `settingOf`:
   * the core.hooksPath that a configuration file gets from such an installer.
   */
  readonly hooks?:
    | {
        readonly directories: readonly { readonly path: string; readonly kept: string | undefined }[];
        readonly settingOf: (configuration: string) => string;
      }
    | undefined;
  /** Whether the workspace or its repository is a set-group-ID directory, as in checkouts that several people share. */
  readonly sharedByGroup?: boolean;
  /** A copy-on-write layer over the workspace; `undefined`: commands change the workspace itself. */
  readonly layer?: PlannedLayer | undefined;
  /** With `layer`: other writable paths stay writable, and change at once. */
  readonly leavesOpen?: boolean;
  /** For commands that are known to only read: they can write their private directories and nothing else. */
  readonly onlyReads?: boolean;
  readonly limits: GrantedLimits;
  /** Whether system calls are observed, to report denials. */
  readonly explain: 'auto' | 'always' | 'never';
  /** With `explain` `auto`: also observe denied reads. */
  readonly looksAtReads?: boolean;
  /** Report also what commands use, not only what they are denied. */
  readonly tellsUses?: boolean;
}

/** What must be enforced; everything else is enforced as far as the host allows. */
export interface Demands {
  /** A control that is required and not held refuses the confinement. Missing: best effort. */
  readonly controls?: Partial<Readonly<Record<ControlId, Demand>>>;
  /** The one backend that may be used; `auto`: the strongest that holds what is required. */
  readonly backend?: BackendId | 'auto';
  /** No weaker backend than this. */
  readonly minimum?: BackendId | undefined;
  /** The weakest backend that the operator accepts with everything that it cannot enforce. */
  readonly accepted?: BackendId | undefined;
  /** Controls of `controls` that `accepted` does not waive. */
  readonly always?: readonly ControlId[];
}

/** The files to hide, as found at the time of a plan. */
export interface HiddenFiles {
  /** Canonical, none in another: files and directories in whose place commands find nothing. */
  readonly paths: readonly string[];
  /** Of those, files that have further names (hard links) which were not found. */
  readonly elsewhere: readonly string[];
  /** Of `paths`, files that git tracks. Commands cannot open them: git would take an empty file for a change and commit it. */
  readonly tracked?: readonly string[];
}

/** Something that belongs to the launcher, or to the user who runs it. */
export interface OwnPath {
  readonly path: string;
  /**
   * `state`: a directory that no workspace may hold; `settings`: a directory that may be in a workspace, if a person works
   * on settings; `policy`: a file that is obeyed; `program`: what runs unconfined when this program is started again; `private`: a
   * directory with private directories of commands, which only a view can hide.
   */
  readonly kind: 'state' | 'settings' | 'policy' | 'program' | 'private';
  /** A file that has other names (hard links): shutting this name does not stop writes by another name. */
  readonly hasOtherNames?: boolean;
}

/** Where the commands of a workspace keep what their tools cache. */
export interface SharedDirectory {
  readonly directory: string;
  readonly places: readonly { readonly name: string; readonly path: string }[];
}

export interface GrantedNetwork {
  /** `listed`: what `networkRules` allow, by way of a supervisor. */
  readonly mode: 'off' | 'listed' | 'open';
  readonly unixSockets: 'contained' | 'allowed';
  /** The listed hosts as the report words them; `networkRules` is what is enforced. */
  readonly allow: readonly string[];
  readonly unlisted: 'deny' | 'ask';
  readonly verify: 'none' | 'sni';
}

/** `undefined`: there is no such limit. */
export interface GrantedLimits {
  /** Bytes that all processes of a command may use together. */
  readonly memory: number | undefined;
  /** Processes and threads of a command. */
  readonly processes: number | undefined;
  /** Seconds of processor time of all processes of a command. */
  readonly cpuSeconds: number | undefined;
  /** Bytes in private directories. */
  readonly tmpBytes: number | undefined;
  /** Milliseconds without output; 0: no limit. */
  readonly idleTimeoutMs: number;
  readonly umask: number | undefined;
  /** This limit and the next three hold for each process, in the units of setrlimit(2). */
  readonly userProcesses: number | undefined;
  readonly openFiles: number | undefined;
  readonly fileSize: number | undefined;
  readonly addressSpace: number | undefined;
}

/** One path that the command may use. */
export interface PathRule {
  /** Absolute; need not be canonical. */
  readonly path: string;
  readonly access: PathAccess;
  /** A missing path is an error; otherwise it is left out. */
  readonly required: boolean;
  /** Why it is there, for people. */
  readonly reason: string;
  /** Canonical absolute paths beneath `path` that this rule does not grant; another rule may. */
  readonly except?: readonly string[];
  /** The largest subtrees without an exception. Backends that cannot exclude a path from a tree (Landlock) grant these instead of `path`. */
  readonly parts?: readonly string[];
  /** Paths beneath `path` that this rule grants too, so that they need no rule: not links, not exceptions. */
  readonly covers?: ReadonlySet<string>;
  /** The path at which commands with a view find it; `undefined`: its own path. */
  readonly shownAs?: string;
}

const NO_LIMITS: GrantedLimits = {
  memory: undefined,
  processes: undefined,
  cpuSeconds: undefined,
  tmpBytes: undefined,
  idleTimeoutMs: 0,
  umask: undefined,
  userProcesses: undefined,
  openFiles: undefined,
  fileSize: undefined,
  addressSpace: undefined,
};

const OFFLINE: GrantedNetwork = {
  mode: 'off',
  unixSockets: 'contained',
  allow: [],
  unlisted: 'deny',
  verify: 'none',
};

/** Fills in the defaults of a grant, which allow the least. `host`: values that only the host can give. */
export function fullGrant(
  { write, read, data, devices, ...grant }: Grant,
  host: Pick<FullGrant, 'hostHome' | 'temporaryParent' | 'memoryParent'>,
): FullGrant {
  const rules = (access: PathAccess, paths: readonly string[] = []): readonly PathRule[] =>
    paths.map((path) => ({ path, access, required: true, reason: 'granted' }));
  return {
    ...host,
    workspaceAsNamed: grant.workspace,
    workspaceAccess: 'write',
    readOnlyInside: [],
    masked: [],
    own: [],
    home: 'private',
    tmp: 'auto',
    seedFiles: [],
    cache: { reason: 'the grant has none' },
    explain: 'never',
    ...grant,
    paths: [
      ...(grant.paths ?? []),
      ...rules('write', write),
      ...rules('read', read),
      ...rules('data', data),
      ...rules('device', devices),
    ],
    network: { ...OFFLINE, ...grant.network },
    limits: { ...NO_LIMITS, ...grant.limits },
  };
}
