import { resolve } from 'node:path';
import { z } from 'zod';
import { orElse } from '../../util/or-else.ts';
import { looksSecret } from '../../util/secret-name.ts';
import { namePath, OWN_TMP, translateAccess } from './access.ts';
import {
  as,
  Draft,
  type Imported,
  type ImportPlace,
  isTable,
  MAY_FORBID,
  NO_HOSTS,
  narrower,
  type Outcome,
  type Part,
  type PathUse,
  type Reader,
  type Table,
  tableOf,
  unrelated,
  wider,
} from './draft.ts';
import { nameHost, translateHosts } from './hosts.ts';
import {
  autonomy,
  byName,
  choice,
  isAlways,
  items,
  keys,
  leaves,
  named,
  type Rows,
  variables,
} from './readers.ts';

/** Configuration of Codex: `config.toml`. */
export function codex(config: Table, where: ImportPlace): Imported {
  const draft = new Draft(where, ([first, name, ...rest]) => {
    // What is in the selected profile is in force.
    const isSelected = first === 'profiles' && name === config.profile;
    const [key] = isSelected ? rest : [first];
    const mayForbid = key !== 'profiles' && Object.hasOwn(rows, String(key));
    return mayForbid || (isSelected && rest.length !== 1) ? MAY_FORBID : NOT_OF_COMMANDS;
  });
  const rows = configRows(draft, config);
  draft.read({ place: [], value: config }, keys(rows));
  translateAccess(draft);
  translateHosts(draft);
  draft.remarks.push(
    'There, commands can read everything; here, only the workspace, the system and what is listed.',
  );
  return draft.imported();
}

const NOT_OF_COMMANDS = unrelated('it is not about what commands may do', 'leave it in Codex');

/** A profile that is selected goes before what stands at the top. */
function configRows(draft: Draft, config: Table): Rows {
  const { profile } = config;
  const profiles = new Map<unknown, unknown>(Object.entries(tableOf(config.profiles)));
  const found = profiles.get(profile);
  const selected = isTable(found) ? found : undefined;
  const inForce = { ...config, ...selected };
  const hasMode = Object.hasOwn(inForce, 'sandbox_mode');
  const { default_permissions: selectedName } = config;
  const ofName =
    typeof selectedName === 'string' && !hasMode ? tableOf(config.permissions)[selectedName] : undefined;
  const isNamed = typeof selectedName === 'string' && isTable(ofName);
  const mode = setMode(
    draft,
    hasMode ? inForce.sandbox_mode : isNamed ? modeOfPermissions(ofName) : BUILT_IN.get(selectedName),
  );
  const settings: Rows = { sandbox_mode: mode, approval_policy: APPROVALS };
  const overridden = Object.keys(settings).filter((key) => Object.hasOwn(selected ?? {}, key));
  return {
    profile: ({ value }) => {
      if (typeof value !== 'string') return undefined;
      return selected === undefined ? NO_PROFILE : as('its settings are taken');
    },
    ...settings,
    ...Object.fromEntries(overridden.map((key) => [key, as(`profiles.${profile} says otherwise`)])),
    profiles: keys(selected === undefined ? {} : { [String(profile)]: keys(settings) }),
    default_permissions: hasMode ? undefined : isNamed ? as('its rules are taken') : mode,
    permissions: isNamed
      ? keys({
          ...named(config.permissions, () => notSelected),
          [selectedName]: keys(permissionRows(draft, tableOf(ofName))),
        })
      : undefined,
    sandbox_workspace_write: draft.policy.profile === 'workspace-write' ? keys(WORKSPACE_WRITE) : notInForce,
    shell_environment_policy: keys(environmentRows(tableOf(config.shell_environment_policy))),
  };
}

const NO_PROFILE = wider(
  'there is no such table of profiles in this file, so what it forbids is not known',
  'import the file that has it, or take the line away',
);

/** What is kept read-only in every directory that may be written. */
const KEPT = ['.git', '.agents', '.codex'];

