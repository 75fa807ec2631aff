import { type Deferred, deferred } from '../../base/deferred.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { errnoName } from '../../confine/kernel/errno.ts';
import {
  type NativeCapture,
  type NativeCommand,
  type NativeExit,
  type NativeLaunchExtras,
  type NativeOutcome,
  STDIO_CAPTURE,
} from '../../confine/native/contract.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { Running } from '../../confine/running.ts';
import { errorOf, type ResolvedCommand } from '../../gate/index.ts';
import type {
  ExecutionError,
  ExecutionResult,
  Policy,
  PublishedPort,
  SpawnOptions,
} from '../../model/index.ts';
import { beginLookingForSkippedHooks, type SkippedHooks } from '../../workspace/index.ts';
import type { NetworkBroker } from '../network/broker.ts';
import type { HeldPorts } from '../network/published-ports.ts';
import { missingAlternates } from '../output/alternates.ts';
import type { ChunkReceiver, OutputFeed } from '../output/feed.ts';
import { openNamedFiles } from '../output/named-files.ts';
import type { OutputSettings } from '../output/settings.ts';
import { openSpill, type Spill } from '../output/spill.ts';
import { placesIn } from '../proposals.ts';
import { type PreparedSandbox, writableRoots } from '../resolve/prepare-sandbox.ts';
import { stateDirectory } from '../state.ts';
import { classify, notRun, type RunContext } from './classify.ts';
import { describeFailure, failureIn } from './failure.ts';
import { launchProcess } from './launch-process.ts';
import { neverBegun, pendingCommand, type RunningCommand, signalNumber } from './pending-command.ts';

/** A command whose program, directory and environment are known. */
export type StartableCommand = ResolvedCommand & { readonly ok: true };

/** How a command is launched, apart from what it is. */
export interface Launch {
  readonly stdio: NativeCommand['stdio'];
  readonly input?: Uint8Array | undefined;
  /** In place of it, where it comes from a source: a name for what that will say. */
  readonly source?: string;
  /** What becomes of captured output; undefined: there is none. */
  readonly output?: OutputSettings;
  /** Takes output as it arrives. */
  readonly consumer?: ChunkReceiver | undefined;
  /** Gives output as it arrives to readers that may begin later. */
  readonly feed?: OutputFeed | undefined;
  readonly extras?: NativeLaunchExtras;
  /** Called once it runs. */
  readonly onLaunch?: (running: Running) => void;
  /** Called before that with the ports that it publishes, if any. */
  readonly onPublished?: (ports: readonly PublishedPort[]) => void;
  /** In place of the policy's. */
  readonly idleTimeout?: number | undefined;
  /** Called when a command in the background has ended and what it left behind has not. */
  readonly onExit?: (exit: NativeExit) => void;
  /** Called when all of it has ended, with what was captured: the result may come later. */
  readonly onEnd?: (captured: NativeCapture) => void;
}

/** A command that was allowed and can be started, with all that its launch needs besides the sandbox. */
export interface ReadyCommand {
  readonly resolved: StartableCommand;
  readonly context: RunContext;
  readonly options: SpawnOptions;
  readonly how: Launch;
}

/** A shell string with an `&` that may start something in the background. Quoted ones cost a look at /proc. */
const BACKGROUND = /(?<![&>|<\\])&(?![&>])/;
const TELLS_LEFT: NativeLaunchExtras = { tellsLeftRunning: true };

/** Stage of a launch for which the limit of open files leaves nothing. */
const NO_ROOM = 'room';

const IDLE_UNSEEN =
  'limits.idle_timeout_seconds does not hold for this command: its output does not pass through sandbox-run';

const isCaptured = ({ stdio, extras }: Launch) =>
  stdio[1] === STDIO_CAPTURE || stdio[2] === STDIO_CAPTURE || extras?.pty !== undefined;

