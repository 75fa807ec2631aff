import { deferred } from '../../base/deferred.ts';
import type { Confinement } from '../../confine/confine.ts';
import {
  type NativeAddon,
  type NativeOutcome,
  STDIO_CAPTURE,
  STDIO_NULL,
} from '../../confine/native/contract.ts';
import type { Running } from '../../confine/running.ts';
import type { PublishedPort } from '../../model/index.ts';
import { launchProcess } from '../launch/launch-process.ts';
import type { NetworkBroker } from '../network/broker.ts';
import type { PublishedPorts } from '../network/published-ports.ts';
import type { ChunkReceiver } from '../output/feed.ts';
import type { OutputSettings } from '../output/settings.ts';
import type { NativeTurnEnd } from './native-shell.ts';

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
  /** Where ports are published: they are held as long as the shell lives. */
  readonly published: PublishedPorts | undefined;
}

/** Interactive, because only such a shell gives up a whole list at an interrupt; without anything for people. */
const ARGUMENTS = ['--noprofile', '--norc', '--noediting', '-i'];

/** A running bash that takes turns, one after the other. */
export class ShellProcess {
  readonly #running: Running;
  readonly #addon: NativeAddon;
  readonly #end = deferred<NativeOutcome>();
  readonly #ports: readonly PublishedPort[];
  #remarks: readonly string[];
  #ended: NativeOutcome | undefined;
  #broken = false;
  #turns = 0;
  #current:
    | { readonly turn: number; readonly request: TurnRequest; done(how: TurnOutcome): void }
    | undefined;

  /** Starts it. Throws if no thread can be made for it. */
  constructor(addon: NativeAddon, confinement: Confinement, start: ShellStart) {
    this.#addon = addon;
    const { network, published } = start;
    const { running, held } = launchProcess(
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
      {
        network,
        published,
        // Between two turns there is none for what is of a background process of an earlier one.
        receiver: () => this.#current?.request.receiver,
        turnEnded: (end) => {
          // A broken shell is being ended: its end is the end of the turn.
          if (end.broken) this.#broken = true;
          else if (end.turn === this.#current?.turn) this.#settle({ alive: true, end });
        },
        ended: (outcome) => {
          this.#ended = outcome;
          network?.end(this.id);
          this.#settle(this.#dead(outcome));
          this.#end.resolve(outcome);
        },
      },
    );
    this.#running = running;
    this.#ports = held?.ports ?? [];
    this.#remarks = held?.warnings ?? [];
  }

  /** Those that it publishes. */
  get ports(): readonly PublishedPort[] {
    return this.#ports;
  }

  /** What there is to say about its ports, once. */
  takeRemarks(): readonly string[] {
    const remarks = this.#remarks;
    this.#remarks = [];
    return remarks;
  }

  /** For the addon. */
  get id(): number {
    return this.#running.id;
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

  /** Interrupts the turn that runs. False: there is none. */
  interrupt(): boolean {
    return this.#current !== undefined && this.#addon.interruptTurn(this.id, this.#current.turn);
  }

  /** Ends the shell and everything that it started. */
  kill(): Promise<NativeOutcome> {
    this.#running.end(true);
    return this.#end.promise;
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
