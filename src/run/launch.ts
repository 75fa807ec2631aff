import { constants } from 'node:os';
import type { ExecutionResult } from '../model/execution-result.ts';
import type { Policy } from '../model/policy.ts';
import { type NativeCommand, type NativeFailure, STDIO_CAPTURE } from '../native/contract.ts';
import { launchCommand } from '../native/launch.ts';
import { classify, type KeptOutput, NOTHING_CHANGED, notStarted, type RunContext } from './classify.ts';
import type { SettledCommand } from './command-line.ts';
import { describeFailure } from './failure.ts';
import type { RunningCommand } from './pending-command.ts';
import type { PreparedSandbox } from './prepare-sandbox.ts';
import { inspectProtectedPaths } from './protected-paths.ts';
import type { SpawnOptions } from './sandbox-options.ts';

/** How a command is launched, apart from what it is. */
export interface Launch {
  readonly stdio: NativeCommand['stdio'];
  readonly input?: Uint8Array;
  readonly streamOutput?: boolean;
  /** In place of the policy's. */
  readonly idleTimeout?: number | undefined;
  readonly onChunk?: (stream: number, bytes: Buffer, acknowledge: () => void) => void;
  readonly kept?: () => KeptOutput;
  /** Called once: what was passed to the command is not needed here any more. */
  readonly release?: () => void;
}

/** Launches admitted commands of one sandbox, and knows which of them run. */
export interface Launcher {
  launch(
    settled: SettledCommand & { readonly ok: true },
    context: RunContext,
    options: SpawnOptions,
    how: Launch,
  ): RunningCommand;
  /** Ends what runs at once; settles when all of it has ended. */
  endAll(): Promise<void>;
}

const IDLE_UNSEEN =
  'limits.idle_timeout_seconds does not hold for this command: its output does not pass through sandbox-run';

const isCaptured = ({ stdio }: Launch) => stdio[1] === STDIO_CAPTURE || stdio[2] === STDIO_CAPTURE;

/** Nothing, if what the sandbox says holds: a plain run shall not be slower. */
function extrasOf(how: Launch, { limits }: Policy): NativeCommand['extras'] {
  // Who writes where nobody looks is not silent.
  const idleTimeoutMs = isCaptured(how) ? (how.idleTimeout ?? limits.idleTimeoutMs) : 0;
  return idleTimeoutMs === limits.idleTimeoutMs ? undefined : { idleTimeoutMs };
}

/** @see Launcher */
export function createLauncher({ addon, confinement, policy, plan }: PreparedSandbox): Launcher {
  const running = new Map<number, Promise<ExecutionResult>>();

  function launch(
    settled: SettledCommand & { readonly ok: true },
    given: RunContext,
    options: SpawnOptions,
    how: Launch,
  ): RunningCommand {
    const context =
      policy.limits.idleTimeoutMs === 0 || isCaptured(how)
        ? given
        : { ...given, warnings: [...given.warnings, IDLE_UNSEEN] };
    let id = 0;
    const abort = () => addon.cancel(id, false);
    let finish: (result: ExecutionResult) => void = () => {};
    const result = new Promise<ExecutionResult>((done) => {
      finish = done;
    });
    try {
      id = launchCommand(
        addon,
        confinement,
        {
          program: settled.program,
          argv: settled.argv,
          env: settled.env,
          cwd: settled.cwd,
          stdio: how.stdio,
          input: how.input,
          streamOutput: how.streamOutput ?? false,
          outputLimit: policy.limits.outputBytes,
          timeoutMs: options.timeout ?? policy.limits.timeoutMs,
          killGraceMs: policy.limits.killGraceMs,
          extras: extrasOf(how, policy),
        },
        {
          onChunk: (stream, bytes) => how.onChunk?.(stream, bytes, () => addon.acknowledge(id, bytes.length)),
          onEnd: (outcome) => {
            running.delete(id);
            options.signal?.removeEventListener('abort', abort);
            const after =
              outcome.changedPaths === undefined
                ? NOTHING_CHANGED
                : inspectProtectedPaths(plan.workspace, plan.protectedPaths, outcome.changedPaths);
            finish(classify(context, outcome, after, plan, how.kept?.(), how.stdio[1] === STDIO_CAPTURE));
          },
        },
      );
    } catch (error) {
      const failure = (error as { readonly failure?: NativeFailure }).failure;
      if (failure === undefined) throw error;
      // No thread or no descriptor for it.
      const why = notStarted(context, describeFailure(failure));
      return { result: Promise.resolve(why), kill: () => false, cancel: () => {} };
    } finally {
      how.release?.();
    }
    running.set(id, result);
    options.signal?.addEventListener('abort', abort, { once: true });
    return { result, kill: (signal) => addon.signal(id, constants.signals[signal]), cancel: abort };
  }

  return {
    launch,
    async endAll() {
      for (const id of running.keys()) addon.cancel(id, true);
      await Promise.all(running.values());
    },
  };
}