/** Nothing, if what the sandbox says holds: a plain run shall not be slower. */
function idleExtras(how: Launch, { limits }: Policy): NativeCommand['extras'] {
  // The idle timeout applies only to captured output: other output is not seen.
  const idleTimeoutMs = isCaptured(how) ? (how.idleTimeout ?? limits.idleTimeoutMs) : 0;
  return idleTimeoutMs === limits.idleTimeoutMs ? undefined : { idleTimeoutMs };
}

/**
 * Launches the commands that are allowed, each in the sandbox that it is given (the usual one, one on a layer, one that only
 * reads), and knows which of them run.
 */
export class Launcher {
  readonly #running = new Map<Running, Promise<ExecutionResult>>();
  readonly #queue = new LaunchQueue();
  /** Renewals of confinements in progress, for which commands wait. */
  readonly #renewals = new Set<Promise<void>>();
  #ended = false;

  launch(sandbox: PreparedSandbox, command: ReadyCommand): RunningCommand {
    const tryNow = () => this.#launchNow(sandbox, command);
    const started = this.#queue.isEmpty() ? tryNow() : undefined;
    return started ?? this.#queue.add(tryNow, command);
  }

  /** Ends what runs at once; settles when all of it has ended. */
  async endAll(): Promise<void> {
    this.#ended = true;
    this.#queue.giveUpAll();
    await Promise.allSettled(this.#renewals);
    for (const running of this.#running.keys()) running.end(true);
    await Promise.allSettled(this.#running.values());
  }

  /** `undefined`: there are no descriptors for it now, and there will be. */
  #launchNow(sandbox: PreparedSandbox, ready: ReadyCommand): RunningCommand | undefined {
    try {
      const renewed = sandbox.hidden?.keepHidden();
      if (renewed !== undefined) return this.#launchOnce(renewed, sandbox, ready);
    } catch (error) {
      return notLaunched(error, ready.context);
    }
    const command = new LaunchedCommand(sandbox, ready, (running) => {
      this.#running.delete(running);
      this.#queue.tryNow();
    });
    let running: Running;
    try {
      running = command.start();
    } catch (error) {
      const why = whyNotLaunched(error);
      return why && neverBegun(notRun(command.context, { status: 'setup-failed', error: why }));
    }
    this.#running.set(running, command.result);
    return command.follow(running);
  }

  /** Launches a command once its sandbox hides what it has to. */
  #launchOnce(renewed: Promise<void>, sandbox: PreparedSandbox, ready: ReadyCommand): RunningCommand {
    let isGivenUp = false;
    this.#renewals.add(renewed);
    const launched = renewed.then(
      () => {
        this.#renewals.delete(renewed);
        return isGivenUp || this.#ended || ready.options.signal?.aborted === true
          ? givenUp(ready)
          : this.launch(sandbox, ready);
      },
      (error: unknown) => {
        this.#renewals.delete(renewed);
        return notLaunched(error, ready.context);
      },
    );
    return pendingCommand(launched, () => {
      isGivenUp = true;
    });
  }
}

/** A command that nobody wants any more. */
export const givenUp = ({ context }: Pick<ReadyCommand, 'context'>): RunningCommand =>
  neverBegun(notRun(context, { status: 'canceled' }));

/** A command that cannot be launched, for a reason that is its result. @throws what is none. */
export function notLaunched(error: unknown, context: RunContext): RunningCommand {
  const why = whyNotLaunched(error);
  if (why === undefined) throw error;
  return neverBegun(notRun(context, { status: 'setup-failed', error: why }));
}

/** The ports of a command that has ended; none, if nothing was published. `told`: what there is to say about the end. */
type EndedPorts = Partial<HeldPorts> & { readonly told: readonly string[] };

/** One command from its launch to its result. */
class LaunchedCommand {
  readonly result: Promise<ExecutionResult>;
  readonly context: RunContext;
  readonly #sandbox: PreparedSandbox;
  /** The plan of this command; the sandbox may have another one for later commands. */
  readonly #plan: LaunchPlan;
  readonly #network: NetworkBroker | undefined;
  readonly #ready: ReadyCommand;
  readonly #onEnd: (running: Running) => void;
  readonly #settle: Deferred<ExecutionResult>;
  readonly #skippedHooks: SkippedHooks;
  #spill: Spill | undefined;
  /** `undefined`: it was not started. */
  #running: Running | undefined;

