import { signalName } from '../kernel/errno.ts';
import type { ApprovalAnswer } from '../model/approval.ts';
import type { Decision } from '../model/decision.ts';
import type { EnforcementReport } from '../model/enforcement-report.ts';
import type { ExecutionError, ExecutionResult, ExecutionResultBase } from '../model/execution-result.ts';
import type { NativeOutcome } from '../native/contract.ts';
import {
  describeExceeded,
  exceededLimit,
  type LimitsOfPlan,
  NOTHING_USED,
  usageOf,
} from './exceeded-limit.ts';
import { describeFailure } from './failure.ts';

/** What is known about a run before it ends. */
export interface RunContext {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly warnings: readonly string[];
  readonly report: EnforcementReport;
  readonly decision: Decision | undefined;
  readonly approval: ApprovalAnswer | undefined;
}

/** What was found in the workspace after the run. */
export interface AfterRun {
  readonly createdProtectedPaths: readonly string[];
  readonly warnings: readonly string[];
}

/** What there is to find after almost every run. */
export const NOTHING_CHANGED: AfterRun = { createdProtectedPaths: [], warnings: [] };

/** Output kept by this process instead of the addon. */
export interface KeptOutput {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
}

/** The result of a command that was launched. `isCaptured`: its output came through us. */
export function classify(
  context: RunContext,
  outcome: NativeOutcome,
  after: AfterRun,
  limits: LimitsOfPlan,
  kept?: KeptOutput,
  isCaptured = true,
): ExecutionResult {
  const stdout = kept?.stdout ?? outcome.stdout;
  const stderr = kept?.stderr ?? outcome.stderr;
  const base: ExecutionResultBase = {
    argv: context.argv,
    cwd: context.cwd,
    report: context.report,
    decision: context.decision,
    approval: context.approval,
    stdout: decode(stdout),
    stderr: decode(stderr),
    truncated: {
      stdout: outcome.stdoutBytes - (stdout?.length ?? 0),
      stderr: outcome.stderrBytes - (stderr?.length ?? 0),
    },
    outputBytes: {
      stdout: isCaptured ? outcome.stdoutBytes : undefined,
      stderr: isCaptured ? outcome.stderrBytes : undefined,
    },
    durationMs: outcome.durationMs,
    cpu: { userMs: outcome.userCpuMs, systemMs: outcome.systemCpuMs },
    peakMemoryBytes: peakMemory(outcome),
    usage: usageOf(outcome),
    limit: undefined,
    treeEnded: outcome.treeEnded,
    createdProtectedPaths: after.createdProtectedPaths,
    warnings: after.warnings.length === 0 ? context.warnings : [...context.warnings, ...after.warnings],
  };
  if (outcome.failure !== undefined) {
    return {
      ...base,
      status: 'setup-failed',
      exitCode: undefined,
      signal: undefined,
      error: describeFailure(outcome.failure),
    };
  }
  const signal = outcome.signal === 0 ? undefined : signalName(outcome.signal);
  const limit = exceededLimit(outcome, signal, limits);
  if (limit !== undefined && !outcome.timedOut && !outcome.canceled) {
    return {
      ...base,
      status: 'limit-exceeded',
      exitCode: signal === undefined ? outcome.exitCode : undefined,
      signal,
      limit,
      error: describeExceeded(limit),
    };
  }
  if (outcome.timedOut || outcome.canceled) {
    const status = outcome.timedOut ? 'timed-out' : 'canceled';
    return {
      ...base,
      status,
      exitCode: signal === undefined ? outcome.exitCode : undefined,
      signal,
      error: undefined,
    };
  }
  if (signal !== undefined)
    return { ...base, status: 'signaled', exitCode: undefined, signal, error: undefined };
  return { ...base, status: 'exited', exitCode: outcome.exitCode, signal: undefined, error: undefined };
}

/** The result of a command that never got to the launch. */
export function notStarted(context: RunContext, error: ExecutionError): ExecutionResult {
  return { ...emptyResult(context), status: 'setup-failed', exitCode: undefined, signal: undefined, error };
}

/** The result of a command that was judged and is not run. */
export function denied(context: RunContext, error: ExecutionError): ExecutionResult {
  return { ...emptyResult(context), status: 'denied', exitCode: undefined, signal: undefined, error };
}

/** The result of a command whose signal was aborted before it was launched. */
export function canceledBefore(context: RunContext): ExecutionResult {
  return {
    ...emptyResult(context),
    status: 'canceled',
    exitCode: undefined,
    signal: undefined,
    error: undefined,
  };
}

function emptyResult(context: RunContext): ExecutionResultBase {
  return {
    argv: context.argv,
    cwd: context.cwd,
    stdout: '',
    stderr: '',
    truncated: { stdout: 0, stderr: 0 },
    outputBytes: { stdout: 0, stderr: 0 },
    durationMs: 0,
    cpu: { userMs: 0, systemMs: 0 },
    peakMemoryBytes: undefined,
    usage: NOTHING_USED,
    limit: undefined,
    treeEnded: true,
    createdProtectedPaths: [],
    warnings: context.warnings,
    report: context.report,
    decision: context.decision,
    approval: context.approval,
  };
}

function peakMemory(outcome: NativeOutcome): number | undefined {
  // ru_maxrss of the first process starts at the size of the process it was cloned from (exec_mmap in fs/exec.c).
  return outcome.maxRssKib > outcome.launcherMaxRssKib ? outcome.maxRssKib * 1024 : undefined;
}

function decode(bytes: Uint8Array | undefined): string {
  return bytes === undefined
    ? ''
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}
