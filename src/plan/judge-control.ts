import type { ControlState } from '../model/enforcement-report.ts';
import type { HostFeatures } from '../model/host-features.ts';
import type { PlannedPath } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import type { Mechanisms } from './mechanisms.ts';

/** What is done with the host's /tmp where commands cannot have their own. */
export type TmpOfHost =
  | { readonly granted: PlannedPath }
  /** Why it is not, in half a sentence. */
  | { readonly refused: string };

/** What a plan met in the workspace that weakens a control. */
export interface WorkspaceFindings {
  /** Symbolic links on the way to protected paths, which a command can replace. */
  readonly replaceableLinks: readonly string[];
  /** Why not all of it is known; `undefined`: it is. */
  readonly shortfall?: string | undefined;
  /** The workspace or its repository is a set-group-ID directory. */
  readonly sharedByGroup?: boolean;
  /** `undefined`: commands have their own, or it is theirs by policy. */
  readonly tmp?: TmpOfHost | undefined;
}

/** What is said about a control. */
type Finding = readonly [state: ControlState, reason: string];
/** Says how a control is held. */
export type Judge = (
  used: Mechanisms,
  policy: Policy,
  features: HostFeatures,
  found: WorkspaceFindings,
) => Finding;

/**
 * The control `descriptors` where Landlock is not used: /proc/self/fd leads to the file itself, outside of every view. A file
 * given as standard input is therefore read by the launcher and arrives through a pipe.
 */
export const REOPENED: Finding = [
  'enforced',
  'only standard input, output and error are handed over; a file given as output or error, not as input, can be opened anew, read and written elsewhere, as far as the user may (needs Landlock)',
];
