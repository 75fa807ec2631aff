import { namePath, translateAccess } from './access.ts';
import {
  as,
  Draft,
  type HostUse,
  type Imported,
  type ImportPlace,
  isTable,
  narrower,
  type PathUse,
  type Place,
  type Reader,
  type Table,
  tableOf,
  wider,
} from './draft.ts';
import { nameHost, translateHosts } from './hosts.ts';
import { isAlways, items, keys, leaves, type Rows } from './readers.ts';

/** Settings of the Anthropic sandbox runtime: `~/.srt-settings.json`. */
export function srt(settings: Table, where: ImportPlace): Imported {
  const draft = new Draft(where);
  draft.remarks.push(
    'There, commands can read everything that is not denied; here, only the workspace, the system and what is listed.',
    'There, nothing is asked; here, what is of medium or high risk is (security.autonomy).',
  );
  draft.read({ place: [], value: settings }, keys(sandboxRows(where.workspace)));
  const isNamed = draft.paths.allowWrite.some(
    ({ root, pattern }) => root === where.workspace && pattern === '',
  );
  if (!isNamed && !isOff(settings)) {
    draft.policy.profile = 'read-only';
    draft.remarks.push('Nothing makes the workspace writable there, so the profile is read-only.');
  }
  return concluded(draft, settings, [], true);
}

/** Weighs what these settings say, at this place of the source, against each other; the runtime may be in use or not. */
export function concluded(draft: Draft, settings: Table, at: Place, isInUse: boolean): Imported {
  translateAccess(draft);
  draft.noHosts ??= filtersRequests(settings);
  translateHosts(draft);
  protectBuiltIn(draft, settings, at, isInUse);
  return draft.imported();
}

const NOT_ASKED = as('nobody is asked about other hosts (network.unlisted)');
const OF_PROXY = leaves(narrower('it is about a proxy, and there is none here'));
const NO_CREDENTIALS = narrower('no proxy puts credentials in here');
const NOT_LINUX = 'it is for other systems than Linux';
const SERVICES = leaves(({ value }) =>
  Array.isArray(value) ? as('nothing is allowed') : narrower(NOT_LINUX),
);
const MADE_HERE = narrower('no program is needed to make the sandbox here');

/** Hosts, or addresses. */
const hosts = (use: HostUse) =>
  items(
    (part, draft) =>
      typeof part.value === 'string' ? nameHost(draft, use, part, { text: part.value }) : undefined,
    as(`network.${use} lists nothing`),
  );

/** What decides about requests there beyond which host they are for. */
const FILTERS = [
  ...['filterRequest', 'requireHostMatch', 'refuseOpaqueTunnels', 'ambiguousRequestTarget', 'tlsTerminate'],
  ...['mitmProxy', 'parentProxy', 'httpProxyPort', 'socksProxyPort', 'allowPlaintextHeaderSet'],
  'stripResponseHeaders',
];

/** Why no hosts are taken over from settings of the runtime; `undefined`: they are. */
function filtersRequests({ network }: Table): string | undefined {
  const settings = tableOf(network);
  // Then those of other settings count.
  if (settings.allowManagedDomainsOnly === true) return 'only managed hosts count there';
  const filter = FILTERS.find((key) => ![undefined, null, false].some((unset) => unset === settings[key]));
  return filter === undefined ? undefined : `requests are looked at there (${filter})`;
}

const NETWORK: Rows = {
  allowedDomains: hosts('allow'),
  deniedDomains: hosts('deny'),
  deniedResolvedAddresses: hosts('deny'),
  strictAllowlist: leaves(NOT_ASKED),
  allowManagedDomainsOnly: leaves(as('a file in the workspace can allow no host')),
  allowAllUnixSockets: ({ value }, { policy: { network } }) => {
    if (value === true) network.unix_sockets = 'allowed';
    return as(`network.unix_sockets = "${network.unix_sockets ?? 'contained'}"`);
  },
  allowLocalBinding: as('each command has a loopback of its own, as there on Linux'),
  allowUnixSockets: SERVICES,
  allowMachLookup: SERVICES,
  ...Object.fromEntries(['deniedDomainReasons', ...FILTERS].map((key) => [key, OF_PROXY])),
};

