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

/** With which others a sandbox shares a machine: namespaces with one loopback, one /tmp and one /dev/shm. */
export interface Shared {
  /** Sandboxes with the same text here are on one machine. `undefined`: it has one alone. */
  readonly machine: string | undefined;
  /** The machine of services of the same workspace and policy, which it joins if they run. */
  readonly place: string;
  /** The session of an agent that it is for. */
  readonly session: string | undefined;
}

/** What else runs on the machine of a sandbox that is lent. */
export interface Company {
  /** What runs in the background of the agent’s session; `undefined`: the call belongs to no session. */
  readonly background?: SessionBackground | undefined;
  /** Services of the user run on the same machine. */
  readonly reachesServices?: boolean;
}

/**
 * What the sandboxes of one server share: commands of one session of an agent reach each other, and services of the user are
 * reached by all commands of their workspace and policy. The first sandbox on a machine makes it, and each later one is made
 * beside the one before.
 */
export class Machines {
  readonly #agents: AgentCommands;
  readonly #isOpen: (machine: string) => boolean;
  /** By machine: the last sandbox that was made on it, which the next one is made beside. */
  readonly #last = new Map<string, Promise<Beside | undefined>>();
  /** By machine. */
  readonly #backgrounds = new Map<string, SessionBackground>();
  /** By place: the machine of the session that was used last there, which services that begin there join. */
  readonly #lastSessions = new Map<string, string>();
  /** By machine of a session: the place whose services are on it. */
  readonly #besideServices = new Map<string, string>();
  /** By place: how many services run there. */
  readonly #services = new Map<string, number>();

  /** `agents` learns what runs in the background. `isOpen`: whether a sandbox that is open is on a machine. */
  constructor(agents: AgentCommands, isOpen: (machine: string) => boolean) {
    this.#agents = agents;
    this.#isOpen = isOpen;
  }

  /**
   * Who shares a machine with a sandbox of these options: those with which it has in common all but what a command line says
   * of one command. The session's id comes from the agent, by way of its hook: no command gets at a server.
   */
  sharedOf(options: SandboxOptions, resolved: ResolvedPolicy): Shared {
    const { timeout, tool, gate, ...same } = options;
    const { workspace, workspaceAsNamed, home, networkRules } = resolved;
    const sharing = (kept: SandboxOptions, ...others: readonly unknown[]) => {
      const layers = resolved.layers.map((layer) => (layer.name === 'caller' ? callerLayer(kept) : layer));
      return JSON.stringify([kept, layers, workspace, identityOf(workspace), ...others, home, networkRules]);
    };
    const place = sharing(sharedOptions(same));
    // A session that a caller opened itself has its own life, which is not known here.
    if (typeof options.session !== 'string') return { machine: undefined, place, session: undefined };
    const ofFirst = { ...same, session: this.#agents.firstOf(options.session) };
    return { machine: sharing(ofFirst, workspaceAsNamed), place, session: options.session };
  }

  get hasAnyServices(): boolean {
    return [...this.#services.values()].some((count) => count > 0);
  }

  hasServices(place: string): boolean {
    return (this.#services.get(place) ?? 0) > 0;
  }

  /** Counts a service in a place, until what is returned is disposed of. */
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

  /** What belongs to no session shares the machine of services that run. */
  joined(shared: Shared): Shared {
    const isJoined = shared.machine === undefined && this.hasServices(shared.place);
    return isJoined ? { ...shared, machine: shared.place } : shared;
  }

  /**
   * Makes a sandbox on its machine. A session's first sandbox joins the services that run in its place, and services join the
   * session that was there before them; otherwise the first sandbox makes a machine.
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
    // One that cannot be made takes nothing from the others.
    this.#last.set(
      machine,
      made.catch(() => before),
    );
    return made;
  }

  /** Notes that a sandbox is lent, and says what else is on its machine. */
  lend({ machine, place, session }: Shared): Company {
    if (machine === undefined) return {};
    if (session !== undefined) this.#lastSessions.set(place, machine);
    if (!this.#isOpen(machine)) return {};
    const background = this.#backgrounds.get(machine) ?? new SessionBackground(this.#agents);
    this.#backgrounds.set(machine, background);
    const reachesServices = this.hasServices(place) && this.#besideServices.get(machine) === place;
    return { background, reachesServices };
  }

  /** Gives up machines that no open sandbox is on. `prepared`: one that stays for a sandbox that is made ready. */
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
