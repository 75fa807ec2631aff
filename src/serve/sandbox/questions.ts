import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { ApprovalAnswer, Approver, GateOptions } from '../../model/index.ts';
import type { RequestId } from '../core/errors.ts';
import type { Client } from '../core/offer.ts';
import type { Question } from '../protocol/results.ts';
import type { ParamsOf } from '../protocol/tables.ts';
import type { Turn } from './turns.ts';
import { wireQuestion } from './wire.ts';

interface Waiting {
  readonly sent: Question;
  settle(answer: ApprovalAnswer): void;
  withdraw(): void;
}

/** The questions that one connection is asked: about its own commands, and by nobody else answered. */
export class Questions {
  readonly #client: Client;
  readonly #most: number;
  readonly #by: string;
  readonly #waiting = new Map<string, Waiting>();

  /**
   * `most`: so many wait at once; a command that would be asked about beyond that is refused. `by`: who an answer is by, in
   * the audit trail.
   */
  constructor(client: Client, most: number, by: string) {
    this.#client = client;
    this.#most = most;
    this.#by = by;
    // One for all: each would otherwise add a listener.
    client.gone.addEventListener('abort', () => this.withdrawAll());
  }

  /** Nobody answers them. */
  withdrawAll(): void {
    for (const { withdraw } of [...this.#waiting.values()]) withdraw();
  }

  list(): readonly Question[] {
    return [...this.#waiting.values()].map(({ sent }) => sent);
  }

  /** @throws {SandboxError} `approval.unknown`: this connection was not asked that, or it is too late. */
  answer({ question, approved, scope = 'once', reason = 'denied' }: ParamsOf<'approvals.answer'>): void {
    const asked = this.#waiting.get(question);
    if (asked === undefined)
      throw new SandboxError(
        'approval.unknown',
        'no such question waits for an answer of this connection: it expired, was answered, or was never asked here',
      );
    const by = this.#by;
    asked.settle(approved ? { approved, scope, by } : { approved, reason, by });
  }

  async ask(
    request: RequestId,
    ...[about, { timeoutMs, signal }]: Parameters<Approver['ask']>
  ): Promise<ApprovalAnswer> {
    const waiting = this.#waiting;
    const by = this.#by;
    if (waiting.size >= this.#most) {
      const detail = `${this.#most} questions of this connection wait for an answer already, which is the most; answer or cancel some of them first`;
      return { approved: false, reason: 'failed', by, detail };
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
        settle({ approved: false, reason, by });
        void this.#client.notify('approvals.withdrawn', { question });
      };
      const withdraw = () => giveUp('nobody');
      const late = setTimeout(() => giveUp('expired'), timeoutMs);
      signal?.addEventListener('abort', withdraw, { once: true });
      waiting.set(question, { sent, settle, withdraw });
      if (signal?.aborted === true || this.#client.gone.aborted) withdraw();
      else void this.#client.notify('approvals.requested', sent);
    });
  }
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

/**
 * Brings questions of the one sandbox to the connection whose command they are about. What a command asks is known by the
 * asynchronous context that it was started in: there is one sandbox for all clients. A question without one is nobody's,
 * which is a no.
 */
export class Switchboard {
  /** Who an answer is by, in the audit trail. */
  readonly answeredBy: string;
  readonly #askers = new AsyncLocalStorage<Asker>();

  constructor(answeredBy: string) {
    this.answeredBy = answeredBy;
  }

  /** How the sandbox asks. */
  readonly gate: Required<Pick<GateOptions, 'terminal' | 'onQueued' | 'asking'>> = {
    terminal: {
      ask: async (request, options) => {
        const asker = this.#askers.getStore();
        if (asker?.questions === undefined) return { approved: false, reason: 'nobody', by: this.answeredBy };
        return asker.questions.ask(asker.request, request, options);
      },
    },
    onQueued: (id) => {
      const asker = this.#askers.getStore();
      void asker?.client.notify('approvals.queued', { request: asker.request, id });
    },
    // While it waits for an answer, a command gives up its place among the running ones.
    asking: (wait) => this.#askers.getStore()?.turn?.without(wait) ?? wait(),
  };

  /** Does work, and whatever it asks is asked there. */
  connect<T>(asker: Asker, work: () => T): T {
    return this.#askers.run(asker, work);
  }
}
