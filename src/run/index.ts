// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { createChecker } from './assemble.ts';
export { ChangeSets } from './changes/change-sets.ts';
export { wrapped } from './load-compiled.ts';
export { introduceBoundaries } from './output/model-boundaries.ts';
export { messageForModel, reasonForModel } from './output/model-message.ts';
export { refusedForModel, warningsOf } from './output/result-warnings.ts';
export { type PreparedSandbox, prepareSandbox } from './resolve/prepare-sandbox.ts';
export { CACHE_LIMITS, trimCaches } from './resolve/trim-caches.ts';
export { tryCommand } from './resolve/try-command.ts';
export {
  type CacheEntry,
  cacheDirectoryOf,
  clearCache,
  listCaches,
  sizeOfCache,
} from './resolve/workspace-cache.ts';
export { createSandbox, sandboxOn } from './sandbox.ts';
export { layersRefused, openOwnState, stateDirectory } from './state.ts';
