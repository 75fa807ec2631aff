import type { HookEvent } from '../../agents/index.ts';
import { deferred } from '../../base/deferred.ts';
import type { Work } from '../../serve/index.ts';
import { parseHookArguments } from '../hook/answer.ts';
import type { Supervisor } from '../services/supervisor.ts';
import { currentDirectory } from '../shared/caller.ts';

/** An agent that has ended a session and goes on begins the next one within so long. */
const NEXT_SESSION_MS = 60_000;

const agentKey = (parent: number, args: readonly string[]) =>
  JSON.stringify([parent, currentDirectory(), args]);

/** The sessions of agents whose hooks were answered here. With the last of them, and the last service, the server is over. */
export class Sessions {
  readonly #services: Pick<Supervisor, 'isBusy'>;
  readonly #open = new Set<string>();
  readonly #ended = new Set<string>();
  readonly #over = deferred<void>();
  #calls = 0;
  #isOver = false;
  #isLast = false;
  /** The session that each agent has left last, by its process and the words of its hook. */
  readonly #left = new Map<string, { readonly session: string; readonly at: number }>();
  #hook: { readonly from: string; readonly wanted: ReturnType<typeof parseHookArguments> } | undefined;
  /** Settles when the last session has ended, and every call and service with it. */
  readonly over: Promise<void> = this.#over.promise;

  constructor(services: Pick<Supervisor, 'isBusy'>) {
    this.#services = services;
  }

  /** As `parseHookArguments`: a session calls its hooks with the same words from the same place. */
  hookOf(args: readonly string[]): ReturnType<typeof parseHookArguments> {
    const from = JSON.stringify([currentDirectory(), args]);
    if (this.#hook?.from !== from) this.#hook = { from, wanted: parseHookArguments(args) };
    return this.#hook.wanted;
  }

  saw(event: HookEvent): void {
    if (event.kind === 'other') return;
    if (event.kind === 'session-start') this.#ended.delete(event.session);
    if (event.kind === 'session-end') this.#sawEnd(event.session);
    else if (!this.#ended.has(event.session)) {
      this.#open.add(event.session);
      this.#isOver = false;
    }
  }

  /** An agent has ended a session, and goes on. `parent`: the process of the agent. `args`: of its hook. */
  left(session: string, parent: number, args: readonly string[]): void {
    for (const [agent, { at }] of this.#left)
      if (performance.now() - at > NEXT_SESSION_MS) this.#left.delete(agent);
    this.#left.set(agentKey(parent, args), { session, at: performance.now() });
  }

  /** The session that an agent has left for the one that it begins; `undefined`: it begins its first. */
  takeLeft(parent: number, args: readonly string[]): string | undefined {
    const found = this.#left.get(agentKey(parent, args));
    this.#left.delete(agentKey(parent, args));
    return found !== undefined && performance.now() - found.at < NEXT_SESSION_MS ? found.session : undefined;
  }

  #sawEnd(session: string): void {
    this.#open.delete(session);
    this.#ended.add(session);
    // Also of one that was never seen here: nobody else is known to have a use for it.
    this.#isOver = this.#open.size === 0;
  }

  /** A session has ended, which was answered elsewhere. False: that was known. */
  hasEnded(session: string): boolean {
    if (this.#ended.has(session)) return false;
    this.#sawEnd(session);
    this.#endIfOver();
    return true;
  }

  /** Nobody has a use for the server but sessions that are open. */
  servicesEnded(): void {
    this.#isOver = this.#open.size === 0;
    this.#endIfOver();
  }

  #endIfOver(): void {
    if ((this.#isOver || this.#isLast) && this.#calls === 0 && !this.#services.isBusy) this.#over.resolve();
  }

  /** It is over with the calls that there are, and takes no others, however long those take. */
  endSoon(): void {
    this.#isLast = true;
    this.#endIfOver();
  }

  get endsSoon(): boolean {
    return this.#isLast;
  }

  /** Somebody waits for something. */
  get isBusy(): boolean {
    return this.#calls > 0;
  }

  /** Counts a call until it is over, or is left to its client. */
  async during(take: () => Promise<Work | undefined>): Promise<Work | undefined> {
    this.#calls += 1;
    let work: Work | undefined;
    const end = () => {
      this.#calls -= 1;
      this.#endIfOver();
    };
    try {
      work = await take();
    } finally {
      if (work === undefined) end();
    }
    if (work === undefined) return undefined;
    const taken = work;
    return {
      do: () => taken.do(),
      [Symbol.dispose]: () => {
        taken[Symbol.dispose]();
        end();
      },
    };
  }
}
