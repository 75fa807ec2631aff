import { setTimeout as sleep } from 'node:timers/promises';
import type { ApprovalStore, StoredApproval } from '../model/state.ts';
import type { MaybePromise } from '../util/promise.ts';

/** What happened since the last look. */
export interface PendingChange {
  /** All that wait now, the longest waiting first. */
  readonly pending: readonly StoredApproval[];
  readonly come: readonly StoredApproval[];
  /** As they are now; not those that were forgotten. */
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
