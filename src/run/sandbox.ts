import { directoryPath } from '../base/directory-path.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { STDIO_CAPTURE, STDIO_NULL } from '../confine/native/contract.ts';
import type { LaunchPlan } from '../confine/plan/launch-plan.ts';
import type { Running } from '../confine/running.ts';
import {
  createDecider,
  type Decide,
  type DecisionPorts,
  type DecisionRequest,
  decisionOf,
} from '../gate/index.ts';
import { autonomyInForce } from '../judge/index.ts';
import type {
  AppliedChanges,
  ApprovalRequest,
  ChangeSet,
  ChangeSetDetail,
  CheckOptions,
  Command,
  CommandLineOptions,
  Decision,
  ExecutionResult,
  JobOptions,
  Policy,
  PublishedPort,
  RunDefaults,
  RunOptions,
  SandboxOptions,
  ShellOptions,
  SpawnOptions,
  TemplateValue,
  TerminalSize,
} from '../model/index.ts';
import { OF_THIS_PROCESS, type Surroundings } from '../workspace/index.ts';
import { type Assembly, assemble, checkOnly, type WhatCounts } from './assemble.ts';
import { unfinishedIn } from './change-sets/unfinished.ts';
import { CommandRunner, isClosed, type RunnerPorts } from './command-runner.ts';
import type { CommandLines, SandboxCommandLine } from './embed/command-line.ts';
import { settled } from './launch/command-error.ts';
import { isSource, launchWithSource } from './launch/input-source.ts';
import { type BackgroundJob, type JobPort, portsOf, startJob } from './launch/jobs.ts';
import type { Launch } from './launch/launch.ts';
import type { RunningCommand } from './launch/pending-command.ts';
import {
  launchOnTerminal,
  type SandboxProcess,
  type SpawnParts,
  spawnOnPipes,
  spawnOnTerminal,
  type TerminalProcess,
} from './launch/spawn.ts';
import { stepsOf } from './other-backends/application.ts';
import { OutputConsumer } from './output/consumer.ts';
import { feedOf, type OutputReader, readersOf } from './output/feed.ts';
import { createOutputSettings } from './output/settings.ts';
import { closePrepared, type PreparedSandbox, prepareSandbox } from './resolve/prepare-sandbox.ts';
import { createCommandResolver, createStepsResolver } from './resolve/resolve-command.ts';
import { trimCaches } from './resolve/trim-caches.ts';
import type { ShellSession } from './session/shell-session.ts';
import { stateDirectory } from './state.ts';
import type { OptionReader } from './validation.ts';

/** A command of `start()`. */
export interface StartedCommand extends RunningCommand, OutputReader {
  /** The ids of its processes, and of those that it started, at this moment; none before it runs. */
  members(): Promise<readonly number[]>;
  /** What these listen on, and where that is published. */
  ports(): Promise<readonly JobPort[]>;
}

/** Options of a command that a door of ours runs. */
export interface OwnRunOptions extends RunOptions {
  /** The streams that it inherits, in the place of those of the call that the sandbox was opened for. */
  readonly inherited?: Surroundings['stdio'];
}

/** What the policy says about a command at this moment. */
export interface CommandCheck {
  /** `undefined`: commands are not judged (`unsafe.unjudged_commands`). */
  readonly decision: Decision | undefined;
  /**
   * What a person has to see in order to answer a question. Its fingerprint is another as soon as something that matters is
   * (a file behind the command, the directory, what the policy says). `undefined`: there is no decision, or the command could
   * not be started.
   */
  readonly request: ApprovalRequest | undefined;
}

/** Runs what a template says, with each value as one argument. */
export type RunTemplate<Result = ExecutionResult> = (
  texts: TemplateStringsArray,
  ...values: readonly TemplateValue[]
) => Promise<Result>;

