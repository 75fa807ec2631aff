import type { HookEvent } from '../../agents/index.ts';
import { deferred } from '../../base/deferred.ts';
import type { Work } from '../../serve/index.ts';
import { parseHookArguments } from '../hook/answer.ts';
import type { Supervisor } from '../services/supervisor.ts';
import { currentDirectory } from '../shared/caller.ts';

/** Milliseconds within which an agent that ends a session and keeps running begins its next one. */
const NEXT_SESSION_MS = 60_000;

/** Where and with which words a hook is called: the same for all calls of an agent. */
const placeOf = (args: readonly string[]) => JSON.stringify([currentDirectory(), args]);

/** A session that its agent has ended to begin another one. */
interface Previous {
  readonly session: string;
  /** The process of the agent, as `processesAbove`. */
  readonly agent: string;
  readonly place: string;
  readonly at: number;
}

/** The agent sessions whose hooks this server has answered. The server ends with the last of them and the last service. */
export class Sessions {
  readonly #services: Pick<Supervisor, 'isBusy'>;
  readonly #open = new Set<string>();
  readonly #ended = new Set<string>();
  readonly #over = deferred<void>();
  #calls = 0;
  #isOver = false;
  #isLast = false;
  /** The processes above the first call of each session. */
  readonly #above = new Map<string, readonly string[]>();
  #previous: readonly Previous[] = [];
  #hook: { readonly from: string; readonly wanted: ReturnType<typeof parseHookArguments> } | undefined;
  /** Settles when the last session, call and service have ended. */
  readonly over: Promise<void> = this.#over.promise;

  constructor(services: Pick<Supervisor, 'isBusy'>) {
    this.#services = services;
  }

  /** Like `parseHookArguments`, with the last result cached: a session calls its hooks with the same words in the same directory. */
  hookOf(args: readonly string[]): ReturnType<typeof parseHookArguments> {
    const from = placeOf(args);
    if (this.#hook?.from !== from) this.#hook = { from, wanted: parseHookArguments(args) };
    return this.#hook.wanted;
  }

  /** Records that a session begins, is in use or ends. */
  record(event: HookEvent): void {
    if (event.kind === 'other') return;
    if (event.kind === 'session-start') this.#ended.delete(event.session);
    if (event.kind === 'session-end') this.#close(event.session);
    else if (!this.#ended.has(event.session)) {
      this.#open.add(event.session);
      this.#isOver = false;
    }
  }

  /** Records a call of a hook or a command of a session. `above`: the processes above it. `isStart`: the session begins, maybe in another process than before. */
  recordCall(session: string, above: () => readonly string[], isStart: boolean): void {
    if (isStart || !this.#above.has(session)) this.#above.set(session, above());
  }

  /**
   * Remembers a session that an agent has ended, if it is about to begin another one (`agentGoesOn`). The agent's process is the nearest one
   * above two calls of the session: shells and others between them are started for each call. `args`: those of its hook.
   */
  rememberPrevious(
    session: string,
    above: () => readonly string[],
    args: readonly string[],
    agentGoesOn: boolean,
  ): void {
    const first = this.#above.get(session) ?? [];
    this.#above.delete(session);
    const agent = agentGoesOn ? above().find((one) => first.includes(one)) : undefined;
    if (agent === undefined) return;
    this.#previous = [...this.#recent(), { session, agent, place: placeOf(args), at: performance.now() }];
  }

  /** The session that an agent had before the one that it begins now, and forgets it; `undefined`: none is remembered. */
  takePrevious(above: () => readonly string[], args: readonly string[]): string | undefined {
    const [processes, place] = [above(), placeOf(args)];
    const found = this.#recent().find((one) => one.place === place && processes.includes(one.agent));
    this.#previous = this.#recent().filter((one) => one !== found);
    return found?.session;
  }

  #recent(): readonly Previous[] {
    return this.#previous.filter(({ at }) => performance.now() - at < NEXT_SESSION_MS);
  }

  #close(session: string): void {
    this.#open.delete(session);
    this.#ended.add(session);
    // Also if the session is not known here: the server may have been started for it alone.
    this.#isOver = this.#open.size === 0;
  }

  /** Records the end of a session whose hook another process answered. Returns false if the end was known. */
  recordEnd(session: string): boolean {
    if (this.#ended.has(session)) return false;
    this.#close(session);
    this.#endIfOver();
    return true;
  }

  /** Ends the server if no session is open; call it when the server's services are no longer a reason to keep it. */
  endWithoutSessions(): void {
    this.#isOver = this.#open.size === 0;
    this.#endIfOver();
  }

  #endIfOver(): void {
    if ((this.#isOver || this.#isLast) && this.#calls === 0 && !this.#services.isBusy) this.#over.resolve();
  }

  /** Ends the server once the calls and services that it has are over. It must accept no others. */
  endSoon(): void {
    this.#isLast = true;
    this.#endIfOver();
  }

  /** Whether {@link endSoon} was called. */
  get endsSoon(): boolean {
    return this.#isLast;
  }

  /** Whether a call is being answered. */
  get isBusy(): boolean {
    return this.#calls > 0;
  }

  /** Keeps the server from ending until a call is over or is left to its client. */
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
