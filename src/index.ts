export { ERROR_CODES, type ErrorCode } from './errors/codes.ts';
export { SandboxError } from './errors/sandbox-error.ts';
export type { Autonomy, Decision, Reach, Reason, Risk, Taint, Verdict } from './model/decision.ts';
export type {
  Control,
  ControlId,
  ControlState,
  Demand,
  EnforcementReport,
} from './model/enforcement-report.ts';
export type { Command } from './model/execution-request.ts';
export type { ExecutionError, ExecutionResult, ExecutionResultBase } from './model/execution-result.ts';
export type {
  ActionBudget,
  GitGuard,
  GuardAnswer,
  Review,
  Reviewer,
  ReviewRequest,
  ToolHook,
} from './model/gate-ports.ts';
export type { LaunchPlan } from './model/launch-plan.ts';
export type { PolicyFile } from './policy/schema.ts';
export type { RunningCommand } from './run/pending-command.ts';
export { createSandbox, type Sandbox, type SandboxProcess } from './run/sandbox.ts';
export type { OutputChunk, RunOptions, SandboxOptions, SpawnOptions } from './run/sandbox-options.ts';
