import { isBeneath } from '../../base/absolute-path.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { readableWord } from '../../base/shell-quote.ts';
import type { Lost, Taken } from '../../judge/index.ts';
import type { AppliedChanges, ChangeSetDetail, ExecutionResult, SpawnOptions } from '../../model/index.ts';
import type { NativeChangedCopy } from '../../workspace/index.ts';
import { type NotedIndex, noteIndex } from '../change-sets/index-outside.ts';
import type { OpenLayer } from '../change-sets/store.ts';
import { givenUp, type Launcher, notLaunched, type ReadyCommand } from '../launch/launch.ts';
import type { RunningCommand } from '../launch/pending-command.ts';
import { commandOf } from '../output/model-message.ts';
import type { PreparedSandbox } from '../resolve/prepare-sandbox.ts';
import { ChangeSets } from './change-sets.ts';

/** What is shown of a command in a list of change sets. */
const SHOWN = 200;

/** Limits of a result: changes that are listed, and paths that are named because they are not in the workspace. */
const TOLD = 100;
const NAMED = 10;

/** How long after a command the next layer is prepared, so that a process that runs one command and exits does not wait for it. */
const SPARE_AFTER_MS = 20;

const NO_CLOCK =
  'the clock of the workspace’s file system cannot be told, so that what somebody changed there while the command ran may be replaced and not named';

/** A layer, and what runs a command on it. */
interface Layered {
  readonly opened: OpenLayer;
  readonly sandbox: PreparedSandbox;
}

/** How a command is launched on a layer, beside its options. */
interface LayeredLaunch {
  /** Whether the command was canceled before it was launched. */
  readonly isGivenUp: () => boolean;
  /** The removed content that cannot be restored otherwise; `undefined`: it is not known. */
  readonly lostAmong: (taken: Taken) => Lost | undefined;
  /** What the policy lets commands write outside of the workspace stays writable, and changes at once. */
  readonly leavesOpen: boolean;
  /** Called if no layer can be made. Default: the command is not run. */
  readonly withoutLayer?: (error: SandboxError) => RunningCommand;
}

/** Runs commands of one sandbox that do not change the workspace at once: on a layer over it, or with it read-only. */
export class Previews {
  readonly #prepared: PreparedSandbox;
  readonly #launcher: Launcher;
  readonly #sets: ChangeSets;
  readonly #isUsual: boolean;
  /** Made ahead, because to make one takes longer than most commands. Nothing in the workspace is looked at through it. */
  #spare: Promise<Layered | undefined> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** For what only reads, which needs no layer because it cannot write the workspace. */
  #reading: Promise<PreparedSandbox> | undefined;
  /** Work that goes on in the background; `close` waits for it. */
  readonly #going = new Set<Promise<unknown>>();
  /** The layers that are unmounted, the last one after all others. */
  #unmounting: Promise<void> = Promise.resolve();
  #closed = false;

  /** `isUsual`: every command has a layer, so that one is made ahead. */
  constructor(prepared: PreparedSandbox, launcher: Launcher, isUsual: boolean) {
    this.#prepared = prepared;
    this.#launcher = launcher;
    this.#isUsual = isUsual;
    this.#sets = new ChangeSets(prepared.addon, undefined, prepared.policy.workspace.undoKeep);
  }

