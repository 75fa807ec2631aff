import type { ErrorCode } from '../errors/codes.ts';
import type { ApprovalAnswer } from '../model/approval.ts';
import type { DecisionRecord, ResultRecord } from '../model/audit-record.ts';
import type { Command } from '../model/command.ts';
import type { Decision } from '../model/decision.ts';
import type { ExecutionResult } from '../model/execution-result.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { CommandEffects } from '../policy/effects.ts';

/** Whose request a record is about. */
export interface RecordedRequest {
  /** Unique. */
  readonly request: string;
  readonly principal: string;
  readonly session: string | undefined;
}

/** What became of a request before it was launched, or was not. */
export interface RecordedDecision {
  readonly command: Command;
  readonly cwd: string;
  readonly decision: Decision | undefined;
  readonly approval: ApprovalAnswer | undefined;
  readonly effects: CommandEffects | undefined;
  readonly outcome: 'launch' | 'canceled' | ErrorCode;
}

/** The record of a decision about a command of one sandbox. */
export function decisionRecord(
  about: RecordedRequest,
  { effects, ...decided }: RecordedDecision,
  { report }: LaunchPlan,
  profile: string,
): DecisionRecord {
  return {
    type: 'decision',
    ...about,
    ...decided,
    profile,
    backend: report.backend,
    report,
    files: { writes: effects?.writes ?? [], executes: effects?.executes ?? [] },
  };
}

/** The record of how it ended. */
export function resultRecord(about: RecordedRequest, result: ExecutionResult): ResultRecord {
  const { status, exitCode, signal, error, durationMs, outputBytes, limit, leftBehind } = result;
  return {
    type: 'result',
    ...about,
    status,
    exitCode,
    signal,
    error: error?.code,
    ...(limit === undefined ? {} : { limit }),
    ...(leftBehind.length === 0 ? {} : { leftBehind }),
    durationMs,
    outputBytes,
  };
}
