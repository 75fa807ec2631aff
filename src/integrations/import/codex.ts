import { parse, TomlError } from 'smol-toml';
import { translateAccess } from './access.ts';
import type { Word } from './access-words.ts';
import { translateEnvironment } from './codex-environment.ts';
import { importRules } from './codex-rules.ts';
import { as, createDraft, type Draft, loss } from './draft.ts';
import type { Imported, ImportPlace, Place, PolicyImporter } from './importer.ts';
import { invalid, refuseDepth } from './parse-json.ts';
import { isTable, type Leaf, leavesOf, type Table } from './place.ts';

/** Configuration of Codex: `config.toml`, or a `.rules` file. */
export const codex: PolicyImporter = {
  id: 'codex',
  summary: 'Codex: config.toml, or a .rules file',
  translate: (text, where) =>
    /\.(rules|codexpolicy|execpolicy)$/.test(where.file)
      ? importRules(text, where)
      : importConfig(text, where),
};

function importConfig(text: string, where: ImportPlace): Imported {
  const config = parseToml(text, where.file);
  const draft = createDraft();
  const settings = selectProfile(draft, config);
  translateMode(draft, settings('sandbox_mode'), config);
  translateRoots(draft, config.sandbox_workspace_write, where);
  translateApprovals(draft, settings('approval_policy'));
  translateEnvironment(draft, config.shell_environment_policy);
  draft.remarks.push(
    'There, commands can read everything; here, only the workspace, the system and what is listed.',
  );
  return draft.finish(config, (place) =>
    mayForbid(place, config.profile)
      ? {
          effect: 'wider',
          why: 'it is not known here, or not of the form that it has to have, and may forbid something',
          what: 'look it up, and say it in the policy if it forbids something',
        }
      : { effect: 'none', why: 'it is not about what commands may do', what: 'leave it in Codex' },
  );
}

const OF_SANDBOX = [
  ...['sandbox_mode', 'sandbox_workspace_write', 'approval_policy', 'shell_environment_policy'],
  ...['permissions', 'default_permissions', 'profile'],
];

/** Of the selected profile tables too: what is in them is in force. */
function mayForbid(place: Place, profile: unknown): boolean {
  const [first, name, key] = place;
  if (first === 'profiles' && name === profile) return place.length !== 3 || OF_SANDBOX.includes(String(key));
  return OF_SANDBOX.includes(String(first));
}

function parseToml(text: string, file: string): Table {
  try {
    const config: Table = parse(text.replace(/^\ufeff/, ''));
    refuseDepth(config, file);
    return config;
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const reason = error.message.split('\n')[0]?.replace(/^Invalid TOML document: /, '') ?? '';
    throw invalid(file, `line ${error.line}: ${reason}`);
  }
}

/** A profile that is selected goes before what stands at the top. */
function selectProfile(draft: Draft, config: Table): (key: string) => Leaf {
  const { profile, profiles } = config;
  const selected =
    typeof profile === 'string' && isTable(profiles) && Object.hasOwn(profiles, profile)
      ? profiles[profile]
      : undefined;
  if (typeof profile === 'string' && isTable(selected))
    draft.note({ place: ['profile'], value: profile }, as('its settings are taken'));
  else if (typeof profile === 'string')
    draft.note(
      { place: ['profile'], value: profile },
      loss(
        'wider',
        'there is no such table of profiles in this file, so what it forbids is not known',
        'import the file that has it, or take the line away',
      ),
    );
  return (key) => {
    const top: Leaf = { place: [key], value: config[key] };
    if (typeof profile !== 'string' || !isTable(selected) || !Object.hasOwn(selected, key)) return top;
    if (Object.hasOwn(config, key)) draft.note(top, as(`profiles.${profile} says otherwise`));
    return { place: ['profiles', profile, key], value: selected[key] };
  };
}

/** What is kept read-only in every directory that may be written. */
const KEPT = ['.git', '.agents', '.codex'];

