import type { ResolvedCommand } from '../../decide/ports.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { errnoName } from '../../kernel/errno.ts';
import type { ExecutionError, ExecutionResult } from '../../model/execution-result.ts';
import type { SpawnOptions } from '../../model/options.ts';
import type { Policy } from '../../model/policy.ts';
import {
  type NativeCapture,
  type NativeCommand,
  type NativeEvent,
  type NativeExit,
  type NativeFailure,
  type NativeLaunchExtras,
  type NativeOutcome,
  STDIO_CAPTURE,
} from '../../native/contract.ts';
import { launchCommand } from '../../native/launch.ts';
import { assertNever } from '../../util/assert-never.ts';
import { deferred } from '../../util/deferred.ts';
import type { ChunkReceiver } from '../output/chunk.ts';
import type { OutputFeed } from '../output/feed.ts';
import type { OutputSettings } from '../output/settings.ts';
import { openSpill, type Spill } from '../output/spill.ts';
import type { PreparedSandbox } from '../resolve/prepare-sandbox.ts';
import { stateDirectory } from '../state.ts';
import { canceledBefore, classify, notStarted, type RunContext } from './classify.ts';
import { describeFailure } from './failure.ts';
import { createLaunchQueue } from './launch-queue.ts';
import { type RunningCommand, signalNumber } from './pending-command.ts';

/** A command whose program, directory and environment are known. */
export type StartableCommand = ResolvedCommand & { readonly ok: true };

/** How a command is launched, apart from what it is. */
export interface Launch {
  readonly stdio: NativeCommand['stdio'];
  readonly input?: Uint8Array | undefined;
  /** What becomes of captured output; undefined: there is none. */
  readonly output?: OutputSettings;
  /** Takes output as it arrives. */
  readonly consumer?: ChunkReceiver | undefined;
  /** The same, once somebody asks for it. */
  readonly feed?: OutputFeed | undefined;
  readonly extras?: NativeLaunchExtras;
  /** Called once it runs, with its id for the addon. */
  readonly onLaunch?: (id: number) => void;
  /** In place of the policy's. */
  readonly idleTimeout?: number | undefined;
  /** Called when a command in the background has ended and what it left behind has not. */
  readonly onExit?: (exit: NativeExit) => void;
  /** Called when all of it has ended, with what was captured: the result may come later. */
  readonly onEnd?: (captured: NativeCapture) => void;
  /** Called once: what was passed to the command is not needed here any more. */
  readonly release?: () => void;
}

/** Launches the commands that are allowed of one sandbox, and knows which of them run. */
export interface Launcher {
  launch(resolved: StartableCommand, context: RunContext, options: SpawnOptions, how: Launch): RunningCommand;
  /** Ends what runs at once; settles when all of it has ended. */
  endAll(): Promise<void>;
}

/** Stage of a launch for which the limit of open files leaves nothing. */
const NO_ROOM = 'room';

const IDLE_UNSEEN =
  'limits.idle_timeout_seconds does not hold for this command: its output does not pass through sandbox-run';

const isCaptured = ({ stdio, extras }: Launch) =>
  stdio[1] === STDIO_CAPTURE || stdio[2] === STDIO_CAPTURE || extras?.pty !== undefined;

/** Nothing, if what the sandbox says holds: a plain run shall not be slower. */
function idleExtras(how: Launch, { limits }: Policy): NativeCommand['extras'] {
  // Who writes where nobody looks is not silent.
  const idleTimeoutMs = isCaptured(how) ? (how.idleTimeout ?? limits.idleTimeoutMs) : 0;
  return idleTimeoutMs === limits.idleTimeoutMs ? undefined : { idleTimeoutMs };
}

