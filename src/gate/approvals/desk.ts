import type { ApprovalAnswer, ApprovalRequest, Approver } from '../../model/approval.ts';
import type { ApprovalStore, MaybePromise } from '../state/state.ts';

export interface ApprovalDesk {
  decide(request: ApprovalRequest, signal?: AbortSignal): Promise<ApprovalAnswer>;
}

/** stub until merged */
export function createApprovalDesk(parts: {
  readonly store: () => MaybePromise<ApprovalStore>;
  readonly approver: Approver | undefined;
  readonly timeoutMs: number;
}): ApprovalDesk {
  return {
    async decide(request, signal) {
      const store = await parts.store();
      const grant = await store.granted(request);
      if (grant !== undefined) return { approved: true, scope: grant.scope, by: 'remembered' };
      if (parts.approver === undefined) return { approved: false, reason: 'nobody', by: 'nobody' };
      const answer = await parts.approver.ask(request, {
        timeoutMs: parts.timeoutMs,
        ...(signal === undefined ? {} : { signal }),
      });
      if (answer.approved && answer.scope !== 'once') await store.grant(request, answer.scope, answer.by);
      return answer;
    },
  };
}
