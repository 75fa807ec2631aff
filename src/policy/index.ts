// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { effectivePolicy } from './effective.ts';
export { addressBytes } from './network/entry.ts';
export { readRules } from './network/read-rules.ts';
export { judgeAddress, judgeName, mayLeadTo } from './network/rules.ts';
export { CACHE_PLACES, PACKAGE_CACHES } from './profiles/caches.ts';
export { OBEYED_FILES, PROTECTED_PATHS } from './profiles/obeyed-files.ts';
export { SYSTEM_PATHS, TOOL_CHAINS } from './profiles/system-paths.ts';
