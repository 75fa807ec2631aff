import { namePath, translateAccess } from './access.ts';
import {
  as,
  Draft,
  type ImportPlace,
  isTable,
  narrower,
  type Place,
  type Reader,
  type Rows,
  type Table,
  tableOf,
  wider,
} from './draft.ts';
import { translateHosts } from './hosts.ts';
import { isAlways } from './readers.ts';

/** Settings of the Anthropic sandbox runtime: `~/.srt-settings.json`. */
export function srt(settings: Table, where: ImportPlace): Draft {
  const draft = new Draft(where);
  draft.remarks.push(
    'There, commands can read everything that is not denied; here, only the workspace, the system and what is listed.',
    'There, nothing is asked; here, what is of medium or high risk is (security.autonomy).',
  );
  draft.read(settings, sandboxRows(where.workspace));
  const isWritten = draft.paths.allowWrite.some(
    ({ root, pattern }) => root === where.workspace && pattern === '',
  );
  if (!isWritten && !isOff(settings)) {
    draft.policy.profile = 'read-only';
    draft.remarks.push('Nothing makes the workspace writable there, so the profile is read-only.');
  }
  return concluded(draft, settings, [], true);
}

/** Weighs what these settings say, at this place of the source, against each other; the runtime may be in use or not. */
export function concluded(draft: Draft, settings: Table, at: Place, isInUse: boolean): Draft {
  translateAccess(draft);
  draft.noHosts ??= filtersRequests(settings);
  translateHosts(draft);
  protectBuiltIn(draft, settings, at, isInUse);
  return draft;
}

const NOT_LINUX = 'it is for other systems than Linux';
const OF_PROXY = narrower('it is about a proxy, and there is none here');
const NO_CREDENTIALS = narrower('no proxy puts credentials in here');
const MADE_HERE = narrower('no program is needed to make the sandbox here');

/** What decides about requests there beyond which host they are for. */
const FILTERS = [
  ...['filterRequest', 'requireHostMatch', 'refuseOpaqueTunnels', 'ambiguousRequestTarget', 'tlsTerminate'],
  ...['mitmProxy', 'parentProxy', 'httpProxyPort', 'socksProxyPort', 'allowPlaintextHeaderSet'],
  'stripResponseHeaders',
];

/**
 * What the Anthropic sandbox runtime is told; Claude Code has the same in its `sandbox`. `base` is what relative paths are
 * relative to.
 */
export function sandboxRows(base: string): Rows {
  return {
    'network.allowedDomains[]': host('allow'),
    'network.deniedDomains[]': host('deny'),
    'network.deniedResolvedAddresses[]': host('deny'),
    'network.strictAllowlist': as('nobody is asked about other hosts (network.unlisted)'),
    'network.allowManagedDomainsOnly': as('a file in the workspace can allow no host'),
    'network.allowAllUnixSockets': ({ value }, { policy: { network } }) => {
      if (value === true) network.unix_sockets = 'allowed';
      return as(`network.unix_sockets = "${network.unix_sockets ?? 'contained'}"`);
    },
    'network.allowLocalBinding': as('each command has a loopback of its own, as there on Linux'),
    'network.allowUnixSockets[]': narrower(NOT_LINUX),
    'network.allowMachLookup[]': narrower(NOT_LINUX),
    'network.deniedDomainReasons': OF_PROXY,
    ...Object.fromEntries(FILTERS.map((key) => [`network.${key}`, OF_PROXY])),
    'filesystem.allowRead[]': path('allowRead', base),
    'filesystem.allowWrite[]': path('allowWrite', base),
    'filesystem.denyRead[]': path('denyRead', base),
    'filesystem.denyWrite[]': path('denyWrite', base),
    'filesystem.disabled': isAlways(false, 'files are kept apart, and rules about paths are in force'),
    'filesystem.allowGitConfig': isAlways(false, '.git/config is always protected here'),
    'filesystem.allowManagedReadPathsOnly': as('a file in the workspace can allow nothing'),
    'credentials.files[]': path('denyRead', base),
    'credentials.envVars[]': hiddenVariable,
    'credentials.awsPairs': NO_CREDENTIALS,
    'credentials.allowPlaintextInject': NO_CREDENTIALS,
    'credentials.sigv4': NO_CREDENTIALS,
    enableWeakerNestedSandbox: isAlways(false, 'no weaker sandbox is used by itself', 'sandbox.minimum'),
    allowNestedUserNamespaces: isAlways(false, 'commands can make no user namespaces here'),
    enableWeakerNetworkIsolation: isAlways(false, NOT_LINUX),
    allowAppleEvents: isAlways(false, NOT_LINUX),
    windows: narrower(NOT_LINUX),
    ripgrep: narrower('no program is needed to find files here'),
    seccomp: narrower('the filter is built in here'),
    bwrapPath: MADE_HERE,
    socatPath: MADE_HERE,
    ignoreViolations: narrower('it is about reports and not about what is allowed; here all is reported'),
    allowPty: as('a terminal is given to each command that is run on one'),
    git: narrower('git works here without being told which directories are safe'),
    // `protectBuiltIn` speaks of it, set or not.
    [SEARCH_DEPTH]: () => 'noted',
  };
}

