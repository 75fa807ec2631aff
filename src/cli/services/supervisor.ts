import { basename } from 'node:path';
import { isatty } from 'node:tty';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { describeShortage } from '../../base/errors/shortage.ts';
import { hostAndPort } from '../../base/host-and-port.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { within } from '../../gate/index.ts';
import type { ServiceInfo } from '../../model/index.ts';
import {
  endedBy,
  exitStatus,
  type OpenSandbox,
  portsInWords,
  Service,
  type ServiceEnd,
} from '../../run/index.ts';
import type { Caller, Work } from '../../serve/index.ts';
import { printRefusals } from '../run/pass-through.ts';
import { caller, currentDirectory, onBehalfOf } from '../shared/caller.ts';
import { sharedOptions } from '../shared/options.ts';
import { jsonLine, printError, printNote, printOut } from '../shared/print.ts';
import { describeBackend } from '../shared/show-plan.ts';
import { ENDING, onSignals } from '../shared/signals.ts';
import type { AgentCommands } from '../warm/background.ts';
import { endInWords, shownPort } from './describe.ts';
import { printLog } from './logs.ts';
import type { ServiceChoice, ServiceCommand, UpWish } from './options.ts';
import { chosen, noSuchService } from './places.ts';
import {
  claimRecord,
  isRunning,
  noteState,
  readRecords,
  removeRecord,
  type ServiceRecord,
} from './records.ts';
import { isAsInFile } from './services-of-files.ts';

/** What nobody stopped can be asked about for so long. */
const REMEMBERED_MS = 600_000;
/** Characters of the last output that are shown of a service that ended before it was ready. */
const LAST_OUTPUT = 2_000;
/** Milliseconds in which a service that nothing says is ready may fail, and `up` with it. */
const EARLY_MS = 150;
/** Characters of the path of a socket. */
const LONGEST_SOCKET = 108;
const FAILED = 125;
const NOT_READY = 124;

/** What a service has of the warm server as long as it runs. */
interface Lent extends Disposable {
  readonly lent: OpenSandbox;
}

interface Entry {
  readonly name: string;
  readonly workspace: string;
  readonly wish: UpWish;
  /** Given back when nobody asks about the service any more: until then it can be started again. */
  readonly lease: Lent;
  service: Service;
  /** Whose environment its starts have; it outlives the call. */
  readonly caller: ServiceCaller;
  end: ServiceEnd | undefined;
  endedAt: number;
  forgetting: NodeJS.Timeout | undefined;
}

/** States of a service whose command runs. */
const RUNNING: ReadonlySet<ServiceInfo['state']> = new Set(['running', 'ready']);
/** Characters of a command in a line for a model. */
const LONGEST_COMMAND = 60;

/** The services of one warm server. */
export class Supervisor {
  readonly #entries = new Map<string, Entry>();
  /** The name of the server's socket. */
  readonly #server: string;
  readonly #agents: AgentCommands;
  readonly #onIdle: () => void;
  #starting = 0;

  /**
   * `path`: where the server listens. `agents`: what else it shows and stops. `onIdle`: the last service has ended and nobody asks
   * about it any more.
   */
  constructor(path: string, agents: AgentCommands, onIdle: () => void) {
    this.#agents = agents;
    this.#server = basename(path);
    this.#onIdle = onIdle;
  }

  /** Whether something runs, or can still be asked about. */
  get isBusy(): boolean {
    return this.#entries.size > 0 || this.#starting > 0;
  }

  /** A line for each service that runs in a workspace, for a model whose commands reach it. */
  async linesForModel(workspace: string): Promise<readonly string[]> {
    const running = [...this.#entries.values()].filter(
      ({ workspace: of, service }) => of === workspace && RUNNING.has(service.state),
    );
    return Promise.all(
      running.map(async ({ name, service, wish: { command } }) => {
        const text = typeof command === 'string' ? command : command.join(' ');
        const ports = portsInWords(await service.ports());
        const reached = ports === '' ? '' : `, reach it at ${ports}`;
        return `In the background: service ${name} of your user runs ${JSON.stringify(visibleLine(text, LONGEST_COMMAND))}${reached}; your user reads its log and stops it`;
      }),
    );
  }

