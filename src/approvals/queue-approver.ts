import { setTimeout as sleep } from 'node:timers/promises';
import type { ApprovalAnswer, Approver } from '../model/approval.ts';
import type { ApprovalStore } from '../model/state.ts';
import type { MaybePromise } from '../util/promise.ts';

/** How a queue is waited for. */
interface QueueApproverOptions {
  /** How often the store is looked at. */
  readonly pollMs?: number;
  /** Called with the id of each request that waits, so that somebody can be told. */
  readonly onPosted?: (id: string) => void;
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
