import { isatty } from 'node:tty';
import { viewOf } from '../../approvals/approval-view.ts';
import { presentCommand, presentRequest, scopeSentence } from '../../approvals/presentation.ts';
import { answerRequest, requestOf, watchPending } from '../../approvals/queue.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ApprovalGrant, QueuedRequest } from '../../model/approval.ts';
import type { ApprovalStore, StoredApproval } from '../../model/state.ts';
import { visibleText } from '../../util/visible-text.ts';
import { terminalApprover } from '../shared/ask-here.ts';
import { jsonLine, printError, printOut } from '../shared/print.ts';
import { untilEnded } from '../shared/signals.ts';
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
function requestAsJson({ id, state, createdAt, expiresAt, request }: StoredApproval): QueuedRequest {
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

/** `approvals watch`: until a signal comes. */
export async function watchRequests(store: ApprovalStore, json: boolean): Promise<string> {
  if (!json) printOut('Watching for requests; Ctrl-C ends.\n');
  await untilEnded((over) => (!json && isatty(0) ? askAll(store, over) : tellAll(store, json, over.signal)));
  return '';
}

function tellAll(store: ApprovalStore, json: boolean, signal: AbortSignal): Promise<void> {
  return watchPending(
    store,
    ({ come, gone }) => {
      for (const stored of come) {
        if (json) printOut(jsonLine({ type: 'pending', request: requestAsJson(stored) }));
        else printOut(`\n${describeRequest(stored)}`);
      }
      for (const stored of gone) {
        if (json) printOut(jsonLine({ type: 'settled', id: stored.id, state: stored.state }));
        else printOut(`\n${stored.id}  ${stored.state}\n`);
      }
    },
    { signal },
  );
}

/** Asks about each request, the longest waiting first; gives up on one that is answered elsewhere. */
async function askAll(store: ApprovalStore, over: AbortController): Promise<void> {
  const approver = await terminalApprover(
    () => over.abort(),
    // The commands that are asked about run elsewhere.
    () => true,
  );
  const asked = new Map<string, AbortController>();
  const answers: Promise<void>[] = [];

  async function ask({ id, request, expiresAt }: StoredApproval): Promise<void> {
    const given = new AbortController();
    asked.set(id, given);
    const signal = AbortSignal.any([over.signal, given.signal]);
    const answer = await approver.ask(request, { timeoutMs: Math.max(expiresAt - Date.now(), 0), signal });
    try {
      if (answer.approved) await answerRequest(store, id, answer, 'watch');
      else if (answer.reason === 'denied') await answerRequest(store, id, { approved: false }, 'watch');
      else if (answer.reason === 'nobody') printError(`${id} is not asked about: there is no terminal`);
      else if (answer.reason === 'failed' && !signal.aborted)
        printError(`${id} is not asked about: ${answer.detail ?? 'asking failed'}`);
    } catch (error) {
      // It was answered elsewhere first.
      if (!(error instanceof SandboxError)) throw error;
      printError(error.message);
    }
  }

  try {
    await watchPending(
      store,
      ({ come, gone }) => {
        for (const { id } of gone) asked.get(id)?.abort();
        answers.push(...come.map(ask));
      },
      { signal: over.signal },
    );
  } finally {
    over.abort();
    await Promise.all(answers);
  }
}
