import { visibleLine } from '../../base/visible-text.ts';
import { type JobPort, portsInWords } from '../../run/index.ts';

/** A command that an agent runs in the background, while it runs. */
interface BackgroundCommand {
  readonly command: string;
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

/**
 * What runs in the background on the machine of one session: the model is told after its next command, and can end it. The
 * kernel keeps commands from sending signals to each other, so this does it for them.
 */
export class SessionBackground {
  readonly #running = new Set<BackgroundCommand>();
  #told = '';

  /** Lines about services of the user that the commands of the session reach. */
  services: (() => Promise<readonly string[]>) | undefined;

  /** Call the result when it has ended. */
  began(command: BackgroundCommand): () => void {
    this.#running.add(command);
    return () => this.#running.delete(command);
  }

  /** A line for each command in the background, for a model; `undefined`: the model was told just that. */
  async news(): Promise<string | undefined> {
    const found = await Promise.all([...this.#running].map(linesFor));
    const lines = [...found.flat(), ...((await this.services?.()) ?? [])];
    const text = [
      ...lines.slice(0, MOST_NAMED),
      ...(lines.length > MOST_NAMED
        ? [`In the background: ${lines.length - MOST_NAMED} more commands.`]
        : []),
    ].join('\n');
    if (text === this.#told) return undefined;
    this.#told = text;
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

async function linesFor({ command, members, ports }: BackgroundCommand): Promise<readonly string[]> {
  const pids = await members();
  const [first] = [...pids].sort((one, other) => one - other);
  if (first === undefined) return [];
  const sockets = (await ports()).filter(({ port }) => port !== undefined);
  const reached = sockets.length === 0 ? '' : `, reach it at ${portsInWords(sockets.slice(0, MOST_NAMED))}`;
  const pid = sockets[0]?.pid ?? first;
  const quoted = JSON.stringify(visibleLine(command, LONGEST_COMMAND));
  return [`In the background: process ${pid} runs ${quoted}${reached}; stop it with: kill ${pid}`];
}
