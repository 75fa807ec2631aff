// What gates are made of where a policy asks for it, loaded then. In dist/ it is a file of its own with its compiled code
// beside it, like judgement.ts: most command lines need nothing of it.
export { loadAuditKey } from '../audit/key.ts';
export { openAudit } from '../audit/open-audit.ts';
export { createApprovalDesk } from '../gate/approvals/desk.ts';
export { createQueueApprover } from '../gate/approvals/queue-approver.ts';
export { createTerminalApprover } from '../gate/approvals/terminal-approver.ts';
export { answerByTicket } from '../gate/approvals/ticket-approver.ts';
export { createGitGuard } from '../gate/git-guard/git-guard.ts';
export { readAliases } from '../gate/git-guard/read-aliases.ts';
export { afterToolUse, sessionEnd, sessionStart } from '../gate/hooks/events.ts';
export { loadHooks } from '../gate/hooks/load-plugin.ts';
export { reviewerOf } from '../gate/reviewer/reviewer.ts';
export { openState } from '../gate/state/open-state.ts';
