import { visibleLine } from '../../base/visible-text.ts';
import type { ServiceInfo } from '../../model/index.ts';
import { type JobPort, portsInWords } from '../../run/index.ts';
import { shownPort } from '../services/describe.ts';

/** A running background command of an agent. */
export interface BackgroundCommand {
  readonly command: string;
  /** A canonical path. */
  readonly workspace: string;
  /** The name of the agent's session, as `sessionNameOf` makes it. */
  readonly session: string;
  /** When the command was started: milliseconds since 1970. */
  readonly since: number;
  /** The process IDs of the command and of everything that it started. */
  members(): Promise<readonly number[]>;
  /** The sockets on which these processes listen. */
  ports(): Promise<readonly JobPort[]>;
  /** Ends the command; settles when it has ended. */
  stop(): Promise<void>;
}

/** Lines about commands and services, and ports of one command, that a model is told at most. */
const MOST_NAMED = 5;
/** Characters of a command in a message. */
const LONGEST_COMMAND = 60;
/** A whole command of a model that is `kill` with process IDs, and with no signal but one that ends a program. */
const KILL =
  /^\s*kill(?:\s+-(?:TERM|SIGTERM|INT|SIGINT|HUP|SIGHUP|KILL|SIGKILL|15|2|1|9))?((?:\s+\d{1,10})+)\s*$/;

/** All background commands of agents in one warm server. The user sees them in `ps` beside services, and can end them. */
export class AgentCommands {
  readonly #running = new Set<BackgroundCommand>();
  /** Chains of sessions of one agent, as after `/clear`: by session, the one before it, whose machine and commands it inherits. */
  readonly #previous = new Map<string, string>();

  /** Adds a command that was started. Returns a function to call when it has ended. */
  add(command: BackgroundCommand): () => void {
    this.#running.add(command);
    return () => this.#running.delete(command);
  }