/** @see Launcher */
export function createLauncher({ addon, confinement, policy, plan, settle }: PreparedSandbox): Launcher {
  const running = new Map<number, Promise<ExecutionResult>>();
  const queue = createLaunchQueue();

  function launch(
    resolved: StartableCommand,
    given: RunContext,
    options: SpawnOptions,
    how: Launch,
  ): RunningCommand {
    const started = queue.isEmpty() ? launchNow(resolved, given, options, how) : undefined;
    return (
      started ??
      queue.add(
        () => launchNow(resolved, given, options, how),
        () => {
          how.release?.();
          return canceledBefore(given);
        },
        options.signal,
      )
    );
  }

  /** `undefined`: there are no descriptors for it now, and there will be. */
  function launchNow(
    resolved: StartableCommand,
    given: RunContext,
    options: SpawnOptions,
    how: Launch,
  ): RunningCommand | undefined {
    let waits = false;
    const { output, feed } = how;
    const receiver = how.consumer ?? feed;
    const context =
      policy.limits.idleTimeoutMs === 0 || isCaptured(how)
        ? given
        : { ...given, warnings: [...given.warnings, IDLE_UNSEEN] };
    let id = 0;
    let spill: Spill | undefined;
    const abort = () => addon.cancel(id, false);
    const { promise: result, resolve: finish, reject: fail } = deferred<ExecutionResult>();
    const end = (outcome: NativeOutcome) => {
      running.delete(id);
      queue.tryNow();
      options.signal?.removeEventListener('abort', abort);
      how.onEnd?.(outcome);
      // What is thrown in a callback of the addon is lost, and the result would be with it.
      try {
        const after = { leftBehind: settle(outcome), warnings: [] };
        const head = output?.view.headBytes ?? 0;
        feed?.end(outcome, outcome.headBytes ?? [head, head]);
        const captured = output && { view: output.view, spilled: spill?.result(outcome) };
        finish(classify(context, outcome, after, plan, captured));
      } catch (error) {
        fail(error);
      }
    };
    const onEvent = (event: NativeEvent) => {
      switch (event.kind) {
        case 'chunk':
          receiver?.onChunk(event.stream, event.bytes, () => addon.acknowledge(id, event.bytes.length));
          break;
        case 'gap':
          receiver?.onGap?.(event.stream, event.missing);
          break;
        case 'exited':
          how.onExit?.(event);
          break;
        case 'ended':
          end(event);
          break;
        // Only of shells.
        case 'turn-ended':
          break;
        default:
          assertNever(event);
      }
    };
    try {
      if (output?.spillLimit !== undefined)
        spill = openSpill(addon, stateDirectory(), output.spillLimit, output.extras?.combined ?? false);
      const timeoutMs = options.timeout ?? (how.extras?.background === true ? 0 : policy.limits.timeoutMs);
      const command = commandOf(resolved, how, policy, timeoutMs, spill);
      id = launchCommand(addon, confinement, command, onEvent);
    } catch (error) {
      const why = whyNotLaunched(error);
      waits = why === undefined;
      if (why === undefined) return undefined;
      return { result: Promise.resolve(notStarted(context, why)), kill: () => false, cancel: () => {} };
    } finally {
      if (!waits) how.release?.();
      spill?.release();
    }
    feed?.launched((on) => addon.stream(id, on));
    running.set(id, result);
    how.onLaunch?.(id);
    options.signal?.addEventListener('abort', abort, { once: true });
    return { result, kill: (signal) => addon.signal(id, signalNumber(signal)), cancel: abort };
  }

  return {
    launch,
    async endAll() {
      queue.giveUpAll();
      for (const id of running.keys()) addon.cancel(id, true);
      await Promise.allSettled(running.values());
    },
  };
}

/** What the addon is asked to run. */
function commandOf(
  resolved: StartableCommand,
  how: Launch,
  policy: Policy,
  timeoutMs: number,
  spill: Spill | undefined,
): NativeCommand {
  const { output, feed, extras } = how;
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
    extras: mergedExtras(output?.extras, spill?.extras, idleExtras(how, policy), extras),
  };
}

/** What kept a command from being launched; `undefined`: there are no descriptors for it now, and there will be. */
function whyNotLaunched(error: unknown): ExecutionError | undefined {
  if (error instanceof SandboxError) {
    const { code, message } = error;
    return { code, message, stage: undefined, errno: undefined, path: undefined };
  }
  const failure = (error as { readonly failure?: NativeFailure }).failure;
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
