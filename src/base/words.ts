/**
 * The closed lists of words that values are made of. They stand apart from the schemas of those values, so that what only
 * compares words does not load zod.
 */

/** Of two words of a list that goes from weak to strong, the stronger. */
export function strongest<Word extends string>(order: readonly Word[], one: Word, other: Word): Word {
  return order.indexOf(one) >= order.indexOf(other) ? one : other;
}

/** What the policy says; strictest last. */
export const VERDICTS = ['allow', 'ask', 'deny'] as const;

/** How much a command may break; highest last. */
export const RISKS = ['low', 'medium', 'high'] as const;

/** Whether a command can use the network, whatever its arguments are: it cannot, it is not known, it is made for that. */
export const REACHES = ['local', 'unknown', 'network'] as const;

/**
 * How much is left to the agent; most first. `contained`: what the sandbox holds runs unasked, and what leaves it is asked
 * about; where it holds too little, that is `supervised`: what changes anything is asked about.
 */
export const AUTONOMIES = ['autonomous', 'contained', 'supervised', 'readonly'] as const;

/** What a session has been exposed to: content that may instruct the model, data that must not leave. */
export const TAINTS = ['corruption', 'secret'] as const;

/** How much of the network commands have: none, what the policy lists, that of the host. */
export const NETWORK_MODES = ['off', 'listed', 'open'] as const;

/** What becomes of a connection to what a listed network does not list: refused, or somebody is asked; strictest first. */
export const UNLISTED = ['deny', 'ask'] as const;

/** What connections to names have to show of themselves. */
export const VERIFY = ['none', 'sni'] as const;
/** The rule of a connection that `network.verify` forbids, because what it asks for cannot be seen: UDP at 443, for QUIC. */
export const NOT_LOOKED_INTO = 'network.verify';

/** What calls of commands are looked at, to say what the sandbox denied: what costs nothing, everything, nothing. */
export const EXPLAIN = ['auto', 'always', 'never'] as const;

/** What a command can be denied. */
export const DENIED_OPERATIONS = [
  ...(['read', 'write', 'create', 'execute'] as const),
  ...(['connect', 'signal', 'limit'] as const),
] as const;

/** Who answers what the policy asks. */
export const APPROVERS = ['terminal', 'queue', 'nobody'] as const;

/** How long an approval holds; shortest first. `session`: for one session id; `always`: until it is revoked. */
export const APPROVAL_SCOPES = ['once', 'session', 'always'] as const;

/** Why there is no approval: a person refused, nobody answered in time, nobody can be asked, asking failed. */
export const REFUSALS = ['denied', 'expired', 'nobody', 'failed'] as const;

/** What became of a request in the queue. */
export const REQUEST_STATES = [
  'pending',
  'approved',
  'denied',
  'expired',
  'used',
  'withdrawn',
  'abandoned',
] as const;

/**
 * THE backends, strongest first, and so the ladder that `auto` goes down:
 * - `landlock`: Landlock and seccomp, with namespaces where the host has them.
 * - `namespaces`: a root, a network and a user of its own (mount, network and user namespaces) and seccomp.
 * - `firejail`: the set-uid program of that name.
 * - `application`: no shell; only programs and paths that are understood, and nothing that the kernel would hold.
 */
export const BACKEND_IDS = ['landlock', 'namespaces', 'firejail', 'application'] as const;
type BackendId = (typeof BACKEND_IDS)[number];

/** Whether a backend is as strong as another, or stronger. */
export function isAtLeast(backend: BackendId, minimum: BackendId): boolean {
  return BACKEND_IDS.indexOf(backend) <= BACKEND_IDS.indexOf(minimum);
}

/** The controls of the enforcement report, in the order in which they are shown. */
export const CONTROL_IDS = [
  'filesystem',
  'filesystem-view',
  'rename',
  'truncate',
  'metadata',
  'protected-paths',
  'hidden-paths',
  'private-tmp',
  'devices',
  'network',
  'unix-sockets',
  'abstract-sockets',
  'signals',
  'process-inspection',
  'syscalls',
  'terminal-injection',
  'privileges',
  'descriptors',
  'environment',
  'process-tree',
  'resource-limits',
  'workspace-changes',
  'denials',
] as const;