  /** Ends all of them; settles when they have ended. */
  async endAll(): Promise<void> {
    await Promise.all([...this.#entries.values()].map((entry) => this.#stop(entry)));
  }

  /** Ends those that were started with the id of a session that is over, without waiting for their end. Returns their names. */
  endSession(isOver: (session: string) => boolean): readonly string[] {
    const meant = [...this.#entries.values()].filter(
      ({ wish: { sandbox } }) => typeof sandbox.session === 'string' && isOver(sandbox.session),
    );
    for (const entry of meant) void this.#stop(entry);
    return meant.map(({ name }) => name);
  }

  /** Why no service of this name can begin in a workspace; `undefined`: it can. */
  inTheWay(name: string, workspace: string): SandboxError | undefined {
    const entry = this.#entries.get(keyOf({ name, workspace }));
    if (entry !== undefined && entry.service.state !== 'ended')
      return exists(name, workspace, entry.service.state);
    const other = readRecords().find(
      (record) => record.workspace === workspace && record.server !== this.#server && isRunning(record),
    );
    return other && underAnother(other);
  }

  /** Starts a service, waits until it is ready, and returns the exit status of `up`. `lease` is given back when it has ended. */
  async up(wish: UpWish, lease: Lent): Promise<number> {
    this.#starting += 1;
    try {
      return await this.#up(wish, lease);
    } finally {
      this.#starting -= 1;
      if (!this.isBusy) this.#onIdle();
    }
  }

  async #up(wish: UpWish, lease: Lent): Promise<number> {
    const { name } = wish;
    const { workspace } = lease.lent;
    let entry: Entry;
    try {
      const problem = this.inTheWay(name, workspace);
      if (problem !== undefined) throw problem;
      const before = this.#entries.get(keyOf({ name, workspace }));
      if (before !== undefined) this.#forget(before);
      const taken = claimRecord({
        name,
        workspace,
        server: this.#server,
        options: sharedOptions(wish.sandbox),
      });
      if (taken !== undefined) throw exists(name, workspace, 'running');
      entry = this.#begin(wish, lease, workspace);
    } catch (error) {
      lease[Symbol.dispose]();
      throw error;
    }
    const isTerminal = () => isatty(caller().stdio[2]);
    const weaker = wish.quiet
      ? undefined
      : describeBackend(lease.lent.plan, isTerminal, 'sandbox-run doctor');
    if (weaker !== undefined) printError(weaker);
    return this.#awaitReady(entry);
  }

  #begin(wish: UpWish, lease: Lent, workspace: string): Entry {
    const current = currentDirectory();
    const own = new ServiceCaller(caller(), isBeneath(current, workspace) ? current : workspace);
    const service = launched(wish, lease, own);
    const entry: Entry = {
      ...{ name: wish.name, workspace, wish, lease, service, caller: own },
      ...{ end: undefined, endedAt: 0, forgetting: undefined },
    };
    this.#entries.set(keyOf(entry), entry);
    this.#watch(entry);
    return entry;
  }

  /** Keeps a service that its user did not stop for a while after its end, so that `ps` and `logs` can tell of it. */
  #watch(entry: Entry): void {
    void entry.service.ended.then((end) => {
      Object.assign(entry, { end, endedAt: Date.now() });
      if (end.why === 'stopped') this.#forget(entry);
      else {
        noteState(entry, true);
        entry.forgetting = setTimeout(() => this.#forget(entry), REMEMBERED_MS);
      }
    });
  }