/** Permissions that have a name there without being written down: as modes of the sandbox. */
const BUILT_IN: ReadonlyMap<unknown, string> = new Map([
  [':read-only', 'read-only'],
  [':workspace', 'workspace-write'],
  [':danger-full-access', 'danger-full-access'],
]);

/** Roots of the workspace, by the names that they have had. */
const WORKSPACE_ROOTS = [':workspace_roots', ':project_roots'];
const ACCESSES: Readonly<Record<string, PathUse>> = {
  ...{ read: 'allowRead', write: 'allowWrite' },
  ...{ none: 'denyRead', deny: 'denyRead' },
};

/** The mode that a profile of permissions comes to. */
function modeOfPermissions({ extends: base, filesystem }: Table): string | undefined {
  const roots = WORKSPACE_ROOTS.map((name) => tableOf(filesystem)[name]);
  const isWritten = roots.some((root) => root === 'write' || tableOf(root)['.'] === 'write');
  return isWritten ? 'workspace-write' : (BUILT_IN.get(base) ?? 'read-only');
}

function permissionRows(draft: Draft, { filesystem, network }: Table): Rows {
  const { workspace, home } = draft.where;
  const { domains, enabled } = tableOf(network);
  const hasDomains = isTable(domains);
  if (hasDomains && enabled !== true) draft.noHosts = 'the network is off there';
  const access =
    (path: string, base: string): Reader =>
    (part, draft) => {
      const use = typeof part.value === 'string' ? ACCESSES[part.value] : undefined;
      if (use === undefined) return undefined;
      return namePath(draft, use, part, { text: path, base, kept: use === 'allowWrite' ? KEPT : [] });
    };
  const absolute = (path: string) => resolve(workspace, path.replace(/^~(?=\/|$)/, home));
  const beneath =
    (base: string): Reader =>
    (part, draft) => {
      const reader = isTable(part.value) ? byName((path) => access(path, base)) : access(base, base);
      return reader(part, draft);
    };
  const isPath = (name: string) => !name.startsWith(':') && name !== DEPTH;
  const paths = Object.fromEntries(Object.entries(tableOf(filesystem)).filter(([name]) => isPath(name)));
  return {
    extends: ({ value }) => (BUILT_IN.has(value) ? as('the mode') : undefined),
    filesystem: keys({
      ...named(paths, (path) => beneath(absolute(path))),
      ...Object.fromEntries(WORKSPACE_ROOTS.map((path) => [path, beneath(workspace)])),
      ':minimal': ({ value }) => (value === 'read' ? as('what programs need can be read') : undefined),
      ':root': ({ value }) => (value === 'read' ? ROOT : undefined),
      ':tmpdir': ({ value }) => (value === 'write' ? OWN_TMP : undefined),
      ':slash_tmp': ({ value }) => (value === 'write' ? OWN_TMP : undefined),
      [DEPTH]: ({ value }) => (typeof value === 'number' ? as('filesystem.hide, at every depth') : undefined),
    }),
    network: keys({
      enabled: ({ value }, draft) => {
        if (typeof value !== 'boolean') return undefined;
        if (value && hasDomains) return as('network.mode = "listed", or off if nothing is listed');
        draft.policy.network.mode = value ? 'open' : 'off';
        return as(`network.mode = "${draft.policy.network.mode}"`);
      },
      domains: byName(domain),
    }),
  };
}

/** A host of a profile of permissions. `**.NAME` is the name and everything beneath it. */
const domain =
  (text: string): Reader =>
  (part, draft) => {
    const { value } = part;
    if (value !== 'allow' && value !== 'deny') return undefined;
    const apex = text.startsWith('**.') ? text.slice(3) : undefined;
    if (apex === undefined) return nameHost(draft, value, part, { text });
    nameHost(draft, value, part, { text: apex });
    return nameHost(draft, value, part, { text: `*.${apex}` });
  };

const DEPTH = 'glob_scan_max_depth';
const ROOT = narrower(
  'only the workspace, the system and what is listed can be read here',
  'add filesystem.read for what else has to be',
);

