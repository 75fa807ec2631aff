import { visibleLine } from '../../base/visible-text.ts';
import type { ServiceInfo } from '../../model/index.ts';
import { type JobPort, portsInWords } from '../../run/index.ts';
import { shownPort } from '../services/describe.ts';

/** A command that an agent runs in the background, while it runs. */
export interface BackgroundCommand {
  readonly command: string;
  /** Canonical. */
  readonly workspace: string;
  /** Its session, by `sessionNameOf`. */
  readonly session: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  /** Its processes, and those that it started. */
  members(): Promise<readonly number[]>;
  /** What these listen on. */
  ports(): Promise<readonly JobPort[]>;
  /** Ends it; settles when it has ended. */
  stop(): Promise<void>;
}

/** Commands that one remark names. */
const MOST_NAMED = 5;
/** Of a command. */
const LONGEST_COMMAND = 60;
/** `kill`, with a signal that ends a program, and process ids: a whole command of a model. */
const KILL =
  /^\s*kill(?:\s+-(?:TERM|SIGTERM|INT|SIGINT|HUP|SIGHUP|KILL|SIGKILL|15|2|1|9))?((?:\s+\d{1,10})+)\s*$/;

/** What agents run in the background by one warm server: their user sees it beside services, and can end it. */
export class AgentCommands {
  readonly #running = new Set<BackgroundCommand>();
  /** By session, the one that it goes on for. */
  readonly #before = new Map<string, string>();

  /** Call the result when it has ended. */
  began(command: BackgroundCommand): () => void {
    this.#running.add(command);
    return () => this.#running.delete(command);
  }

  /** What `ps` shows of them. */
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

  /** The command that a process belongs to. */
  async withProcess(pid: number): Promise<BackgroundCommand | undefined> {
    for (const one of this.#running) if ((await one.members()).includes(pid)) return one;
    return undefined;
  }

  /** The first of the sessions that one goes on for: on the machine that was made for it run the commands of all of them. */
  firstOf(session: string): string {
    const before = this.#before.get(session);
    return before === undefined ? session : this.firstOf(before);
  }

  /** An agent that ended a session and runs its commands on has begun the next one. */
  goOn(session: string, before: string): void {
    // One that has begun already has a machine of its own.
    if (this.firstOf(before) !== session && !this.#before.has(session)) this.#before.set(session, before);
  }

  /** Whether something runs for the sessions that are meant. */
  isRunning(isMeant: (session: string) => boolean): boolean {
    return [...this.#running].some(({ session }) => isMeant(session));
  }

  /** Those sessions that are over with the ones that are: also all that they went on for. */
  allOver(isOver: (session: string) => boolean): (session: string) => boolean {
    const firsts = new Set([...this.#before.keys()].filter(isOver).map((session) => this.firstOf(session)));
    return (session) => isOver(session) || firsts.has(this.firstOf(session));
  }

  /** Ends those of sessions, without waiting for their end, and returns them. */
  endSession(isOver: (session: string) => boolean): readonly BackgroundCommand[] {
    const meant = [...this.#running].filter(({ session }) => isOver(session));
    for (const one of meant) void one.stop();
    const first = new Set([...this.#before.keys()].filter(isOver));
    for (const session of first) this.#before.delete(session);
    return meant;
  }
}

/**
 * What runs in the background on the machine of one session: the model is told after its next command, and can end it. The
 * kernel keeps commands from sending signals to each other, so this does it for them.
 */
export class SessionBackground {
  readonly #all: AgentCommands;
  readonly #running = new Set<BackgroundCommand>();
  #told: { readonly session: string | undefined; readonly text: string } = { session: undefined, text: '' };

  /** `all`: those of the server, which learn of its commands, too. */
  constructor(all: AgentCommands) {
    this.#all = all;
  }

  /** Lines about services of the user that the commands of the session reach. */
  services: (() => Promise<readonly string[]>) | undefined;

  /** Call the result when it has ended. */
  began(command: BackgroundCommand): () => void {
    this.#running.add(command);
    const ended = this.#all.began(command);
    return () => {
      this.#running.delete(command);
      ended();
    };
  }

  /** A line for each command in the background, for the model of a session; `undefined`: it was told just that. */
  async news(session: string): Promise<string | undefined> {
    const found = await Promise.all([...this.#running].map(linesFor));
    const lines = [...found.flat(), ...((await this.services?.()) ?? [])];
    const text = [
      ...lines.slice(0, MOST_NAMED),
      ...(lines.length > MOST_NAMED
        ? [`In the background: ${lines.length - MOST_NAMED} more commands.`]
        : []),
    ].join('\n');
    const told = this.#told.session === session ? this.#told.text : '';
    this.#told = { session, text };
    if (text === told) return undefined;
    return text === '' ? 'In the background: nothing runs any more.' : text;
  }

  /**
   * Ends the commands in the background that a `kill PID …` means, with all that they started. `undefined`: it is another
   * command, or means another process. Else the process ids.
   */
  async meantBy(command: string): Promise<readonly BackgroundCommand[] | undefined> {
    const pids = KILL.exec(command)?.[1]?.trim().split(/\s+/).map(Number);
    if (pids === undefined || this.#running.size === 0) return undefined;
    const all = await Promise.all(
      [...this.#running].map(async (one) => ({ one, members: await one.members() })),
    );
    const meant = pids.map((pid) => all.find(({ members }) => members.includes(pid))?.one);
    return meant.every((one) => one !== undefined) ? [...new Set(meant)] : undefined;
  }
}

/** Its first process, its ports, and the one that listens there. `undefined`: it has none yet, or none any more. */
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
  const reached = ports.length === 0 ? '' : `, reach it at ${portsInWords(ports.slice(0, MOST_NAMED))}`;
  return [
    `In the background: process ${pid} runs ${quoted(one.command)}${reached}; stop it with: kill ${pid}`,
  ];
}

/** A command, as lines name it. */
export const quoted = (command: string) => JSON.stringify(visibleLine(command, LONGEST_COMMAND));
