// What others may import of this house; inside of it, files import each other. Its README says what it is for.

export { askedByTicket, gateOfTicket, issueAskedTicket, issueTicket, newOnce } from './approval-ticket.ts';
export {
  type Assembly,
  assemble,
  type Checker,
  type CheckerParts,
  checkerOf,
  checkOnly,
  commandEnvironment,
  createChecker,
  type KernelPart,
  requestMakerOf,
} from './assemble.ts';
export { refuseReadableCredentials } from './credentials.ts';
export { wrapped } from './load-compiled.ts';
export { type Places, projectsAround, whyNotProposed } from './proposals.ts';
export { removeTree } from './remove-tree.ts';
export {
  type CommandCheck,
  createSandbox,
  type OpenSandbox,
  type OwnRunOptions,
  openSandbox,
  type Sandbox,
  type StartedCommand,
  sandboxOn,
} from './sandbox.ts';
export {
  auditDirectory,
  defaultPrincipal,
  hasState,
  layersRefused,
  lazyState,
  openOwnState,
  openOwnStream,
  type StateSettings,
  stateDirectory,
} from './state.ts';
export { budgetOf, endSession } from './stateful-ports.ts';
export { openTelemetry } from './telemetry.ts';
export { timelyBudget } from './timely-ports.ts';
export { readOptions } from './validation.ts';

// Change sets: keep, apply, undo

export { Below, lookAt } from './change-sets/below.ts';
export { chosenNumbers, describeOperations } from './change-sets/describe.ts';
export { visibleDiff } from './change-sets/diff.ts';
export { withListed } from './change-sets/git-directories.ts';
export { openToRead } from './change-sets/held-paths.ts';
export { changeLine, countsInWords, goneInWords, isAllHeldUp, markOf } from './change-sets/in-words.ts';
export { type Operation, operationsOf } from './change-sets/operations.ts';
export { ChangeStore } from './change-sets/store.ts';
export type { TreeEntry } from './change-sets/tree.ts';

// Runs on a layer

export { ChangeSets } from './changes/change-sets.ts';
export { inItsWorkspace, linesOfApplied } from './changes/in-workspace.ts';
export { WaitingChanges } from './changes/waiting-changes.ts';

// Launching a command, and what became of it

export { notRun } from './launch/classify.ts';
export { EXIT_STATUS, endedBy, exitStatus } from './launch/exit-status.ts';
export { type BackgroundJob, type JobPort, portsInWords } from './launch/jobs.ts';
export type { SandboxProcess, TerminalProcess } from './launch/spawn.ts';

// For programs that start commands themselves

export type { Embedded } from './embed/command-line.ts';
export { openEmbedded, takeEmbedded } from './embed/embedded.ts';

// Firejail, and the backend without a kernel

export { BACKENDS } from './other-backends/all-backends.ts';

// Firejail

export { probeFirejail } from './other-backends/firejail/probe.ts';

// Output, denials, what a model is told

export { briefly } from './output/brief.ts';
export { denialsForPerson, describeDenial, shortWord, toldDenials } from './output/denial-texts.ts';
export { WHY } from './output/denials.ts';
export { introduceBoundaries } from './output/model-boundaries.ts';
export {
  boundariesOf,
  failureForModel,
  introductionForModel,
  messageForModel,
  reasonForModel,
  refusalForModel,
} from './output/model-message.ts';
export { createModelStream, DEFAULT_MODEL_OUTPUT } from './output/model-stream.ts';
export { neutralize } from './output/neutralize.ts';
export { OutputLog } from './output/output-log.ts';
export {
  leftBehindForModel,
  refusedForModel,
  warningsBesideDenials,
  warningsOf,
} from './output/result-warnings.ts';
export { createDecoder } from './output/show.ts';

// Preparing a sandbox

export { demandsOf, grantOf } from './resolve/grant.ts';
export { HostFindings } from './resolve/host-findings.ts';
export { realPath } from './resolve/own-program.ts';
export {
  callerLayer,
  hiddenIn,
  loadOperatorLayers,
  operatorPolicy,
  operatorStateSettings,
  policyFiles,
  userPolicyPath,
  validateFile,
  WORKSPACE_POLICY,
  workspaceNamed,
} from './resolve/policy-layers.ts';
export {
  type Beside,
  closePrepared,
  type PreparedSandbox,
  prepareOf,
  prepareSandbox,
  requireLooking,
} from './resolve/prepare-sandbox.ts';
export {
  type Project,
  trustDirectory,
  trustedProjects,
  trustProject,
  untrustProject,
} from './resolve/project-trust.ts';
export { argumentVector } from './resolve/resolve-command.ts';
export { type ResolvedPolicy, resolvePolicy } from './resolve/resolve-policy.ts';
export { CACHE_LIMITS, trimCaches } from './resolve/trim-caches.ts';
export {
  type CacheEntry,
  cacheDirectoryOf,
  clearCache,
  listCaches,
  sizeOfCache,
} from './resolve/workspace-cache.ts';
export { RepeatedLook } from './resolve/workspace-findings.ts';

// Services

export { LinePattern } from './services/line-pattern.ts';
export { Service, type ServiceEnd, type ServiceWish } from './services/service.ts';

// Sessions

export { checkSessionId } from './session/agent-session.ts';
export { shellNames, shellSocket } from './session/shell-places.ts';
export type { ShellSession } from './session/shell-session.ts';
