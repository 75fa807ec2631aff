// A second entry of its house, for what most others do not need: the README of the house says why.

export { ANSWER_MS, CREDENTIALS_VARIABLE, connectNats, natsFailure, whereInstalled } from './connection.ts';
export { fleetStoreOn, openFleetStore } from './key-value.ts';
export { patienceWith, patiently } from './patience.ts';
export { Publisher } from './publisher.ts';
export { openRecordStream } from './record-stream.ts';
export { writeBehind } from './write-behind.ts';

// Stored state of a fleet

export { openFleetState } from '../state/remote/open-fleet-state.ts';
