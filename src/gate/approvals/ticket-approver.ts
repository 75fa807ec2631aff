import type { ApprovalAnswer, ApprovalRequest } from '../../model/approval.ts';
import type { ApprovalStore } from '../state/state.ts';

const TICKET = 'approval ticket';

const refused = (detail: string): ApprovalAnswer => ({
  approved: false,
  reason: 'failed',
  by: TICKET,
  detail,
});

/**
 * Answers with what was approved beforehand: for exactly the request that the ticket was made for, once, and before it
 * expires. Where anything differs the ticket stays as it is, for the command that it belongs to.
 */
export async function answerByTicket(
  approvals: ApprovalStore,
  id: string,
  request: ApprovalRequest,
): Promise<ApprovalAnswer> {
  const found = await approvals.find(id);
  if (found === undefined || found.request.principal !== request.principal)
    return refused('there is no such approval');
  if (found.request.fingerprint !== request.fingerprint || found.request.session !== request.session)
    return refused(
      'what was approved is not what would run: another command, or something behind it has changed',
    );
  return (await approvals.take(id)) ?? refused('nobody has approved it');
}
