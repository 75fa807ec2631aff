import { resolve } from 'node:path';
import { matchesAll } from '../../base/name-pattern.ts';
import { looksSecret } from '../../base/secret-name.ts';
import { namePath, OWN_TMP, translateAccess } from './access.ts';
import {
  as,
  Draft,
  type ImportPlace,
  isTable,
  narrower,
  type Outcome,
  type Place,
  type Reader,
  type Rows,
  type Table,
  tableOf,
  wider,
} from './draft.ts';
import { translateHosts } from './hosts.ts';
import { isAlways, modes, variable } from './readers.ts';

/** Configuration of Codex: `config.toml`. */
export function codex(config: Table, where: ImportPlace): Draft {
  const draft = new Draft(where);
  draft.kept = KEPT;
  draft.remarks.push(
    'There, commands can read everything; here, only the workspace, the system and what is listed.',
  );
  draft.read(config, rowsOf(draft, config), (place) => isUnrelated(place, config.profile));
  translateAccess(draft);
  translateHosts(draft);
  return draft;
}

/** What is kept read-only in every directory that may be written. */
const KEPT = ['.git', '.agents', '.codex'];

/** Settings that are about what commands may do. */
const OF_COMMANDS = [
  ...['profile', 'sandbox_mode', 'approval_policy', 'default_permissions', 'permissions'],
  ...['sandbox_workspace_write', 'shell_environment_policy'],
];

/** What is in the selected profile is in force. */
function isUnrelated([first, name, ...rest]: Place, profile: unknown): boolean {
  if (first !== 'profiles') return !OF_COMMANDS.includes(String(first));
  return name !== profile || (rest.length === 1 && !OF_COMMANDS.includes(String(rest[0])));
}

/** Permissions that have a name there without being written down: as modes of the sandbox. */
const BUILT_IN: ReadonlyMap<unknown, string> = new Map([
  [':read-only', 'read-only'],
  [':workspace', 'workspace-write'],
  [':danger-full-access', 'danger-full-access'],
]);

/** A profile that is selected goes before what stands at the top, and a mode before permissions. */
function rowsOf(draft: Draft, config: Table): Rows {
  const selected = named(config.profiles, config.profile);
  const inForce = { ...config, ...selected };
  const hasMode = Object.hasOwn(inForce, 'sandbox_mode');
  const permissions = hasMode ? undefined : named(config.permissions, config.default_permissions);
  const ofPermissions =
    permissions === undefined ? BUILT_IN.get(config.default_permissions) : modeOf(permissions);
  const mode = setMode(draft, hasMode ? inForce.sandbox_mode : ofPermissions);
  const settings: Readonly<Record<string, Reader>> = { sandbox_mode: () => mode, approval_policy: APPROVALS };
  const ofProfiles = Object.entries(settings).flatMap(([key, reader]): readonly [string, Reader][] => [
    [`profiles.*.${key}`, (part, of) => (part.place[1] === config.profile ? reader(part, of) : undefined)],
    [key, Object.hasOwn(selected ?? {}, key) ? () => NOT_IN_FORCE : reader],
  ]);
  const notSelected: Reader = ({ place }) =>
    place[1] === config.default_permissions ? undefined : NOT_IN_FORCE;
  return {
    profile: ({ value }) => {
      if (typeof value !== 'string') return undefined;
      return selected === undefined ? NO_PROFILE : as('its settings are taken');
    },
    ...Object.fromEntries(ofProfiles),
    default_permissions: () =>
      hasMode ? undefined : permissions === undefined ? mode : as('its rules are taken'),
    ...(permissions === undefined ? {} : { 'permissions.*': notSelected, ...PERMISSIONS }),
    ...(draft.policy.profile === 'read-only' ? { sandbox_workspace_write: NOT_IN_FORCE } : WORKSPACE_WRITE),
    ...environmentRows(tableOf(config.shell_environment_policy)),
  };
}

