// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { type ApprovalRequest, type PersonalAnswer, QueuedRequest } from './approval.ts';
export type { AuditRecord } from './audit-record.ts';
export type { Change } from './change-set.ts';
export type { CommandLine, Parsed, SimpleCommand, Word } from './command-line.ts';
export type { Autonomy, Decision, Reason, Taint, Verdict } from './decision.ts';
export type { AttackReport, DoctorReport } from './doctor-report.ts';
export type { BackendId, ControlId, ControlState, EnforcementReport } from './enforcement-report.ts';
export { ExecutionResult, TurnResult } from './execution-result.ts';
export { type FleetResult, type FleetRunOptions, JobMessage, Label } from './fleet.ts';
export type { HostFeatures } from './host-features.ts';
export type { LaunchPlan, SymbolicLink } from './launch-plan.ts';
export type { LeftBehind } from './left-behind.ts';
export type { Policy } from './policy.ts';
export type { PolicyFile } from './policy-keys.ts';
export type { State } from './state.ts';
export type { PathSearch, ResolvedPath } from './surroundings.ts';
export { AUTONOMIES, BACKEND_IDS, CONTROL_IDS, VERDICTS } from './words.ts';
