import { SandboxError } from '../errors/sandbox-error.ts';
import type { ApprovalScope } from '../model/approval.ts';
import type { ApprovalStore, StoredApproval } from '../model/state.ts';
import { visibleText } from '../util/visible-text.ts';

/** What somebody says to a request that waits. */
export type PersonalAnswer =
  | { readonly approved: true; readonly scope: ApprovalScope }
  | { readonly approved: false };

/**
 * The request of an id.
 * @throws {SandboxError} `approval.unknown`.
 */
export async function requestOf(store: ApprovalStore, id: string): Promise<StoredApproval> {
  const found = await store.find(id);
  if (found === undefined) throw unknown(`there is no request ${visibleText(id)}`);
  return found;
}

/**
 * Answers a request that waits, for another process that asked.
 * @throws {SandboxError} `approval.unknown` if it does not wait, `usage.invalid` if it cannot be answered like that; then
 * nothing has changed.
 */
export async function answerRequest(
  store: ApprovalStore,
  id: string,
  answer: PersonalAnswer,
  by: string,
): Promise<StoredApproval> {
  const found = await requestOf(store, id);
  if (answer.approved && answer.scope === 'session' && found.request.session === undefined)
    throw new SandboxError(
      'usage.invalid',
      'the request belongs to no session, so it cannot be approved for one; approve it once, always or not at all',
    );
  const done = await store.answer(
    id,
    answer.approved ? { ...answer, by } : { ...answer, reason: 'denied', by },
  );
  if (!done) throw unknown(`the request ${id} does not wait any more: ${await whatBecameOf(store, id)}`);
  return found;
}

async function whatBecameOf(store: ApprovalStore, id: string): Promise<string> {
  const found = await store.find(id);
  if (found === undefined) return 'it is gone';
  if (found.state === 'abandoned') return 'abandoned, because the process that asked has ended';
  return found.answeredBy === undefined ? found.state : `${found.state} (${visibleText(found.answeredBy)})`;
}

const unknown = (why: string) =>
  new SandboxError('approval.unknown', `${why}; \`sandbox-run approvals list\` shows those that wait`);