function setMode({ policy, remarks }: Draft, mode: unknown): Outcome | undefined {
  switch (mode) {
    case 'workspace-write':
      policy.filesystem.protect.push(...KEPT);
      return as(`profile = "workspace-write", with ${KEPT.join(', ')} protected`);
    case 'danger-full-access':
      return narrower(
        'nothing runs without a sandbox here',
        'add filesystem.read, filesystem.write and network.mode',
      );
    case 'read-only':
      policy.profile = 'read-only';
      return as('profile = "read-only"');
    default:
      policy.profile = 'read-only';
      remarks.push('No mode of the sandbox that is known here is set, so the profile is read-only.');
      return undefined;
  }
}

const notSelected = leaves(as('without effect, as there: another one is selected'));

const notInForce: Reader = (part, draft) =>
  isTable(part.value) ? leaves(as('without effect, as there: the mode is another'))(part, draft) : undefined;

const withoutTmp: Reader = ({ value }, { policy }) => {
  if (typeof value !== 'boolean') return undefined;
  if (!value) return OWN_TMP;
  policy.filesystem.tmp = 'private';
  return as('filesystem.tmp = "private"');
};

const WORKSPACE_WRITE: Rows = {
  writable_roots: items((part, draft) => {
    if (typeof part.value !== 'string') return undefined;
    const meaning = { text: part.value, base: draft.where.workspace, literal: true, kept: KEPT };
    return namePath(draft, 'allowWrite', part, meaning);
  }, as('nothing else can be written')),
  network_access: ({ value }, { policy }) => {
    if (typeof value !== 'boolean') return undefined;
    policy.network.mode = value ? 'open' : 'off';
    return as(`network.mode = "${policy.network.mode}"`);
  },
  exclude_tmpdir_env_var: withoutTmp,
  exclude_slash_tmp: withoutTmp,
};

const ASKED_INSIDE = narrower(
  'what is of medium or high risk is asked about, and not only what is to run outside the sandbox',
  'set security.autonomy = "autonomous" if nothing is to be asked inside of it',
);

const APPROVALS = choice({
  untrusted: autonomy('supervised'),
  'unless-trusted': autonomy('supervised'),
  'on-request': autonomy('supervised', ASKED_INSIDE),
  'on-failure': autonomy('supervised', ASKED_INSIDE),
  never: [
    { security: { autonomy: 'autonomous' }, approval: { ask: 'nobody' } },
    as('security.autonomy = "autonomous", approval.ask = "nobody"'),
  ],
});

const NAME_THEM = 'name them in environment.pass';
const SECRETS_STAY = isAlways(
  false,
  'names that look like secrets are not passed on by a pattern, and no profile is read',
  NAME_THEM,
);

/** Of the variables of the launcher, what "core" means there. */
const CORE = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'USER', 'USERNAME', 'TMPDIR', 'TEMP', 'TMP'];

function environmentRows({ inherit, exclude, include_only: only }: Table): Rows {
  const isOnly = (name: string) =>
    Array.isArray(only) && only.some((pattern) => typeof pattern === 'string' && nameMatches(name, pattern));
  const isLimited =
    inherit === 'none' || inherit === 'core' || (Array.isArray(exclude) && exclude.length > 0);
  return {
    inherit: ({ value }, draft) => {
      if (value === 'all') return narrower('only variables that are named are passed on', NAME_THEM);
      if (value !== 'core' && value !== 'none') return undefined;
      draft.hide((name) => value === 'none' || !CORE.includes(name));
      return as('what else would be passed on is given empty');
    },
    ignore_default_excludes: SECRETS_STAY,
    experimental_use_profile: SECRETS_STAY,
    exclude: items(({ value }, draft) => {
      if (typeof value !== 'string') return undefined;
      draft.hide((name) => nameMatches(name, value));
      return as('it is not passed on');
    }),
    include_only: (part, draft) => {
      if (Array.isArray(only)) draft.hide((name) => !isOnly(name));
      return items(passedOn(isLimited))(part, draft);
    },
    set: variables,
  };
}

