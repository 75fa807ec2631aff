import type { SandboxOptions } from '../../model/index.ts';
import {
  type Beside,
  callerLayer,
  type PreparedSandbox,
  prepareOf,
  type ResolvedPolicy,
} from '../../run/index.ts';
import { identityOf } from '../../workspace/index.ts';
import { sharedOptions } from '../shared/options.ts';
import { type AgentCommands, SessionBackground } from './background.ts';

/** Keys that say which sandboxes share a machine: one loopback interface, one /tmp and one /dev/shm. */
export interface Shared {
  /** Sandboxes with the same key are on one machine. `undefined`: the sandbox has a machine of its own. */
  readonly machine: string | undefined;
  /** The key of the machine of services of the same workspace and policy, which the sandbox joins if services run. */
  readonly place: string;
  /** The agent session that the sandbox is for; `undefined`: none. */
  readonly session: string | undefined;
}

/** What else runs on the machine of a sandbox that is lent. */
export interface Company {
  /** The background commands of the agent's session; `undefined`: the call belongs to no session. */
  readonly background?: SessionBackground | undefined;
  /** Services of the user run on the same machine. */
  readonly reachesServices?: boolean;
}

/**
 * The machines of one server. Commands of one agent session share a machine, and so do services and all commands of their workspace
 * and policy. The first sandbox on a machine makes it; each later one is made beside the last one.
 */
export class Machines {
  readonly #agents: AgentCommands;
  readonly #isOpen: (machine: string) => boolean;
  /** By machine: the last sandbox that was made on it, which the next one is made beside. */
  readonly #last = new Map<string, Promise<Beside | undefined>>();
  /** By machine: the background commands on it. */
  readonly #backgrounds = new Map<string, SessionBackground>();
  /** By place: the machine of the session that was used last there. Services that are started there join it. */
  readonly #lastSessions = new Map<string, string>();
  /** By machine of a session: the place whose services are on it. */
  readonly #besideServices = new Map<string, string>();
  /** By place: how many services run there. */
  readonly #services = new Map<string, number>();

  /** `agents` is told of background commands. `isOpen`: whether an open sandbox is on a machine. */
  constructor(agents: AgentCommands, isOpen: (machine: string) => boolean) {
    this.#agents = agents;
    this.#isOpen = isOpen;
  }

  /**
   * The keys of a sandbox with these options. They contain everything except options that concern a single command. The session ID can be
   * trusted: it comes from the agent's hook, and no sandboxed command reaches a server.
   */
  sharedOf(options: SandboxOptions, resolved: ResolvedPolicy): Shared {
    const { timeout, tool, gate, ...same } = options;
    const { workspace, workspaceAsNamed, home, networkRules } = resolved;
    const sharing = (kept: SandboxOptions, ...others: readonly unknown[]) => {
      const layers = resolved.layers.map((layer) => (layer.name === 'caller' ? callerLayer(kept) : layer));
      return JSON.stringify([kept, layers, workspace, identityOf(workspace), ...others, home, networkRules]);
    };
    const place = sharing(sharedOptions(same));
    // A session object of the library is opened and closed by its caller, so its end is not known here.
    if (typeof options.session !== 'string') return { machine: undefined, place, session: undefined };
    const ofFirst = { ...same, session: this.#agents.firstInChain(options.session) };
    return { machine: sharing(ofFirst, workspaceAsNamed), place, session: options.session };
  }

  /** Whether services run in any place. */
  get hasAnyServices(): boolean {
    return [...this.#services.values()].some((count) => count > 0);
  }

  /** Whether services run in a place. */
  hasServices(place: string): boolean {
    return (this.#services.get(place) ?? 0) > 0;
  }

  /** Counts a service in a place until the result is disposed of. */
  beginService(place: string): Disposable {
    const count = (more: number) => this.#services.set(place, (this.#services.get(place) ?? 0) + more);
    count(1);
    let isOver = false;
    return {
      [Symbol.dispose]: () => {
        if (!isOver) count(-1);
        isOver = true;
      },
    };
  }

  /** The keys of a sandbox after joining: one without a session joins the machine of services, if any run in its place. */
  joined(shared: Shared): Shared {
    const isJoined = shared.machine === undefined && this.hasServices(shared.place);
    return isJoined ? { ...shared, machine: shared.place } : shared;
  }

  /**
   * Prepares a sandbox on its machine. The first sandbox of a session joins the services that run in its place, and services join the
   * session that was used last there; otherwise the first sandbox makes a new machine.
   */
  prepare(
    { machine, place, session }: Shared,
    resolved: ResolvedPolicy,
    options: SandboxOptions,
  ): Promise<PreparedSandbox> {
    if (machine === undefined) return prepareOf(resolved, options);
    const isOfServices = machine === place;
    const other = isOfServices ? this.#lastSessions.get(place) : this.hasServices(place) ? place : undefined;
    const before: Promise<Beside | undefined> =
      this.#last.get(machine) ??
      (other === undefined ? undefined : this.#last.get(other)) ??
      Promise.resolve(undefined);
    if (!this.#last.has(machine) && other !== undefined && this.#last.has(other))
      this.#besideServices.set(isOfServices ? other : machine, place);
    const made = before.then((beside) =>
      prepareOf(resolved, options, { beside, isOfSession: isOfServices || session !== undefined }),
    );
    // If preparing fails, the next sandbox is made beside the one before.
    this.#last.set(
      machine,
      made.catch(() => before),
    );
    return made;
  }

  /** Records that a sandbox is lent, and returns what else runs on its machine. */
  lend({ machine, place, session }: Shared): Company {
    if (machine === undefined) return {};
    if (session !== undefined) this.#lastSessions.set(place, machine);
    if (!this.#isOpen(machine)) return {};
    const background = this.#backgrounds.get(machine) ?? new SessionBackground(this.#agents);
    this.#backgrounds.set(machine, background);
    const reachesServices = this.hasServices(place) && this.#besideServices.get(machine) === place;
    return { background, reachesServices };
  }

  /** Forgets machines without an open sandbox. `prepared`: one to keep, because a sandbox is being prepared on it. */
  forgetUnused(prepared: string | undefined): void {
    for (const machine of this.#last.keys())
      if (!this.#isOpen(machine) && prepared !== machine) this.#last.delete(machine);
    for (const machine of this.#backgrounds.keys())
      if (!this.#last.has(machine)) this.#backgrounds.delete(machine);
    for (const machine of this.#besideServices.keys())
      if (!this.#last.has(machine)) this.#besideServices.delete(machine);
    for (const [place, machine] of this.#lastSessions)
      if (!this.#last.has(machine)) this.#lastSessions.delete(place);
    for (const [place, count] of this.#services) if (count === 0) this.#services.delete(place);
  }
}
