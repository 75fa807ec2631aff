// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { connectNats } from './connection.ts';
export { fleetStoreOn } from './key-value.ts';
export { Publisher } from './publisher.ts';
