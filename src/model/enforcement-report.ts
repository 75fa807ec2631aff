import type { BackendId, PassedOver } from './backend.ts';

/**
 * How a control is held: `enforced` as described; `degraded` in part, the reason says what is missing;
 * `unsupported` not at all on this host; `off` because the policy turned it off.
 */
export type ControlState = 'enforced' | 'degraded' | 'unsupported' | 'off';

/** `required`: a host that cannot enforce it refuses to run; `best-effort`: it runs and the report says so. */
export type Demand = 'required' | 'best-effort';

/** The controls, in the order in which they are shown. */
export const CONTROL_IDS = [
  'filesystem',
  'filesystem-view',
  'rename',
  'truncate',
  'metadata',
  'protected-paths',
  'private-tmp',
  'devices',
  'network',
  'unix-sockets',
  'abstract-sockets',
  'signals',
  'process-inspection',
  'syscalls',
  'terminal-injection',
  'privileges',
  'descriptors',
  'environment',
  'process-tree',
  'resource-limits',
] as const;

/** The stable name of one control. */
export type ControlId = (typeof CONTROL_IDS)[number];

/** One line of the report. */
export interface Control {
  readonly id: ControlId;
  readonly state: ControlState;
  readonly demand: Demand;
  /** One sentence: by what it is held, or what is missing. */
  readonly reason: string;
}

/**
 * By what a command's process tree is held together, so that everything that it started ends with it:
 * - `signal-scope` (Landlock ABI 6): the kernel; no process of the tree can leave it.
 * - `subreaper`: a helper process of ours, which finds what descends from it.
 * - `none`: it is not us who run it.
 */
export type ProcessTreeTier = 'signal-scope' | 'subreaper' | 'none';

/** What is really enforced for a command, control by control. */
export interface EnforcementReport {
  /** Which backend runs the command; `none`: it is not us who run it. */
  readonly backend: BackendId | 'none';
  /** Stronger ones that were not used, and why. */
  readonly passedOver: readonly PassedOver[];
  /** The Landlock ABI in use; 0 if there is none. */
  readonly landlockAbi: number;
  readonly processTree: ProcessTreeTier;
  readonly controls: readonly Control[];
}