const passedOn =
  (isLimited: boolean): Reader =>
  ({ value }, draft) => {
    if (typeof value !== 'string') return undefined;
    if (isLimited || looksSecret(value) || !/^[A-Za-z_]\w*\*?$/.test(value)) return NOT_PASSED;
    draft.policy.environment.pass.push(value);
    return as('environment.pass');
  };

const NOT_PASSED = narrower(
  'it is not passed on: only names, or beginnings of names, can be, and none that looks like a secret (KEY, SECRET, TOKEN), as by default there',
  NAME_THEM,
);

/** As there: `*` and `?`, whatever the case. */
function nameMatches(name: string, pattern: string): boolean {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, '.*')
    .replace(/\?/g, '.');
  return pattern.length <= 200 && new RegExp(`^${source}$`, 'i').test(name);
}

/** Rules of Codex: a `.rules` file. */
export function codexRules(text: string, where: ImportPlace): Imported {
  const draft = new Draft(where);
  draft.remarks.push(
    'A rules file says what is asked or refused. Import config.toml too, and put both together.',
    'There, a rule is about what runs outside the sandbox; here, nothing does.',
  );
  for (const { line, text: value, tokens } of statementsOf(text))
    draft.read({ place: [`line ${line}`], value }, (part) => outcomeOf(draft, part, readCall(tokens)));
  translateHosts(draft);
  return draft.imported();
}

const NOT_UNDERSTOOD = wider(
  'it is not understood: only calls with literals are, such as prefix_rule(pattern = ["git", "push"], decision = "prompt")',
  'write what it forbids into commands.rules',
);

function outcomeOf(draft: Draft, part: Part, call: Call | undefined): Outcome | 'noted' {
  switch (call?.name) {
    case 'prefix_rule':
      return prefixRule(draft, call.args);
    case 'network_rule':
      return networkRule(draft, part, call.args);
    case 'host_executable':
      return narrower('rules are about every program of that name, wherever it lies');
    default:
      return NOT_UNDERSTOOD;
  }
}

/** What a proxy of Codex tells apart, as ports. */
const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, https_connect: 443 };

const ONLY_BESIDES = wider(
  'it is in network.allow; there, it is reached only if config.toml lets commands use the network',
  'take it out of network.allow if config.toml does not',
);

function networkRule(
  draft: Draft,
  part: Part,
  { host, protocol, decision }: Call['args'],
): Outcome | 'noted' {
  if (decision === 'deny' || decision === 'forbidden') {
    if (typeof host === 'string') return nameHost(draft, 'deny', part, { text: host });
    draft.noHosts = 'a rule that denies names no host';
    return as('network.mode = "off"');
  }
  const port = typeof protocol === 'string' ? PORTS[protocol] : undefined;
  if (decision !== 'allow' || typeof host !== 'string' || port === undefined) return NO_HOSTS;
  return nameHost(draft, 'allow', part, { text: host, port, outcome: ONLY_BESIDES });
}

/** What may stand at one place of a command. */
const words = (word: z.ZodString) => z.union([word.transform((only) => [only]), z.array(word).min(1)]);

const PREFIX_RULE = z.strictObject({
  // The first is a program, of which rules compare the last part.
  pattern: z.tuple([words(z.string().regex(/^\S*[^\s/]$/))], words(z.string().min(1))),
  decision: z.enum(['allow', 'prompt', 'forbidden']).default('allow'),
  justification: z.unknown().optional(),
  match: z.unknown().optional(),
  not_match: z.unknown().optional(),
});

/** So many rules are made of one with alternatives. */
const MOST_ALTERNATIVES = 256;

