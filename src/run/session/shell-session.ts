import { randomUUID } from 'node:crypto';
import { directoryPath } from '../../base/directory-path.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shellWord } from '../../base/shell-quote.ts';
import { SHELL_GROUPS } from '../../confine/kernel/seccomp/filter.ts';
import { seccompProgram } from '../../confine/kernel/seccomp/program.ts';
import type { NativeOutcome } from '../../confine/native/contract.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { type Decided, VOID } from '../../gate/index.ts';
import type {
  ExecutionResult,
  ShellOptions,
  ShellSnapshot,
  TurnOptions,
  TurnResult,
} from '../../model/index.ts';
import { beginLookingForSkippedHooks } from '../../workspace/index.ts';
import type { CommandRunner } from '../command-runner.ts';
import { classify, notRun, type RunContext } from '../launch/classify.ts';
import { settled } from '../launch/command-error.ts';
import { followed, requestOf } from '../launch/decided-command.ts';
import { describeFailure, describeThrown } from '../launch/failure.ts';
import type { NetworkBroker } from '../network/broker.ts';
import { missingAlternates } from '../output/alternates.ts';
import { OutputConsumer } from '../output/consumer.ts';
import { createOutputSettings, type OutputSettings } from '../output/settings.ts';
import { placesIn } from '../proposals.ts';
import type { PreparedSandbox } from '../resolve/prepare-sandbox.ts';
import type { OptionReader } from '../validation.ts';
import { ShellProcess, type TurnOutcome } from './shell-process.ts';
import { changedVariables, factsOf, readShellState, type ShellState } from './shell-state.ts';
import { ANEW, checkSnapshot, isUsableDirectory, restoreVariables } from './snapshot.ts';

/**
 * One long-lived confined bash. Directory, variables, functions and activated environments last from command to
 * command. Its commands are one trust domain: what one of them does to the shell, the next ones get.
 */
export interface ShellSession extends AsyncDisposable {
  readonly id: string;
  /** Canonical directory in which the next command starts. */
  readonly cwd: string;
  /** Remarks on the start: variables of a snapshot that were left out. */
  readonly warnings: readonly string[];
  /** Judges a command and runs it in the shell. One at a time: others wait for their turn. */
  run(command: string, options?: TurnOptions): Promise<TurnResult>;
  /** Interrupts the command that runs, as Ctrl-C would, and ends what does not heed that. False: none runs. */
  interrupt(): boolean;
  /** Where the shell is and what it exports. */
  snapshot(): ShellSnapshot;
  /** Ends the shell and everything that it started. */
  close(): Promise<void>;
}

const BROKEN =
  'the shell was ended, because the command wrote to the channel through which the shell reports to its session';

const STARTED_ANEW =
  'the shell was started anew before this command, because files have come that it must not see (filesystem.hide): variables that are not exported, functions and jobs are gone';

const IDLE_UNSEEN = 'limits.idle_timeout_seconds does not hold for the commands of a session';

/** The first turn reports the shell's initial state; a shell that is too slow for that is unusable. */
const START_TIMEOUT_MS = 20_000;

const isClosed = () =>
  new SandboxError('session.closed', 'this session has ended; make a new one with sandbox.session()');

/** A filter for the groups that shells must not have and the confinement's own filter allows; `undefined`: none is needed, or seccomp is not used. */
async function filterOfShells({ plan, confinement }: PreparedSandbox): Promise<Uint8Array | undefined> {
  const { seccompGroups: held } = plan;
  if (held.length === 0 || SHELL_GROUPS.every((group) => held.includes(group))) return undefined;
  return (await seccompProgram(SHELL_GROUPS, confinement.features.architecture)).bytes;
}

/** The parts of its sandbox's command runner that a session uses. */
type ShellHost = Pick<CommandRunner, 'prepared' | 'decide' | 'resolve' | 'contextOf'>;

/**
 * Starts a session.
 * @throws {SandboxError} `usage.invalid`, `cwd.unusable`, `session.closed` if the shell cannot be started.
 */
export async function openShell(
  sandbox: ShellHost,
  read: Pick<OptionReader, 'session' | 'turn'>,
  given: ShellOptions = {},
  onClosed: (session: ShellSession) => void,
): Promise<ShellSession> {
  const options = read.session(given);
  const { prepared } = sandbox;
  const snapshot = options.restore === undefined ? undefined : checkSnapshot(options.restore, prepared.plan);
  const session = new OpenShell(sandbox, read, options, await filterOfShells(prepared), onClosed);
  await session.start(snapshot);
  return session;
}

