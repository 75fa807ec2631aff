import type { BackendId } from './backend.ts';
import type { ControlId } from './enforcement-report.ts';
import type { PolicyValues } from './policy-keys.ts';

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

/** The effective policy of one sandbox: what all layers say, and what the profile brings that no key says. */
export type Policy = PolicyValues & {
  readonly filesystem: {
    readonly rules: readonly PathRule[];
    /** Absolute: shown as a file that exists and is refused, so that programs say so. */
    readonly masked: readonly string[];
    readonly workspaceAccess: 'read' | 'write';
  };
  readonly sandbox: {
    /** `auto`: the strongest that holds what is required. */
    readonly backend: BackendId | 'auto';
    /** The weakest that the operator named: what it cannot hold by its nature is accepted. */
    readonly accepted: BackendId | undefined;
    /** Of `demand`, what a policy file says, and not only the profile. */
    readonly demandedByFiles: readonly ControlId[];
  };
};

/** The reviewer that a policy names; `undefined`: it names none. */
export function reviewerSettings({ reviewer }: Pick<Policy, 'reviewer'>): ReviewerSettings | undefined {
  const { command, model, baseUrl, keyVariable, maxTokens } = reviewer;
  const [program, ...args] = command ?? [];
  if (program !== undefined) return { kind: 'command', argv: [program, ...args] };
  return model === undefined ? undefined : { kind: 'model', model, baseUrl, keyVariable, maxTokens };
}