  /** Says what became of a start, as soon as that is known. */
  async #awaitReady(
    { name, service, wish, caller: own }: Entry,
    isQuiet: boolean = wish.quiet,
  ): Promise<number> {
    const { gone } = caller();
    let leave: (why: 'late' | 'left') => void = () => {};
    const left = new Promise<'late' | 'left'>((done) => {
      leave = done;
    });
    let signal: NodeJS.Signals | undefined;
    using _ = onSignals(ENDING, (came) => {
      signal = came;
      leave('left');
    });
    gone?.addEventListener('abort', () => leave('left'), { once: true });
    const isWaitedFor = wish.ready !== undefined && wish.readyTimeoutMs > 0;
    const late = isWaitedFor ? setTimeout(() => leave('late'), wish.readyTimeoutMs) : undefined;
    const came = await Promise.race([service.ready.then(() => 'ready' as const), service.ended, left]);
    clearTimeout(late);
    own.isHeard = false;
    // What cannot run at all mostly ends at once.
    const early =
      came === 'ready' && wish.ready === undefined ? await within(service.ended, EARLY_MS) : undefined;
    if (early !== undefined) return sayEnd(name, early, service, wish);
    if (came === 'ready') {
      const pid = await service.pid();
      if (pid === undefined) {
        printError(`${name} has failed and will be started again: sandbox-run logs ${name}, stop ${name}`);
        return NOT_READY;
      }
      if (!isQuiet) printOut(`${name} ${await stateInWords(service)} (process ${pid})\n`);
      return 0;
    }
    if (came === 'late') {
      printError(
        `${name} is not ready after ${wish.readyTimeoutMs / 1000} s and goes on: sandbox-run logs ${name}, or stop ${name}, which says what it was refused`,
      );
      return NOT_READY;
    }
    if (came === 'left') {
      printError(`${name} goes on: sandbox-run logs ${name}, stop ${name}`);
      return signal === undefined ? FAILED : endedBy(signal);
    }
    return sayEnd(name, came, service, wish);
  }

  /** What is to be done for a call of another command; `undefined`: another process has to look at other supervisors, too. */
  async answer(which: Exclude<ServiceCommand, 'up'>, choice: ServiceChoice): Promise<Work | undefined> {
    if (which === 'ps') return choice.here ? work(() => this.#list()) : undefined;
    const others = readRecords().filter(({ server }) => server !== this.#server);
    const meant = chosen([...this.#entries.values()], choice);
    const ofAgent =
      which === 'stop' && meant.length === 0
        ? await this.#agents.withProcess(Number(choice.name))
        : undefined;
    if (ofAgent !== undefined)
      return work(async () => {
        await ofAgent.stop();
        printOut(`${choice.name} has ended\n`);
        return 0;
      });
    if (
      !choice.here &&
      (meant.length === 0 || (choice.name === undefined && chosen(others, choice).length > 0))
    )
      return undefined;
    return work(async () => {
      if (meant.length === 0) throw noSuchService(choice);
      if (which === 'stop') return this.#stopAll(meant);
      const [entry] = meant;
      if (entry === undefined) throw noSuchService(choice);
      return which === 'restart' ? this.#restart(entry) : this.#log(entry, choice);
    });
  }

  async #list(): Promise<number> {
    const services = await Promise.all([...this.#entries.values()].map(infoOf));
    printOut([...services, ...(await this.#agents.infos())].map(jsonLine).join(''));
    return 0;
  }

  async #stopAll(meant: readonly Entry[]): Promise<number> {
    await Promise.all(
      meant.map(async (entry) => {
        const { end, service } = entry;
        const isWell = service.state !== 'starting' && end === undefined;
        const { result } = await this.#stop(entry);
        printOut(`${entry.name} ${end === undefined ? 'has ended' : `had ended: ${endInWords(end)}`}\n`);
        if (result !== undefined) printRefusals(result, isWell);
      }),
    );
    return 0;
  }

  async #stop(entry: Entry): Promise<ServiceEnd> {
    const end = await entry.service.stop();
    this.#forget(entry);
    return end;
  }

  async #restart(entry: Entry): Promise<number> {
    if (!(await entry.service.startAgain())) {
      await entry.service.ended;
      // It was stopped meanwhile.
      if (this.#entries.get(keyOf(entry)) !== entry) throw gone(entry.name);
      clearTimeout(entry.forgetting);
      noteState(entry, false);
      Object.assign(entry, { service: launched(entry.wish, entry.lease, entry.caller), end: undefined });
      this.#watch(entry);
    }
    const status = await this.#awaitReady(entry, false);
    if (!(await isAsInFile(entry.wish, entry.workspace)))
      printError(
        `${entry.name} was started as it was before: its policy file says something else now, or is not trusted any more. To take that: sandbox-run stop ${entry.name}, then up ${entry.name}`,
      );
    return status;
  }

  async #log({ service }: Entry, { follow }: ServiceChoice): Promise<number> {
    const signal = await printLog(service.log, follow);
    return signal === undefined ? 0 : endedBy(signal);
  }

  /** Nothing of it is known any more. */
  #forget(entry: Entry): void {
    clearTimeout(entry.forgetting);
    const key = keyOf(entry);
    if (this.#entries.get(key) !== entry) return;
    this.#entries.delete(key);
    entry.lease[Symbol.dispose]();
    removeRecord({ ...entry, pid: process.pid });
    if (!this.isBusy) this.#onIdle();
  }
}

const keyOf = ({ name, workspace }: Pick<ServiceRecord, 'name' | 'workspace'>) => `${workspace}\0${name}`;

const exists = (name: string, workspace: string, state: string) =>
  new SandboxError(
    'service.exists',
    `${name} is there already in ${visibleLine(workspace, 4096)} (${state}): sandbox-run restart ${name}, or stop ${name}`,
  );

const gone = (name: string) =>
  new SandboxError('service.unknown', `${name} was stopped: start it with sandbox-run up`);

const underAnother = ({ name, pid, workspace }: ServiceRecord) =>
  new SandboxError(
    'service.exists',
    `services of ${visibleLine(workspace, 4096)} (${name}) belong to another supervisor, process ${pid}, started from another control group or with other limits, and would not be reached by this one: start it from there, or sandbox-run stop --all first`,
  );

/** Starts a service in its sandbox, for its caller. */
function launched(wish: UpWish, { lent }: Lent, own: ServiceCaller): Service {
  const { run, ready, restart, lifetimeMs, command } = wish;
  // A server that waits for requests writes nothing, so the policy's idle time-out does not end it: only `--idle-timeout` of `up` does.
  const { idleTimeout = 0 } = wish.sandbox;
  const all = { ...run, idleTimeout, cwd: own.cwd(), effect: 'direct' as const };
  return onBehalfOf(own, () => new Service(lent, { command, ready, restart, lifetimeMs, run: all }));
}

/** `is ready, reach it at localhost:5173`, and which published ports lead to nothing that listens. */
async function stateInWords(service: Service): Promise<string> {
  const ports = await service.ports();
  const where = portsInWords(ports);
  const idle = service.published
    .filter(({ relayed, inner }) => relayed && ports.every(({ port }) => port !== inner))
    .map(({ addresses: [address = ''], port, inner, socket }) => {
      const outside = socket === undefined ? hostAndPort(address, port) : visibleLine(socket, LONGEST_SOCKET);
      return `; ${outside} leads to its port ${inner}, where it does not listen yet`;
    });
  const state = service.wish.ready === undefined ? 'runs' : 'is ready';
  return `${state}${where === '' ? '' : `, reach it at ${where}`}${idle.join('')}`;
}

async function infoOf({ name, workspace, service, wish, end, endedAt }: Entry): Promise<ServiceInfo> {
  const [pid, ports] = await Promise.all([service.pid(), service.ports()]);
  const { command } = wish;
  return {
    ...{ name, workspace, pid, state: service.state, restarts: service.restarts },
    command: typeof command === 'string' ? command : command.join(' '),
    since: end === undefined ? service.startedAt : endedAt,
    ports: ports.map(shownPort),
    session: undefined,
    end: end && endInWords(end),
    supervisor: process.pid,
  };
}

/** The service ended before it was ready. */
function sayEnd(name: string, end: ServiceEnd, { log }: Service, { ready }: UpWish): number {
  const { output } = log.read(Math.max(log.start, log.length - LAST_OUTPUT), LAST_OUTPUT);
  const last = Buffer.from(output, 'latin1').toString('utf8').trimEnd();
  if (last !== '') printNote(`${last}\n`);
  const { result } = end;
  const when = ready === undefined ? '' : ' before it was ready';
  printError(`${name} ended${when}: ${endInWords(end)}`);
  if (result !== undefined) printRefusals(result, false);
  return (result === undefined ? FAILED : exitStatus(result)) || 1;
}

/** A call that is taken. What goes wrong is said to its caller. */
function work(task: () => Promise<number>): Work {
  return {
    do: async () => {
      try {
        return await task();
      } catch (error) {
        return statusOf(error);
      }
    },
    [Symbol.dispose]: () => {},
  };
}

/** Says what went wrong, and gives the exit status. */
export function statusOf(error: unknown): number {
  if (error instanceof SandboxError) {
    printError(error.problem, error.remedy);
    return error.exitStatus;
  }
  const ours = error instanceof Error ? (error.stack ?? error.message) : String(error);
  printError(describeShortage(error) ?? ours);
  return FAILED;
}

/** Who a service runs for: as the call that began it, which hears what is said until its service is ready, and never ends it. */
class ServiceCaller implements Caller {
  readonly env: Caller['env'];
  readonly stdio = [-1, -1, -1] as const;
  readonly #cwd: string;
  readonly #first: Caller;
  isHeard = true;

  constructor(first: Caller, cwd: string) {
    this.env = { ...first.env };
    this.#first = first;
    this.#cwd = cwd;
  }

  cwd = () => this.#cwd;
  write = (fd: 1 | 2, bytes: Uint8Array) => (this.isHeard ? this.#first.write(fd, bytes) : true);
  onSignals = () => ({ [Symbol.dispose]: () => {} });
  stop = () => {};
}
