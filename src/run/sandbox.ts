import { closeSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { Command } from '../model/execution-request.ts';
import type { ExecutionResult } from '../model/execution-result.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import { type NativeCommand, type NativeOutcome, STDIO_CAPTURE, STDIO_NULL } from '../native/contract.ts';
import { launchCommand } from '../native/launch.ts';
import { buildEnvironment } from '../policy/environment.ts';
import {
  canceledBefore,
  classify,
  type KeptOutput,
  NOTHING_CHANGED,
  notStarted,
  type RunContext,
} from './classify.ts';
import { createCommandSettler, type SettledCommand } from './command-line.ts';
import { createOutputKeeper } from './output-keeper.ts';
import { type PreparedSandbox, prepareSandbox } from './prepare-sandbox.ts';
import { inspectProtectedPaths } from './protected-paths.ts';
import type { RunOptions, SandboxOptions, SpawnOptions } from './sandbox-options.ts';

/** A command started with streams. */
export interface SandboxProcess {
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Settles when the command and everything that it started has ended; never rejects for what the command did. */
  readonly result: Promise<ExecutionResult>;
  /** Sends a signal to the command's process group. False: it has ended. Default: SIGTERM. */
  kill(signal?: NodeJS.Signals): boolean;
}

/** A running command of `start()`. */
export interface RunningCommand {
  readonly result: Promise<ExecutionResult>;
  /** Sends a signal to the command's process group. False: it has ended. */
  kill(signal: NodeJS.Signals): boolean;
  /** Ends the command: SIGTERM, then SIGKILL after the grace period. */
  cancel(): void;
}

/** One policy, ready to run commands under it. */
export interface Sandbox extends AsyncDisposable {
  /** Canonical path of the workspace. */
  readonly workspace: string;
  /** What the kernel is told, by name. */
  readonly plan: LaunchPlan;
  /** Runs a command to its end. A string is a shell string (bash), an array an argument vector. */
  run(command: Command, options?: RunOptions): Promise<ExecutionResult>;
  /** Like `run`, and lets signals be sent meanwhile. */
  start(command: Command, options?: RunOptions): RunningCommand;
  /** Starts a command with streams, which the caller has to read. */
  spawn(command: Command, options?: SpawnOptions): SandboxProcess;
  /** Ends the running commands and gives up the kernel objects. Later runs fail with `sandbox.closed`. */
  close(): Promise<void>;
}

/**
 * Makes a sandbox: resolves the policy, asks the host, makes the kernel objects. They are reused by every command.
 * @throws {SandboxError} if the policy is wrong or cannot be enforced on this host.
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  return sandboxOf(await prepareSandbox(options));
}

type ReadyCommand = SettledCommand & { readonly ok: true };

interface Launch {
  readonly stdio: NativeCommand['stdio'];
  readonly input?: Uint8Array;
  readonly streamOutput?: boolean;
  readonly onChunk?: (stream: number, bytes: Buffer, acknowledge: () => void) => void;
  readonly kept?: () => KeptOutput;
}

function standardInput(options: RunOptions): number {
  if (options.input !== undefined) return STDIO_CAPTURE;
  return options.stdin === 'inherit' ? 0 : STDIO_NULL;
}

function unsettled(context: RunContext, why: SettledCommand & { readonly ok: false }): ExecutionResult {
  const { code, message, path } = why;
  return notStarted(context, { code, message, stage: undefined, errno: undefined, path });
}

/** Internal: a sandbox from kernel objects that are ready. */
export function sandboxOf(prepared: PreparedSandbox): Sandbox {
  const { addon, confinement, policy, plan } = prepared;
  const environment = buildEnvironment(process.env, policy.environment.pass, policy.environment.set);
  const { settle, forget } = createCommandSettler(plan, environment);
  const running = new Map<number, Promise<ExecutionResult>>();
  let closed = false;

  function launch(command: Command, options: SpawnOptions, how: Launch): RunningCommand {
    if (closed)
      throw new SandboxError(
        'sandbox.closed',
        'this sandbox was closed; make a new one with createSandbox()',
      );
    const settled = settle(command, options);
    const context: RunContext = {
      argv: settled.argv,
      cwd: settled.cwd,
      warnings: environment.warnings,
      report: plan.report,
    };
    if (!settled.ok) {
      return { result: Promise.resolve(unsettled(context, settled)), kill: () => false, cancel: () => {} };
    }
    if (options.signal?.aborted === true) {
      return { result: Promise.resolve(canceledBefore(context)), kill: () => false, cancel: () => {} };
    }
    let id = 0;
    let canceled = false;
    const abort = () => {
      canceled = true;
      addon.cancel(id, false);
    };
    let finish: (result: ExecutionResult) => void = () => {};
    const result = new Promise<ExecutionResult>((done) => {
      finish = done;
    });
    const onChunk = (stream: number, bytes: Buffer) =>
      how.onChunk?.(stream, bytes, () => addon.acknowledge(id, bytes.length));
    const attempt = (at: ReadyCommand) => {
      id = launchCommand(
        addon,
        confinement,
        {
          program: at.program,
          argv: at.argv,
          env: at.env,
          cwd: at.cwd,
          stdio: how.stdio,
          input: how.input,
          streamOutput: how.streamOutput ?? false,
          outputLimit: policy.limits.outputBytes,
          timeoutMs: options.timeout ?? policy.limits.timeoutMs,
          killGraceMs: policy.limits.killGraceMs,
        },
        { onChunk, onEnd: (outcome) => onEnd(at, outcome) },
      );
      running.set(id, result);
    };
    const onEnd = (at: ReadyCommand, outcome: NativeOutcome) => {
      running.delete(id);
      options.signal?.removeEventListener('abort', abort);
      if (at.remembered && outcome.failure?.stage === 'exec' && !closed && !canceled) {
        // Nothing has run. Perhaps the program lies elsewhere by now.
        forget();
        const again = settle(command, options);
        if (!again.ok) {
          finish(unsettled(context, again));
          return;
        }
        try {
          attempt(again);
          options.signal?.addEventListener('abort', abort, { once: true });
          return;
        } catch {
          // No thread for it: it ended as it ended first.
        }
      }
      const after =
        outcome.changedPaths === undefined
          ? NOTHING_CHANGED
          : inspectProtectedPaths(plan.workspace, plan.protectedPaths, outcome.changedPaths);
      finish(classify(context, outcome, after, how.kept?.()));
    };
    attempt(settled);
    options.signal?.addEventListener('abort', abort, { once: true });
    return { result, kill: (signal) => addon.signal(id, constants.signals[signal]), cancel: abort };
  }

  function start(command: Command, options: RunOptions = {}): RunningCommand {
    const input = typeof options.input === 'string' ? Buffer.from(options.input) : options.input;
    if (options.stdio === 'inherit') return launch(command, options, { stdio: [0, 1, 2] });
    const standard = {
      stdio: [standardInput(options), STDIO_CAPTURE, STDIO_CAPTURE],
      ...(input === undefined ? {} : { input }),
    } as const;
    if (options.onOutput === undefined) return launch(command, options, standard);
    // What nobody takes is not worth running for: a consumer that fails ends the command.
    const keeper = createOutputKeeper(policy.limits.outputBytes, options.onOutput, () => command_.cancel());
    const command_ = launch(command, options, {
      ...standard,
      streamOutput: true,
      onChunk: keeper.onChunk,
      kept: keeper.kept,
    });
    return { ...command_, result: keeper.settled(command_.result) };
  }

  function spawn(command: Command, options: SpawnOptions = {}): SandboxProcess {
    const pipes = [addon.makePipe(), addon.makePipe(), addon.makePipe()] as const;
    // The ends for the command are closed below, so a launch cannot be tried again.
    forget();
    // Here, because loading it takes longer than a command takes that needs no streams.
    const { Socket } = process.getBuiltinModule('node:net');
    const child: NativeCommand['stdio'] = [pipes[0][0], pipes[1][1], pipes[2][1]];
    try {
      const started = launch(command, options, { stdio: child });
      return {
        stdin: new Socket({ fd: pipes[0][1], readable: false, writable: true }),
        stdout: new Socket({ fd: pipes[1][0], readable: true, writable: false }),
        stderr: new Socket({ fd: pipes[2][0], readable: true, writable: false }),
        result: started.result,
        kill: (signal = 'SIGTERM') => started.kill(signal),
      };
    } catch (error) {
      for (const fd of [pipes[0][1], pipes[1][0], pipes[2][0]]) closeSync(fd);
      throw error;
    } finally {
      for (const fd of child) closeSync(fd);
    }
  }

  async function close(): Promise<void> {
    closed = true;
    for (const id of running.keys()) addon.cancel(id, true);
    await Promise.all(running.values());
    addon.closeConfinement(confinement);
  }

  return {
    workspace: plan.workspace,
    plan,
    run: (command, options) => {
      try {
        return start(command, options).result;
      } catch (error) {
        return Promise.reject(error);
      }
    },
    start,
    spawn,
    close,
    [Symbol.asyncDispose]: close,
  };
}
