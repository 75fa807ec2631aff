import { translateAccess } from './access.ts';
import type { Word } from './access-words.ts';
import { as, type Draft, loss } from './draft.ts';
import { translateVariables } from './hidden-variables.ts';
import type { Place } from './importer.ts';
import { sourcePath } from './paths.ts';
import { isTable, leavesOf, type Table } from './place.ts';
import { pathWords } from './settings-paths.ts';
import type { SettingsPlace } from './settings-place.ts';

const NO_HOSTS = 'the network is off here or that of the host; hosts cannot be allowed one by one';
const OPEN_IT =
  'leave it off, or set network.mode = "open" if commands may reach every host; a proxy of yours on a socket in the workspace can allow some';
const NOT_LINUX = 'it is for other systems than Linux';
const NOTHING = 'nothing is to be done';

/**
 * What the Anthropic sandbox runtime is told: `network`, `filesystem` and `credentials`. Claude Code has the same in its
 * `sandbox`.
 */
export function translateSandbox(draft: Draft, settings: Table, place: SettingsPlace): void {
  const { at } = place;
  translateNetwork(draft, tableOf(settings.network), [...at, 'network']);
  const { words, isOff } = pathWords(draft, settings, place);
  if (!place.workspaceIsWritable && !isOff && !writesWorkspace(words.allowWrite, place)) {
    draft.profile = 'read-only';
    draft.remarks.push('Nothing makes the workspace writable there, so the profile is read-only.');
  }
  translateAccess(draft, words, place.where, place);
  protectBuiltIn(draft, settings, at, place.isInUse && !isOff);
  translateVariables(draft, tableOf(settings.credentials), [...at, 'credentials']);
  for (const key of OTHERS) {
    if (!Object.hasOwn(settings, key.name)) continue;
    const value = settings[key.name];
    if (key.same?.includes(value) === true) draft.note({ place: [...at, key.name], value }, as(key.why));
    else draft.note({ place: [...at, key.name], value }, loss('narrower', key.why, key.what ?? NOTHING));
  }
}

/** Keys that loosen, or that are about how the other sandbox does its work. `same`: values that hold here anyway. */
const OTHERS: readonly {
  readonly name: string;
  readonly why: string;
  readonly what?: string;
  readonly same?: readonly unknown[];
}[] = [
  {
    name: 'enableWeakerNestedSandbox',
    why: 'a weaker sandbox is used here only where the policy names it',
    what: 'set sandbox.minimum if it has to run where namespaces are refused',
    same: [false],
  },
  {
    name: 'allowNestedUserNamespaces',
    why: 'commands can make no user namespaces here',
    same: [false],
  },
  { name: 'enableWeakerNetworkIsolation', why: NOT_LINUX, same: [false] },
  { name: 'allowAppleEvents', why: NOT_LINUX, same: [false] },
  { name: 'windows', why: NOT_LINUX },
  { name: 'ripgrep', why: 'no program is needed to find files here' },
  { name: 'seccomp', why: 'the filter is built in here' },
  { name: 'bwrapPath', why: 'no program is needed to make the sandbox here' },
  { name: 'socatPath', why: 'no program is needed to make the sandbox here' },
  {
    name: 'ignoreViolations',
    why: 'it is about what is reported and not about what is allowed; here everything is reported',
  },
  {
    name: 'allowPty',
    why: 'a terminal is given to each command that is run on one',
    what: 'run it with sandbox-run -t',
    same: [true, false],
  },
  { name: 'git', why: 'git works here without being told which directories are safe' },
];

const tableOf = (value: unknown): Table => (isTable(value) ? value : {});

function translateNetwork(draft: Draft, network: Table, at: Place): void {
  for (const [key, value] of Object.entries(network)) {
    const place = [...at, key];
    switch (key) {
      case 'allowedDomains':
        for (const leaf of leavesOf(value, place)) {
          if (typeof leaf.value === 'string') draft.note(leaf, loss('narrower', NO_HOSTS, OPEN_IT));
          else draft.note(leaf, as('network.mode = "off"'));
        }
        break;
      case 'deniedDomains':
      case 'deniedResolvedAddresses':
      case 'strictAllowlist':
      case 'allowManagedDomainsOnly':
        for (const leaf of leavesOf(value, place)) draft.note(leaf, as('network.mode = "off"'));
        break;
      case 'allowAllUnixSockets':
        if (value === true) draft.unixSockets = 'allowed';
        draft.note({ place, value }, as(`network.unix_sockets = "${draft.unixSockets}"`));
        break;
      case 'allowLocalBinding':
        draft.note({ place, value }, as('each command has a loopback of its own, as there on Linux'));
        break;
      case 'allowUnixSockets':
      case 'allowMachLookup':
        for (const leaf of leavesOf(value, place)) {
          if (Array.isArray(leaf.value)) draft.note(leaf, as('nothing is allowed'));
          else draft.note(leaf, loss('narrower', NOT_LINUX, NOTHING));
        }
        break;
      default:
        if (VIA_PROXY.includes(key)) {
          for (const leaf of leavesOf(value, place))
            draft.note(leaf, loss('narrower', 'it is about a proxy, and the network is off here', NOTHING));
        }
    }
  }
}

const VIA_PROXY = [
  'deniedDomainReasons',
  'httpProxyPort',
  'socksProxyPort',
  'mitmProxy',
  'filterRequest',
  'allowPlaintextHeaderSet',
  'stripResponseHeaders',
  'refuseOpaqueTunnels',
  'requireHostMatch',
  'ambiguousRequestTarget',
  'tlsTerminate',
  'parentProxy',
];

function writesWorkspace(words: readonly Word[], { where }: SettingsPlace): boolean {
  return words.some(({ text, base, literal = false }) => {
    const { root, isPattern } = sourcePath(text, base, where, literal);
    return root === where.workspace && !isPattern;
  });
}

/**
 * What the Anthropic sandbox runtime never lets be written in the workspace (DANGEROUS_FILES, DANGEROUS_DIRECTORIES), as
 * far as no profile protects it already.
 */
const NEVER_WRITTEN = ['.gitconfig', '.gitmodules', '.ripgreprc'];
const KEY = 'mandatoryDenySearchDepth';

/** Protects what the runtime keeps from being written without being told, and says what cannot be. */
function protectBuiltIn(draft: Draft, settings: Table, at: Place, isInForce: boolean): void {
  const leaf = { place: [...at, KEY], value: settings[KEY] ?? '(the default)' };
  if (!isInForce || draft.profile === 'read-only') {
    if (settings[KEY] !== undefined) draft.note(leaf, as('nothing of it can be written, or nothing is kept'));
    return;
  }
  draft.protect.push(...NEVER_WRITTEN);
  draft.note(
    leaf,
    loss(
      'wider',
      'files that others run or obey (.gitconfig, .bashrc, .vscode, .git/hooks, …) cannot be written there in any directory; here, those at the top of the workspace that are there are protected, and a program can make or change the others',
      'name those in directories of the workspace in filesystem.protect, or use profile = "read-only"',
    ),
  );
}
