import { viewOf } from '../../approvals/approval-view.ts';
import { presentCommand, presentRequest, scopeSentence } from '../../approvals/presentation.ts';
import { requestOf } from '../../approvals/queue.ts';
import type { ApprovalGrant, QueuedRequest } from '../../model/approval.ts';
import type { ApprovalStore, StoredApproval } from '../../model/state.ts';
import { visibleText } from '../../util/visible-text.ts';
import { jsonLine } from '../shared/print.ts';
import { type Mood, type Paint, paintFor } from '../shared/style.ts';

/** As wide as the terminal, if it is one. */
const outputWidth = () => ({ columns: process.stdout.columns ?? 100 });

/** `approvals list`. */
export async function listRequests(
  store: ApprovalStore,
  { all, json }: { readonly all: boolean; readonly json: boolean },
): Promise<string> {
  const found = await store.list(all ? 'all' : 'pending');
  if (json) return found.map((stored) => jsonLine(requestAsJson(stored))).join('');
  if (found.length === 0)
    return all ? 'No requests within the last day.\n' : 'Nothing waits for an answer.\n';
  return found
    .map((stored) => `${headOf(stored, paintFor(1))}\n${presentCommand(stored.request, outputWidth())}`)
    .join('\n');
}

/** `approvals show`. */
export async function showRequest(store: ApprovalStore, id: string, json: boolean): Promise<string> {
  const stored = await requestOf(store, id);
  return json ? jsonLine(requestAsJson(stored)) : describeRequest(stored);
}

/** A request as other programs get it. */
export function requestAsJson({ id, state, createdAt, expiresAt, request }: StoredApproval): QueuedRequest {
  return { id, state, createdAt, expiresAt, ...request };
}

/** A request in full. */
export function describeRequest(stored: StoredApproval): string {
  return `${headOf(stored, paintFor(1))}\n${presentRequest(stored.request, outputWidth())}`;
}

const MOODS: Readonly<Record<StoredApproval['state'], Mood>> = {
  pending: 'part',
  approved: 'good',
  denied: 'bad',
  expired: 'plain',
  used: 'good',
  withdrawn: 'plain',
  abandoned: 'plain',
};

function headOf({ id, state, scope, expiresAt, answeredBy }: StoredApproval, paint: Paint): string {
  const name = paint('strong', id);
  if (state === 'pending') {
    const left = Math.max(0, Math.ceil((expiresAt - Date.now()) / 1000));
    return `${name}  ${paint(MOODS[state], 'waits')}, expires in ${left} s`;
  }
  const how = scope === undefined ? state : `${state} (${scope})`;
  return `${name}  ${paint(MOODS[state], how)}${answeredBy === undefined ? '' : `, answered by ${visibleText(answeredBy)}`}`;
}

/** `approvals grants`. */
export async function listGrants(store: ApprovalStore, json: boolean): Promise<string> {
  const grants = await store.grants();
  if (json) return grants.map(jsonLine).join('');
  return grants.length === 0 ? 'Nothing is remembered.\n' : grants.map(describeGrant).join('\n');
}

/** A grant in full. */
export function describeGrant({ id, scope, grantedAt, grantedBy, request }: ApprovalGrant): string {
  const since = `granted ${new Date(grantedAt).toISOString()} by ${visibleText(grantedBy)}`;
  const rule = scopeSentence(scope, viewOf(request));
  return `${paintFor(1)('strong', id)}  ${scope}, ${since}\n${rule}\n${presentRequest(request, outputWidth())}`;
}
