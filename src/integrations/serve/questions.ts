import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { ApprovalAnswer, ApprovalScope, Approver } from '../../model/approval.ts';
import type { Client, RequestId } from './client.ts';
import type { Question } from './results.ts';
import type { Turn } from './turns.ts';
import { wireQuestion } from './wire.ts';

/** Who an answer is by, in the audit trail. */
const BY = 'client of serve';

/** The questions that one connection is asked: about its own commands, and by nobody else answered. */
export interface Questions {
  list(): readonly Question[];
  /** @throws {SandboxError} `approval.unknown`: this connection was not asked that, or it is too late. */
  answer(question: string, approved: boolean, scope: ApprovalScope | undefined): void;
  ask: Ask;
}

type Ask = (request: RequestId, ...asked: Parameters<Approver['ask']>) => Promise<ApprovalAnswer>;

interface Waiting {
  readonly sent: Question;
  settle(answer: ApprovalAnswer): void;
  withdraw(): void;
}

/** @see Questions. `most`: so many wait at once; a command that would be asked about beyond that is refused. */
export function createQuestions(client: Client, most: number): Questions {
  const waiting = new Map<string, Waiting>();
  // One for all: each would otherwise add a listener.
  client.gone.addEventListener('abort', () => {
    for (const { withdraw } of [...waiting.values()]) withdraw();
  });
  return {
    list: () => [...waiting.values()].map(({ sent }) => sent),
    answer: (question, approved, scope) => {
      const asked = waiting.get(question);
      if (asked === undefined)
        throw new SandboxError(
          'approval.unknown',
          'no such question waits for an answer of this connection: it expired, was answered, or was never asked here',
        );
      asked.settle(
        approved ? { approved, scope: scope ?? 'once', by: BY } : { approved, reason: 'denied', by: BY },
      );
    },
    ask: async (request, about, { timeoutMs, signal }) => {
      if (waiting.size >= most) {
        const detail = `${most} questions of this connection wait for an answer already, which is the most; answer or cancel some of them first`;
        return { approved: false, reason: 'failed', by: BY, detail };
      }
      const question = randomUUID();
      const sent = wireQuestion(about, { question, request, expiresAt: Date.now() + timeoutMs });
      return new Promise((done) => {
        const settle = (answer: ApprovalAnswer) => {
          clearTimeout(late);
          signal?.removeEventListener('abort', withdraw);
          waiting.delete(question);
          done(answer);
        };
        const giveUp = (reason: 'expired' | 'nobody') => {
          settle({ approved: false, reason, by: BY });
          void client.notify('approvals.withdrawn', { question });
        };
        const withdraw = () => giveUp('nobody');
        const late = setTimeout(() => giveUp('expired'), timeoutMs);
        signal?.addEventListener('abort', withdraw, { once: true });
        waiting.set(question, { sent, settle, withdraw });
        if (signal?.aborted === true || client.gone.aborted) withdraw();
        else void client.notify('approvals.requested', sent);
      });
    },
  };
}

/** Whose command the running code is about. */
interface Asker {
  readonly client: Client;
  readonly request: RequestId;
  /** `undefined`: the client does not answer. */
  readonly questions: Questions | undefined;
  /** `undefined`: its command takes nobody's place. */
  readonly turn: Turn | undefined;
}

/** Brings questions of the one sandbox to the connection whose command they are about. */
export interface Switchboard {
  readonly approver: Approver;
  readonly onQueued: (id: string) => void;
  /** Around each wait for an answer, whoever gives it: meanwhile the command takes no place of one that runs. */
  asking<T>(wait: () => Promise<T>): Promise<T>;
  /** Does work, and whatever it asks is asked there. */
  connect<T>(asker: Asker, work: () => T): T;
}

/**
 * What a command asks is known by the asynchronous context that it was started in: there is one sandbox for all clients. A
 * question without one is nobody's, which is a no.
 */
export function createSwitchboard(): Switchboard {
  const askers = new AsyncLocalStorage<Asker>();
  return {
    approver: {
      ask: async (request, options) => {
        const asker = askers.getStore();
        if (asker?.questions === undefined) return { approved: false, reason: 'nobody', by: BY };
        return asker.questions.ask(asker.request, request, options);
      },
    },
    onQueued: (id) => {
      const asker = askers.getStore();
      void asker?.client.notify('approvals.queued', { request: asker.request, id });
    },
    asking: (wait) => askers.getStore()?.turn?.without(wait) ?? wait(),
    connect: (asker, work) => askers.run(asker, work),
  };
}
