import type { CommandLine, Parsed } from './command-line.ts';
import type { Reach, Taint } from './decision.ts';

/** Counts what was run. The policy only looks; the launch records. */
export interface ActionBudget {
  /** Actions recorded in the last 3,600 seconds. */
  used(): number | Promise<number>;
  /** Called right before a launch. False: the limit was reached in the meantime, and nothing is recorded. */
  record(limit: number): boolean | Promise<boolean>;
}

/** What a reviewer is asked about. */
export interface ReviewRequest {
  readonly line: CommandLine | undefined;
  /** The command as text, for a reviewer that reads. */
  readonly text: string;
  readonly reach: Reach;
  readonly taints: readonly Taint[];
}

/** `clear`: nothing to object to; `flag`: it looks like data leaving or an order obeyed. */
export interface Review {
  readonly outcome: 'clear' | 'flag';
  readonly reason?: string;
}

/** A second pair of eyes, usually a model, for commands of a session that was exposed to something. */
export interface Reviewer {
  review(request: ReviewRequest): Promise<Review>;
}

/** What a git guard or a hook says. */
export interface GuardAnswer {
  readonly allowed: boolean;
  readonly reason?: string;
}

/** Knows what must not happen to a repository. */
export interface GitGuard {
  judge(parsed: Parsed, cwd: string): GuardAnswer | Promise<GuardAnswer>;
}

/** A plug-in that is asked before a tool is used. It may refuse; what was refused before it cannot bring back. */
export interface ToolHook {
  readonly name: string;
  beforeToolUse(
    toolName: string,
    toolInput: Readonly<Record<string, unknown>>,
  ): GuardAnswer | Promise<GuardAnswer>;
}

/** Ports to what has a state or belongs to somebody else. A missing one never makes anything allowed. */
export interface GatePorts {
  readonly budget: ActionBudget | undefined;
  readonly reviewer: Reviewer | undefined;
  readonly gitGuard: GitGuard | undefined;
  readonly hooks: readonly ToolHook[];
  /** Settles with `undefined` if the work takes longer; rejects if the work does. */
  readonly within: <T>(work: Promise<T>, milliseconds: number) => Promise<T | undefined>;
}