const BUILT_IN: Readonly<Record<string, string>> = {
  ':read-only': 'read-only',
  ':workspace': 'workspace-write',
  ':danger-full-access': 'danger-full-access',
};

function translateMode(draft: Draft, mode: Leaf, config: Table): void {
  const { default_permissions: named } = config;
  const isNamed = mode.value === undefined && typeof named === 'string' && Object.hasOwn(BUILT_IN, named);
  const leaf: Leaf = isNamed ? { place: ['default_permissions'], value: named } : mode;
  switch (isNamed ? BUILT_IN[named] : mode.value) {
    case 'workspace-write':
      draft.protect.push(...KEPT);
      draft.note(leaf, as(`profile = "workspace-write", with ${KEPT.join(', ')} protected`));
      return;
    case 'danger-full-access':
      draft.note(
        leaf,
        loss(
          'narrower',
          'nothing runs without a sandbox here',
          'add filesystem.read, filesystem.write and network.mode',
        ),
      );
      return;
    case 'read-only':
      draft.profile = 'read-only';
      draft.note(leaf, as('profile = "read-only"'));
      return;
    default:
      draft.profile = 'read-only';
      draft.remarks.push('No mode of the sandbox that is known here is set, so the profile is read-only.');
  }
}

function translateRoots(draft: Draft, settings: unknown, where: ImportPlace): void {
  if (!isTable(settings)) return;
  const at = (key: string): Leaf => ({ place: ['sandbox_workspace_write', key], value: settings[key] });
  const isInForce = draft.profile === 'workspace-write';
  if (!isInForce) {
    for (const leaf of leavesOf(settings, ['sandbox_workspace_write']))
      draft.note(leaf, as('without effect, as there: the mode is another'));
    return;
  }
  const { writable_roots: roots, network_access: network } = settings;
  if (Array.isArray(roots)) {
    if (roots.length === 0) draft.note(at('writable_roots'), as('nothing else can be written'));
    const allowWrite = roots.flatMap((root: unknown, index): readonly Word[] => {
      if (typeof root !== 'string') return [];
      const place = ['sandbox_workspace_write', 'writable_roots', index];
      return [{ place, value: root, text: root, base: where.workspace, literal: true, kept: KEPT }];
    });
    const words = { allowRead: [], denyRead: [], denyWrite: [], allowWrite };
    translateAccess(draft, words, where, { innerAllowWins: true });
  }
  if (typeof network === 'boolean') {
    draft.network = network ? 'open' : 'off';
    draft.note(at('network_access'), as(`network.mode = "${draft.network}"`));
  }
  for (const key of ['exclude_tmpdir_env_var', 'exclude_slash_tmp']) {
    if (settings[key] === true) {
      draft.tmp = 'private';
      draft.note(at(key), as('filesystem.tmp = "private"'));
    }
    if (settings[key] === false)
      draft.note(
        at(key),
        loss(
          'narrower',
          'here each command has its own temporary directory, which is deleted when the command ends',
          'set filesystem.tmp = "host" if commands have to share files there with other programs',
        ),
      );
  }
}

function translateApprovals(draft: Draft, leaf: Leaf): void {
  switch (leaf.value) {
    case 'untrusted':
    case 'unless-trusted':
      draft.autonomy = 'supervised';
      draft.note(leaf, as('security.autonomy = "supervised"'));
      return;
    case 'on-request':
    case 'on-failure':
      draft.autonomy = 'supervised';
      draft.note(
        leaf,
        loss(
          'narrower',
          'what is of medium or high risk is asked about, and not only what is to run outside the sandbox',
          'set security.autonomy = "autonomous" if nothing is to be asked inside of it',
        ),
      );
      return;
    case 'never':
      draft.autonomy = 'autonomous';
      draft.ask = 'nobody';
      draft.note(leaf, as('security.autonomy = "autonomous", approval.ask = "nobody"'));
      return;
    default:
  }
}