  /** Makes a layer for a command to come. */
  prepareNext(): void {
    // What the policy hides may be something else by then.
    if (this.#closed || this.#spare !== undefined || this.#prepared.hidden !== undefined) return;
    // Why it cannot be made is for the command to say.
    this.#spare = this.#make(undefined, false).catch(() => undefined);
  }

  /** Launches a command that only reads. */
  async launchReading(command: ReadyCommand, isGivenUp: () => boolean): Promise<RunningCommand> {
    // Nothing is made that close() would not know of.
    if (isGivenUp()) return givenUp(command);
    this.#reading ??= this.#prepared.forReading();
    let sandbox: PreparedSandbox;
    try {
      sandbox = await this.#reading;
    } catch (error) {
      this.#reading = undefined;
      return notLaunched(error, command.context);
    }
    return isGivenUp() ? givenUp(command) : this.#launcher.launch(sandbox, command);
  }

  /**
   * Launches a command on a layer; its result says what it changed. With the effect `undoable` that is in the workspace by
   * then.
   */
  async launch(
    command: ReadyCommand,
    { isGivenUp, lostAmong, leavesOpen, withoutLayer }: LayeredLaunch,
  ): Promise<RunningCommand> {
    if (isGivenUp()) return givenUp(command);
    const { context, options } = command;
    let layered: Layered | undefined;
    let index: NotedIndex | undefined;
    try {
      layered = await this.#take(options.on, leavesOpen);
      index = leavesOpen ? this.#noteIndex() : undefined;
    } catch (error) {
      if (layered !== undefined) this.#drop(layered);
      if (withoutLayer !== undefined && error instanceof SandboxError && !isGivenUp())
        return withoutLayer(error);
      return notLaunched(error, context);
    }
    if (isGivenUp()) {
      this.#drop(layered);
      return givenUp(command);
    }
    const { opened, sandbox } = layered;
    const copies: NativeChangedCopy[] = [];
    const settle: PreparedSandbox['settle'] = (effects) => {
      const own = (effects.copies ?? []).filter(
        ({ source }) => !leavesOpen || isBeneath(source, sandbox.plan.workspace),
      );
      copies.push(...own);
      return sandbox.settle(effects);
    };
    const running = this.#launcher.launch({ ...sandbox, settle }, command);
    const finish = async (result: ExecutionResult): Promise<ExecutionResult> => {
      try {
        return await this.#finish(result, layered, options, { copies, index }, lostAmong);
      } catch (error) {
        opened[Symbol.dispose]();
        const why = `what the command changed cannot be read, and nothing of it is in the workspace (${errorMessage(error)})`;
        return { ...result, warnings: [...result.warnings, why] };
      } finally {
        if (!this.#closed && this.#isUsual)
          this.#timer ??= setTimeout(() => this.#prepareLater(), SPARE_AFTER_MS).unref();
      }
    };
    return { ...running, result: running.result.then(finish) };
  }

  /** Gives up what was made ahead; settles when nothing of it is left. Commands have to have ended. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    const spare = await this.#spare;
    if (spare !== undefined) this.#drop(spare);
    const reading = await this.#reading?.catch(() => undefined);
    if (reading !== undefined) await this.#closeConfinement(reading);
    await Promise.all(this.#going);
  }

  /** The index of the repository that the workspace is a part of, where git keeps that outside. */
  #noteIndex(): NotedIndex | undefined {
    const { repository } = this.#prepared.resolved;
    if (repository?.directory === undefined || repository.index === undefined) return undefined;
    return noteIndex({ directory: repository.directory, index: repository.index });
  }

  #prepareLater(): void {
    this.#timer = undefined;
    this.prepareNext();
  }

  async #take(on: string | undefined, leavesOpen: boolean): Promise<Layered> {
    if (on === undefined && !leavesOpen) {
      const spare = this.#spare;
      this.#spare = undefined;
      const ready = await spare;
      if (ready !== undefined) {
        if (await this.#begins(ready)) return ready;
        this.#drop(ready);
      }
    }
    const made = await this.#make(on, leavesOpen);
    await this.#begins(made);
    return made;
  }

