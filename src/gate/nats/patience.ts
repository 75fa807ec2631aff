import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import { retried } from '../../base/retried.ts';
import { isRefusal } from './connection.ts';

/** A cluster has elected another leader by then. */
const PATIENCE_MS = 30_000;
const PAUSE_MS = 300;

/** One that stands alone without JetStream will not have it later; it may know a server that has. */
const ALONE_MS = 3_000;

/** How long it makes sense to try again on a server. */
export const patienceWith = ({ info }: NatsConnection): number =>
  info?.jetstream === true || info?.cluster !== undefined ? PATIENCE_MS : ALONE_MS;

/** Does what a cluster cannot do while it elects a leader: again, for a while. What it refuses is not tried again. */
export function patiently<T>(work: () => Promise<T>, milliseconds = PATIENCE_MS): Promise<T> {
  return retried(work, {
    mayPass: (error) => !isRefusal(error) && isPassing(error),
    forMs: milliseconds,
    pause: () => delay(PAUSE_MS),
  });
}

/** Whether an error may pass: no server answered, or one said that there is no leader. */
function isPassing(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const unavailable = Reflect.get(error, 'status') === 503;
  return (
    unavailable ||
    ['TimeoutError', 'NoRespondersError', 'RequestError'].includes(error.name) ||
    isPassing(error.cause)
  );
}
