import type { Autonomy } from '../model/decision.ts';
import type { CommandRule } from '../model/policy-keys.ts';

/** What keeps a command in while it runs, by the enforcement report: a question about it would be asked for nothing. */
interface Held {
  /** It changes and reads only what the policy gives it. */
  readonly files: boolean;
  /** Nothing outside can be reached: no network, no socket of the host. */
  readonly network: boolean;
  /** Only hosts that the operator listed can be reached, and no socket of the host. */
  readonly listedNetwork?: boolean;
  /** It signals only processes of its own. */
  readonly signals: boolean;
}

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
  /** The home of its user, which a command may name by its path. */
  readonly userHome: string;
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
  readonly held: Held;
  /** What of the policy lets the commands that we run reach outside; `undefined`: nothing, or it is not us who run them. */
  readonly opened: string | undefined;
  /** Writable places outside the workspace that the policy granted: of `writable`, what is not private to a command. */
  readonly granted: readonly string[];
  /** The decision is all that keeps a command in (backend `application`). */
  readonly onlyChecks?: boolean;
}

/**
 * The level that is in force: `contained` counts on the sandbox, and is `supervised` where that holds too little. A way
 * out that the policy opened is no reason for it: what uses the way is asked about.
 */
export function autonomyInForce(
  asked: Autonomy,
  { held, opened }: Pick<RulesOfCommands, 'held' | 'opened'>,
): Autonomy {
  const holds = held.files && (held.network || held.listedNetwork === true || opened !== undefined);
  return asked === 'contained' && !holds ? 'supervised' : asked;
}
