// What has a state or asks others, loaded where a policy asks for it. In dist/ it is a part of its own
// (scripts/build-parts.mjs): most command lines need nothing of it.

export {
  afterToolUse,
  createApprovalDesk,
  createQueueApprover,
  createTerminalApprover,
  loadHooks,
  openAudit,
  openState,
  programAsker,
  requireTrustedProgram,
  reviewerOf,
  sessionEnd,
  sessionStart,
} from '../gate/index.ts';

export { createGitGuard } from '../judge/index.ts';
export { loadAuditKey, readAliases } from '../workspace/index.ts';
