import { answerRequest, type PersonalAnswer } from '../../approvals/answer-request.ts';
import { viewOf } from '../../approvals/approval-view.ts';
import { scopeSentence } from '../../approvals/presentation.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ApprovalStore } from '../../model/state.ts';
import { describeGrant, describeRequest } from './show.ts';

/** `approvals approve` and `approvals deny`: says what was answered. */
export async function answerFromHere(
  store: ApprovalStore,
  id: string,
  answer: PersonalAnswer,
): Promise<string> {
  const stored = await answerRequest(store, id, answer, 'command line');
  const { request } = stored;
  const outcome = answer.approved
    ? `Approved (${answer.scope}). ${scopeSentence(answer.scope, viewOf(request))}`
    : 'Denied.';
  return `${describeRequest(stored)}${outcome}\n`;
}

/** `approvals revoke`: says what is forgotten. */
export async function revokeGrant(store: ApprovalStore, id: string): Promise<string> {
  const grant = (await store.grants()).find((known) => known.id === id);
  if (grant === undefined || !(await store.revoke(id)))
    throw new SandboxError(
      'approval.unknown',
      `there is no grant ${id}; \`sandbox-run approvals grants\` shows them`,
    );
  return `${describeGrant(grant)}Revoked.\n`;
}