const SEARCH_DEPTH = 'mandatoryDenySearchDepth';

/** A host, or an address. */
const host =
  (use: 'allow' | 'deny'): Reader =>
  (part, draft) =>
    typeof part.value === 'string' ? draft.host(part, use, part.value) : undefined;

/** A text, or `{ path, literal: true }`; of what is denied `{ path }` as well, with what else there is to say. */
const path =
  (use: keyof Draft['paths'], base: string): Reader =>
  (part, draft) => {
    const { path: text, literal, ...rest } = isTable(part.value) ? part.value : { path: part.value };
    const isPlain = Object.keys(rest).length === 0 && (literal === true || !isTable(part.value));
    if (typeof text !== 'string' || (use.startsWith('allow') && !isPlain)) return undefined;
    return namePath(draft, use, part, { text, base, literal: literal === true });
  };

/** A variable that a command must not see. What is not passed on is not seen. */
const hiddenVariable: Reader = ({ value }, draft) => {
  const { name, mode } = tableOf(value);
  if (typeof name !== 'string') return undefined;
  draft.hide((passed) => passed === name);
  if (mode !== 'mask') return as('the variable is not passed on');
  return narrower('commands do not get the variable at all, and no proxy puts it in');
};

/** Why no hosts are taken over from settings of the runtime; `undefined`: they are. */
function filtersRequests({ network }: Table): string | undefined {
  const settings = tableOf(network);
  // Then those of other settings count.
  if (settings.allowManagedDomainsOnly === true) return 'only managed hosts count there';
  const filter = FILTERS.find((key) => ![undefined, null, false].some((unset) => unset === settings[key]));
  return filter === undefined ? undefined : `requests are looked at there (${filter})`;
}

/** Without it, the rules about paths are not in force there. */
const isOff = (settings: Table) => tableOf(settings.filesystem).disabled === true;

/**
 * What the Anthropic sandbox runtime never lets be written in the workspace (DANGEROUS_FILES, DANGEROUS_DIRECTORIES), as
 * far as no profile protects it already.
 */
const NEVER_WRITTEN = ['.gitconfig', '.gitmodules', '.ripgreprc'];

/** Protects what the runtime, where it is in use, keeps from being written without being told, and says what cannot be. */
function protectBuiltIn(draft: Draft, settings: Table, at: Place, isInUse: boolean): void {
  const { [SEARCH_DEPTH]: depth = '(the default)' } = settings;
  const part = { place: [...at, SEARCH_DEPTH], value: depth };
  if (isInUse && !isOff(settings) && draft.policy.profile !== 'read-only') {
    draft.policy.filesystem.protect.push(...NEVER_WRITTEN);
    draft.note(part, ONLY_AT_THE_TOP);
  } else if (Object.hasOwn(settings, SEARCH_DEPTH))
    draft.note(part, as('nothing of it can be written, or nothing is kept'));
}

const ONLY_AT_THE_TOP = wider(
  'files that others run or obey (.gitconfig, .bashrc, .vscode, .git/hooks, …) cannot be written there in any directory; here, those at the top of the workspace that are there are protected, and a program can make or change the others',
  'filesystem.protect or profile = "read-only"',
);
