import type { BackendId } from './backend.ts';
import type { Autonomy, Verdict } from './decision.ts';
import type { ControlId, Demand } from './enforcement-report.ts';

/**
 * What a command may do with a path and everything beneath it. `data`: read; `read`: read and execute;
 * `write`: everything; `device`: read and write a device node.
 */
export type PathAccess = 'data' | 'read' | 'write' | 'device';

/** One path that the command may use. */
export interface PathRule {
  /** Absolute; need not be canonical. */
  readonly path: string;
  readonly access: PathAccess;
  /** A missing path is an error; otherwise it is left out. */
  readonly required: boolean;
  /** Why it is there, for people. */
  readonly reason: string;
}

/** `host`: the real one is shared with the command; `private`: a directory that lives as long as the command. */
export type Sharing = 'private' | 'host';

/** Limits of each process; a missing one is left as the launcher has it. Bytes, unless said. */
export interface ProcessLimits {
  readonly coreSize?: number;
  /** Count of processes and threads of the user, not of the command (RLIMIT_NPROC). */
  readonly userProcesses?: number;
  readonly openFiles?: number;
  readonly fileSize?: number;
  readonly addressSpace?: number;
}

/** Limits of a command with everything that it starts; a missing one is none, unless said. */
export interface TreeLimits {
  /** Bytes. Missing: four fifths of the memory of the host. */
  readonly memory?: number;
  /** Count of processes and threads. */
  readonly processes?: number;
  /** Processor time in seconds. */
  readonly cpuSeconds?: number;
  /** Bytes in the private directories: temporary files, home, shared memory. */
  readonly tmpBytes?: number;
}

export type ResourceLimits = ProcessLimits & TreeLimits;

/** A rule of the operator's own: it asks or refuses; that strictest wins makes an allowing one pointless. */
export interface CommandRule {
  /** Name of the program, `*` stands for anything; compared with the last part of what is run. */
  readonly program: string;
  /** Patterns that its words must match in this order; others may stand between. */
  readonly words: readonly string[];
  readonly verdict: Exclude<Verdict, 'allow'>;
  /** Said to whoever is refused or asked. */
  readonly reason: string | undefined;
}

/** Who answers what the policy asks. */
export const APPROVERS = ['terminal', 'queue', 'nobody'] as const;
export type ApproverName = (typeof APPROVERS)[number];

/** An ES module that is asked about tools. */
export interface HookPlugin {
  /** Absolute. */
  readonly path: string;
  /** Hexadecimal; `undefined`: only its owner may be able to write the file. */
  readonly sha256: string | undefined;
}

/** Who looks at a command of a tainted session. */
export type ReviewerSettings =
  | { readonly kind: 'command'; readonly argv: readonly [string, ...string[]] }
  | {
      readonly kind: 'model';
      readonly model: string;
      /** `undefined`: the SDK's own. */
      readonly baseUrl: string | undefined;
      readonly keyVariable: string;
      readonly maxTokens: number;
    };

/**
 * What may be kept of one output stream: shown in the worst way, as escapes of seven characters for two bytes, it still is a
 * string that JavaScript can have.
 */
export const MAX_OUTPUT_BYTES = 128 * 1024 ** 2;

/** The effective policy of one sandbox: profile, policy files and options merged. */
export interface Policy {
  readonly profile: string;
  readonly security: {
    readonly autonomy: Autonomy;
    /** In any 3,600 seconds; 0 blocks everything; `undefined`: no limit. */
    readonly maxActionsPerHour: number | undefined;
  };
  readonly commands: {
    /** The only programs that may run, by name or absolute path; `undefined`: every program. */
    readonly allow: readonly string[] | undefined;
    /** Programs that are refused otherwise. */
    readonly permitDangerous: readonly string[];
    readonly rules: readonly CommandRule[];
  };
  readonly approval: {
    readonly ask: ApproverName;
    /** How long an answer may take. */
    readonly timeoutMs: number;
    /** How long a reviewer may take before the question goes to a person. */
    readonly reviewerTimeoutMs: number;
  };
  /** `undefined`: nobody. */
  readonly reviewer: ReviewerSettings | undefined;
  readonly hooks: {
    /** Push, pull and rebase are refused. */
    readonly gitGuard: boolean;
    readonly plugins: readonly HookPlugin[];
  };
  readonly audit: {
    /** `undefined`: only what the gate server decides. */
    readonly enabled: boolean | undefined;
    /** Whether a command runs whose record cannot be written. */
    readonly onFailure: 'refuse' | 'warn';
    readonly hmacKeyFile: string | undefined;
  };
  readonly unsafe: {
    /** Commands are run without being judged; what contains them is the kernel alone. */
    readonly unjudgedCommands: boolean;
  };
  readonly filesystem: {
    readonly rules: readonly PathRule[];
    /** Relative to the workspace: what trusted tools execute later; not writable even inside it. */
    readonly protected: readonly string[];
    /** Absolute: shown as a file that exists and is refused, so that programs say so. */
    readonly masked: readonly string[];
    /** Absolute: what a command reads of them taints its session. */
    readonly secret: readonly string[];
    readonly workspaceAccess: 'read' | 'write';
    /** `auto`: one of the command's own where the host can, else the host's beside a private $TMPDIR. */
    readonly tmp: Sharing | 'auto';
    readonly home: Sharing;
    /** Of a private home: whether what tools cache is kept for other commands in the same workspace. */
    readonly cache: 'workspace' | 'private';
  };
  readonly network: {
    /** `off`: nothing outside the sandbox; `open`: as the host. */
    readonly mode: 'off' | 'open';
    /** Sockets by path when nothing can keep those of the host out: refuse all, or allow all. */
    readonly unixSockets: 'contained' | 'allowed';
  };
  readonly environment: {
    /** Names passed from the launcher's environment; a `*` at the end matches any rest. */
    readonly pass: readonly string[];
    readonly set: Readonly<Record<string, string>>;
  };
  readonly limits: ResourceLimits & {
    /** Wall clock of one command; 0: none. */
    readonly timeoutMs: number;
    /** How long a command may say nothing; 0: for ever. */
    readonly idleTimeoutMs: number;
    /** Bytes kept of each output stream. */
    readonly outputBytes: number;
    /** Of these, bytes kept of its beginning; the others are of its end. Half, if undefined. */
    readonly outputHeadBytes?: number;
    /** Between SIGTERM and SIGKILL. */
    readonly killGraceMs: number;
    /** Left as the launcher has it if undefined. */
    readonly umask?: number;
  };
  readonly demand: Readonly<Partial<Record<ControlId, Demand>>>;
  readonly sandbox: {
    /** `auto`: the strongest that holds what is required. */
    readonly backend: BackendId | 'auto';
    /** The weakest that may be used; `undefined`: whichever holds what is required. */
    readonly minimum: BackendId | undefined;
    /** The weakest that the operator named: what it cannot hold by its nature is accepted. */
    readonly accepted: BackendId | undefined;
    /** Of `demand`, what a policy file says, and not only the profile. */
    readonly demandedByFiles: readonly ControlId[];
  };
}
