export { ERROR_CODES, type ErrorCode } from './errors/codes.ts';
export { SandboxError } from './errors/sandbox-error.ts';
export type { ListeningSocket } from './host/listening-sockets.ts';
export {
  APPROVAL_SCOPES,
  type ApprovalAnswer,
  type ApprovalOptions,
  type ApprovalPart,
  type ApprovalRequest,
  type ApprovalScope,
  type Approver,
} from './model/approval.ts';
export type {
  AuditRecord,
  AuditSink,
  DecisionRecord,
  EventRecord,
  ResultRecord,
} from './model/audit-record.ts';
export type { BackendId, PassedOver } from './model/backend.ts';
export type { Command } from './model/command.ts';
export type { Autonomy, Decision, Reach, Reason, Risk, Taint, Verdict } from './model/decision.ts';
export type {
  Control,
  ControlId,
  ControlState,
  Demand,
  EnforcementReport,
} from './model/enforcement-report.ts';
export type {
  ExceededLimit,
  ExecutionError,
  ExecutionResult,
  ExecutionResultBase,
  OutputBytes,
  ResourceUsage,
  SpilledOutput,
} from './model/execution-result.ts';
export type {
  ActionBudget,
  GitGuard,
  GuardAnswer,
  HookSession,
  Reservation,
  Review,
  Reviewer,
  ReviewRequest,
  ToolHook,
  ToolInput,
  ToolResult,
} from './model/gate-ports.ts';
export type { LaunchPlan } from './model/launch-plan.ts';
export type { TreeLimits } from './model/policy.ts';
export type { PolicyFile } from './model/policy-keys.ts';
export type { BackgroundJob, JobExit, JobOutput } from './run/jobs.ts';
export {
  type AboutResult,
  type Boundaries,
  boundariesOf,
  messageForModel,
  refusalForModel,
  type StoppedCommand,
} from './run/model-message.ts';
export type { OutputChunk, OutputStream, OutputText } from './run/output/chunk.ts';
export type { OutputReader } from './run/output/feed.ts';
export type { OutputLimits } from './run/output/gap.ts';
export type { RunningCommand } from './run/pending-command.ts';
export { createSandbox, type Sandbox, type StartedCommand } from './run/sandbox.ts';
export type { CheckOptions, CommandCheck } from './run/sandbox-check.ts';
export type {
  ApprovedRequest,
  GateOptions,
  JobOptions,
  RunOptions,
  SandboxOptions,
  SpawnOptions,
  TerminalSize,
} from './run/sandbox-options.ts';
export { type AgentSession, openSession, type SessionOptions } from './run/session.ts';
export type { ShellOptions, ShellSession, TurnOptions, TurnResult } from './run/shell/session-options.ts';
export type { ShellSnapshot } from './run/shell/snapshot.ts';
export type { SandboxProcess, TerminalProcess } from './run/spawn.ts';