  /** Begins a layer, and drops it if that fails. */
  async #begins(layered: Layered): Promise<boolean> {
    try {
      return await layered.opened.begin();
    } catch (error) {
      this.#drop(layered);
      throw error;
    }
  }

  async #make(on: string | undefined, leavesOpen: boolean): Promise<Layered> {
    const opened = await this.#sets.open(this.#prepared.plan.workspace, on);
    try {
      return { opened, sandbox: await this.#prepared.withLayer(opened.layer, leavesOpen) };
    } catch (error) {
      await this.#sets.abandon(opened);
      throw error;
    }
  }

  /** What a command changed. */
  async #finish(
    result: ExecutionResult,
    layered: Layered,
    { effect, on }: SpawnOptions,
    {
      copies,
      index,
    }: { readonly copies: readonly NativeChangedCopy[]; readonly index: NotedIndex | undefined },
    lostAmong: LayeredLaunch['lostAmong'],
  ): Promise<ExecutionResult> {
    const { opened, sandbox } = layered;
    const isApplied = effect === 'undoable';
    // Waits for the previous unmount: faster commands would leave ever more mounts.
    await this.#unmounting;
    const none = { ...result, changes: isApplied ? undefined : NOTHING_CHANGED(on) };
    const isUntouched = opened.isUntouched() && copies.length === 0 && index === undefined;
    if (result.status === 'setup-failed' || isUntouched) {
      this.#drop(layered);
      return result.status === 'setup-failed' ? result : none;
    }
    const { workspace } = sandbox.plan;
    const command = shownCommand(result.argv);
    const { id } = opened;
    // Nothing of the command is left that could write. Unmounting writes out the whole file system of the layer, and may take long.
    const tidied = this.#later(this.#unmount(sandbox).then(() => this.#sets.removeWork(id)));
    // Another command is to run on what waits, with the layer below its own.
    if (!isApplied) await tidied;
    const about = { workspace, command, on, ...(isApplied ? { atOnce: true as const } : {}) };
    if (!(await this.#sets.close(opened, about, copies, index))) {
      void this.#later(tidied.then(() => this.#sets.abandon(opened)));
      return none;
    }
    const shown = () => this.#sets.show(id, TOLD);
    const before = [...result.warnings, ...(opened.beginning.isItsOwn ? [] : [NO_CLOCK])];
    if (!isApplied) return { ...result, warnings: before, changes: told(shown(), 'preview') };
    const lost = this.#sets.lostIn(id, lostAmong);
    let applied: AppliedChanges;
    try {
      applied = await this.#sets.applyAll(this.#prepared, id);
    } catch (error) {
      // The change set is kept and can be applied again. After an unexpected error we do not know how far apply got.
      const isBegun = !(error instanceof SandboxError) || error.code === 'changes.incomplete';
      const state = isBegun ? 'applied' : 'waiting';
      const why = `what the command changed is kept as ${id}, but not all of it is in the workspace: ${errorMessage(error)}`;
      const changes: ToldChanges = { ...told(shown(), 'undoable'), state };
      return { ...result, warnings: [...before, why], changes };
    }
    const { notDone, state } = applied;
    // Effects outside the workspace were settled when the command ended.
    const leftBehind = [...result.leftBehind, ...applied.leftBehind];
    const warnings = [...before, ...notInPlace(id, notDone)];
    const found = shown();
    // Changes that are never applied, such as a FIFO, do not wait; those in conflict do.
    const isRefused = found.more === 0 && found.changes.every(({ refused }) => refused !== undefined);
    if (applied.done === 0 && isRefused) {
      await this.#sets.discard(id).catch(() => {});
      return { ...none, leftBehind, warnings };
    }
    // A change set that waits as a whole is reported elsewhere.
    if (notDone.length > 0 && state === 'applied')
      warnings.push(`what the command made of that is kept: sandbox-run changes diff ${id}`);
    // All was tried: what is not there by now cannot be applied as it is.
    const notApplied = found.notApplied + found.left;
    const gone = lost && this.#sets.goneOf(lost, id);
    return { ...result, leftBehind, warnings, changes: { ...told(found, 'undoable'), notApplied, gone } };
  }

  /** Nobody waits for it. What cannot be removed now goes with the next command. */
  #drop({ opened, sandbox }: Layered): void {
    // The layers beneath it may be discarded from now on.
    opened[Symbol.dispose]();
    void this.#later(this.#unmount(sandbox).then(() => this.#sets.abandon(opened)));
  }

  /** What fails of it goes with the history. */
  #later(work: Promise<unknown>): Promise<unknown> {
    const going = work.catch(() => {}).finally(() => this.#going.delete(going));
    this.#going.add(going);
    return going;
  }

  /** One after the other: each has one of the few threads of the process for as long as the kernel writes. */
  #unmount(sandbox: PreparedSandbox): Promise<void> {
    const unmounted = this.#unmounting.then(() => this.#closeConfinement(sandbox));
    this.#unmounting = unmounted.catch(() => {});
    return unmounted;
  }

  #closeConfinement({ confinement }: PreparedSandbox): Promise<void> {
    return new Promise<void>((done) => confinement.close(done));
  }
}

function shownCommand(argv: readonly string[]): string {
  const asked = commandOf(argv);
  return (typeof asked === 'string' ? asked : asked.map(readableWord).join(' ')).slice(0, SHOWN);
}

type ToldChanges = NonNullable<ExecutionResult['changes']>;

const NOTHING_CHANGED = (on: string | undefined): ToldChanges => ({
  ...{ id: undefined, effect: 'preview', state: 'waiting', on, changes: [], more: 0, notApplied: 0 },
  counts: { created: 0, changed: 0, deleted: 0, renamed: 0 },
});

function told(
  { id, state, on, counts, notApplied, changes, more }: ChangeSetDetail,
  effect: ToldChanges['effect'],
): ToldChanges {
  return { id, effect, state, on, counts, notApplied, changes, more };
}

/** What is not in the workspace, and why: a sentence each for the first ones. */
function notInPlace(id: string, notDone: AppliedChanges['notDone']): readonly string[] {
  const more = notDone.length - NAMED;
  return [
    ...notDone.slice(0, NAMED).map(({ path, why }) => `${path} is not in the workspace: ${why}`),
    ...(more > 0 ? [`${more} more are not in the workspace: sandbox-run changes show ${id}`] : []),
  ];
}
