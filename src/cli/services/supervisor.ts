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

/** Milliseconds for which `ps`, `logs` and `restart` still know a service that ended without being stopped. */
const REMEMBERED_MS = 600_000;
/** Characters of output that `up` shows of a service that ended before it was ready. */
const LAST_OUTPUT = 2_000;
/** Milliseconds for which `up` watches a service without a readiness condition: if it ends by then, `up` fails. */
const EARLY_MS = 150;
/** Characters of how a service ended in a message. */
const LONGEST_END = 400;
/** Characters of a socket's path in a message. */
const LONGEST_SOCKET = 108;
const FAILED = 125;
const NOT_READY = 124;

/** A sandbox that the warm server lends to a service. */
interface SandboxLease extends Disposable {
  readonly lent: OpenSandbox;
}

interface Entry {
  readonly name: string;
  readonly workspace: string;
  readonly wish: UpWish;
  /** Given back when the service is forgotten, not when it ends: until then it can be started again. */
  readonly lease: SandboxLease;
  service: Service;
  /** Gives each start of the service the environment and directory of the call of `up`, after that call has ended. */
  readonly caller: ServiceCaller;
  end: ServiceEnd | undefined;
  endedAt: number;
  forgetting: NodeJS.Timeout | undefined;
}

/** The states in which the command of a service runs. */
const RUNNING: ReadonlySet<ServiceInfo['state']> = new Set(['running', 'ready']);
/** Characters of a command in a line for the model. */
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
   * `path`: where the server listens. `agents`: the background commands that `ps` and `stop` include. `onIdle` is called when the last
   * service is forgotten.
   */
  constructor(path: string, agents: AgentCommands, onIdle: () => void) {
    this.#agents = agents;
    this.#server = basename(path);
    this.#onIdle = onIdle;
  }

  /** Whether a service runs, is being started, or is still remembered. */
  get isBusy(): boolean {
    return this.#entries.size > 0 || this.#starting > 0;
  }

  /** One line for each running service of a workspace, for a model whose commands reach them. */
  async linesForModel(workspace: string): Promise<readonly string[]> {
    const running = [...this.#entries.values()].filter(
      ({ workspace: of, service }) => of === workspace && RUNNING.has(service.state),
    );
    return Promise.all(
      running.map(async ({ name, service, wish: { command } }) => {
        const text = typeof command === 'string' ? command : command.join(' ');
        const ports = portsInWords(await service.ports());
        const reached = ports === '' ? '' : `, reach it at ${ports}`;
        return `In the background: service ${name} of your user runs ${JSON.stringify(visibleLine(text, LONGEST_COMMAND))}${reached}; only your user can read its log and stop it`;
      }),
    );
  }

  /** Stops all services; settles when they have ended. */
  async endAll(): Promise<void> {
    await Promise.all([...this.#entries.values()].map((entry) => this.#stop(entry)));
  }

  /** Stops the services that were started with `--session` for a session that is over, without waiting. Returns their names. */
  endSession(isOver: (session: string) => boolean): readonly string[] {
    const meant = [...this.#entries.values()].filter(
      ({ wish: { sandbox } }) => typeof sandbox.session === 'string' && isOver(sandbox.session),
    );
    for (const entry of meant) void this.#stop(entry);
    return meant.map(({ name }) => name);
  }

  /** Why a service of this name cannot be started in a workspace; `undefined`: it can. */
  inTheWay(name: string, workspace: string): SandboxError | undefined {
    const entry = this.#entries.get(keyOf({ name, workspace }));
    if (entry !== undefined && entry.service.state !== 'ended')
      return exists(name, workspace, entry.service.state);
    const other = readRecords().find(
      (record) => record.workspace === workspace && record.server !== this.#server && isRunning(record),
    );
    return other && underAnother(other);
  }

  /** Starts a service, waits until it is ready, and returns the exit status of `up`. `lease` is given back when the service is forgotten. */
  async up(wish: UpWish, lease: SandboxLease): Promise<number> {
    this.#starting += 1;
    try {
      return await this.#up(wish, lease);
    } finally {
      this.#starting -= 1;
      if (!this.isBusy) this.#onIdle();
    }
  }

  async #up(wish: UpWish, lease: SandboxLease): Promise<number> {
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

  #begin(wish: UpWish, lease: SandboxLease, workspace: string): Entry {
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

  /** Forgets a service when it ends: at once if it was stopped, else after a while, so that `ps` and `logs` can show why it ended. */
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

  /** Waits until a start is ready, has failed or takes too long, tells the caller, and returns the exit status of `up`. */
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
    // Without a readiness condition a command that cannot work (a missing module, a taken port) mostly ends at once: catch that.
    const early =
      came === 'ready' && wish.ready === undefined ? await within(service.ended, EARLY_MS) : undefined;
    if (early !== undefined) return sayEnd(name, early, service, wish);
    if (came === 'ready') {
      const pid = await service.pid();
      if (pid === undefined) {
        printError(
          `${name} has failed and will be started again. To see why: sandbox-run logs ${name}; to stop it: sandbox-run stop ${name}`,
        );
        return NOT_READY;
      }
      if (!isQuiet) printOut(`${name} ${await stateInWords(service)} (process ${pid})\n`);
      return 0;
    }
    if (came === 'late') {
      const givenUp = service.isPatternGivenUp
        ? ': matching its --ready-line took too long and is not tried any more, so choose a simpler one'
        : '';
      printError(
        `${name} is not ready after ${wish.readyTimeoutMs / 1000} s and keeps running${givenUp}. To see why: sandbox-run logs ${name}; sandbox-run stop ${name} ends it and names what the sandbox refused it`,
      );
      return NOT_READY;
    }
    if (came === 'left') {
      printError(`${name} keeps running. To stop it: sandbox-run stop ${name}`);
      return signal === undefined ? FAILED : endedBy(signal);
    }
    return sayEnd(name, came, service, wish);
  }

  /**
   * The work for a call of a command other than `up`; `undefined`: the call is left to its client, because it may concern services of
   * other supervisors.
   */
  async answer(which: Exclude<ServiceCommand, 'up'>, choice: ServiceChoice): Promise<Work | undefined> {
    if (which === 'ps') return choice.here ? work(() => this.#list()) : undefined;
    const others = readRecords().filter(({ server }) => server !== this.#server);
    const meant = chosen([...this.#entries.values()], choice);
    const ofAgent =
      which === 'stop' && meant.length === 0 ? await this.#agents.withProcess(choice.name) : undefined;
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
        const how = end && visibleLine(endInWords(end), LONGEST_END);
        printOut(`${entry.name} ${how === undefined ? 'has ended' : `had ended: ${how}`}\n`);
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
      // A `stop` may have come in the meantime.
      if (this.#entries.get(keyOf(entry)) !== entry) throw gone(entry.name);
      clearTimeout(entry.forgetting);
      noteState(entry, false);
      Object.assign(entry, { service: launched(entry.wish, entry.lease, entry.caller), end: undefined });
      this.#watch(entry);
    }
    const status = await this.#awaitReady(entry, false);
    if (!(await isAsInFile(entry.wish, entry.workspace)))
      printError(
        `${entry.name} was started with its old definition: its policy file has changed or is no longer trusted. To use the new one: sandbox-run stop ${entry.name}, then sandbox-run up ${entry.name}`,
      );
    return status;
  }

  async #log({ service }: Entry, { follow }: ServiceChoice): Promise<number> {
    const signal = await printLog(service.log, follow);
    return signal === undefined ? 0 : endedBy(signal);
  }

  /** Removes a service from the list and the disk, and gives its sandbox back. */
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
    `${name} was not started: a service of that name exists in ${visibleLine(workspace, 4096)} (${state}). To replace it: sandbox-run stop ${name}, or start it again as it was: sandbox-run restart ${name}`,
  );

const gone = (name: string) =>
  new SandboxError(
    'service.unknown',
    `${name} was not restarted, because it was stopped at the same time: start it with sandbox-run up ${name}`,
  );

const underAnother = ({ name, pid, workspace }: ServiceRecord) =>
  new SandboxError(
    'service.exists',
    `the service was not started: services of ${visibleLine(workspace, 4096)} (${name}) belong to another supervisor, process ${pid}, which has another control group or other limits, and the new service would not reach them. Start it from the terminal that they were started from, or run sandbox-run stop --all first`,
  );

/** Starts a service in its sandbox, with the environment and directory of the call of `up`. */
function launched(wish: UpWish, { lent }: SandboxLease, own: ServiceCaller): Service {
  const { run, ready, restart, lifetimeMs, command } = wish;
  // A server that waits for requests writes nothing, so the policy's idle time-out must not end it: only `--idle-timeout` of `up` does.
  const { idleTimeout = 0 } = wish.sandbox;
  const all = { ...run, idleTimeout, cwd: own.cwd(), effect: 'direct' as const };
  return onBehalfOf(own, () => new Service(lent, { command, ready, restart, lifetimeMs, run: all }));
}

/** `is ready, reach it at localhost:5173`, and each published port behind which nothing listens yet. */
async function stateInWords(service: Service): Promise<string> {
  const ports = await service.ports();
  const where = portsInWords(ports);
  const idle = service.published
    .filter(({ relayed, inner }) => relayed && ports.every(({ port }) => port !== inner))
    .map(({ addresses: [address = ''], port, inner, socket }) => {
      const outside = socket === undefined ? hostAndPort(address, port) : visibleLine(socket, LONGEST_SOCKET);
      return `; ${outside} leads to its port ${inner}, where nothing listens yet`;
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

/** Tells the caller of `up` that the service ended before it was ready, and why. Returns the exit status: never 0. */
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

/** Accepts a call: runs `task` and prints its errors to the caller. */
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

/** Prints an error, and returns the exit status for it. */
export function statusOf(error: unknown): number {
  if (error instanceof SandboxError) {
    printError(error.problem, error.remedy);
    return error.exitStatus;
  }
  const ours = error instanceof Error ? (error.stack ?? error.message) : String(error);
  printError(describeShortage(error) ?? ours);
  return FAILED;
}

/**
 * The caller that a service runs for. It keeps the environment and directory of the call of `up`, prints to that call only until the
 * service is ready, and never ends the service by a signal or by leaving.
 */
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
