// What others may import of this house; inside of it, files import each other. Its README says what it is for.

// Asking people

export { type ApprovalView, type CommandView, type Stake, viewOf } from './approvals/approval-view.ts';
export { createApprovalDesk } from './approvals/desk.ts';
export {
  presentQuestion,
  presentRequest,
  presentRows,
  scopeSentence,
  scopesOf,
  whyOnlyOnce,
} from './approvals/presentation.ts';
export {
  answerRequest,
  createQueueApprover,
  type PendingChange,
  requestOf,
  watchPending,
} from './approvals/queue.ts';
export { type Terminal, type Turn, talkOn, withTerminal } from './approvals/terminal.ts';
export { confirmRuleOn, createTerminalApprover, offeredRule } from './approvals/terminal-approver.ts';

// The audit trail

export { type AuditOptions, type AuditTrail, openAudit } from './audit/open-audit.ts';
export { PATTERNS } from './audit/patterns.ts';
export { linesOf } from './audit/record-line.ts';
export { commandText, objectsOf, parseRecord, type StoredRecord, textOf } from './audit/stored-record.ts';
export { hasTrail, openTrail, type Trail, trailPath } from './audit/trail.ts';
export { verifyStream, verifyTrail } from './audit/verify.ts';

// The pipeline of decisions

export { approvalRequestMaker, givenVariables } from './decide/approval-request.ts';
export type { AskConnection } from './decide/ask-connection.ts';
export { SHELL } from './decide/bash-syntax.ts';
export { createDecider, type Decide, type Decided, decisionOf } from './decide/decide.ts';
export { innerTexts } from './decide/inner-texts.ts';
export type { Judge, JudgeRequest } from './decide/judge.ts';
export { CHECKS_IN_SESSION, isIncomplete, secretAmong } from './decide/judgement.ts';
export {
  type DecisionPorts,
  type DecisionRequest,
  type Objection,
  type ResolvedCommand,
  type Seen,
  type SessionMemory,
  WITHOUT,
} from './decide/ports.ts';
export { createProgramFinder, type ProgramFinder } from './decide/program-finder.ts';
export { decisionAsJson, errorOf, refusalOf, VOID } from './decide/refusal.ts';
export { within } from './decide/time-limit.ts';

// Hooks of plug-ins

export { afterToolUse, type EventLimit, sessionEnd, sessionStart } from './hooks/events.ts';
export { loadHooks } from './hooks/load-plugin.ts';
export { requireTrustedProgram } from './hooks/trusted-file.ts';

// Reviewers

export { programAsker } from './review/command-reviewer.ts';
export { reviewerOf } from './review/reviewer.ts';

// Stored state

export type { Clock } from './state/clock.ts';
export { openState } from './state/open-state.ts';
