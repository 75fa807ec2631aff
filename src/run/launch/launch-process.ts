import { AsyncLocalStorage } from 'node:async_hooks';
import type {
  NativeAddon,
  NativeCommand,
  NativeConfinement,
  NativeEventHandler,
  NativeExit,
  NativeOutcome,
  NativeTurnEnd,
} from '../../native/contract.ts';
import { launchCommand } from '../../native/launch.ts';
import { assertNever } from '../../util/assert-never.ts';
import type { NetworkBroker } from '../network/broker.ts';
import type { ChunkReceiver } from '../output/feed.ts';

/** What is done about a process of the addon: a command, or a shell. */
interface ProcessEvents {
  /** Where the network is listed. */
  readonly network: NetworkBroker | undefined;
  /** Who takes its output now; `undefined`: nobody reads it. */
  readonly receiver: () => ChunkReceiver | undefined;
  /** Of a command in the background. */
  readonly exited?: ((exit: NativeExit) => void) | undefined;
  /** Of a shell. */
  readonly turnEnded?: (end: NativeTurnEnd) => void;
  readonly ended: (outcome: NativeOutcome) => void;
}

/**
 * Launches a process and hears what the addon tells of it; returns its id. Throws if no thread can be made. What is heard is
 * heard on behalf of who launched it: the addon calls from nowhere.
 */
export function launchProcess(
  addon: NativeAddon,
  confinement: NativeConfinement,
  command: NativeCommand,
  { network, receiver, exited, turnEnded, ended }: ProcessEvents,
): number {
  const hear: NativeEventHandler = AsyncLocalStorage.bind((event: Parameters<NativeEventHandler>[0]) => {
    switch (event.kind) {
      case 'chunk': {
        const acknowledge = () => void addon.acknowledge(id, event.bytes.length);
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
        ended(event);
        break;
      case 'name-asked':
      case 'connection-asked':
      case 'host-asked':
        network?.onAsked(id, event);
        break;
      default:
        assertNever(event);
    }
  });
  const id = launchCommand(addon, confinement, command, hear);
  return id;
}
