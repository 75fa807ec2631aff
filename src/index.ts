export { ERROR_CODES, type ErrorCode } from './base/errors/codes.ts';
export { SandboxError } from './base/errors/sandbox-error.ts';
export { APPROVAL_SCOPES } from './base/words.ts';
export type {
  BackendId,
  Control,
  ControlId,
  ControlState,
  Demand,
  EnforcementReport,
  PassedOver,
} from './confine/plan/enforcement-report.ts';
export type { LaunchPlan } from './confine/plan/launch-plan.ts';
export type {
  ApprovalAnswer,
  ApprovalOptions,
  ApprovalPart,
  ApprovalRequest,
  ApprovalScope,
  Approver,
} from './model/approval.ts';
export type {
  AuditRecord,
  AuditSink,
  DecisionRecord,
  EventRecord,
  ResultRecord,
} from './model/audit-record.ts';
export type { Command, TemplateValue } from './model/command.ts';
export type { Autonomy, Decision, Reach, Reason, Risk, Taint, Verdict } from './model/decision.ts';
export type {
  ExceededLimit,
  ExecutionError,
  ExecutionResult,
  ExecutionResultBase,
  OutputBytes,
  ResourceUsage,
  SpilledOutput,
  TurnResult,
} from './model/execution-result.ts';
export type {
  ActionBudget,
  GateOptions,
  GitGuard,
  GuardAnswer,
  HookAnswer,
  HookSession,
  Reservation,
  Review,
  Reviewer,
  ReviewRequest,
  ToolHook,
  ToolInput,
  ToolResult,
} from './model/gate-ports.ts';
export type {
  ApprovedRequest,
  CheckOptions,
  CommandLineOptions,
  InputSource,
  JobOptions,
  RunOptions,
  SandboxOptions,
  ShellOptions,
  ShellSnapshot,
  SpawnOptions,
  TerminalSize,
  TreeLimits,
  TurnOptions,
} from './model/options.ts';
export type { OutputChunk, OutputLimits, OutputStream, OutputText } from './model/output.ts';
export type { PolicyFile } from './model/policy-keys.ts';
export type { AgentSession } from './model/session.ts';
export type { SandboxCommandLine } from './run/embed/command-line.ts';
export { CommandError } from './run/launch/command-error.ts';
export type { BackgroundJob, JobExit, JobOutput } from './run/launch/jobs.ts';
export type { RunningCommand } from './run/launch/pending-command.ts';
export type { SandboxProcess, TerminalProcess } from './run/launch/spawn.ts';
export type { OutputReader } from './run/output/feed.ts';
export type { LineOptions, LineReader } from './run/output/lines.ts';
export {
  type AboutResult,
  type Boundaries,
  boundariesOf,
  messageForModel,
  refusalForModel,
  type StoppedCommand,
} from './run/output/model-message.ts';
export type { CommandCheck } from './run/sandbox.ts';
export { createSandbox, type RunTemplate, type Sandbox, type StartedCommand } from './run/sandbox.ts';
export { openSession, type SessionOptions } from './run/session/agent-session.ts';
export type { ShellSession } from './run/session/shell-session.ts';
export type { ListeningSocket } from './workspace/host/listening-sockets.ts';
