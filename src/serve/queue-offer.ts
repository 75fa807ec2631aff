import { errorMessage } from '../base/error-message.ts';
import { answerRequest, type PendingChange, watchPending } from '../gate/index.ts';
import type { ApprovalStore, StoredApproval } from '../model/index.ts';
import type { Client, Conversation, Offer } from './core/offer.ts';
import { QUEUE_LIMITS } from './protocol/limits.ts';
import type { Question } from './protocol/results.ts';
import { wireQuestion } from './sandbox/wire.ts';

/** What waits in the queue, for programs of this user to answer. */
export function queueOffer(store: ApprovalStore, onProblem: (message: string) => void): Offer {
  return {
    limits: QUEUE_LIMITS,
    strangers: false,
    notifications: ['approvals.requested', 'approvals.withdrawn'],
    open: (client) => converse(store, client, onProblem),
    onProblem,
  };
}

function converse(store: ApprovalStore, client: Client, onProblem: (message: string) => void): Conversation {
  const { gone, peer } = client;
  let watching: Promise<void> | undefined;
  const tell = async ({ come, gone: settled }: PendingChange) => {
    for (const request of come) await client.notify('approvals.requested', questionOf(request));
    for (const { id, state } of settled) await client.notify('approvals.withdrawn', { question: id, state });
  };
  const watch = () => {
    watching = watchPending(store, tell, { signal: gone }).catch((error: unknown) => {
      onProblem(`the queue cannot be read: ${errorMessage(error)}`);
      client.end('the queue cannot be read');
    });
  };
  return {
    handlers: {
      'approvals.list': async () => ({ questions: (await store.list('pending')).map(questionOf) }),
      'approvals.answer': async ({ question, approved, scope = 'once' }) => {
        const answer = approved ? { approved, scope } : { approved };
        await answerRequest(store, question, answer, `socket (process ${peer?.pid ?? 'unknown'})`);
        return {};
      },
    },
    begin: ({ approvals }, { afterwards }) => {
      if (approvals === true) afterwards(watch);
      return { approvals: 'queue' };
    },
    close: async () => watching,
  };
}

function questionOf({ id, expiresAt, request }: StoredApproval): Question {
  return wireQuestion(request, { question: id, expiresAt });
}