function prefixRule({ policy }: Draft, args: unknown): Outcome {
  const { data } = PREFIX_RULE.safeParse(args);
  if (data === undefined) return NOT_UNDERSTOOD;
  if (data.decision === 'allow')
    return narrower(
      'nothing can be allowed beforehand, and nothing runs outside the sandbox',
      'approve it once for always (sandbox-run approvals), or set security.autonomy = "autonomous"',
    );
  const [programs, ...places] = data.pattern;
  let all: readonly (readonly string[])[] = [[]];
  let taken = 0;
  for (const alternatives of places) {
    if (all.length * programs.length * alternatives.length > MOST_ALTERNATIVES) break;
    all = all.flatMap((before) => alternatives.map((word) => [...before, word]));
    taken += 1;
  }
  const reason = data.justification;
  for (const program of programs)
    for (const words of all)
      policy.commands.rules.push({
        program: program.slice(program.lastIndexOf('/') + 1),
        ...(words.length === 0 ? {} : { words: [...words] }),
        verdict: data.decision === 'forbidden' ? 'deny' : 'ask',
        ...(typeof reason === 'string' && reason !== '' ? { reason } : {}),
      });
  if (taken < places.length)
    return narrower(
      `it has more than ${MOST_ALTERNATIVES} alternatives; the last words are left out, so that more matches`,
      'write rules into commands.rules that are narrower',
    );
  const hasExamples = data.match !== undefined || data.not_match !== undefined;
  return as(`commands.rules${hasExamples ? ' (without the examples)' : ''}`);
}

/** A statement of a rules file. */
interface Statement {
  /** From 1 on. */
  readonly line: number;
  readonly text: string;
  readonly tokens: readonly string[];
}

const TOKEN = /(?<gap>\s+|#[^\n]*)|[A-Za-z_]\w*|\d+|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[\s\S]/g;

/** A statement goes to the end of its line, or of the line that closes its last parenthesis. */
function statementsOf(text: string): readonly Statement[] {
  const statements: Statement[] = [];
  let [line, depth, end] = [1, 0, 0];
  let begun: { readonly line: number; readonly start: number; readonly tokens: string[] } | undefined;
  const finish = () => {
    if (begun !== undefined) statements.push({ ...begun, text: text.slice(begun.start, end) });
    begun = undefined;
    depth = 0;
  };
  for (const { 0: token, index, groups } of text.matchAll(TOKEN)) {
    if (groups?.gap === undefined) {
      begun ??= { line, start: index, tokens: [] };
      begun.tokens.push(token);
      end = index + token.length;
      if (token === '(' || token === '[') depth += 1;
      if (token === ')' || token === ']') depth -= 1;
    } else {
      if (depth <= 0 && token.includes('\n')) finish();
      line += token.split('\n').length - 1;
    }
  }
  finish();
  return statements;
}

interface Call {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/**
 * Reads the literal subset of Starlark that rules of Codex are written in, `name(key = literal, …)`, by writing it as JSON.
 * `undefined`: it is something else.
 */
function readCall([name = '', open, ...rest]: readonly string[]): Call | undefined {
  if (!/^\w+$/.test(name) || open !== '(' || rest.pop() !== ')') return undefined;
  const names = rest.filter((_, index) => rest[index + 1] === '=');
  if (new Set(names).size < names.length) return undefined;
  const json = rest.map((token, index) => jsonOf(token, rest[index + 1]));
  return orElse(() => ({ name, args: JSON.parse(`{${json.join(' ')}}`) }), undefined);
}

const AS_JSON: ReadonlyMap<string, string> = new Map([
  ['True', 'true'],
  ['False', 'false'],
  ['None', 'null'],
  ['[', '['],
  [']', ']'],
  [',', ','],
  ['=', ':'],
]);

/** Of a text what JSON writes otherwise. */
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ["\\'", "'"],
  ['"', '\\"'],
  ['\t', '\\t'],
]);

function jsonOf(token: string, next: string | undefined): string {
  const nothing = '?';
  if (next === '=') return /^[A-Za-z_]/.test(token) ? `"${token}"` : nothing;
  // A comma may stand at the end there.
  if (token === ',' && (next === undefined || next === ']')) return '';
  if (/^\d/.test(token)) return token;
  if (/^(["']).*\1$/s.test(token)) {
    const inner = token.slice(1, -1).replace(/\\[\s\S]|["\t]/g, (part) => ESCAPES.get(part) ?? part);
    return `"${inner}"`;
  }
  return AS_JSON.get(token) ?? nothing;
}