/** Variables that a command must not see. What is not passed on is not seen. */
const hiddenVariable: Reader = ({ value }, draft) => {
  if (!isTable(value) || typeof value.name !== 'string') return undefined;
  draft.hide((name) => name === value.name);
  return value.mode === 'mask'
    ? narrower('commands do not get the variable at all, and no proxy puts it in')
    : as('the variable is not passed on');
};

/**
 * What the Anthropic sandbox runtime is told; Claude Code has the same in its `sandbox`. `base` is what relative paths are
 * relative to.
 */
export function sandboxRows(base: string): Rows {
  /** Texts, or `{ path, literal: true }`. */
  const paths = (use: PathUse) =>
    items((part, draft) => {
      const { value } = part;
      if (typeof value === 'string') return namePath(draft, use, part, { text: value, base });
      const { path, literal } = tableOf(value);
      if (typeof path !== 'string' || literal !== true) return undefined;
      return namePath(draft, use, part, { text: path, base, literal });
    }, as('no path is named'));
  return {
    network: keys(NETWORK),
    filesystem: keys({
      allowRead: paths('allowRead'),
      allowWrite: paths('allowWrite'),
      denyRead: paths('denyRead'),
      denyWrite: paths('denyWrite'),
      disabled: ({ value }) => (value === true ? FILES_ANYWAY : as('files are kept apart')),
      allowGitConfig: isAlways(
        false,
        '.git/config is always protected here',
        'change it outside the sandbox',
      ),
      allowManagedReadPathsOnly: as('a file in the workspace can allow nothing'),
    }),
    credentials: keys({
      files: items((part, draft) => {
        const { path } = tableOf(part.value);
        return typeof path === 'string' ? namePath(draft, 'denyRead', part, { text: path, base }) : undefined;
      }),
      envVars: items(hiddenVariable),
      awsPairs: NO_CREDENTIALS,
      allowPlaintextInject: NO_CREDENTIALS,
      sigv4: NO_CREDENTIALS,
    }),
    ...WAYS_TO_WORK,
    // Said by `protectBuiltIn`, set or not.
    [SEARCH_DEPTH]: () => 'noted',
  };
}

const FILES_ANYWAY = narrower(
  'files are always kept apart here; the rules about paths, which are without effect there, are in force',
);

const SEARCH_DEPTH = 'mandatoryDenySearchDepth';

/** Settings that loosen, or that are about how the other sandbox does its work. */
const WAYS_TO_WORK: Rows = {
  enableWeakerNestedSandbox: isAlways(
    false,
    'a weaker sandbox is used here only where the policy names it',
    'set sandbox.minimum if it has to run where namespaces are refused',
  ),
  allowNestedUserNamespaces: isAlways(false, 'commands can make no user namespaces here'),
  enableWeakerNetworkIsolation: isAlways(false, NOT_LINUX),
  allowAppleEvents: isAlways(false, NOT_LINUX),
  windows: narrower(NOT_LINUX),
  ripgrep: narrower('no program is needed to find files here'),
  seccomp: narrower('the filter is built in here'),
  bwrapPath: MADE_HERE,
  socatPath: MADE_HERE,
  ignoreViolations: narrower(
    'it is about what is reported and not about what is allowed; here everything is reported',
  ),
  allowPty: as('a terminal is given to each command that is run on one'),
  git: narrower('git works here without being told which directories are safe'),
};

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
  if (!isInUse || isOff(settings) || draft.policy.profile === 'read-only') {
    if (Object.hasOwn(settings, SEARCH_DEPTH))
      draft.note(part, as('nothing of it can be written, or nothing is kept'));
    return;
  }
  draft.policy.filesystem.protect.push(...NEVER_WRITTEN);
  draft.note(
    part,
    wider(
      'files that others run or obey (.gitconfig, .bashrc, .vscode, .git/hooks, …) cannot be written there in any directory; here, those at the top of the workspace that are there are protected, and a program can make or change the others',
      'name those in directories of the workspace in filesystem.protect, or use profile = "read-only"',
    ),
  );
}
