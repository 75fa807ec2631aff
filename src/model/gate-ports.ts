import type { Approver } from './approval.ts';
import type { AuditSink } from './audit-record.ts';
import type { CommandLine, Parsed } from './command-line.ts';
import type { Reach, Taint } from './decision.ts';
import type { HookPlugin } from './policy-keys.ts';

/** Counts what was run. The policy only looks; the launch reserves, and commits once something started. */
export interface ActionBudget {
  /** Actions of the last 3,600 seconds, reserved ones included. */
  used(): number | Promise<number>;
  /**
   * Called right before a launch; at most `limit` actions are ever reserved or committed within 3,600 seconds, whichever process
   * else counts at the same time. `undefined`: the limit is reached, and nothing is recorded.
   */
  reserve(limit: number): Reservation | undefined | Promise<Reservation | undefined>;
}

/** One action that is about to happen. One that is neither committed nor released counts. */
export interface Reservation {
  /** Something started. */
  commit(): void | Promise<void>;
  /** Nothing started: the action is given back. */
  release(): void | Promise<void>;
  /** Settles when a power cut cannot take it back any more: nothing starts before. Missing: it is so already. */
  readonly durable?: Promise<void> | undefined;
  /** One sentence, where it is not counted and the policy accepts that. */
  readonly warning?: string | undefined;
}

/** What a reviewer is asked about. */
export interface ReviewRequest {
  readonly line: CommandLine | undefined;
  /** The command as text, for a reviewer that reads. */
  readonly text: string;
  readonly reach: Reach;
  readonly taints: readonly Taint[];
}

/**
 * `clear`: nothing to object to; `flag`: it looks like data leaving or an order obeyed; `unclear`: no answer that could
 * be used, so that a person has to decide.
 */
export interface Review {
  readonly outcome: 'clear' | 'flag' | 'unclear';
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

/** What a plug-in may answer, too: the forms of other gates. `{}` is no objection; anything else that is not clear refuses. */
export type HookAnswer =
  | GuardAnswer
  | { readonly decision: 'allow' | 'deny'; readonly reason?: string }
  | Readonly<Record<string, never>>;

/** Knows what must not happen to a repository. */
export interface GitGuard {
  /** `text`: the line as it was given, for one that was not understood. */
  judge(parsed: Parsed, cwd: string, text?: string): GuardAnswer | Promise<GuardAnswer>;
}

/** The addresses of a name, and for how many seconds they are good; none: there is no such host. */
export type NameLookup = (
  name: string,
) => Promise<{ readonly addresses: readonly string[]; readonly ttl: number }>;

/** What hooks are told about a tool. */
export type ToolInput = Readonly<Record<string, unknown>>;

/** What hooks are told after a tool was used. */
export interface ToolResult {
  readonly status: string;
  readonly exitCode: number | undefined;
  readonly durationMs: number;
}

/** What hooks are told about the session of an agent. */
export interface HookSession {
  readonly id: string;
  readonly principal: string;
}

/**
 * A plug-in that is asked before a tool is used. It may refuse; what was refused before it cannot bring back: it is asked
 * after the built-in checks, and the first that refuses ends the round. `sessionStart` may refuse a session in the same
 * way. The other events only tell it something: what goes wrong there becomes a warning. It runs in the launcher's
 * process with the launcher's rights, so that it has to be as trustworthy as the policy that names it.
 */
export interface ToolHook {
  readonly name: string;
  /**
   * `toolName`: the agent's own name of its tool (`Bash`, `shell`, `run_shell_command`), or `run_command` where it is not known.
   * `toolInput`: `command`, `cwd` and our name of the tool, `tool`. Asked once for each command, and not about what is refused.
   */
  beforeToolUse(toolName: string, toolInput: ToolInput): HookAnswer | Promise<HookAnswer>;
  afterToolUse?(toolName: string, toolInput: ToolInput, result: ToolResult): void | Promise<void>;
  sessionStart?(session: HookSession): HookAnswer | Promise<HookAnswer>;
  sessionEnd?(session: HookSession): void | Promise<void>;
}

/** Ports to what has a state or belongs to the application. A missing port never makes anything allowed. */
export interface GatePorts {
  readonly budget: ActionBudget | undefined;
  readonly reviewer: Reviewer | undefined;
  readonly gitGuard: GitGuard | undefined;
  readonly hooks: readonly ToolHook[];
  /** Settles with `undefined` if the work takes longer; rejects if the work does. */
  readonly within: <T>(work: Promise<T>, milliseconds: number) => Promise<T | undefined>;
}

/** A question to the plug-ins of a policy, and who asks: their answer is valid for nothing else. */
export interface AskedPlugIns {
  readonly tool: string;
  readonly command: unknown;
  readonly cwd: unknown;
  readonly principal: string;
  readonly session: string | undefined;
  readonly plugins: readonly HookPlugin[];
}

/** Parts of the gate that an application brings itself. */
export interface GateOptions extends Partial<Omit<GatePorts, 'within'>> {
  /**
   * Who answers what the policy asks, wherever it asks; only `ask: 'nobody'` keeps it from being asked. Read at each
   * question, so that a getter may answer when it is known who there is.
   */
  readonly approver?: Approver | undefined;
  /** Who answers where the policy asks on the terminal; a library has none. */
  readonly terminal?: Approver;
  /** Told the id of each request that waits in the queue. */
  readonly onQueued?: (id: string) => void;
  /**
   * Finds the addresses of a host whose name a command may know (`network.mode = "listed"`). Default: as programs of this
   * machine do. What it finds is held against the policy all the same.
   */
  readonly lookup?: NameLookup;
  /** @internal Around each wait for an answer. */
  readonly asking?: <T>(wait: () => Promise<T>) => Promise<T>;
  /** Where decisions and results are recorded. */
  readonly audit?: AuditSink;
  /** @internal For one command that was approved beforehand: what stood in its request for what cannot be known. */
  readonly once?: string;
  /** @internal Whether a hook has asked the plug-ins of the policy already, and none objected. */
  readonly pluginsAsked?: (asked: AskedPlugIns) => Promise<boolean>;
}
