import type { CommandRule } from '../../model/policy.ts';

/** The part of the effective policy that the checks look at. Paths are absolute and canonical. */
export interface RulesOfCommands {
  /** Canonical path of the workspace. */
  readonly workspace: string;
  /** Where the command may write besides the workspace: temporary directory, `filesystem.write`. */
  readonly writable: readonly string[];
  /**
   * Beneath one of `writable`, and yet not there for the command: the surroundings of a workspace that lies in the
   * host's temporary directory, whose place a private one takes.
   */
  readonly hidden: readonly string[];
  /** Where it may read besides these. */
  readonly readable: readonly string[];
  /** Paths that must not be written, even inside the workspace. */
  readonly protected: readonly string[];
  /** What `~` and `$HOME` are for the command. */
  readonly home: string;
  /** `commands.allow`; `undefined`: every program may run. */
  readonly allow: readonly string[] | undefined;
  /** `commands.permit_dangerous`. */
  readonly permitDangerous: readonly string[];
  /** `commands.rules`. */
  readonly own: readonly CommandRule[];
  /** `security.max_actions_per_hour`; `undefined`: no limit. */
  readonly maxActionsPerHour: number | undefined;
  /** Milliseconds that a reviewer may take. */
  readonly reviewerTimeoutMs: number;
  /** True if the kernel keeps the command off the network (the enforcement report says `enforced`). */
  readonly networkOff: boolean;
  /** The decision is all that keeps a command in (backend `application`). */
  readonly onlyChecks?: boolean;
}