/** A shell that runs, and what it said about itself. */
interface RunningShell {
  readonly process: ShellProcess;
  /** The plan of this shell; the sandbox may have another one for later commands. */
  readonly plan: LaunchPlan;
  readonly network: NetworkBroker | undefined;
  /** The state of the shell at its start. */
  readonly first: ShellState;
}

/** One confined bash after the other: where one ends with a command, the next takes its place. */
class OpenShell implements ShellSession {
  readonly id = randomUUID();
  readonly #sandbox: ShellHost;
  readonly #read: Pick<OptionReader, 'turn'>;
  readonly #options: ShellOptions;
  readonly #addedFilter: Uint8Array | undefined;
  readonly #onClosed: (session: ShellSession) => void;
  readonly #output: OutputSettings;
  readonly #warnings: string[];
  /** What the policy gives every command. */
  readonly #usual: Readonly<Record<string, string | undefined>>;
  #running: RunningShell | undefined;
  /** The last state that the shell reported; `undefined`: none that is understood. */
  #state: ShellState | undefined;
  #lastKnown: ShellState | undefined;
  #ranUnseenCode = false;
  /** What `filesystem.hide` matched when the shell began, and what came while its commands ran; `undefined`: not known. */
  #seen: ReadonlyMap<string, string | undefined> | undefined;
  #closed = false;
  /** Gives up the turn that waits or runs. */
  #controller: AbortController | undefined;
  #isTurn = false;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(
    sandbox: ShellHost,
    read: Pick<OptionReader, 'turn'>,
    options: ShellOptions,
    addedFilter: Uint8Array | undefined,
    onClosed: (session: ShellSession) => void,
  ) {
    const { limits } = sandbox.prepared.policy;
    this.#sandbox = sandbox;
    this.#read = read;
    this.#options = options;
    this.#addedFilter = addedFilter;
    this.#onClosed = onClosed;
    this.#output = createOutputSettings(limits)({});
    this.#warnings = limits.idleTimeoutMs === 0 ? [] : [IDLE_UNSEEN];
    const plain = sandbox.resolve(':', { env: { PWD: undefined } });
    this.#usual = plain.ok ? plain.variables : {};
  }

  get cwd(): string {
    return this.#known.cwd;
  }

  get warnings(): readonly string[] {
    return [...this.#warnings];
  }

  run(command: string, given: TurnOptions = {}): Promise<TurnResult> {
    let options: TurnOptions;
    try {
      if (typeof command !== 'string')
        throw new SandboxError('usage.invalid', 'a command of a session must be a shell string');
      options = this.#read.turn(given);
      if (this.#closed) throw isClosed();
    } catch (error) {
      return Promise.reject(error);
    }
    const turn = this.#queue.then(() => this.#runNow(command, options));
    this.#queue = turn.catch(() => {});
    return settled(command, turn, options.reject);
  }

  interrupt(): boolean {
    if (this.#isTurn) return this.#shell.process.interrupt();
    if (this.#controller === undefined) return false;
    this.#controller.abort();
    return true;
  }

  snapshot(): ShellSnapshot {
    const { cwd, exported } = this.#known;
    return { cwd, env: Object.fromEntries(Object.entries(exported).filter(([name]) => !ANEW.test(name))) };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#controller?.abort();
    await this.#shell.process.kill();
    await this.#queue.catch(() => {});
    // In the meantime a new one may have taken its place.
    await this.#shell.process.kill();
    this.#onClosed(this);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Starts a shell where a snapshot says; the first thing that it does is to say how it begins. */
  async start(from: ShellSnapshot | undefined): Promise<void> {
    const restored = from === undefined ? undefined : restoreVariables(from.env, this.#usual);
    for (const { name, why } of restored?.refused ?? []) {
      const warning = `${name} was not restored: ${why}`;
      if (!this.#warnings.includes(warning)) this.#warnings.push(warning);
    }
    const { prepared } = this.#sandbox;
    this.#seen = prepared.hidden?.matches();
    await prepared.hidden?.keepHidden();
    const { plan, network } = prepared;
    const process = this.#startProcess(from?.cwd ?? directoryPath(this.#options.cwd), restored?.env);
    const hello = await process.turn({ text: ':', assignments: '', timeout: START_TIMEOUT_MS });
    const said = hello.alive && !hello.end.timedOut ? readShellState(hello.end.state) : undefined;
    if (said === undefined) throw startFailure(hello.alive ? await process.kill() : hello.outcome);
    this.#running = { process, plan, network, first: said };
    this.#state = said;
    this.#lastKnown = said;
    this.#ranUnseenCode = false;
  }

  get #shell(): RunningShell {
    if (this.#running === undefined) throw isClosed();
    return this.#running;
  }

  get #known(): ShellState {
    if (this.#lastKnown === undefined) throw isClosed();
    return this.#lastKnown;
  }

  #startProcess(cwd: string | undefined, env: ShellSnapshot['env'] | undefined): ShellProcess {
    const { prepared } = this.#sandbox;
    // A shell that lives on is in the directory itself: relative paths are judged by where they lead.
    const resolved = this.#sandbox.resolve(':', {
      cwd,
      env: { ...this.#options.env, ...env, PWD: undefined },
    });
    if (!resolved.ok) throw new SandboxError(resolved.code, resolved.message);
    try {
      return new ShellProcess(prepared.addon, prepared.confinement, {
        program: resolved.program,
        env: resolved.env,
        cwd: resolved.cwd,
        output: this.#output,
        killGraceMs: prepared.policy.limits.killGraceMs,
        addedFilter: this.#addedFilter,
        network: prepared.network,
        published: prepared.published,
      });
    } catch (error) {
      // No thread or no descriptor for it.
      throw describeThrown(error);
    }
  }

  async #runNow(command: string, options: TurnOptions): Promise<TurnResult> {
    if (this.#closed) throw isClosed();
    const mine = new AbortController();
    this.#controller = mine;
    const signal =
      options.signal === undefined ? mine.signal : AbortSignal.any([mine.signal, options.signal]);
    try {
      const restarted = !this.#hidesAll() && (await this.#startAnew());
      const decided = await this.#sandbox.decide(this.#requestOf(command, options, signal));
      const result = await this.#runDecided(command, options, decided, signal);
      return restarted ? { ...result, restarted, warnings: [...result.warnings, STARTED_ANEW] } : result;
    } finally {
      if (this.#controller === mine) this.#controller = undefined;
    }
  }

  #requestOf(command: string, options: TurnOptions, signal: AbortSignal) {
    const { approved, taints, timeout } = options;
    const { first } = this.#shell;
    const changed = changedVariables(this.#known, { variables: this.#usual, first });
    const env =
      changed === undefined && options.env === undefined ? undefined : { ...changed, ...options.env };
    const shell = factsOf(this.#state, first, this.#ranUnseenCode);
    const run = { cwd: this.#known.cwd, env, approved, taints, timeout };
    return requestOf(command, run, { shell, signal: () => signal });
  }

  async #runDecided(
    command: string,
    options: TurnOptions,
    decided: Decided,
    signal: AbortSignal,
  ): Promise<TurnResult> {
    const context = this.#sandbox.contextOf(decided);
    if (!decided.allowed) return this.#after(notRun(context, decided.objection));
    const { ended, judgement } = decided;
    if (this.#closed || signal.aborted)
      return this.#after(await followed(ended, notRun(context, { status: 'canceled' }), false));
    // While somebody was asked. What was decided about was the shell that this takes the place of.
    if (!this.#hidesAll() && (await this.#startAnew()))
      return this.#after(
        await followed(ended, notRun(context, { status: 'denied', error: VOID }), false),
        true,
      );
    const leavesDoubts = judgement?.leavesDoubts() ?? false;
    const launched = await this.#takeTurn(command, options, context, signal);
    if (leavesDoubts) this.#ranUnseenCode = true;
    const result = await followed(ended, launched.result, true);
    return launched.alive || this.#closed ? this.#after(result) : this.#replaceShell(result);
  }

  /** False: since the last command something came, or took a place, that the shell would see and shall not. */
  #hidesAll(): boolean {
    const { hidden } = this.#sandbox.prepared;
    if (hidden === undefined) return true;
    const seen = this.#seen;
    return seen !== undefined && [...hidden.matches()].every(([path, which]) => seen.get(path) === which);
  }

  /** Notes the hidden files that exist now: those that appeared during a command could be read by it, and count as known to the shell. */
  #noteHidden(): void {
    try {
      this.#seen = this.#sandbox.prepared.hidden?.matches();
    } catch {
      // The next command starts with a new shell, which says why there is none.
      this.#seen = undefined;
    }
  }

  /** A new shell, which does not see it, takes the place of this one. */
  async #startAnew(): Promise<true> {
    const { cwd, exported } = this.#known;
    const { plan } = this.#sandbox.prepared;
    await this.#shell.process.kill();
    try {
      await this.start({ cwd: isUsableDirectory(cwd, plan) ? cwd : plan.workspace, env: exported });
      return true;
    } catch (error) {
      this.#closed = true;
      this.#onClosed(this);
      throw error;
    }
  }

  #after(result: ExecutionResult, restarted = false): TurnResult {
    return { ...result, cwdAfter: this.#known.cwd, restarted };
  }

  /** A new shell takes the place of the one that has ended, where that was. */
  async #replaceShell(result: ExecutionResult): Promise<TurnResult> {
    const { cwd, exported } = this.#known;
    const { plan } = this.#sandbox.prepared;
    try {
      await this.start({ cwd: isUsableDirectory(cwd, plan) ? cwd : plan.workspace, env: exported });
      return this.#after(result, true);
    } catch (error) {
      // The command has run: its result is returned, and the next command fails because there is no shell.
      this.#closed = true;
      this.#onClosed(this);
      const why = errorMessage(error);
      return this.#after({ ...result, warnings: [...result.warnings, `the session has ended: ${why}`] });
    }
  }

  async #takeTurn(
    command: string,
    options: TurnOptions,
    context: RunContext,
    signal: AbortSignal,
  ): Promise<{ readonly result: ExecutionResult; readonly alive: boolean }> {
    const { prepared } = this.#sandbox;
    const { policy } = prepared;
    const { process: shell, plan, network } = this.#shell;
    const consumer = options.onOutput && new OutputConsumer(options.onOutput, () => shell.interrupt());
    const onAbort = () => shell.interrupt();
    signal.addEventListener('abort', onAbort, { once: true });
    this.#isTurn = true;
    network?.begin(shell.id, context.askConnection);
    const begun = performance.now();
    const skippedHooks = beginLookingForSkippedHooks(prepared.findings?.hooks ?? []);
    let how: TurnOutcome;
    try {
      how = await shell.turn({
        text: command,
        assignments: assignmentsOf(options.env),
        timeout: options.timeout ?? policy.limits.timeoutMs,
        receiver: consumer,
      });
    } finally {
      this.#isTurn = false;
      signal.removeEventListener('abort', onAbort);
    }
    if (how.alive) {
      this.#state = readShellState(how.end.state);
      this.#lastKnown = this.#state ?? this.#lastKnown;
    }
    const outcome = outcomeOf(how, performance.now() - begun, this.#closed);
    const leftBehind = prepared.settle(outcome);
    this.#noteHidden();
    const connections = network?.connectionsOf(shell.id, outcome);
    const places = placesIn(prepared.resolved);
    const warnings = [
      ...shell.takeRemarks(),
      ...skippedHooks(),
      ...missingAlternates(outcome.exitCode, plan, places),
      ...(how.alive || !how.broken ? [] : [BROKEN]),
    ];
    const after = { leftBehind, connections, ports: shell.ports, places, warnings };
    const view = { view: this.#output.view, spilled: undefined };
    const result = classify(context, outcome, after, plan, prepared.shadow, view);
    // A canceled command does not wait for the consumer of its output, which may never finish.
    const settled = await consumer?.settled(Promise.resolve(result), signal);
    return { result: settled ?? result, alive: how.alive };
  }
}

function startFailure(outcome: NativeOutcome): SandboxError {
  if (outcome.failure !== undefined) {
    const { code, message } = describeFailure(outcome.failure, outcome.treeEnded);
    return new SandboxError(code, message);
  }
  const how = outcome.signal === 0 ? `exited ${outcome.exitCode}` : `was ended by signal ${outcome.signal}`;
  const said = outcome.stderr?.toString('utf8').trim().split('\n').at(-1) ?? '';
  return new SandboxError(
    'session.closed',
    `the shell of the session cannot be started: it ${how}${said === '' ? '' : ` (${said})`}`,
  );
}

/** As bash reads them: values in single quotes. */
function assignmentsOf(env: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(env ?? {})
    .map(([name, value]) => `${name}=${shellWord(value)} `)
    .join('');
}

/**
 * A turn as if it had been a command of its own: how it ended, or how the shell did that ended with it.
 * `durationMs`: of the turn, `closed`: the session was ended.
 */
function outcomeOf(how: TurnOutcome, durationMs: number, closed: boolean): NativeOutcome {
  if (!how.alive) return { ...how.outcome, durationMs, canceled: how.outcome.canceled || closed };
  return {
    ...how.end,
    kind: 'ended',
    signal: 0,
    canceled: how.end.interrupted,
    // The shell is still there, and perhaps jobs in the background.
    treeEnded: false,
    userCpuMs: 0,
    systemCpuMs: 0,
    maxRssKib: 0,
    launcherMaxRssKib: 0,
  };
}