/** A table among others, by a name that the source gives. */
function named(tables: unknown, name: unknown): Table | undefined {
  const found = new Map<unknown, unknown>(Object.entries(tableOf(tables))).get(name);
  return isTable(found) ? found : undefined;
}

const NO_PROFILE = wider('there is no such table of profiles in this file', 'the file that has it');
const NOT_IN_FORCE = as('without effect, as there: something else is selected');
const MODES: ReadonlyMap<unknown, Outcome> = new Map([
  ['read-only', as('profile = "read-only"')],
  ['workspace-write', as(`profile = "workspace-write", with ${KEPT.join(', ')} protected`)],
  [
    'danger-full-access',
    narrower('nothing runs without a sandbox here', 'filesystem.write and network.mode'),
  ],
]);

/** What becomes of a mode of the sandbox; `undefined`: it is not known. */
function setMode({ policy, remarks }: Draft, mode: unknown): Outcome | undefined {
  const outcome = MODES.get(mode);
  if (outcome === undefined)
    remarks.push('No mode of the sandbox that is known here is set, so the profile is read-only.');
  if (outcome === undefined || mode === 'read-only') policy.profile = 'read-only';
  if (mode === 'workspace-write') policy.filesystem.protect.push(...KEPT);
  return outcome;
}

/** Roots of the workspace, by the names that they have had. */
const WORKSPACE_ROOTS = [':workspace_roots', ':project_roots'];

/** The mode that a profile of permissions comes to. */
function modeOf({ extends: base, filesystem }: Table): string {
  const roots = WORKSPACE_ROOTS.map((name) => tableOf(filesystem)[name]);
  const isWritten = roots.some((root) => root === 'write' || tableOf(root)['.'] === 'write');
  return isWritten ? 'workspace-write' : (BUILT_IN.get(base) ?? 'read-only');
}

const ACCESSES: ReadonlyMap<unknown, keyof Draft['paths']> = new Map([
  ['read', 'allowRead'],
  ['write', 'allowWrite'],
  ['none', 'denyRead'],
  ['deny', 'denyRead'],
]);

/** `"PATH" = ACCESS`, or the same in a table that stands under the path of a directory. */
const access: Reader = (part, draft) => {
  const [, , , root = '', inner] = part.place.map(String);
  const { workspace, home } = draft.where;
  const isRoot = WORKSPACE_ROOTS.includes(root);
  const use = ACCESSES.get(part.value);
  if (use === undefined || (root.startsWith(':') && !isRoot)) return undefined;
  const base = isRoot ? workspace : resolve(workspace, root.replace(/^~(?=\/|$)/, home));
  return namePath(draft, use, part, { text: inner ?? base, base });
};

/** A setting with one value that is known. */
const only =
  (known: string, outcome: Outcome): Reader =>
  ({ value }) =>
    value === known ? outcome : undefined;

const networkSwitch: Reader = ({ value }, { policy }) => {
  if (typeof value !== 'boolean') return undefined;
  policy.network.mode = value ? 'open' : 'off';
  return as('network.mode');
};

/** The permissions that are in force. */
const PERMISSIONS: Rows = {
  'permissions.*.extends': ({ value }) => (BUILT_IN.has(value) ? as('the mode') : undefined),
  'permissions.*.filesystem.glob_scan_max_depth': as('filesystem.hide, at every depth'),
  'permissions.*.filesystem.:minimal': only('read', as('what programs need can be read')),
  'permissions.*.filesystem.:root': only(
    'read',
    narrower('only what is listed can be read', 'filesystem.read'),
  ),
  'permissions.*.filesystem.:tmpdir': only('write', OWN_TMP),
  'permissions.*.filesystem.:slash_tmp': only('write', OWN_TMP),
  'permissions.*.filesystem.*': access,
  'permissions.*.filesystem.*.*': access,
  'permissions.*.network.enabled': networkSwitch,
  // With a list of them, nothing else can be reached.
  'permissions.*.network.domains': (_, draft) => {
    if (draft.policy.network.mode !== 'open') draft.noHosts = 'the network is off there';
    draft.policy.network.mode = 'off';
    return undefined;
  },
  'permissions.*.network.domains.*': (part, draft) => {
    const { place, value } = part;
    if (value !== 'allow' && value !== 'deny') return undefined;
    const name = String(place.at(-1));
    const apex = name.replace(/^\*\*\./, '');
    if (apex !== name) draft.host(part, value, apex);
    return draft.host(part, value, apex === name ? name : `*.${apex}`);
  },
};