/** One policy, ready to run commands under it. */
export interface Sandbox extends AsyncDisposable {
  /** Canonical path of the workspace. */
  readonly workspace: string;
  /** What the kernel is asked to enforce, by name. */
  readonly plan: LaunchPlan;
  /** What holds for a run that says nothing else. */
  readonly defaults: RunDefaults;
  /** What the policy says about a command now. Nothing is run, counted or recorded, and nobody is asked. */
  check(command: Command, options?: CheckOptions): Promise<CommandCheck>;
  /** Runs a command to its end. A string is a shell string (bash), an array an argument vector. */
  run(command: Command, options?: RunOptions): Promise<ExecutionResult>;
  /** Starts a command in the background; settles once it runs, or was refused. */
  run(command: Command, options: JobOptions): Promise<BackgroundJob>;
  /**
   * Runs a shell string in which values stand quoted: each is one argument or a part of one, an array several, and none is
   * ever read as code. A place where a value would be more than text is refused. The text is as it is written (raw).
   */
  run(texts: TemplateStringsArray, ...values: readonly TemplateValue[]): Promise<ExecutionResult>;
  /** A tag for such a template that runs with these options. */
  run(options: JobOptions): RunTemplate<BackgroundJob>;
  run(options: RunOptions): RunTemplate;
  /** Like `run` with `background`, without waiting for the start. */
  start(command: Command, options: JobOptions): BackgroundJob;
  /** Like `run`, and lets signals be sent and output be read meanwhile. */
  start(command: Command, options?: RunOptions): StartedCommand;
  /** Starts a command on a terminal of its own, which the caller has to read. */
  spawn(command: Command, options: SpawnOptions & { readonly pty: TerminalSize }): TerminalProcess;
  /** Starts a command with streams, which the caller has to read. */
  spawn(command: Command, options?: SpawnOptions): SandboxProcess;
  /**
   * For programs that start processes themselves (node-pty, an editor's terminal, ssh): what to start, so that the command runs
   * as by `run`, in a sandbox of the same policy. It is decided about, asked, counted and recorded now.
   * Good for one start, before `close()`. Rejects with a `CommandError` if the command is refused, and with
   * `handover.unavailable` if the sandbox needs something of this process while a command runs.
   */
  commandLine(command: Command, options?: CommandLineOptions): Promise<SandboxCommandLine>;
  /**
   * Starts a long-lived bash under the policy: directory, variables and functions last from command to command, each of
   * which is judged. It ends with the sandbox.
   */
  session(options?: ShellOptions): Promise<ShellSession>;
  /** What commands changed in previews (`effect: 'preview'`). */
  changes(): Promise<WorkspaceChanges>;
  /** Ends the running commands and sessions and gives up the kernel objects. Later runs fail with `sandbox.closed`. */
  close(): Promise<void>;
}

/** The change sets of a workspace. Every method rejects with `changes.unknown` for an id that there is none of. */
interface WorkspaceChanges {
  /** The oldest first. */
  list(): Promise<readonly ChangeSet[]>;
  show(id: string): Promise<ChangeSetDetail>;
  /** As a unified diff: of all of it, or of what is at or beneath a path. */
  diff(id: string, path?: string): Promise<string>;
  /** Puts all that can be put into the workspace there, or what is at or beneath paths; what changed meanwhile stays. */
  apply(id: string, paths?: readonly string[]): Promise<AppliedChanges>;
  /** Takes back what was applied; what changed since stays. */
  undo(id: string): Promise<AppliedChanges>;
  /** Forgets it, or what is at or beneath paths. What was applied stays. */
  discard(id: string, paths?: readonly string[]): Promise<void>;
}

/**
 * Makes a sandbox: resolves the policy, asks the host, makes the kernel objects. They are reused by every command.
 * @throws {SandboxError} if the policy is wrong or cannot be enforced on this host.
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { readOptions } = await import('./validation.ts');
  return openSandbox(readOptions.sandbox(options), OF_THIS_PROCESS, readOptions);
}

/** Skips validation, for internal callers whose options and commands are already typed. */
const TRUSTED: OptionReader = {
  command: (given) => given,
  run: (given) => given,
  spawn: (given) => given,
  check: (given) => given,
  commandLine: (given) => given,
  session: (given) => given,
  turn: (given) => given,
};

/**
 * The same for doors that have read options and commands in their own way: it validates nothing.
 * @throws {SandboxError} as `createSandbox`.
 */
export async function openSandbox(
  options: SandboxOptions,
  around: Surroundings,
  read: OptionReader = TRUSTED,
): Promise<OpenSandbox> {
  return sandboxOn(await prepareSandbox(options, around), options, read);
}

