import { SandboxError } from '../errors/sandbox-error.ts';
import type { Command } from '../model/command.ts';
import type { ExecutionResult } from '../model/execution-result.ts';
import type { LaunchPlan, RunDefaults } from '../model/launch-plan.ts';
import type {
  CheckOptions,
  JobOptions,
  RunOptions,
  SandboxOptions,
  ShellOptions,
  SpawnOptions,
  TerminalSize,
} from '../model/options.ts';
import { STDIO_CAPTURE, STDIO_NULL } from '../native/contract.ts';
import { autonomyInForce } from '../policy/checks/rules.ts';
import { isPromise } from '../util/promise.ts';
import { type Admission, createAdmission } from './admission.ts';
import { givenVariables } from './approval-request.ts';
import { canceledBefore } from './classify.ts';
import { commandEnvironment } from './command-environment.ts';
import { createCommandSettler } from './command-line.ts';
import { commandRules } from './command-rules.ts';
import { type BackgroundJob, startJob } from './jobs.ts';
import { createLauncher, type Launch } from './launch.ts';
import { createOutputConsumer } from './output/consumer.ts';
import { createOutputFeed, type OutputReader } from './output/feed.ts';
import { createOutputSettings } from './output/settings.ts';
import { pendingCommand, type RunningCommand } from './pending-command.ts';
import { closePrepared, type PreparedSandbox, prepareSandbox } from './prepare-sandbox.ts';
import { createProgramFinder } from './program-finder.ts';
import type { OptionReader } from './read-options.ts';
import { launchOnTerminal } from './run-on-terminal.ts';
import { type CommandCheck, createCommandCheck } from './sandbox-check.ts';

import { createStepsSettler } from './settle-steps.ts';
import type { ShellSession } from './shell/session-options.ts';
import { type SandboxProcess, spawnOnPipes, type TerminalProcess } from './spawn.ts';
import { spawnOnTerminal } from './spawn-terminal.ts';
import { trimCaches } from './trim-caches.ts';

/** A command of `start()`. */
export interface StartedCommand extends RunningCommand, OutputReader {}

/** One policy, ready to run commands under it. */
export interface Sandbox extends AsyncDisposable {
  /** Canonical path of the workspace. */
  readonly workspace: string;
  /** What the kernel is told, by name. */
  readonly plan: LaunchPlan;
  /** What holds for a run that says nothing else. */
  readonly defaults: RunDefaults;
  /** What the policy says about a command now. Nothing is run, counted or recorded, and nobody is asked. */
  check(command: Command, options?: CheckOptions): Promise<CommandCheck>;
  /** Runs a command to its end. A string is a shell string (bash), an array an argument vector. */
  run(command: Command, options?: RunOptions): Promise<ExecutionResult>;
  /** Starts a command in the background; settles once it runs, or was refused. */
  run(command: Command, options: JobOptions): Promise<BackgroundJob>;
  /** The same, at once. */
  start(command: Command, options: JobOptions): BackgroundJob;
  /** Like `run`, and lets signals be sent and output be read meanwhile. */
  start(command: Command, options?: RunOptions): StartedCommand;
  /** Starts a command on a terminal of its own, which the caller has to read. */
  spawn(command: Command, options: SpawnOptions & { readonly pty: TerminalSize }): TerminalProcess;
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
  const { readOptions } = await import('./validation.ts');
  return openSandbox(readOptions.sandbox(options), readOptions);
}

/** For who gives options and commands as their types have them. */
const TRUSTED: OptionReader = {
  command: (given) => given,
  run: (given) => given,
  spawn: (given) => given,
  check: (given) => given,
  session: (given) => given,
  turn: (given) => given,
};

/**
 * The same for doors that have read options and commands in their own way: it validates nothing.
 * @throws {SandboxError} as `createSandbox`.
 */
export async function openSandbox(
  options: SandboxOptions = {},
  read: OptionReader = TRUSTED,
): Promise<Sandbox> {
  return sandboxOf(await prepareSandbox(options), read);
}

function standardInput(options: RunOptions): number {
  if (options.input !== undefined) return STDIO_CAPTURE;
  return options.stdin === 'inherit' ? 0 : STDIO_NULL;
}

const isClosed = () =>
  new SandboxError('sandbox.closed', 'this sandbox was closed; make a new one with createSandbox()');

const JUDGED_ALL_THE_SAME =
  'unsafe.unjudged_commands has no effect here: with this backend the decision is all that keeps commands in';

const noShell = (backend: string) =>
  new SandboxError(
    'backend.unavailable',
    `a session is a shell, and the backend ${backend} runs none; use run() for each command, or a host with Landlock, user namespaces or Firejail`,
  );