  constructor(sandbox: PreparedSandbox, ready: ReadyCommand, onEnd: (running: Running) => void) {
    this.#sandbox = sandbox;
    this.#plan = sandbox.plan;
    this.#network = sandbox.network;
    this.context = contextIn(sandbox, ready);
    this.#ready = ready;
    this.#onEnd = onEnd;
    this.#settle = deferred();
    this.#skippedHooks = beginLookingForSkippedHooks(sandbox.findings?.hooks ?? []);
    this.result = this.#settle.promise;
  }

  /** Launches it, or throws what kept it from that. */
  start(): Running {
    const { addon, confinement, policy } = this.#sandbox;
    const { how, options } = this.#ready;
    const { output, extras, consumer, feed } = how;
    try {
      if (output?.spillLimit !== undefined)
        this.#spill =
          output.spillTo === undefined
            ? openSpill(addon, stateDirectory(), output.spillLimit, output.extras?.combined ?? false)
            : openNamedFiles(output.spillTo, output.spillLimit, writableRoots(this.#plan));
      const timeoutMs = options.timeout ?? (extras?.background === true ? 0 : policy.limits.timeoutMs);
      const command = commandOf(this.#ready, policy, timeoutMs, this.#spill);
      const { running, held } = launchProcess(confinement, command, {
        network: this.#network,
        published: this.#sandbox.published,
        receiver: () => consumer ?? feed,
        exited: how.onExit,
        ended: (outcome, told) => this.#end(running, outcome, { ...held, told }),
      });
      this.#running = running;
      if (held !== undefined) how.onPublished?.(held.ports);
      this.#spill?.release();
      return running;
    } catch (error) {
      this.#spill?.discard();
      throw error;
    }
  }

  /** Tells those who wait for it that it runs. */
  follow(running: Running): RunningCommand {
    const { how, options } = this.#ready;
    this.#network?.begin(running.id, this.context.askConnection);
    how.feed?.launched((on) => running.stream(on));
    how.onLaunch?.(running);
    options.signal?.addEventListener('abort', this.#cancel, { once: true });
    return {
      result: this.result,
      kill: (signal = 'SIGTERM') => running.signal(signalNumber(signal)),
      cancel: this.#cancel,
    };
  }

  readonly #cancel = () => {
    this.#running?.end();
  };

  #end(running: Running, outcome: NativeOutcome, published: EndedPorts): void {
    const { settle, shadow, resolved } = this.#sandbox;
    const plan = this.#plan;
    const { how, options } = this.#ready;
    const { output, feed } = how;
    this.#onEnd(running);
    options.signal?.removeEventListener('abort', this.#cancel);
    how.onEnd?.(outcome);
    // What is thrown in a callback of the addon is lost, and the result would be with it.
    try {
      this.#network?.end(running.id);
      const connections = this.#network?.connectionsOf(running.id, outcome);
      const places = placesIn(resolved);
      const { ports, warnings: ofPorts = [], told } = published;
      const warnings = [
        ...ofPorts,
        ...told,
        ...this.#skippedHooks(),
        ...missingAlternates(outcome.exitCode, plan, places),
      ];
      const after = { leftBehind: settle(outcome), connections, ports, warnings, places };
      const head = output?.view.headBytes ?? 0;
      feed?.end(outcome, outcome.headBytes ?? [head, head]);
      const captured = output && { view: output.view, spilled: this.#spill?.result(outcome) };
      this.#settle.resolve(classify(this.context, outcome, after, plan, shadow, captured));
    } catch (error) {
      this.#settle.reject(error);
    }
  }
}

/** The context of a result with the report of the launching sandbox, which may differ from the one at the decision. */
function contextIn({ plan, policy }: PreparedSandbox, { context, how }: ReadyCommand): RunContext {
  const isUnseen = policy.limits.idleTimeoutMs !== 0 && !isCaptured(how);
  if (!isUnseen && context.report === plan.report) return context;
  const warnings = isUnseen ? [...context.warnings, IDLE_UNSEEN] : context.warnings;
  return { ...context, report: plan.report, warnings };
}

/** What the addon is asked to run. */
function commandOf(
  { resolved, how }: ReadyCommand,
  policy: Policy,
  timeoutMs: number,
  spill: Spill | undefined,
): NativeCommand {
  const { output, feed, extras } = how;
  const told = extras === undefined && BACKGROUND.test(resolved.argv.at(-1) ?? '') ? TELLS_LEFT : undefined;
  return {
    program: resolved.program,
    argv: resolved.argv,
    env: extras?.pty === undefined ? resolved.env : withTerminalType(resolved),
    cwd: resolved.cwd,
    stdio: how.stdio,
    input: how.input,
    streamOutput: how.consumer !== undefined || feed?.wanted === true,
    outputLimit: output?.outputLimit ?? 0,
    timeoutMs,
    killGraceMs: policy.limits.killGraceMs,
    extras: mergedExtras(output?.extras, spill?.extras, idleExtras(how, policy), extras, told),
  };
}

/** What kept a command from being launched; `undefined`: there are no descriptors for it now, and there will be. */
function whyNotLaunched(error: unknown): ExecutionError | undefined {
  if (error instanceof SandboxError) return errorOf(error.code, error.message);
  const failure = failureIn(error);
  if (failure === undefined) throw error;
  if (failure.stage === NO_ROOM && errnoName(failure.errno) === 'EAGAIN') return undefined;
  // No thread or no descriptor for it.
  return describeFailure(failure);
}

/** Programs that draw on a terminal ask what kind it is; where nobody has said so, it is what all of today's understand. */
function withTerminalType({ env, variables }: StartableCommand): Uint8Array {
  return variables.TERM === undefined ? Buffer.concat([env, Buffer.from('TERM=xterm-256color\0')]) : env;
}

/** `undefined` where there are none, as for most commands: it is faster. */
function mergedExtras(...some: readonly (NativeLaunchExtras | undefined)[]): NativeLaunchExtras | undefined {
  return some.every((extras) => extras === undefined) ? undefined : Object.assign({}, ...some);
}

/** Others in this process have commands, too, of whose end nothing is heard here. */
const LOOK_AGAIN_MS = 5;

interface Waiting {
  readonly tryIt: () => boolean;
  readonly giveUp: () => void;
}

/** Commands that wait until the limit of open files carries one more, in order. */
class LaunchQueue {
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;

  isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** `launch`: `undefined` as long as it has to wait. */
  add(launch: () => RunningCommand | undefined, command: ReadyCommand): RunningCommand {
    const { signal } = command.options;
    const { promise, resolve, reject } = deferred<RunningCommand>();
    const over = () => {
      this.#waiting.delete(one);
      signal?.removeEventListener('abort', one.giveUp);
    };
    const one: Waiting = {
      tryIt: () => {
        try {
          const started = launch();
          if (started === undefined) return false;
          over();
          resolve(started);
        } catch (error) {
          over();
          reject(error);
        }
        return true;
      },
      giveUp: () => {
        if (!this.#waiting.has(one)) return;
        over();
        resolve(givenUp(command));
      },
    };
    this.#waiting.add(one);
    signal?.addEventListener('abort', one.giveUp, { once: true });
    this.tryNow();
    return pendingCommand(promise, one.giveUp);
  }

  /** Something has ended. */
  tryNow(): void {
    for (const one of this.#waiting) {
      if (!one.tryIt()) break;
      this.#waiting.delete(one);
    }
    if (this.isEmpty()) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    } else this.#timer ??= setInterval(() => this.tryNow(), LOOK_AGAIN_MS);
  }

  giveUpAll(): void {
    for (const one of this.#waiting) one.giveUp();
    this.tryNow();
  }
}
