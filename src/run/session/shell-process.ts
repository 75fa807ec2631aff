import {
  type NativeAddon,
  type NativeConfinement,
  type NativeEvent,
  type NativeOutcome,
  type NativeTurnEnd,
  STDIO_CAPTURE,
  STDIO_NULL,
} from '../../native/contract.ts';
import { launchCommand } from '../../native/launch.ts';
import { assertNever } from '../../util/assert-never.ts';
import { deferred } from '../../util/deferred.ts';
import type { NetworkBroker } from '../network/broker.ts';
import type { ChunkReceiver } from '../output/feed.ts';
import type { OutputSettings } from '../output/settings.ts';

/** What one turn is. */
interface TurnRequest {
  readonly text: string;
  readonly assignments: string;
  /** Milliseconds; 0: none. */
  readonly timeout: number;
  /** Takes output as it arrives. */
  readonly receiver?: ChunkReceiver | undefined;
}

/** How it ended: by itself, or with the shell. */
export type TurnOutcome =
  | { readonly alive: true; readonly end: NativeTurnEnd }
  /** `broken`: it was ended because it wrote what is no report, and too much of it. */
  | { readonly alive: false; readonly outcome: NativeOutcome; readonly broken: boolean };

/** A running bash that takes turns, one after the other. */
export interface ShellProcess {
  /** For the addon. */
  readonly id: number;
  alive(): boolean;
  turn(request: TurnRequest): Promise<TurnOutcome>;
  /** Interrupts the turn that runs. False: there is none. */
  interrupt(): boolean;
  /** Ends the shell and everything that it started. */
  kill(): Promise<NativeOutcome>;
}

/** What a shell is started with. */
interface ShellStart {
  readonly program: string;
  readonly env: Uint8Array;
  readonly cwd: string;
  readonly output: OutputSettings;
  readonly killGraceMs: number;
  /** `undefined`: the confinement's says it all. */
  readonly addedFilter: Uint8Array | undefined;
  /** Where the network is listed. */
  readonly network: NetworkBroker | undefined;
}

/** Interactive, because only such a shell gives up a whole list at an interrupt; without anything for people. */
const ARGUMENTS = ['--noprofile', '--norc', '--noediting', '-i'];

/** Starts a shell. Throws if no thread can be made for it. */
export function startShell(
  addon: NativeAddon,
  confinement: NativeConfinement,
  start: ShellStart,
): ShellProcess {
  return new RunningShell(addon, confinement, start);
}

class RunningShell implements ShellProcess {
  readonly id: number;
  readonly #addon: NativeAddon;
  readonly #network: NetworkBroker | undefined;
  readonly #end = deferred<NativeOutcome>();
  #ended: NativeOutcome | undefined;
  #broken = false;
  #turns = 0;
  #current:
    | { readonly turn: number; readonly request: TurnRequest; done(how: TurnOutcome): void }
    | undefined;

  constructor(addon: NativeAddon, confinement: NativeConfinement, start: ShellStart) {
    this.#addon = addon;
    this.#network = start.network;
    this.id = launchCommand(
      addon,
      confinement,
      {
        program: start.program,
        argv: [start.program, ...ARGUMENTS],
        env: start.env,
        cwd: start.cwd,
        stdio: [STDIO_NULL, STDIO_CAPTURE, STDIO_CAPTURE],
        streamOutput: false,
        outputLimit: start.output.outputLimit,
        timeoutMs: 0,
        killGraceMs: start.killGraceMs,
        // Between two commands a shell is silent for as long as it takes.
        extras: {
          ...start.output.extras,
          shell: true,
          idleTimeoutMs: 0,
          ...(start.addedFilter === undefined ? {} : { addedFilter: start.addedFilter }),
        },
      },
      (event) => this.#take(event),
    );
  }

  alive(): boolean {
    return this.#ended === undefined;
  }

  turn(request: TurnRequest): Promise<TurnOutcome> {
    return new Promise((done) => {
      this.#turns += 1;
      this.#current = { turn: this.#turns, request, done };
      const { text, assignments, timeout, receiver } = request;
      const isTaken = this.#addon.turn(
        this.id,
        this.#turns,
        text,
        assignments,
        timeout,
        receiver !== undefined,
      );
      if (!isTaken && this.#ended !== undefined) this.#settle(this.#dead(this.#ended));
    });
  }

  interrupt(): boolean {
    return this.#current !== undefined && this.#addon.interruptTurn(this.id, this.#current.turn);
  }

  kill(): Promise<NativeOutcome> {
    this.#addon.cancel(this.id, true);
    return this.#end.promise;
  }

  #take(event: NativeEvent): void {
    switch (event.kind) {
      case 'chunk': {
        const acknowledge = () => void this.#addon.acknowledge(this.id, event.bytes.length);
        // Of a background process of an earlier turn, between two turns: it is not read.
        const receiver = this.#current?.request.receiver;
        if (receiver === undefined) acknowledge();
        else receiver.onChunk(event.stream, event.bytes, acknowledge);
        break;
      }
      case 'turn-ended':
        // A broken shell is being ended: its end is the end of the turn.
        if (event.broken) this.#broken = true;
        else if (event.turn === this.#current?.turn) this.#settle({ alive: true, end: event });
        break;
      case 'ended':
        this.#ended = event;
        this.#network?.end(this.id);
        this.#settle(this.#dead(event));
        this.#end.resolve(event);
        break;
      case 'gap':
        this.#current?.request.receiver?.onGap?.(event.stream, event.missing);
        break;
      case 'name-asked':
      case 'connection-asked':
      case 'host-asked':
        this.#network?.onAsked(this.id, event);
        break;
      // Only of commands in the background.
      case 'exited':
        break;
      default:
        assertNever(event);
    }
  }

  #dead(outcome: NativeOutcome): TurnOutcome {
    return { alive: false, outcome, broken: this.#broken };
  }

  #settle(how: TurnOutcome): void {
    const turn = this.#current;
    this.#current = undefined;
    turn?.done(how);
  }
}
