import {
  type NativeAddon,
  type NativeConfinement,
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
  readonly alive: () => boolean;
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
  let ended: NativeOutcome | undefined;
  let broken = false;
  let turns = 0;
  let current:
    | { readonly turn: number; readonly request: TurnRequest; done(how: TurnOutcome): void }
    | undefined;
  const { promise: end, resolve: finish } = deferred<NativeOutcome>();
  const settle = (how: TurnOutcome) => {
    const turn = current;
    current = undefined;
    turn?.done(how);
  };
  const id = launchCommand(
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
    (event) => {
      switch (event.kind) {
        case 'chunk': {
          const acknowledge = () => void addon.acknowledge(id, event.bytes.length);
          // Of a background process of an earlier turn, between two turns: it is not read.
          if (current?.request.receiver === undefined) acknowledge();
          else current.request.receiver.onChunk(event.stream, event.bytes, acknowledge);
          break;
        }
        case 'turn-ended':
          // A broken shell is being ended: its end is the end of the turn.
          if (event.broken) broken = true;
          else if (event.turn === current?.turn) settle({ alive: true, end: event });
          break;
        case 'ended':
          ended = event;
          start.network?.end(id);
          settle({ alive: false, outcome: event, broken });
          finish(event);
          break;
        case 'gap':
          current?.request.receiver?.onGap?.(event.stream, event.missing);
          break;
        case 'name-asked':
          start.network?.onNameAsked(id, event);
          break;
        case 'connection-asked':
          start.network?.onConnectionAsked(id, event);
          break;
        case 'host-asked':
          start.network?.onHostAsked(id, event);
          break;
        // Only of commands in the background.
        case 'exited':
          break;
        default:
          assertNever(event);
      }
    },
  );
  return {
    id,
    alive: () => ended === undefined,
    turn: (request) =>
      new Promise((done) => {
        turns += 1;
        current = { turn: turns, request, done };
        const { text, assignments, timeout, receiver } = request;
        const isTaken = addon.turn(id, turns, text, assignments, timeout, receiver !== undefined);
        if (!isTaken && ended !== undefined) settle({ alive: false, outcome: ended, broken });
      }),
    interrupt: () => current !== undefined && addon.interruptTurn(id, current.turn),
    kill: () => {
      addon.cancel(id, true);
      return end;
    },
  };
}