  /** The rows of `ps` for these commands. */
  async infos(): Promise<readonly ServiceInfo[]> {
    const found = await Promise.all(
      [...this.#running].map(async (one) => ({ one, look: await lookAt(one) })),
    );
    return found.flatMap(({ one: { command, workspace, session, since }, look }) =>
      look === undefined
        ? []
        : {
            ...{ name: String(look.first), workspace, command, session, since, pid: look.first },
            ...{ state: 'running' as const, ports: look.ports.map(shownPort), restarts: 0 },
            ...{ end: undefined, supervisor: process.pid },
          },
    );
  }

  /** The command that a process belongs to; `undefined`: it belongs to none. `name`: its process ID, as `ps` shows it. */
  async withProcess(name: string | undefined): Promise<BackgroundCommand | undefined> {
    for (const one of this.#running)
      if ((await one.members()).some((pid) => String(pid) === name)) return one;
    return undefined;
  }

  /** The first session in the chain of a session: the commands of the whole chain run on the machine that was made for it. */
  firstInChain(session: string): string {
    const previous = this.#previous.get(session);
    return previous === undefined ? session : this.firstInChain(previous);
  }

  /** Records that an agent has begun `session` after `previous`, while commands of `previous` keep running. */
  continueSession(previous: string, session: string): void {
    // A session that is part of a chain stays where it is: a second predecessor or a cycle would change its machine.
    if (this.firstInChain(previous) !== session && !this.#previous.has(session))
      this.#previous.set(session, previous);
  }

  /** Whether a command runs for one of the sessions that are meant. */
  isRunning(isMeant: (session: string) => boolean): boolean {
    return [...this.#running].some(({ session }) => isMeant(session));
  }

  /** Extends a test for ended sessions to the chains of those that continue another: commands of the chain end with them. */
  withChain(isOver: (session: string) => boolean): (session: string) => boolean {
    const ended = [...this.#previous.keys()].filter(isOver);
    const firsts = new Set(ended.map((session) => this.firstInChain(session)));
    return (session) => isOver(session) || firsts.has(this.firstInChain(session));
  }

  /** Stops the commands of ended sessions without waiting, and returns them. */
  endSession(isOver: (session: string) => boolean): readonly BackgroundCommand[] {
    const meant = [...this.#running].filter(({ session }) => isOver(session));
    for (const one of meant) void one.stop();
    const ended = new Set([...this.#previous.keys()].filter(isOver));
    for (const session of ended) this.#previous.delete(session);
    return meant;
  }
}

/**
 * The background commands on the machine of one session. The model is told of them after its next command and can end them by `kill`:
 * the kernel keeps sandboxed commands from signalling each other, so the server ends them on behalf of the model.
 */
export class SessionBackground {
  readonly #all: AgentCommands;
  readonly #running = new Set<BackgroundCommand>();
  #told: { readonly session: string | undefined; readonly text: string } = { session: undefined, text: '' };

  /** `all`: the commands of the whole server, to which those of this machine are added. */
  constructor(all: AgentCommands) {
    this.#all = all;
  }

  /** Gives lines about the user's services that the commands of the session reach; `undefined`: they reach none. */
  services: (() => Promise<readonly string[]>) | undefined;

  /** Adds a command that was started. Returns a function to call when it has ended. */
  add(command: BackgroundCommand): () => void {
    this.#running.add(command);
    const ended = this.#all.add(command);
    return () => {
      this.#running.delete(command);
      ended();
    };
  }

  /** Lines about background commands and services for the model of a session; `undefined`: nothing has changed since it was told. */
  async news(session: string): Promise<string | undefined> {
    const found = await Promise.all([...this.#running].map(linesFor));
    const lines = [...found.flat(), ...((await this.services?.()) ?? [])];
    const text = [
      ...lines.slice(0, MOST_NAMED),
      ...(lines.length > MOST_NAMED
        ? [`In the background: ${lines.length - MOST_NAMED} more commands and services.`]
        : []),
    ].join('\n');
    const told = this.#told.session === session ? this.#told.text : '';
    this.#told = { session, text };
    if (text === told) return undefined;
    return text === '' ? 'In the background: nothing runs any more.' : text;
  }

  /**
   * The background commands that `command` wants to end, if it is a `kill PID …` of nothing but their processes. `undefined`: it is
   * another command, or names another process too. Ends nothing itself.
   */
  async targetsOfKill(command: string): Promise<readonly BackgroundCommand[] | undefined> {
    const pids = KILL.exec(command)?.[1]?.trim().split(/\s+/).map(Number);
    if (pids === undefined || this.#running.size === 0) return undefined;
    const all = await Promise.all(
      [...this.#running].map(async (one) => ({ one, members: await one.members() })),
    );
    const meant = pids.map((pid) => all.find(({ members }) => members.includes(pid))?.one);
    return meant.every((one) => one !== undefined) ? [...new Set(meant)] : undefined;
  }
}

/** The first process of a command, its ports, and the process that listens there. `undefined`: it has no process yet, or no longer. */
async function lookAt({ members, ports: portsOf }: BackgroundCommand) {
  const [first] = [...(await members())].sort((one, other) => one - other);
  if (first === undefined) return undefined;
  const ports = (await portsOf()).filter(({ port }) => port !== undefined);
  return { first, ports, pid: ports[0]?.pid ?? first };
}

async function linesFor(one: BackgroundCommand): Promise<readonly string[]> {
  const look = await lookAt(one);
  if (look === undefined) return [];
  const { ports, pid } = look;
  const reached = ports.length === 0 ? '' : `, reach it at ${portsInWords(ports)}`;
  return [
    `In the background: process ${pid} runs ${quoted(one.command)}${reached}; stop it with: kill ${pid}`,
  ];
}

/** A command as a message shows it: quoted and cut. */
export const quoted = (command: string) => JSON.stringify(visibleLine(command, LONGEST_COMMAND));
