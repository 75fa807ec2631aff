import { closeSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { Command } from '../model/execution-request.ts';
import type { ExecutionResult } from '../model/execution-result.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import { type NativeCommand, STDIO_CAPTURE, STDIO_NULL } from '../native/contract.ts';
import { isPromise } from '../util/promise.ts';
import { type Admission, createAdmission } from './admission.ts';
import { givenVariables } from './approval-request.ts';
import { checkedCommand, checkRunOptions, checkSandboxOptions, checkSpawnOptions } from './check-options.ts';
import { canceledBefore } from './classify.ts';
import { commandEnvironment } from './command-environment.ts';
import { createCommandSettler } from './command-line.ts';
import { commandRules } from './command-rules.ts';
import { createLauncher, type Launch } from './launch.ts';
import { createOutputKeeper } from './output-keeper.ts';
import { pendingCommand, type RunningCommand } from './pending-command.ts';
import { type PreparedSandbox, prepareSandbox } from './prepare-sandbox.ts';
import { createProgramFinder } from './program-finder.ts';
import type { RunOptions, SandboxOptions, SpawnOptions } from './sandbox-options.ts';
import type { ShellOptions, ShellSession } from './shell/session-options.ts';

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
  /**
   * Starts a long-lived bash under the policy: directory, variables and functions last from command to command, each of
   * which is judged. It ends with the sandbox.
   */
  session(options?: ShellOptions): Promise<ShellSession>;
  /** Ends the running commands and sessions and gives up the kernel objects. Later runs fail with `sandbox.closed`. */
  close(): Promise<void>;
}

/**
 * Makes a sandbox: resolves the policy, asks the host, makes the kernel objects. They are reused by every command.
 * @throws {SandboxError} if the policy is wrong or cannot be enforced on this host.
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  return sandboxOf(await prepareSandbox(checkSandboxOptions(options)));
}

function standardInput(options: RunOptions): number {
  if (options.input !== undefined) return STDIO_CAPTURE;
  return options.stdin === 'inherit' ? 0 : STDIO_NULL;
}

const isClosed = () =>
  new SandboxError('sandbox.closed', 'this sandbox was closed; make a new one with createSandbox()');

/** Internal: a sandbox from kernel objects that are ready. */
export function sandboxOf(prepared: PreparedSandbox): Sandbox {
  const { addon, confinement, policy, plan, gate } = prepared;
  const environment = commandEnvironment(policy);
  const find = createProgramFinder(plan);
  const examine = prepared.createExaminer?.({
    policy,
    rules: commandRules(prepared.resolved, plan),
    searchPath: environment.variables.PATH ?? '',
    find,
    gate,
  });
  const settle = createCommandSettler(plan, environment, find);
  const admit = createAdmission({
    policy,
    plan,
    gate,
    examine,
    settle,
    given: givenVariables(prepared.resolved),
    warnings: environment.warnings,
  });
  const launcher = createLauncher(prepared);
  const waiting = new Set<RunningCommand>();
  const sessions = new Set<ShellSession>();
  const opening = new Set<Promise<ShellSession>>();
  let closed = false;

  function launch(command: Command, options: SpawnOptions, how: Launch): RunningCommand {
    if (closed) {
      how.release?.();
      throw isClosed();
    }
    let controller: AbortController | undefined;
    const giveUp = () => {
      controller ??= new AbortController();
      controller.abort();
    };
    const signal = () => {
      controller ??= new AbortController();
      return options.signal === undefined
        ? controller.signal
        : AbortSignal.any([controller.signal, options.signal]);
    };
    const isGivenUp = () => closed || controller?.signal.aborted === true || options.signal?.aborted === true;
    const admission = admit({ command, options, input: how.input, signal });
    if (!isPromise(admission)) return launchAdmitted(admission, options, how, isGivenUp);
    const pending = pendingCommand(
      admission.then((ready) => launchAdmitted(ready, options, how, isGivenUp)),
      giveUp,
    );
    waiting.add(pending);
    void pending.result.finally(() => waiting.delete(pending)).catch(() => {});
    return pending;
  }

  function launchAdmitted(
    admission: Admission,
    options: SpawnOptions,
    how: Launch,
    isGivenUp: () => boolean,
  ): RunningCommand {
    const without = (result: ExecutionResult | Promise<ExecutionResult>): RunningCommand => {
      how.release?.();
      return { result: Promise.resolve(result), kill: () => false, cancel: () => {} };
    };
    if (!admission.admitted) return without(admission.result);
    const { settled, context, ended } = admission;
    if (isGivenUp()) {
      const canceled = canceledBefore(context);
      return without(ended?.(canceled, false) ?? canceled);
    }
    const started = launcher.launch(settled, context, options, how);
    if (ended === undefined) return started;
    return { ...started, result: started.result.then((result) => ended(result, true)) };
  }

  function start(asked: Command, given: RunOptions = {}): RunningCommand {
    const command = checkedCommand(asked);
    const options = checkRunOptions(given);
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

  function spawn(asked: Command, given: SpawnOptions = {}): SandboxProcess {
    const command = checkedCommand(asked);
    const options = checkSpawnOptions(given);
    // Here, because loading it takes longer than a command takes that needs no streams.
    const { Socket } = process.getBuiltinModule('node:net');
    const pipes = [addon.makePipe(), addon.makePipe(), addon.makePipe()] as const;
    const child: NativeCommand['stdio'] = [pipes[0][0], pipes[1][1], pipes[2][1]];
    // The child has them once it is launched, which may have to wait for a decision.
    const release = () => {
      for (const fd of child) closeSync(fd);
    };
    try {
      const started = launch(command, options, { stdio: child, release });
      const stdin = new Socket({ fd: pipes[0][1], readable: false, writable: true });
      // Nobody reads it any more.
      void started.result.finally(() => stdin.destroy()).catch(() => {});
      return {
        stdin,
        stdout: new Socket({ fd: pipes[1][0], readable: true, writable: false }),
        stderr: new Socket({ fd: pipes[2][0], readable: true, writable: false }),
        result: started.result,
        kill: (signal = 'SIGTERM') => started.kill(signal),
      };
    } catch (error) {
      for (const fd of [pipes[0][1], pipes[1][0], pipes[2][0]]) closeSync(fd);
      throw error;
    }
  }

  async function session(options?: ShellOptions): Promise<ShellSession> {
    if (closed) throw isClosed();
    const opened = openSessionNow(options);
    opening.add(opened);
    return opened.finally(() => opening.delete(opened));
  }

  async function openSessionNow(options: ShellOptions | undefined): Promise<ShellSession> {
    const { openShell } = await import('./shell/shell-session.ts');
    const parts = { prepared, admit, settle, onClosed: (shell: ShellSession) => sessions.delete(shell) };
    const opened = await openShell(parts, options);
    if (closed) {
      await opened.close();
      throw isClosed();
    }
    sessions.add(opened);
    return opened;
  }

  async function close(): Promise<void> {
    closed = true;
    await Promise.all([...[...sessions].map((shell) => shell.close()), Promise.allSettled(opening)]);
    for (const pending of waiting) pending.cancel();
    await Promise.all([launcher.endAll(), ...[...waiting].map(({ result }) => result)]);
    addon.closeConfinement(confinement);
    await gate.close();
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
    session,
    close,
    [Symbol.asyncDispose]: close,
  };
}
