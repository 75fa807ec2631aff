import { setTimeout as sleep } from 'node:timers/promises';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { MaybePromise } from '../../base/promise.ts';
import { visibleText } from '../../base/visible-text.ts';
import type {
  ApprovalAnswer,
  ApprovalStore,
  Approver,
  PersonalAnswer,
  StoredApproval,
} from '../../model/index.ts';
import { scopesOf, whyOnlyOnce } from './presentation.ts';

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
  if (answer.approved && !scopesOf(found.request).includes(answer.scope))
    throw new SandboxError(
      'usage.invalid',
      `${visibleText(whyOnlyOnce(found.request) ?? '')}, so it cannot be approved for longer than once`,
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

/** How a queue is waited for. */
interface QueueApproverOptions {
  /** How often the store is looked at. */
  readonly pollMs?: number;
  /** Called with the id of each new request, to notify a person. */
  readonly onPosted?: ((id: string) => void) | undefined;
}

const QUEUE = 'approval queue';

/** Leaves requests in the store and waits until another process answers them: `approvals`, its web page, its socket. */
export function createQueueApprover(
  store: () => MaybePromise<ApprovalStore>,
  { pollMs = 100, onPosted }: QueueApproverOptions = {},
): Approver {
  return {
    async ask(request, { timeoutMs, signal }): Promise<ApprovalAnswer> {
      const queue = await store();
      const end = performance.now() + timeoutMs;
      const id = await queue.post(request, Date.now() + timeoutMs);
      try {
        onPosted?.(id);
        for (;;) {
          if (signal?.aborted === true)
            return { approved: false, reason: 'failed', by: QUEUE, detail: 'nobody waits for it any more' };
          const left = end - performance.now();
          const answer = await queue.take(id);
          if (answer !== undefined) return answer;
          if (left <= 0) return { approved: false, reason: 'expired', by: QUEUE };
          await sleep(Math.min(pollMs, left), undefined, signal === undefined ? {} : { signal }).catch(
            () => {},
          );
        }
      } finally {
        // Without effect on what was taken. An answer that comes later must find nothing.
        await queue.withdraw(id);
      }
    },
  };
}

/** What happened since the last look. */
export interface PendingChange {
  /** All that wait now, the longest waiting first. */
  readonly pending: readonly StoredApproval[];
  readonly come: readonly StoredApproval[];
  /** Requests that no longer wait, in their present state; without expired ones. */
  readonly gone: readonly StoredApproval[];
}

/** How the store is watched. */
interface WatchOptions {
  readonly signal: AbortSignal;
  readonly pollMs?: number;
}

/**
 * Tells of requests as they come and go: the first time at once, whatever there is, later when something changed. Ends
 * with the signal; rejects if the store cannot be used.
 */
export async function watchPending(
  store: ApprovalStore,
  onChange: (change: PendingChange) => MaybePromise<void>,
  { signal, pollMs = 200 }: WatchOptions,
): Promise<void> {
  let known: readonly StoredApproval[] | undefined;
  while (!signal.aborted) {
    const pending = await store.list('pending');
    const ids = new Set(pending.map(({ id }) => id));
    const before = new Set(known?.map(({ id }) => id));
    const come = pending.filter(({ id }) => !before.has(id));
    const left = (known ?? []).filter(({ id }) => !ids.has(id));
    if (known === undefined || come.length > 0 || left.length > 0) {
      const gone = await Promise.all(left.map(async ({ id }) => store.find(id)));
      await onChange({ pending, come, gone: gone.filter((found) => found !== undefined) });
    }
    known = pending;
    await sleep(pollMs, undefined, { signal }).catch(() => {});
  }
}
