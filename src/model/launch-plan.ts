import type { FileRightName, NetworkRightName, ScopeName } from '../kernel/landlock/rights.ts';
import type { SeccompGroupName } from '../kernel/seccomp/groups.ts';
import type { EnforcementReport } from './enforcement-report.ts';
import type { CgroupPlace } from './host-features.ts';
import type { SymbolicLink } from './path-lookup.ts';
import type { PathAccess } from './policy.ts';

/** A canonical path with what the kernel will be told about it. */
export interface PlannedPath {
  readonly path: string;
  readonly access: PathAccess;
  readonly required: boolean;
  readonly reason: string;
}

/** One Landlock rule by name. `path` may be `slot:…` or `shm:` (see the addon's contract). */
export interface PlannedRule {
  readonly path: string;
  /** On a directory; on anything else, those of them that are valid there. */
  readonly rights: readonly FileRightName[];
  readonly required: boolean;
  /** Names an object of the view, not of the host. */
  readonly inView: boolean;
}

/** One object of the view. `bind` shows a host path at the same place. */
export type PlannedViewStep =
  | {
      readonly kind: 'bind';
      readonly source: string;
      readonly target: string;
      readonly writable: boolean;
      readonly device: boolean;
      readonly required: boolean;
      /** Looked at before and after each command: what is protected, whether it exists or not. */
      readonly watched: boolean;
    }
  /** A link is mounted over a file, so that it leads elsewhere and cannot be replaced. */
  | { readonly kind: 'bind-link'; readonly content: string; readonly target: string }
  | { readonly kind: 'symlink'; readonly content: string; readonly target: string }
  | { readonly kind: 'devpts' | 'masked-file' | 'directory'; readonly target: string };

/** Everything that the kernel has to enforce for the commands of one sandbox, by name. */
export interface LaunchPlan {
  readonly workspace: string;
  readonly paths: readonly PlannedPath[];
  /** Absolute paths that are shut for writing where they exist: in the workspace, and this program where it is writable. */
  readonly protectedPaths: readonly string[];
  /** They are, by mounts; false: what commands do to them is undone when they end. */
  readonly shutsInside: boolean;
  /** Links on the way to those, which no mount can hold in place: put back after a command that replaced one. */
  readonly watchedLinks: readonly SymbolicLink[];
  /** Directories beneath `paths` in whose place the command finds nothing: this program's own. They must exist. */
  readonly hiddenPaths: readonly string[];
  /**
   * Files of the workspace of which each command has a copy of its own, at `path`; what it makes of it is looked at before
   * it is taken over.
   */
  readonly copies: readonly { readonly source: string; readonly path: string; readonly shownAs: string }[];
  readonly landlock: {
    /** 0: not used. */
    readonly abi: number;
    readonly handledFile: readonly FileRightName[];
    readonly handledNetwork: readonly NetworkRightName[];
    readonly scoped: readonly ScopeName[];
    readonly rules: readonly PlannedRule[];
  };
  readonly namespaces:
    | {
        readonly user: boolean;
        readonly network: boolean;
        readonly ipc: boolean;
        readonly view: readonly PlannedViewStep[];
      }
    | undefined;
  /** What the network is to be, for backends that make it themselves. */
  readonly network: 'refused' | 'isolated' | 'open';
  /** Links on the way to `paths`, by which programs know them. */
  readonly links: readonly SymbolicLink[];
  /** Empty: no filter. */
  readonly seccompGroups: readonly SeccompGroupName[];
  /** One process of a command at a time may halt others as they exit; else `seccompGroups` says what happens. */
  readonly exitTracing: boolean;
  readonly limits: readonly { readonly name: ResourceLimitName; readonly value: number }[];
  readonly treeLimits: PlannedTreeLimits;
  /** Undefined: the launcher's. */
  readonly umask: number | undefined;
  /** Where the private directories of commands are made. */
  readonly temporaryParent: string;
  /** The same on shared memory; undefined: none. */
  readonly memoryParent: string | undefined;
  /** Private directories of a command, `slot:tmp` and `slot:home` unless the host's are shared. */
  readonly slotDirectories: readonly string[];
  /** Files put into the private home before each command. */
  readonly seedFiles: readonly { readonly path: string; readonly content: string }[];
  readonly cache: PlannedCache;
  /** What the command finds in HOME and TMPDIR. */
  readonly home: string;
  readonly tmp: string;
  readonly report: EnforcementReport;
}

/** What is done with the caches in a private home. */
export type PlannedCache =
  | {
      readonly kind: 'workspace';
      /** Holds `places`, which commands see, and `lock`; canonical. */
      readonly directory: string;
      /** In the private home, where tools look for their caches. */
      readonly links: readonly { readonly path: string; readonly content: string }[];
    }
  | { readonly kind: 'private'; readonly reason: string };

/** Limits of a command with everything that it starts; `undefined`: none. */
export interface PlannedTreeLimits {
  readonly memoryBytes: number | undefined;
  readonly processes: number | undefined;
  readonly cpuSeconds: number | undefined;
  readonly tmpBytes: number | undefined;
  readonly idleTimeoutMs: number | undefined;
  /** Where control groups for commands are made; `undefined`: nowhere, the tree is looked at now and then. */
  readonly cgroup: CgroupPlace | undefined;
}

/** Resource limits by name; the number is known to `kernel/rlimits.ts`. */
export type ResourceLimitName = 'core' | 'nproc' | 'nofile' | 'fsize' | 'as' | 'cpu';
