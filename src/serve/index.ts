// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { type ApprovalServer, PAGE, serveApprovalPage } from './approvals/web/web-server.ts';
export { CommandResult, SentTurn } from './protocol/results.ts';