/** A sandbox on kernel objects that are ready; `change`: for tests and the doctor, which leave ports out. */
export async function sandboxOn(
  prepared: PreparedSandbox,
  options: SandboxOptions,
  read: OptionReader = TRUSTED,
  change: (ports: DecisionPorts) => DecisionPorts = (ports) => ports,
  counts: WhatCounts = { guards: true, records: true },
): Promise<OpenSandbox> {
  let assembly: Assembly | undefined;
  try {
    const { url, credentials } = prepared.policy.state;
    if (url !== undefined)
      (await import('./fleet-parts.ts')).refuseReadableCredentials(prepared.plan, credentials);
    const resolved = { ...prepared.resolved, policy: prepared.policy };
    assembly = await assemble(resolved, prepared.plan, options, counts);
    const ports = await assembly.ports();
    // Where nothing else keeps commands in they are judged, whatever the policy says.
    const start = stepsOf(prepared.confinement.backend);
    const judge = ports.judge ?? (start && (await assembly.judge()));
    const unfinished = await finishApplying(prepared);
    const { environment, find } = assembly;
    const steps = start && (await createStepsResolver(start, prepared.plan, find));
    const resolve = createCommandResolver(prepared.plan, environment, find, steps);
    const all = { ...change({ ...ports, judge }), resolve };
    return new OpenSandbox(new CommandRunner(prepared, assembly, all, unfinished), assembly, all, read);
  } catch (error) {
    closePrepared(prepared);
    await assembly?.close();
    throw error;
  }
}

/** What a crash cut short in this workspace is finished before anything runs there. Returns why some of it is not. */
async function finishApplying(prepared: PreparedSandbox): Promise<readonly string[]> {
  if (unfinishedIn(stateDirectory()).length === 0) return [];
  const { ChangeSets } = await import('./changes/change-sets.ts');
  return new ChangeSets(prepared.addon).finish(prepared);
}

const noShell = (backend: string) =>
  new SandboxError(
    'backend.unavailable',
    `a session is a shell, and the backend ${backend} runs none; use run() for each command, or a host with Landlock, user namespaces or Firejail`,
  );

/** The sandbox of {@link openSandbox}: decides about each command, and launches what is allowed. */
export class OpenSandbox implements Sandbox {
  readonly workspace: string;
  readonly policy: Policy;
  readonly defaults: RunDefaults;
  /** @internal */
  readonly read: OptionReader;
  /** @internal */
  readonly prepared: PreparedSandbox;
  readonly #runner: CommandRunner;
  readonly #assembly: Assembly;
  readonly #ports: RunnerPorts;
  readonly #check: Decide;
  readonly #outputSettings: ReturnType<typeof createOutputSettings>;
  /** For commands with streams of their own. */
  readonly #launching: SpawnParts;
  /** Gives up the consumers of output. */
  readonly #consumed = new Set<AbortController>();
  readonly #sessions = new Set<ShellSession>();
  readonly #opening = new Set<Promise<ShellSession>>();
  #lines: CommandLines | undefined;
  #closed = false;

  /** `ports`: those of `runner`. */
  constructor(runner: CommandRunner, assembly: Assembly, ports: RunnerPorts, read: OptionReader) {
    const { prepared } = runner;
    const { plan, policy } = prepared;
    this.prepared = prepared;
    this.workspace = plan.workspace;
    this.policy = policy;
    this.defaults = {
      timeout: policy.limits.timeoutMs,
      maxOutput: policy.limits.outputBytes,
      autonomy: autonomyInForce(policy.security.autonomy, assembly.rules),
    };
    this.read = read;
    this.#runner = runner;
    this.#assembly = assembly;
    this.#ports = ports;
    this.#check = createDecider(checkOnly(ports));
    this.#outputSettings = createOutputSettings(policy.limits);
    this.#launching = { addon: prepared.addon, launch: runner.launch.bind(runner) };
  }

  /** The launch plan of the next command. */
  get plan(): LaunchPlan {
    return this.prepared.plan;
  }

