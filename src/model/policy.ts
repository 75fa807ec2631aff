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

/** Resource limits; a missing one is left as the launcher has it. Bytes, unless said. */
export interface ResourceLimits {
  readonly coreSize?: number;
  /** Count of processes and threads of the user, not of the command (RLIMIT_NPROC). */
  readonly processes?: number;
  readonly openFiles?: number;
  readonly fileSize?: number;
  readonly addressSpace?: number;
  /** Seconds of CPU time per process. */
  readonly cpuSeconds?: number;
}

/** The effective policy of one sandbox: profile, policy files and options merged. */
export interface Policy {
  readonly profile: string;
  readonly filesystem: {
    readonly rules: readonly PathRule[];
    /** Relative to the workspace: what trusted tools execute later; not writable even inside it. */
    readonly protected: readonly string[];
    /** Absolute: shown as a file that exists and is refused, so that programs say so. */
    readonly masked: readonly string[];
    readonly workspaceAccess: 'read' | 'write';
    readonly tmp: Sharing;
    readonly home: Sharing;
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
    /** Bytes kept of each output stream. */
    readonly outputBytes: number;
    /** Between SIGTERM and SIGKILL. */
    readonly killGraceMs: number;
    /** Left as the launcher has it if undefined. */
    readonly umask?: number;
  };
  readonly demand: Readonly<Partial<Record<ControlId, Demand>>>;
}
