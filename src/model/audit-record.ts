import type { ApprovalAnswer } from './approval.ts';
import type { Command } from './command.ts';
import type { Decision } from './decision.ts';
import type { EnforcementReport } from './enforcement-report.ts';
import type { ExceededLimit, ExecutionResult } from './execution-result.ts';
import type { LeftBehind } from './left-behind.ts';

/** What was decided about one request; written, and on the disk, before anything starts. */
export interface DecisionRecord {
  readonly type: 'decision';
  /** Unique; the result of the same request has it too. */
  readonly request: string;
  readonly principal: string;
  readonly session: string | undefined;
  readonly command: Command;
  readonly cwd: string;
  /** `undefined`: commands are not judged (`unsafe.unjudged_commands`). */
  readonly decision: Decision | undefined;
  /** Undefined: no person was asked. */
  readonly approval: ApprovalAnswer | undefined;
  /** What follows: the command is launched, a container is told that it may run it, or the code of why not. */
  readonly outcome: 'launch' | 'allow' | string;
  readonly profile: string;
  readonly backend: string;
  readonly report: EnforcementReport;
  /** Files that the command names, canonical, as far as its text tells; missing if it was not looked at. */
  readonly files?: { readonly writes: readonly string[]; readonly executes: readonly string[] };
}

/** How a command that was launched ended. */
export interface ResultRecord {
  readonly type: 'result';
  readonly request: string;
  readonly principal: string;
  readonly session: string | undefined;
  readonly status: ExecutionResult['status'];
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
  /** Stable code, if it could not be started. */
  readonly error: string | undefined;
  /** Missing unless a limit was exceeded. */
  readonly limit?: ExceededLimit;
  /** Missing if there is nothing. */
  readonly leftBehind?: readonly LeftBehind[];
  readonly durationMs: number;
  /** `undefined`: it was not captured. */
  readonly outputBytes: { readonly stdout: number | undefined; readonly stderr: number | undefined };
}

/** Something that happened besides commands: a pattern over several of them, a refused message, a taint. */
export interface EventRecord {
  readonly type: 'event';
  /** Stable, snake_case. */
  readonly code: string;
  readonly principal: string;
  readonly session: string | undefined;
  readonly message: string;
  readonly details: Readonly<Record<string, string | number | boolean>>;
}

export type AuditRecord = DecisionRecord | ResultRecord | EventRecord;

/** Where records go. */
export interface AuditSink {
  /**
   * Settles when a decision is on the disk, and when anything else is written (a power cut can lose the last of those);
   * rejects with a `SandboxError` `audit.failed` if that fails.
   */
  append(record: AuditRecord): Promise<void>;
}
