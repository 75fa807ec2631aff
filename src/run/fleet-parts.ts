// What a fleet needs, loaded where a policy names its server: most command lines need nothing of it.

export { openFleetState, openFleetStore, openRecordStream } from '../gate/nats/index.ts';
export { refuseReadableCredentials } from './credentials.ts';
