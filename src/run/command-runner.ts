import { SandboxError } from '../base/errors/sandbox-error.ts';
import { isPromise } from '../base/promise.ts';
import { LOOKS_OUTSIDE } from '../base/words.ts';
import type { Running } from '../confine/running.ts';
import {
  createDecider,
  type Decide,
  type Decided,
  type DecisionPorts,
  type Objection,
  type ResolvedCommand,
} from '../gate/index.ts';
import { isPreviewed, isUndoneInstead } from '../judge/index.ts';
import type { Command, ExecutionResult, SpawnOptions } from '../model/index.ts';
import type { Assembly } from './assemble.ts';
import type { Previews } from './changes/preview.ts';
import { notRun, type RunContext } from './launch/classify.ts';
import { followed, requestOf } from './launch/decided-command.ts';
import { FailedLines, lineOf } from './launch/failed-lines.ts';
import { givenUp, type Launch, Launcher, type ReadyCommand } from './launch/launch.ts';
import { neverBegun, pendingCommand, type RunningCommand } from './launch/pending-command.ts';
import { stepsOf } from './other-backends/application.ts';
import { deniedByText } from './output/denials.ts';
import { placesIn } from './proposals.ts';
import type { PreparedSandbox } from './resolve/prepare-sandbox.ts';
import { measuredLaunch, measuredRun } from './telemetry.ts';

/** What decides about the commands of a sandbox that starts them itself. */
export interface RunnerPorts extends DecisionPorts {
  readonly resolve: (...asked: Parameters<DecisionPorts['resolve']>) => ResolvedCommand;
}

export const isClosed = () =>
  new SandboxError('sandbox.closed', 'this sandbox was closed; make a new one with createSandbox()');

const JUDGED_ALL_THE_SAME =
  'unsafe.unjudged_commands has no effect here: with this backend the decision is all that keeps commands in';

const nothingUndone = (layersRefused = 'it needs namespaces (see sandbox-run doctor)') =>
  `workspace.undo has no effect here, because ${layersRefused}: what commands change cannot be taken back`;

/** A request between its decision and its launch. */
interface Asked {
  readonly command: Command;
  /** With `effect` filled in. */
  readonly options: SpawnOptions;
  readonly how: Launch;
  /** Whether the caller canceled it, or the sandbox was closed. */
  readonly isGivenUp: () => boolean;
}

/**
 * From a request to a running command, for one sandbox. A request passes these steps, each of which hands on or gives the
 * result itself: its effect is chosen, it is decided about, refused or made ready, given the sandbox it runs in (the usual
 * one, one on a layer, one that only reads, one that is looked at closely), and launched there.
 */
export class CommandRunner {
  readonly decide: Decide;
  readonly resolve: RunnerPorts['resolve'];
  readonly prepared: PreparedSandbox;
  readonly #assembly: Assembly;
  readonly #ports: RunnerPorts;
  readonly #launcher = new Launcher();
  readonly #warnings: readonly string[];
  /** Said once, with the first command. */
  #remarks: readonly string[];
  /** Commands that have not been launched yet. */
  readonly #waiting = new Set<RunningCommand>();
  /** Lines that failed: when they are run again, all denials are observed. */
  readonly #failed: FailedLines;
  /** The variant of the sandbox that observes all denials; made on first use. */
  #looking: Promise<PreparedSandbox> | undefined;
  /** What runs commands on layers over the workspace. */
  #layers: Promise<Previews> | undefined;
  #closed = false;