  /** @internal What `check` finds, also where commands are not judged before they run. */
  async decisionOn(request: DecisionRequest): Promise<Decision> {
    if (this.#closed) throw isClosed();
    if (this.#ports.judge !== undefined) return decisionOf(await this.#check(request));
    const judge = await this.#assembly.judge();
    return decisionOf(await createDecider(checkOnly({ ...this.#ports, judge }))(request));
  }

  async check(command: Command, given: CheckOptions = {}): Promise<CommandCheck> {
    if (this.#closed) throw isClosed();
    const options = this.read.check(given);
    const asked = this.read.command(command);
    const decided = await this.#check({ command: asked, ...options, cwd: directoryPath(options.cwd) });
    const { seen, resolved } = decided;
    // Nothing is known of it: that is no reason to take it for allowed.
    if (seen === undefined && !decided.allowed && decided.objection.status === 'denied')
      throw new SandboxError(decided.objection.error.code, decided.objection.error.message);
    if (seen === undefined) return { decision: undefined, request: undefined };
    const { decision, judgement, effects } = seen;
    if (resolved?.ok !== true) return { decision, request: undefined };
    const request = this.#ports.makeRequest({
      ...{ command: asked, cwd: judgement.cwd, decision, effects: effects() },
      ...{ variables: resolved.variables, changed: Object.keys(options.env ?? {}), details: [] },
      // Left empty: fingerprints from check() are compared without it.
      once: '',
    });
    return { decision, request };
  }

  run(command: Command, options: JobOptions): Promise<BackgroundJob>;
  run(command: Command, options?: RunOptions): Promise<ExecutionResult>;
  run(texts: TemplateStringsArray, ...values: readonly TemplateValue[]): Promise<ExecutionResult>;
  run(options: JobOptions): RunTemplate<BackgroundJob>;
  run(options: RunOptions): RunTemplate;
  run(
    asked: Command | TemplateStringsArray | RunOptions | JobOptions,
    ...given: readonly unknown[]
  ): Promise<ExecutionResult | BackgroundJob> | RunTemplate<ExecutionResult | BackgroundJob> {
    if (isTemplate(asked)) return this.#runTemplate(asked, given as readonly TemplateValue[], {});
    if (typeof asked === 'object' && asked !== null && !Array.isArray(asked)) {
      // `run({ command: 'ls' })` would do nothing, and not say so.
      const options = this.read.run(asked as RunOptions | JobOptions);
      return (texts, ...values) => this.#runTemplate(texts, values, options);
    }
    const [options = {}] = given as readonly (RunOptions | JobOptions | undefined)[];
    return this.#run(asked as Command, options);
  }

  start(command: Command, options: JobOptions): BackgroundJob;
  start(command: Command, options?: RunOptions): StartedCommand;
  start(asked: Command, given: RunOptions | JobOptions = {}): StartedCommand | BackgroundJob {
    const command = this.read.command(asked);
    const { background, ...options } = this.read.run(given);
    if (background === true) return this.#startInBackground(command, options);
    const { reject } = options;
    const feed = feedOf(options, () => started.result);
    let running: Running | undefined;
    const onLaunch = (launchedAs: Running) => {
      running = launchedAs;
    };
    let published: readonly PublishedPort[] = [];
    const onPublished = (ports: readonly PublishedPort[]) => {
      published = ports;
    };
    const started = this.#begin(command, options, { feed, onLaunch, onPublished });
    const result = settled(command, started.result, reject);
    const members = async () => (await running?.members()) ?? [];
    const ports = async () => portsOf(await members(), published);
    return { ...started, result, members, ports, ...readersOf(feed) };
  }

  spawn(command: Command, options: SpawnOptions & { readonly pty: TerminalSize }): TerminalProcess;
  spawn(command: Command, options?: SpawnOptions): SandboxProcess;
  spawn(asked: Command, given: SpawnOptions = {}): SandboxProcess {
    const command = this.read.command(asked);
    const options = this.read.spawn(given);
    return options.pty === undefined
      ? spawnOnPipes(this.#launching, command, options)
      : spawnOnTerminal(this.#launching, command, options, options.pty);
  }

  async commandLine(asked: Command, given: CommandLineOptions = {}): Promise<SandboxCommandLine> {
    const command = this.read.command(asked);
    const options = this.read.commandLine(given);
    const { CommandLines } = await import('./embed/command-line.ts');
    if (this.#closed) throw isClosed();
    this.#lines ??= new CommandLines({ runner: this.#runner, assembly: this.#assembly, ports: this.#ports });
    return this.#lines.make(command, options);
  }

  async session(options?: ShellOptions): Promise<ShellSession> {
    if (this.#closed) throw isClosed();
    if (stepsOf(this.prepared.confinement.backend) !== undefined) throw noShell(this.plan.report.backend);
    const opened = this.#openSession(options);
    this.#opening.add(opened);
    return opened.finally(() => this.#opening.delete(opened));
  }

  async changes(): Promise<WorkspaceChanges> {
    const { ChangeSets } = await import('./changes/change-sets.ts');
    const sets = new ChangeSets(this.prepared.addon);
    const { prepared, workspace } = this;
    return {
      list: async () => sets.list(workspace),
      show: async (id) => sets.show(id),
      diff: async (id, path) => sets.diff(id, path),
      apply: (id, paths) => sets.apply(prepared, id, paths),
      undo: (id) => sets.undo(prepared, id, true),
      discard: (id, paths) => sets.discard(id, paths),
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#lines?.close();
    const { addon, cache } = this.prepared;
    await Promise.all([
      ...[...this.#sessions].map((shell) => shell.close()),
      Promise.allSettled(this.#opening),
    ]);
    for (const givenUp of this.#consumed) givenUp.abort();
    await this.#runner.close();
    closePrepared(this.prepared);
    if (cache !== undefined) await trimCaches(addon);
    await this.#assembly.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #run(asked: Command, given: RunOptions | JobOptions): Promise<ExecutionResult | BackgroundJob> {
    try {
      const command = this.read.command(asked);
      const { background, ...options } = this.read.run(given);
      if (background !== true)
        return settled(command, this.#begin(command, options, {}).result, options.reject);
      const job = this.#startInBackground(command, options);
      return job.launched.then(() => job);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #runTemplate(
    texts: TemplateStringsArray,
    values: readonly TemplateValue[],
    options: RunOptions | JobOptions,
  ): Promise<ExecutionResult | BackgroundJob> {
    if (!isTemplate(texts))
      throw new SandboxError(
        'usage.invalid',
        'run: options alone are for a template, as in run({ timeout: 5000 })`git fetch`; a command stands before them',
      );
    const { commandOfTemplate } = await import('../gate/decide/judgement.ts');
    return this.#run(commandOfTemplate(texts.raw, values), options);
  }

  async #openSession(options: ShellOptions | undefined): Promise<ShellSession> {
    const { openShell } = await import('./session/shell-session.ts');
    const opened = await openShell(this.#runner, this.read, options, (shell) => this.#sessions.delete(shell));
    if (this.#closed) {
      await opened.close();
      throw isClosed();
    }
    this.#sessions.add(opened);
    return opened;
  }

  #startInBackground(command: Command, options: RunOptions): BackgroundJob {
    const { view } = this.#outputSettings(options);
    const feed = feedOf(options, () => job.wait());
    const job = startJob(view, (more) => this.#begin(command, options, { ...more, feed }));
    const { output: _, outputText: __, ...lines } = readersOf(feed);
    return Object.assign(job, lines);
  }

  /** Starts a command whose output is captured, consumed or inherited. */
  #begin(command: Command, options: RunOptions, more: Partial<Launch>): RunningCommand {
    const { onOutput, pty, input } = options;
    const launch = (how: Launch) =>
      pty === undefined
        ? this.#runner.launch(command, options, how)
        : launchOnTerminal(this.#launching, command, options, how, pty);
    const launchWith = (how: Launch) =>
      isSource(input)
        ? launchWithSource(
            { ...this.#launching, launch: (_, __, fed) => launch(fed) },
            command,
            options,
            how,
            input,
          )
        : launch(how);
    if (onOutput === undefined) return launchWith(this.#launchOf(options, more));
    // A consumer that fails ends the command: what nobody takes is not worth running for.
    const consumer = new OutputConsumer(onOutput, () => started.cancel());
    const started = launchWith(this.#launchOf(options, { ...more, feed: undefined, consumer }));
    const givenUp = new AbortController();
    this.#consumed.add(givenUp);
    const signals = options.signal === undefined ? [givenUp.signal] : [givenUp.signal, options.signal];
    return {
      ...started,
      cancel: () => {
        givenUp.abort();
        started.cancel();
      },
      result: consumer
        .settled(started.result, AbortSignal.any(signals))
        .finally(() => this.#consumed.delete(givenUp)),
    };
  }

  #launchOf(options: OwnRunOptions, more: Partial<Launch>): Launch {
    const { stdio: where, idleTimeout } = options;
    if (where === 'inherit' && idleTimeout !== undefined) {
      throw new SandboxError(
        'usage.invalid',
        "run: idleTimeout needs output that passes through here, not stdio: 'inherit'",
      );
    }
    if (where === 'inherit') return { stdio: this.#streamsOf(options) };
    const given = isSource(options.input) ? undefined : options.input;
    const input = typeof given === 'string' ? Buffer.from(given) : given;
    const stdio = [this.#standardInput(options), STDIO_CAPTURE, STDIO_CAPTURE] as const;
    return { stdio, output: this.#outputSettings(options), idleTimeout, input, ...more };
  }

  #standardInput(options: OwnRunOptions): number {
    if (options.input !== undefined) return STDIO_CAPTURE;
    return options.stdin === 'inherit' ? this.#streamsOf(options)[0] : STDIO_NULL;
  }

  #streamsOf({ inherited }: OwnRunOptions): Surroundings['stdio'] {
    return inherited ?? this.prepared.resolved.around.stdio;
  }
}

/** What a tag of a template gets. An array of words, from JSON say, has no `raw`. */
function isTemplate(given: unknown): given is TemplateStringsArray {
  return Array.isArray(given) && 'raw' in given;
}
