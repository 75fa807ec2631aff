// What others may import of this house; inside of it, files import each other. Its README says what it is for.

export { effectivePolicy, profileFile, weakenings } from './effective.ts';
export { type BuiltEnvironment, buildEnvironment } from './environment.ts';
export { type Entry, type LayerName, type PolicyLayer, putAt, valueAt } from './layers.ts';
export {
  checkNarrowingPolicy,
  checkPolicy,
  loadLayer,
  loadWorkspaceFile,
  parsePolicy,
  type WorkspaceFile,
} from './load.ts';
export { type Source, sourceOf } from './locate-key.ts';

// Hosts

export { addressBytes, normalName, type Protocol, readEntry } from './network/entry.ts';
export { presetOf, readRules } from './network/read-rules.ts';
export {
  denialOf,
  type IsOpen,
  insideOfApproved,
  isNameDenied,
  isPlaceholder,
  isPublic,
  judgeAddress,
  judgeHost,
  judgeName,
  mayBeAskedAbout,
  mayLeadTo,
  networkRules,
} from './network/rules.ts';

// Profiles, and the paths that programs need

export { PROFILES } from './profiles/built-in.ts';
export { CACHE_PLACES, OFFLINE_ENVIRONMENT, PACKAGE_CACHES } from './profiles/caches.ts';
export { OBEYED_FILES, OBEYED_IN_HOME, type ObeyedFile, PROTECTED_PATHS } from './profiles/obeyed-files.ts';
export {
  SYSTEM_LOOKED_AT,
  SYSTEM_PATHS,
  SYSTEM_SECRET_NAMES,
  SYSTEM_SECRETS,
  TOOL_CHAINS,
} from './profiles/system-paths.ts';
