// What a fleet needs, loaded where a policy names its server: most command lines need nothing of it.

export { openFleetStore } from '../nats/key-value.ts';
export { openRecordStream } from '../nats/record-stream.ts';
export { openFleetState } from '../state/remote/open-fleet-state.ts';
export { refuseReadableCredentials } from './credentials.ts';
