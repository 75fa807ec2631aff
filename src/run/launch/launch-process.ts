import { AsyncResource } from 'node:async_hooks';
import { assertNever } from '../../base/assert-never.ts';
import type { Confinement } from '../../confine/confine.ts';
import type { NativeCommand, NativeEvent, NativeExit, NativeOutcome } from '../../confine/native/contract.ts';
import type { Running } from '../../confine/running.ts';
import type { NetworkBroker } from '../network/broker.ts';
import type { HeldPorts, PublishedPorts } from '../network/published-ports.ts';
import type { ChunkReceiver } from '../output/feed.ts';
import type { NativeTurnEnd } from '../session/native-shell.ts';

/** What is done about a process of the addon: a command, or a shell. */
interface ProcessEvents {
  /** Where the network is listed. */
  readonly network: NetworkBroker | undefined;
  /** Where ports are published. */
  readonly published: PublishedPorts | undefined;
  /** Who takes its output now; `undefined`: nobody reads it. */
  readonly receiver: () => ChunkReceiver | undefined;
  /** Called when the first process of a background command has ended. */
  readonly exited?: ((exit: NativeExit) => void) | undefined;
  /** Called when a turn of a shell has ended. */
  readonly turnEnded?: (end: NativeTurnEnd) => void;
  /** `published`: what there is to say about ports at the end. */
  readonly ended: (outcome: NativeOutcome, published: readonly string[]) => void;
}

/** A process that was started, with its ports. */
interface Launched {
  readonly running: Running;
  /** `undefined`: none is published. */
  readonly held: HeldPorts | undefined;
}

/**
 * Starts a process and hears what is told of it. Throws if no thread can be made, or a port cannot be held. What is heard is heard on behalf of who started
 * it: the addon calls from nowhere.
 */
export function launchProcess(
  confinement: Confinement,
  command: NativeCommand,
  { network, published, receiver, exited, turnEnded, ended }: ProcessEvents,
): Launched {
  const held = published?.hold(confinement);
  let running: Running;
  try {
    running = confinement.start(command);
  } catch (error) {
    held?.release();
    throw error;
  }
  const hear = (event: NativeEvent) => {
    switch (event.kind) {
      case 'chunk': {
        const acknowledge = () => void running.acknowledge(event.bytes.length);
        const taker = receiver();
        if (taker === undefined) acknowledge();
        else taker.onChunk(event.stream, event.bytes, acknowledge);
        break;
      }
      case 'gap':
        receiver()?.onGap?.(event.stream, event.missing);
        break;
      case 'exited':
        exited?.(event);
        break;
      case 'turn-ended':
        turnEnded?.(event);
        break;
      case 'ended':
        ended(event, held?.release() ?? []);
        break;
      case 'name-asked':
      case 'connection-asked':
      case 'host-asked':
        network?.onAsked(running.id, event);
        break;
      default:
        assertNever(event);
    }
  };
  const launcher = new AsyncResource('sandbox-run:command', { requireManualDestroy: true });
  running.events((event) => launcher.runInAsyncScope(hear, undefined, event));
  held?.watch(() => running.members());
  return { running, held };
}