  /** `unfinished`: why changes that a crash had cut short are not finished. */
  constructor(
    prepared: PreparedSandbox,
    assembly: Assembly,
    ports: RunnerPorts,
    unfinished: readonly string[],
  ) {
    const { plan, policy, confinement } = prepared;
    const { environment, rules } = assembly;
    const { settings } = assembly.resolved;
    this.prepared = prepared;
    this.#assembly = assembly;
    this.#ports = ports;
    this.resolve = ports.resolve;
    this.decide = createDecider(ports);
    this.#failed = new FailedLines(plan.cache.kind === 'workspace' ? plan.cache.directory : undefined);
    const isJudgedAllTheSame = stepsOf(confinement.backend) !== undefined && policy.unsafe.unjudgedCommands;
    const remarks = [...(isJudgedAllTheSame ? [JUDGED_ALL_THE_SAME] : []), ...unfinished];
    this.#warnings = remarks.length === 0 ? environment.warnings : [...environment.warnings, ...remarks];
    const isUndone = policy.workspace.undo === 'always';
    this.#remarks = [
      ...settings.remarks.filter((remark) => remark !== settings.credentials),
      ...(isUndone && !rules.previews
        ? [nothingUndone(plan.namespaces && confinement.features.layersRefused)]
        : []),
    ];
    // While it is decided about the first command.
    if (isUndone && rules.previews)
      void this.#previews().then(
        (previews) => previews.prepareNext(),
        // The command reports why layers are not available.
        () => {},
      );
  }

  /** Decides about a command, and launches it if it is allowed: at once, if nothing has to be waited for. */
  launch(command: Command, options: SpawnOptions, how: Launch): RunningCommand {
    return measuredRun(this.#ports.telemetry, () => this.#ask(command, options, how));
  }

  /** What results say about a command that was decided about. */
  contextOf(decided: Decided): RunContext {
    const { resolved, decision, approval, warnings, judgement } = decided;
    const { plan } = this.prepared;
    const remarks = this.#remarks;
    this.#remarks = [];
    const isUsual = warnings.length === 0 && remarks.length === 0;
    return {
      argv: (resolved?.ok === true ? resolved.asked : undefined) ?? resolved?.argv ?? [],
      cwd: resolved?.cwd ?? plan.workspace,
      warnings: isUsual ? this.#warnings : [...this.#warnings, ...remarks, ...warnings],
      report: plan.report,
      decision,
      approval,
      hiddenPrograms: judgement?.hiddenPrograms,
      credentials: this.#assembly.resolved.settings.credentials,
      ...(decided.allowed && decided.askConnection !== undefined
        ? { askConnection: decided.askConnection }
        : {}),
    };
  }

  /** Gives up what waits and ends what runs; settles when all of it has ended. Later commands fail with `sandbox.closed`. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const pending of this.#waiting) pending.cancel();
    await Promise.allSettled([this.#launcher.endAll(), ...[...this.#waiting].map(({ result }) => result)]);
    const [previews, looking] = await Promise.allSettled([this.#layers, this.#looking]);
    if (previews.status === 'fulfilled') await previews.value?.close();
    if (looking.status === 'fulfilled') looking.value?.confinement.close();
  }

  #ask(command: Command, given: SpawnOptions, how: Launch): RunningCommand {
    if (this.#closed) throw isClosed();
    const options = this.withEffect(given, how);
    let controller: AbortController | undefined;
    const own = () => {
      controller ??= new AbortController();
      return controller;
    };
    const signal = () =>
      options.signal === undefined ? own().signal : AbortSignal.any([own().signal, options.signal]);
    const isGivenUp = () =>
      this.#closed || controller?.signal.aborted === true || options.signal?.aborted === true;
    const decided = this.decide(requestOf(command, options, { input: how.input ?? how.source, signal }));
    const asked: Asked = { command, options, how, isGivenUp };
    if (!isPromise(decided)) return this.#answer(decided, asked);
    return this.#waitFor(
      decided.then((ready) => this.#answer(ready, asked)),
      () => own().abort(),
    );
  }

  /** Fills in `effect`. Background and terminal commands change the workspace at once: nobody waits for their end. */
  withEffect(given: SpawnOptions, { extras }: Launch): SpawnOptions {
    // `on` implies a preview.
    const options = given.on === undefined ? given : { ...given, effect: given.effect ?? 'preview' };
    if (options.on !== undefined && options.effect !== 'preview')
      throw new SandboxError('usage.invalid', `on is for previews, not for the effect ${options.effect}`);
    const { undo } = this.prepared.policy.workspace;
    if (undo === 'never' || options.effect !== undefined) return options;
    const livesOn = extras?.background === true || extras?.pty !== undefined || options.pty !== undefined;
    // A job of a fleet comes from another machine, whose user cannot call `undo` on this one.
    const isAsked = undo === 'losses' && options.job !== undefined;
    if (livesOn || isAsked || this.#assembly.rules.previews !== true) return { ...options, effect: 'direct' };
    return undo === 'always' ? { ...options, effect: 'undoable' } : options;
  }

  /** Turns a refusal into a result; launches an allowed command, and runs the decision's follow-up when it ends. */
  #answer(decided: Decided, asked: Asked): RunningCommand {
    const context = this.contextOf(decided);
    if (!decided.allowed) return neverBegun(this.refused(decided, context));
    return measuredLaunch(this.#ports.telemetry, asked.how, (how) => {
      const { ended, resolved } = decided;
      // Without a program that was found, a control has objected.
      if (asked.isGivenUp() || resolved?.ok !== true)
        return neverBegun(followed(ended, notRun(context, { status: 'canceled' }), false));
      const ready = { resolved, context, options: asked.options, how };
      if (ended === undefined) return this.#launchWhere(ready, decided, asked);
      // The command may be canceled while it waits for its turn.
      let launched = false;
      const onLaunch = (running: Running) => {
        launched = true;
        how.onLaunch?.(running);
      };
      const started = this.#launchWhere({ ...ready, how: { ...how, onLaunch } }, decided, asked);
      return { ...started, result: started.result.then((result) => followed(ended, result, launched)) };
    });
  }

  /** The result of a command that is not to run. */
  refused(decided: Decided, context: RunContext = this.contextOf(decided)): ExecutionResult {
    const objection: Objection = decided.allowed ? { status: 'canceled' } : decided.objection;
    const result = notRun(context, objection);
    if (objection.status !== 'denied' || context.decision === undefined) return result;
    const denials = deniedByText(context.decision, placesIn(this.prepared.resolved));
    return denials === undefined ? result : { ...result, denials };
  }

  /** Launches on the workspace, on a layer over it, or with the workspace read-only. */
  #launchWhere(ready: ReadyCommand, decided: Decided, asked: Asked): RunningCommand {
    const { options, context } = ready;
    const { decision } = context;
    const isInstead = decision !== undefined && isUndoneInstead(decision);
    const effect =
      decision !== undefined && isPreviewed(decision) ? 'preview' : isInstead ? 'undoable' : options.effect;
    if (effect === undefined || effect === 'direct') return this.#launchDirect(ready);
    const onlyReads = effect === 'undoable' && !isInstead && decided.judgement?.onlyReads() === true;
    // Without a layer the command may lose work: a person is asked after all.
    const withoutLayer = ({ message }: SandboxError) => {
      this.#remarks = [...this.#remarks, `what commands change cannot be taken back now: ${message}`];
      return this.#ask(asked.command, { ...options, effect: 'direct' }, asked.how);
    };
    return this.#launchLater(ready, async (isGivenUp) => {
      const previews = await this.#previews();
      if (onlyReads) return previews.launchReading(ready, isGivenUp);
      const onLayer = { ...ready, options: { ...options, effect } };
      return previews.launch(onLayer, {
        isGivenUp,
        lostAmong: (taken) => decision && decided.judgement?.lostAmong(taken, decision),
        leavesOpen: isInstead,
        ...(isInstead ? { withoutLayer } : {}),
      });
    });
  }

  /** Loaded only when a command runs on a layer. */
  #previews(): Promise<Previews> {
    const { workspace } = this.prepared.policy;
    this.#layers ??= import('./changes/preview.ts').then(
      ({ Previews }) => new Previews(this.prepared, this.#launcher, workspace.undo === 'always'),
    );
    return this.#layers;
  }

  /**
   * Launches on the workspace itself. If the same line failed before, or its text reads something out of its reach, denied reads
   * are observed too, which is slower.
   */
  #launchDirect(ready: ReadyCommand): RunningCommand {
    const { plan, network } = this.prepared;
    // With a listed network: another supervisor would not know the addresses that earlier commands looked up.
    if (plan.observed !== 'changes' || network !== undefined)
      return this.#launcher.launch(this.prepared, ready);
    const { resolved, context } = ready;
    const line = lineOf(resolved.argv, resolved.cwd);
    const launchIn = (sandbox: PreparedSandbox): RunningCommand => {
      const started = this.#launcher.launch(sandbox, ready);
      const noted = started.result.then((result) => {
        if (result.status === 'exited') this.#failed.note(line, result.exitCode !== 0);
        return result;
      });
      return { ...started, result: noted };
    };
    const looks = context.decision?.reasons.some(({ code }) => code === LOOKS_OUTSIDE) === true;
    if (!looks && !this.#failed.has(line)) return launchIn(this.prepared);
    return this.#launchLater(ready, async (isGivenUp) => {
      this.#looking ??= this.prepared.forLooking();
      const sandbox = await this.#looking;
      return isGivenUp() ? givenUp(ready) : launchIn(sandbox);
    });
  }

  /** Launches a command whose sandbox must be prepared first; it can be canceled meanwhile. */
  #launchLater(
    { options: { signal } }: ReadyCommand,
    launch: (isGivenUp: () => boolean) => Promise<RunningCommand>,
  ): RunningCommand {
    const own = new AbortController();
    const isGivenUp = () => this.#closed || own.signal.aborted || signal?.aborted === true;
    return this.#waitFor(launch(isGivenUp), () => own.abort());
  }

  #waitFor(begun: Promise<RunningCommand>, giveUp: () => void): RunningCommand {
    const pending = pendingCommand(begun, giveUp);
    this.#waiting.add(pending);
    void pending.result.finally(() => this.#waiting.delete(pending)).catch(() => {});
    return pending;
  }
}
