// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { type Caller, onBehalfOf } from './caller.ts';
export { probeHost } from './probe.ts';
export { createPathLookup } from './resolve-path.ts';
export { ensureStateDirectory, homeInDatabase, stateDirectoryPath } from './user-directories.ts';
