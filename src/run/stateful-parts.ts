// What has a state or asks others, loaded where a policy asks for it. In dist/ it is a file of its own with its compiled
// code beside it, like judgement.ts: most command lines need nothing of it.

export { createApprovalDesk } from '../approvals/desk.ts';
export { createQueueApprover } from '../approvals/queue.ts';
export { createTerminalApprover } from '../approvals/terminal-approver.ts';

export { openAudit } from '../audit/open-audit.ts';
export { afterToolUse, sessionEnd, sessionStart } from '../hooks/events.ts';
export { loadHooks } from '../hooks/load-plugin.ts';
export { requireTrustedProgram } from '../hooks/trusted-file.ts';
export { readAliases } from '../host/git/aliases.ts';
export { loadAuditKey } from '../host/private-file.ts';
export { createGitGuard } from '../programs/git/guard.ts';
export { programAsker } from '../review/command-reviewer.ts';
export { reviewerOf } from '../review/reviewer.ts';
export { openState } from '../state/open-state.ts';