/** Whose taints count for a session: its own, or those of all sessions of its user that are in use. */
export const TAINT_SHARING = ['session', 'user'] as const;
export type TaintSharing = (typeof TAINT_SHARING)[number];

/** `required`: a host that cannot enforce it refuses to run; `best-effort`: it runs and the report says so. */
export const DEMANDS = ['required', 'best-effort'] as const;

/** How a command that ran ended. */
const ENDS = ['exited', 'signaled', 'timed-out', 'canceled', 'limit-exceeded'] as const;

/** What became of a command; the last two did not run. */
export const STATUSES = [...ENDS, 'denied', 'setup-failed'] as const;

/** Who says something about the policy; later ones are stronger, and the last one only narrows. */
export const LAYER_NAMES = ['profile', 'trusted', 'system', 'user', 'option', 'caller', 'workspace'] as const;

/** What an imported policy is where something has no equivalent: it allows less, it allows more, it is about something else. */
export const LOSS_EFFECTS = ['narrower', 'wider', 'none'] as const;

/**
 * What came of an attack, worst first: `escaped`: it worked although the report claims that it cannot; `not-covered`: it
 * worked, and the report does not claim otherwise; `failed`: it could not be carried out in the sandbox, or
 * what came of it could not be seen, which says nothing; `held`; `not-tried`: it does not work on this machine without a sandbox either, or cannot be tried.
 */
export const ATTACK_RESULTS = ['escaped', 'not-covered', 'failed', 'held', 'not-tried'] as const;

/** A year; a longer time is a mistake, and would overflow the clock. */
export const MAX_MILLISECONDS = 365 * 24 * 3600 * 1000;

/**
 * What may be kept of one output stream: shown in the worst way, as escapes of seven characters for two bytes, it still is a
 * string that JavaScript can have.
 */
export const MAX_OUTPUT_BYTES = 128 * 1024 ** 2;

/** What of a result only `--json=full` prints: how the command was called, kept in and measured. */
export const ONLY_IN_FULL = [
  ...(['argv', 'cwd', 'report', 'processTree'] as const),
  ...(['usage', 'cpu', 'peakMemoryBytes', 'outputBytes', 'notLookedAt'] as const),
] as const;

/** What of a result `--json` prints only if it has something to say. */
export const ONLY_IF_IT_SPEAKS = [
  ...(['truncated', 'treeEnded', 'outputHeld', 'leftBehind'] as const),
  ...(['warnings', 'decision', 'restarted'] as const),
] as const;

/**
 * Where the changes go that a command makes in the workspace. `direct`: at once into it; `undoable`: into it when the command
 * has ended, so that they can be taken back; `preview`: into a change set that waits.
 */
export const EFFECTS = ['direct', 'undoable', 'preview'] as const;

/** Which commands run on a layer by the policy, so that what they change in the workspace can be taken back. */
export const UNDO = ['always', 'losses', 'never'] as const;

/** What became of what a command did to a workspace. */
export const CHANGE_SET_STATES = ['waiting', 'applied', 'undone'] as const;

/** Which of the jobs that wait in a fleet is taken first. */
export const FLEET_PRIORITIES = ['high', 'normal', 'low'] as const;

/** Where installers put programs, relative to the home: what is put there into a private home is told, because it goes with it. */
export const PROGRAMS_IN_HOME: readonly string[] = [
  ...['.local/bin', '.cargo/bin', 'go/bin', '.npm-global/bin', '.yarn/bin', '.bun/bin', '.deno/bin'],
  ...['.dotnet/tools', '.composer/vendor/bin', '.ghcup/bin', '.cabal/bin', '.luarocks/bin'],
];

/** Code of the reason for a line that reads outside what the kernel shows it: the line is allowed, and its failure explained. */
export const LOOKS_OUTSIDE = 'looks_outside';
