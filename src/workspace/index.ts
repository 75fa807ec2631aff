// What others may import of this house; inside of it, files import each other. Its README says what it is for.

// The machine: paths, identity, files that are written

export { createStartLookup } from './host/directory-listings.ts';
export {
  currentDirectoryOf,
  exactRealPath,
  namedCurrentDirectory,
  requireExactArguments,
  requireExactVariables,
} from './host/exact-text.ts';
export { type FoundProgram, findProgram, isStillExecutable } from './host/find-program.ts';
export {
  holdDirectory,
  inDirectoryOf,
  isNoDirectory,
  O_PATH,
  O_TMPFILE,
  readRegular,
  replaceFile,
} from './host/held-directory.ts';
export { actsForUser, identityOf } from './host/identity.ts';
export { listedSockets } from './host/listed-sockets.ts';
export {
  isServedHere,
  type ListeningSocket,
  listenerAt,
  listeningSockets,
} from './host/listening-sockets.ts';
export { mountPointsWithin } from './host/mount-points.ts';
export type { NativeTree } from './host/native-files.ts';
export type {
  NativeChangedCopy,
  NativeChangedEntry,
  NativeIndex,
  NativeIndexed,
  NativeIndexSpec,
} from './host/native-index.ts';
export { createLookAtObeyed } from './host/obeyed-files.ts';
export { loadAuditKey, readPrivateFile } from './host/private-file.ts';
export { createPathLookup } from './host/resolve-path.ts';
export { behindAlias } from './host/ssh-aliases.ts';
export { type Environment, OF_THIS_PROCESS, type Surroundings } from './host/surroundings.ts';
export { isTimedId, timedId } from './host/timed-id.ts';
export { hostsOfTool } from './host/tool-hosts.ts';
export {
  ensureStateDirectory,
  homeDirectory,
  homeInDatabase,
  makeDirectories,
  privateParentIn,
  stateDirectoryPath,
} from './host/user-directories.ts';
export {
  atPlaceOf,
  chmodItself,
  makeAt,
  replaceAt,
  type WriteOptions,
  type WritePlace,
} from './host/written-file.ts';

// git

export { readAliases } from './host/git/aliases.ts';
export { editGitConfig, type GitConfigFile, parseGitConfig, valuesByKey } from './host/git/config-file.ts';
export { INDEX_BYTES, parseIndex, repositoriesOutOfSight } from './host/git/index-file.ts';
export { describePush } from './host/git/push.ts';
export {
  alternatesOf,
  CONFIG_BYTES,
  GIT_NAMES,
  gitDirectories,
  type HooksOfGit,
  isGitDirectory,
  isObeyedInRepository,
  type ObeyedByGit,
  obeyedByGit,
  ownParts,
  readPointer,
  remotesOf,
  SEQUENCE_NAMES,
  userConfigFiles,
} from './host/git/repositories.ts';
export {
  findRepository,
  type RepositoryAround,
  type RepositorySearch,
  TREE_AROUND,
} from './host/git/repository-around.ts';
export { createVersions } from './host/git/versions.ts';

// Settings of the user

export type { CarriedSettings } from './host/settings/carried.ts';
export { carrySettings, NO_SETTINGS } from './host/settings/carry.ts';

// What a command leaves behind

export { Baseline } from './left-behind/baseline.ts';
export { Expected } from './left-behind/expected.ts';
export { HookCopies, hookInstallerOf, keptHooksIn, keptHooksOf } from './left-behind/hook-copies.ts';
export { Kept, type KeptItem } from './left-behind/kept.ts';
export { NestedRepositories } from './left-behind/nested-repositories.ts';
export { type ObeyedNames, obeyedNames, rowAround } from './left-behind/obeyed-names.ts';
export { createSettler, type Settler } from './left-behind/settle.ts';
export { beginLookingForSkippedHooks, type SkippedHooks } from './left-behind/skipped-hooks.ts';
