import {
  type NativeAddon,
  type NativeCapture,
  type NativeCommand,
  type NativeConfinement,
  type NativeEvent,
  type NativeEventHandler,
  type NativeOutcome,
  STDIO_CAPTURE,
  STDIO_NULL,
} from './native/contract.ts';
import type { LaunchPlan } from './plan/launch-plan.ts';

/** A command to start. Only `program` is required. */
export interface CommandToStart extends Partial<Omit<NativeCommand, 'program' | 'env'>> {
  /** Absolute, as the command sees it. */
  readonly program: string;
  /** The whole environment; HOME and TMPDIR are added unless named. As bytes (`NAME=value`, each ended by NUL): nothing is added. */
  readonly env?: Readonly<Record<string, string>> | Uint8Array;
}

/** Defaults: empty input, 1 MiB of each output stream captured, no time limit. */
const USUAL = {
  stdio: [STDIO_NULL, STDIO_CAPTURE, STDIO_CAPTURE],
  streamOutput: false,
  outputLimit: 1024 * 1024,
  timeoutMs: 0,
  killGraceMs: 2000,
  extras: undefined,
} as const;

/** Fills in the defaults of a command. A complete command is returned unchanged. */
export function completed(command: CommandToStart | NativeCommand, plan: LaunchPlan): NativeCommand {
  if (isComplete(command)) return command;
  const { program, env = {} } = command;
  return {
    ...USUAL,
    argv: [program],
    cwd: plan.workspace,
    ...command,
    env: env instanceof Uint8Array ? env : environmentBlock({ ...directoryVariables(plan), ...env }),
  };
}

const ALL = ['argv', 'cwd', ...Object.keys(USUAL)];
const isComplete = (command: CommandToStart | NativeCommand): command is NativeCommand =>
  command.env instanceof Uint8Array && ALL.every((name) => name in command);

/** Variables that name the private directories of a plan; where their names are known only at the launch, the addon sets those. */
export function directoryVariables({
  home,
  tmp,
}: Pick<LaunchPlan, 'home' | 'tmp'>): Readonly<Record<string, string>> {
  return {
    ...(home.startsWith('slot:') ? {} : { HOME: home }),
    ...(tmp.startsWith('slot:') ? {} : { TMPDIR: tmp }),
  };
}

/** Variables as the addon takes them. */
export function environmentBlock(variables: Readonly<Record<string, string | undefined>>): Uint8Array {
  const list = Object.entries(variables).map(([name, value]) =>
    value === undefined ? '' : `${name}=${value}\0`,
  );
  return Buffer.from(list.join(''));
}

/** A command from its start to the end of everything that it started. */
export class Running {
  /** The addon's number for this command, for the addon functions that belong to guests. */
  readonly id: number;
  readonly #addon: NativeAddon;
  #hear: ((event: NativeEvent) => void) | undefined;
  #ended: NativeOutcome | undefined;
  #exited: Promise<NativeOutcome> | undefined;
  #settle: ((outcome: NativeOutcome) => void) | undefined;

  /** @internal */
  constructor(addon: NativeAddon, confinement: NativeConfinement, command: NativeCommand) {
    this.#addon = addon;
    this.id = launchCommand(addon, confinement, command, (event) => {
      if (event.kind === 'ended') {
        this.#ended = event;
        this.#settle?.(event);
      }
      this.#hear?.(event);
    });
  }

  /** How the command ended; never rejects. `failure`: its program was not executed, or, with stage `wait`, its end is unknown. */
  get exited(): Promise<NativeOutcome> {
    // Created on demand: a caller that uses events() needs no promise.
    this.#exited ??= new Promise((settle) => {
      if (this.#ended === undefined) this.#settle = settle;
      else settle(this.#ended);
    });
    return this.#exited;
  }

  /**
   * Calls `hear` with every event of the command, the end included. Call it synchronously after `start`: no event comes before the
   * calling code returns, and events without a listener are lost. `chunk` events come with `streamOutput`; acknowledge each.
   */
  events(hear: (event: NativeEvent) => void): void {
    this.#hear = hear;
  }

  /** Sends a signal, by number, to its process group. False: it has ended. */
  signal(signal: number): boolean {
    return this.#addon.signal(this.id, signal);
  }

  /** Ends it with everything that it started: SIGTERM, and SIGKILL after `killGraceMs`; `now`: SIGKILL. False: it has ended. */
  end(now = false): boolean {
    return this.#addon.cancel(this.id, now);
  }

  /** Says that so many bytes of `chunk` events were consumed, so that more may come. False: it has ended. */
  acknowledge(bytes: number): boolean {
    return this.#addon.acknowledge(this.id, bytes);
  }

  /** Turns `chunk` events on (beginning with the output captured so far) or off. False: it has ended. */
  stream(on: boolean): boolean {
    return this.#addon.stream(this.id, on);
  }

  /** Changes the size of its terminal. False: it has ended. */
  resize(cols: number, rows: number): boolean {
    return this.#addon.resize(this.id, cols, rows);
  }

  /** The output captured so far; `undefined`: it has ended. */
  outputSoFar(): NativeCapture | undefined {
    return this.#addon.outputSoFar(this.id);
  }

  /** The ids of its living processes; empty if it has ended, or ends before the answer. */
  members(): Promise<readonly number[]> {
    return new Promise((settle) => {
      if (!this.#addon.treeOf(this.id, settle)) settle([]);
    });
  }
}

/** Calls `addon.launch`, which takes positional arguments because reading an object costs more. */
function launchCommand(
  addon: NativeAddon,
  confinement: NativeConfinement,
  command: NativeCommand,
  onEvent: NativeEventHandler,
): number {
  return addon.launch(
    confinement,
    onEvent,
    command.program,
    command.argv,
    command.env,
    command.cwd,
    ...command.stdio,
    command.outputLimit,
    command.timeoutMs,
    command.killGraceMs,
    command.streamOutput,
    command.input,
    command.extras,
  );
}