/** Internal: a sandbox from kernel objects that are ready. */
export function sandboxOf(prepared: PreparedSandbox, read: OptionReader = TRUSTED): Sandbox {
  const { addon, policy, plan, gate } = prepared;
  const environment = commandEnvironment(policy);
  const find = createProgramFinder(plan);
  const rules = commandRules(prepared.resolved, plan);
  const examine = prepared.createExaminer?.({
    policy,
    rules,
    searchPath: environment.variables.PATH ?? '',
    find,
    gate,
  });
  const settleSteps = createStepsSettler(prepared.backend, plan, prepared.stepsOf, find);
  const settle = createCommandSettler(plan, environment, find, settleSteps);
  const given = givenVariables(prepared.resolved);
  const checkNow = createCommandCheck({ policy, plan, gate, examine, settle, given });
  const admit = createAdmission({
    policy,
    plan,
    gate,
    examine,
    settle,
    given,
    remarks: prepared.resolved.settings.remarks,
    warnings:
      settleSteps !== undefined && policy.unsafe.unjudgedCommands
        ? [...environment.warnings, JUDGED_ALL_THE_SAME]
        : environment.warnings,
  });
  const launcher = createLauncher(prepared);
  const outputSettings = createOutputSettings(policy.limits);
  const waiting = new Set<RunningCommand>();
  /** Gives up the consumers of output. */
  const consumed = new Set<AbortController>();
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
    if (ended === undefined) return launcher.launch(settled, context, options, how);
    // It may be given up while it waits for its turn.
    let launched = false;
    const onLaunch = (id: number) => {
      launched = true;
      how.onLaunch?.(id);
    };
    const started = launcher.launch(settled, context, options, { ...how, onLaunch });
    return { ...started, result: started.result.then((result) => ended(result, launched)) };
  }

  function launchOf(options: RunOptions, more: Partial<Launch>): Launch {
    const { stdio: where, idleTimeout } = options;
    if (where === 'inherit' && idleTimeout !== undefined) {
      throw new SandboxError(
        'usage.invalid',
        "run: idleTimeout needs output that passes through here, not stdio: 'inherit'",
      );
    }
    if (where === 'inherit') return { stdio: [0, 1, 2] };
    const input = typeof options.input === 'string' ? Buffer.from(options.input) : options.input;
    const stdio = [standardInput(options), STDIO_CAPTURE, STDIO_CAPTURE] as const;
    return { stdio, output: outputSettings(options), idleTimeout, input, ...more };
  }

  function begin(command: Command, options: RunOptions, more: Partial<Launch>): RunningCommand {
    const { onOutput, pty } = options;
    const launchWith = (how: Launch) =>
      pty === undefined
        ? launch(command, options, how)
        : launchOnTerminal({ addon, launch }, command, options, how, pty);
    if (onOutput === undefined) return launchWith(launchOf(options, more));
    // What nobody takes is not worth running for: a consumer that fails ends the command.
    const consumer = createOutputConsumer(onOutput, () => started.cancel());
    const started = launchWith(launchOf(options, { ...more, feed: undefined, consumer }));
    const givenUp = new AbortController();
    consumed.add(givenUp);
    const signals = options.signal === undefined ? [givenUp.signal] : [givenUp.signal, options.signal];
    return {
      ...started,
      cancel: () => {
        givenUp.abort();
        started.cancel();
      },
      result: consumer
        .settled(started.result, AbortSignal.any(signals))
        .finally(() => consumed.delete(givenUp)),
    };
  }

  function start(asked: Command, given: JobOptions): BackgroundJob;
  function start(asked: Command, given?: RunOptions): StartedCommand;
  function start(asked: Command, given: RunOptions | JobOptions = {}): StartedCommand | BackgroundJob {
    const command = read.command(asked);
    const { background, ...options } = read.run(given);
    if (background === true) return startInBackground(command, options);
    const feed = createOutputFeed({
      neutralizes: options.escapes === 'neutralize',
      isTaken: options.onOutput !== undefined,
      ended: () => started.result,
    });
    const started = begin(command, options, { feed });
    return {
      ...started,
      output: feed.output,
      outputText: feed.outputText,
    };
  }

  function startInBackground(command: Command, options: RunOptions): BackgroundJob {
    return startJob(addon, outputSettings(options).view, (more) => begin(command, options, more));
  }

  function run(asked: Command, given: JobOptions): Promise<BackgroundJob>;
  function run(asked: Command, given?: RunOptions): Promise<ExecutionResult>;
  function run(
    asked: Command,
    given: RunOptions | JobOptions = {},
  ): Promise<ExecutionResult | BackgroundJob> {
    try {
      const command = read.command(asked);
      const { background, ...options } = read.run(given);
      if (background !== true) return begin(command, options, {}).result;
      const job = startInBackground(command, options);
      return job.launched.then(() => job);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  function spawn(asked: Command, given: SpawnOptions & { readonly pty: TerminalSize }): TerminalProcess;
  function spawn(asked: Command, given?: SpawnOptions): SandboxProcess;
  function spawn(asked: Command, given: SpawnOptions = {}): SandboxProcess {
    const command = read.command(asked);
    const options = read.spawn(given);
    return options.pty === undefined
      ? spawnOnPipes({ addon, launch }, command, options)
      : spawnOnTerminal({ addon, launch }, command, options, options.pty);
  }

  async function check(command: Command, options: CheckOptions = {}): Promise<CommandCheck> {
    if (closed) throw isClosed();
    return checkNow(read.command(command), read.check(options));
  }

  async function session(options?: ShellOptions): Promise<ShellSession> {
    if (closed) throw isClosed();
    if (settleSteps !== undefined) throw noShell(plan.report.backend);
    const opened = openSessionNow(options);
    opening.add(opened);
    return opened.finally(() => opening.delete(opened));
  }

  async function openSessionNow(options: ShellOptions | undefined): Promise<ShellSession> {
    const { openShell } = await import('./shell/shell-session.ts');
    const parts = {
      prepared,
      admit,
      settle,
      read,
      onClosed: (shell: ShellSession) => sessions.delete(shell),
    };
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
    for (const givenUp of consumed) givenUp.abort();
    await Promise.allSettled([launcher.endAll(), ...[...waiting].map(({ result }) => result)]);
    closePrepared(prepared);
    if (prepared.cache !== undefined) await trimCaches(addon);
    await gate.close();
  }

  return {
    workspace: plan.workspace,
    plan,
    defaults: {
      timeout: policy.limits.timeoutMs,
      maxOutput: policy.limits.outputBytes,
      autonomy: autonomyInForce(policy.security.autonomy, rules),
    },
    check,
    run,
    start,
    spawn,
    session,
    close,
    [Symbol.asyncDispose]: close,
  };
}
