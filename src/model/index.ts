// What others may import of this house; inside of it, files import each other. Its README says what it is for.

export {
  type ApprovalAnswer,
  ApprovalGrant,
  ApprovalRequest,
  ApprovalScope,
  type Approvals,
  type Approver,
  type PersonalAnswer,
  type ProposedRule,
  QueuedRequest,
  type RuleWriter,
  type WantedConnection,
  WatchedRequest,
} from './approval.ts';
export {
  AuditLine,
  type AuditProblem,
  type AuditRecord,
  type AuditSink,
  type DecisionRecord,
  type EventRecord,
  type ResultRecord,
  StreamVerification,
  type TrailVerification,
  Verification,
} from './audit-record.ts';
export {
  AppliedChanges,
  type Change,
  ChangeCounts,
  ChangeSet,
  ChangeSetDetail,
  type ChangeSetState,
  type Effect,
  type Gone,
  type ObjectKind,
} from './change-set.ts';
export { Command, type JobOrigin, type TemplateValue } from './command.ts';
export type {
  Assignment,
  CommandLine,
  LoopValues,
  NotUnderstoodCode,
  Parsed,
  Redirect,
  SimpleCommand,
  Span,
  StepsOrNot,
  Word,
  WordPart,
} from './command-line.ts';
export { ANY_WORDS, type CommandRule, commandRule, type RuleInFile } from './command-rule.ts';
export {
  Autonomy,
  CheckAnswer,
  Decision,
  forModel,
  type Reach,
  Reason,
  type Risk,
  Taint,
  ToldDecision,
  Verdict,
} from './decision.ts';
export { BESIDE, decisiveReason, isLoss } from './decisive-reason.ts';
export type { Denial } from './denial.ts';
export {
  type AttackedControl,
  type AttackOutcome,
  AttackReport,
  type AttackResult,
  type CgroupFacts,
  DoctorReport,
  type ProcessFacts,
  type ProgramFacts,
  type Remedy,
  type Sysctl,
} from './doctor-report.ts';
export {
  type ExceededLimit,
  ExecutionError,
  ExecutionResult,
  ExecutionResultBase,
  FullRunAnswer,
  FullTurnAnswer,
  OutputBytes,
  type ResourceUsage,
  RunAnswer,
  type SpilledOutput,
  TurnAnswer,
  TurnResult,
} from './execution-result.ts';
export type {
  ActionBudget,
  AskedPlugIns,
  GateOptions,
  GatePorts,
  GitGuard,
  GuardAnswer,
  HookAnswer,
  HookSession,
  NameLookup,
  Reservation,
  Review,
  Reviewer,
  ReviewRequest,
  ToolHook,
  ToolInput,
  ToolResult,
} from './gate-ports.ts';
export { clearAnswer } from './guard-answer.ts';
export type { FleetStore, KeyValue, KeyValueEntry } from './key-value.ts';
export { LeftBehind } from './left-behind.ts';
export type { Connection, PublishedPort } from './network.ts';
export {
  type ApprovedRequest,
  CheckOptions,
  CommandLineOptions,
  type InputSource,
  JobOptions,
  RunOptions,
  SandboxOptions,
  ShellOptions,
  ShellSnapshot,
  SpawnOptions,
  TerminalSize,
  type TreeLimits,
  TurnOptions,
} from './options.ts';
export { maxOutput, type OutputChunk, type OutputLimits, OutputStream, type OutputText } from './output.ts';
export { type Policy, type ReviewerSettings, reviewerSettings } from './policy.ts';
export { fileSchema, policyFileSchema, workspaceFileSchema } from './policy-file.ts';
export {
  type FlagKind,
  NARROWINGS,
  type NetworkMode,
  type PlacedKey,
  type PolicyKey,
  placedKeys,
  TRUST_RISKS,
} from './policy-key.ts';
export {
  type HookPlugin,
  PLACED_KEYS,
  POLICY_KEYS,
  type PolicyFile,
  problemOfHidePattern,
  type SocketGrant,
  UNIX_ENTRY,
  whyNeverTrusted,
} from './policy-keys.ts';
export {
  isLoopback,
  PUBLICATION_FORMS,
  type Publication,
  publicationText,
  readPublication,
} from './publication.ts';
export type { RecordStream, StreamedLines } from './record-stream.ts';
export { RunDefaults } from './run-defaults.ts';
export { ServiceInfo } from './service.ts';
export { type AgentSession, SessionInfo, ShellInfo } from './session.ts';
export type { ApprovalStore, BudgetStore, SessionStore, State, StoredApproval } from './state.ts';
export type { ResolvedStage, ResolvedSteps, Stage, StepPipeline, StepRedirect, Steps } from './steps.ts';
export type {
  LookAtObeyed,
  MadeFiles,
  ObeyedFiles,
  ObeyedState,
  PathSearch,
  ShellFacts,
  Versions,
} from './surroundings.ts';
export type { Facts, Measure, Measured, Telemetry } from './telemetry.ts';
export {
  inputWord,
  isSingle,
  leadingText,
  literalWord,
  mergeLiterals,
  prefixOf,
  tildeParts,
  withInput,
  withoutPrefix,
  wordFrom,
} from './word.ts';

// Types of `confine` that other houses read in values of this one.

export type {
  BackendId,
  ControlId,
  ControlState,
  EnforcementReport,
} from '../confine/plan/enforcement-report.ts';
export type { HostFeatures } from '../confine/plan/host-features.ts';
export type { LaunchPlan, SymbolicLink } from '../confine/plan/launch-plan.ts';
export type { ResolvedPath } from '../confine/plan/path-lookup.ts';