const noTmp: Reader = ({ value }, { policy }) => {
  if (typeof value !== 'boolean') return undefined;
  if (!value) return OWN_TMP;
  policy.filesystem.tmp = 'private';
  return as('filesystem.tmp = "private"');
};

const WORKSPACE_WRITE: Rows = {
  'sandbox_workspace_write.writable_roots[]': (part, draft) => {
    if (typeof part.value !== 'string') return undefined;
    return namePath(draft, 'allowWrite', part, {
      text: part.value,
      base: draft.where.workspace,
      literal: true,
    });
  },
  'sandbox_workspace_write.network_access': networkSwitch,
  'sandbox_workspace_write.exclude_tmpdir_env_var': noTmp,
  'sandbox_workspace_write.exclude_slash_tmp': noTmp,
};

const ASKED_INSIDE = narrower(
  'what is of medium or high risk is asked about',
  'security.autonomy = "autonomous"',
);
const APPROVALS = modes({
  untrusted: { autonomy: 'supervised' },
  'unless-trusted': { autonomy: 'supervised' },
  'on-request': { autonomy: 'supervised', outcome: ASKED_INSIDE },
  'on-failure': { autonomy: 'supervised', outcome: ASKED_INSIDE },
  never: { autonomy: 'autonomous', ask: 'nobody' },
});

const BY_NAME = 'environment.pass';
const SECRETS_STAY = isAlways(false, 'only variables that are named are passed on', BY_NAME);

/** Of the variables of the launcher, what "core" means there. */
const CORE = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'USER', 'USERNAME', 'TMPDIR', 'TEMP', 'TMP'];

function environmentRows({ inherit, exclude }: Table): Rows {
  const isLimited =
    inherit === 'none' || inherit === 'core' || (Array.isArray(exclude) && exclude.length > 0);
  return {
    'shell_environment_policy.inherit': ({ value }, draft) => {
      if (value === 'all') return narrower('only variables that are named are passed on', BY_NAME);
      if (value !== 'core' && value !== 'none') return undefined;
      draft.hide((name) => value === 'none' || !CORE.includes(name));
      return as('what else would be passed on is given empty');
    },
    'shell_environment_policy.ignore_default_excludes': SECRETS_STAY,
    'shell_environment_policy.experimental_use_profile': SECRETS_STAY,
    'shell_environment_policy.exclude[]': ({ value }, draft) => {
      if (typeof value !== 'string') return undefined;
      draft.hide((name) => isNamed(name, value));
      return as('it is not passed on');
    },
    'shell_environment_policy.include_only': ({ value }, draft) => {
      if (Array.isArray(value)) draft.hide((name) => !value.some((pattern) => isNamed(name, pattern)));
      return undefined;
    },
    'shell_environment_policy.include_only[]': ({ value }, draft) => {
      if (typeof value !== 'string') return undefined;
      if (isLimited || looksSecret(value) || !/^[A-Za-z_]\w*\*?$/.test(value)) return NOT_PASSED;
      draft.policy.environment.pass.push(value);
      return as('environment.pass');
    },
    'shell_environment_policy.set.*': variable,
  };
}

const NOT_PASSED = narrower(
  'names, and beginnings of names, are passed on that look like no secret',
  BY_NAME,
);

/** Whether a variable matches a pattern as Codex reads it: `*` and `?`, whatever the case. */
function isNamed(name: string, pattern: unknown): boolean {
  if (typeof pattern !== 'string') return false;
  const fits = (part: string, letter: string) => part === '?' || part === letter;
  return matchesAll([...pattern.toUpperCase()], '*', [...name.toUpperCase()], fits);
}
