import { type Command, InvalidArgumentError, Option } from 'commander';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { isObject } from '../../base/is-object.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { BACKEND_IDS, MAX_OUTPUT_BYTES, TAINTS } from '../../base/words.ts';
import {
  type FlagKind,
  type OutputLimits,
  PLACED_KEYS,
  type PlacedKey,
  type PolicyKey,
  PUBLICATION_FORMS,
  readPublication,
  type SandboxOptions,
  type Taint,
} from '../../model/index.ts';
import { putAt } from '../../policy/index.ts';

const MAX_SECONDS = 365 * 24 * 3600;

/** Seconds on the command line, as milliseconds. */
export function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() === '' || !(seconds >= 0 && seconds <= MAX_SECONDS)) {
    throw new InvalidArgumentError('it must be a number of seconds from 0 (never) to a year.');
  }
  return Math.round(seconds * 1000);
}

const SIZE_UNITS = ['', 'K', 'M', 'G', 'T'];

/** `512M` and the like, in bytes. */
function parseSize(text: string): number {
  const size = sizeOf(text);
  if (!Number.isSafeInteger(size) || size === 0) {
    throw new InvalidArgumentError('it must be a number of bytes above 0, with K, M, G or T at most.');
  }
  return size;
}

function sizeOf(text: string): number {
  const match = /^(\d+)([KMGT]?)$/i.exec(text);
  return Number(match?.[1]) * 1024 ** SIZE_UNITS.indexOf((match?.[2] ?? '').toUpperCase());
}

/** Reads a whole number of a range; `must` is what is said of anything else. */
export const wholeNumber = (least: number, most: number, must: string) => (text: string) => {
  const number = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= least && number <= most) return number;
  throw new InvalidArgumentError(must);
};

/** `SIZE` or `HEAD+TAIL`. */
function parseOutputLimit(text: string): number | OutputLimits {
  const [head = Number.NaN, tail] = text.split('+', 2).map(sizeOf);
  if (text.split('+').length > 2 || !(head + (tail ?? 0) <= MAX_OUTPUT_BYTES)) {
    throw new InvalidArgumentError(
      'it must be a number of bytes such as 512K, or two with a + between them, 128M in all at most (--spill keeps more).',
    );
  }
  return tail === undefined ? head : { head, tail };
}

const READERS: Readonly<Record<FlagKind, ((text: string, before: unknown) => unknown) | undefined>> = {
  choice: undefined,
  word: undefined,
  paths: (path, before) => [...(Array.isArray(before) ? before : []), path],
  ports: (text, before) => {
    if (readPublication(text) === undefined) throw new InvalidArgumentError(`it ${PUBLICATION_FORMS}.`);
    return [...(Array.isArray(before) ? before : []), text];
  },
  seconds: parseSeconds,
  size: parseSize,
  count: wholeNumber(1, Number.MAX_SAFE_INTEGER, 'it must be a whole number above 0.'),
};

/** The option of a key that has one. */
function optionOf({ name, text, kind, choices }: NonNullable<PolicyKey['flag']>): Option {
  const option = new Option(name, text);
  const reader = READERS[kind];
  if (reader !== undefined) option.argParser(reader);
  return choices === undefined ? option : option.choices(choices);
}

/** An option that stands for a key of the policy. */
interface PolicyOption {
  readonly key: string;
  readonly option: Option;
  /** The option of `createSandbox` that its value becomes: `limits.memory`. */
  readonly becomes: string;
}

/** The options of all keys that have one. */
export function policyOptions(keys: readonly PlacedKey[] = PLACED_KEYS): readonly PolicyOption[] {
  return keys.flatMap(({ key, row: { flag, option } }) =>
    flag === undefined || option === undefined ? [] : [{ key, option: optionOf(flag), becomes: option.name }],
  );
}

function policyOption(key: string): Option {
  const flag = PLACED_KEYS.find((one) => one.key === key)?.row.flag;
  if (flag === undefined) throw new TypeError(`the table of keys has no option for ${key}`);
  return optionOf(flag);
}

/** `--autonomy A`. */
export function autonomyOption(): Option {
  return policyOption('security.autonomy');
}

/** `--backend NAME`. */
export function backendOption(): Option {
  return new Option(
    '--backend <name>',
    'what keeps the command in; if this one cannot be used, nothing runs (default: auto, the strongest one that holds here)',
  ).choices(['auto', ...BACKEND_IDS]);
}

/** A word that names a taint. */
export function isTaint(word: unknown): word is Taint {
  return TAINTS.some((taint) => taint === word);
}

/** `--policy FILE`, of commands that judge or run others. */
export const POLICY_FILE = [
  '--policy <file>',
  'a policy file (TOML), added to those of the machine and the user',
] as const;

/** `--profile NAME`. */
export function profileOption(): Option {
  return policyOption('profile');
}

/** Reads the value of an option that is a list of taints, with commas. */
export function parseTaints(text: string): readonly Taint[] {
  return text
    .split(',')
    .filter((word) => word !== '')
    .map((word) => {
      if (!isTaint(word)) throw new InvalidArgumentError(`known are ${TAINTS.join(' and ')}.`);
      return word;
    });
}

/** `--taint a,b`. */
export const TAINTS_SEEN = [
  '--taint <list>',
  'what the session was exposed to: corruption, secret',
  parseTaints,
] as const;

/** What {@link addSandboxOptions} reads, beside the options that stand for keys of the policy. */
export interface SandboxArguments extends Pick<SandboxOptions, 'timeout' | (typeof UNCHANGED)[number]> {
  env?: string[];
}

/** Adds the options that say under which policy commands run. `agentSession`: those of an agent's session, too. */
export function addSandboxOptions(
  program: Command,
  { agentSession = true }: { readonly agentSession?: boolean } = {},
): Command {
  const collect = (value: string, before: string[] = []) => [...before, value];
  program
    .option('--workspace <dir>', 'the directory to work in (default: the current directory)')
    .option(...POLICY_FILE)
    .addOption(backendOption())
    .option('--audit', 'put decisions and results into the audit trail, unless the policy says otherwise')
    .option('--env <name[=value]>', 'pass a variable to the command, or set it; repeatable', collect);
  if (agentSession)
    program
      .option('--session <id>', 'the session of the agent; its taints are remembered')
      .option('--tool <name>', 'what the agent calls its tool; plug-ins are told it');
  for (const { option } of policyOptions()) program.addOption(option);
  return program.option(
    '--max-output <size>',
    'with --json: how much of each stream is kept, half from its beginning and half from its end; or HEAD+TAIL (default: 1M, at most 128M)',
    parseOutputLimit,
  );
}

/** What `createSandbox` has under the same name. */
const UNCHANGED = ['workspace', 'backend', 'audit', 'session', 'tool', 'policy', 'maxOutput'] as const;

/** The options of a command line, as `createSandbox` takes them. */
export function sandboxOptionsOf(options: SandboxArguments): SandboxOptions {
  const assignments = (options.env ?? []).filter((entry) => entry.includes('='));
  const said: Record<string, unknown> = {};
  const names = policyOptions().map(({ option, becomes }) => [option.attributeName(), becomes] as const);
  for (const [name, becomes] of [...UNCHANGED.map((same) => [same, same] as const), ...names]) {
    const value: unknown = Reflect.get(options, name);
    if (value !== undefined) putAt(said, becomes.split('.'), value);
  }
  return {
    // Each option was read as its key wants it.
    ...(said as SandboxOptions),
    passEnv: (options.env ?? []).filter((entry) => !entry.includes('=')),
    env: Object.fromEntries(assignments.map(splitAssignment)),
  };
}

function splitAssignment(entry: string): readonly [string, string] {
  const at = entry.indexOf('=');
  if (at === 0 || entry === '')
    throw new SandboxError('usage.invalid', `--env ${entry}: a name must stand before the =`);
  return [entry.slice(0, at), entry.slice(at + 1)];
}

/** Options of single commands: whose they are, how much they may use, what they are told and what they serve. */
const OF_ONE_COMMAND: readonly string[] = [
  ...['workspace', 'session', 'tool', 'gate', 'timeout', 'idleTimeout', 'maxOutput', 'limits', 'audit'],
  ...['env', 'passEnv', 'ask', 'autonomy', 'undo', 'explain', 'publish'],
];

/** Options that say which files, hosts and controls commands have: services and commands with the same ones share a machine. */
export const sharedOptions = (options: SandboxOptions): SandboxOptions =>
  Object.fromEntries(Object.entries(options).filter(([name]) => !OF_ONE_COMMAND.includes(name)));

/** The words of a command line that give {@link sharedOptions}, by the name of their option: `--rw /data`. */
export function sharedWords(options: SandboxOptions): ReadonlyMap<string, string> {
  const shared = sharedOptions(options);
  const flags = [
    ...['policy', 'backend'].map((name) => ({ becomes: name, option: new Option(`--${name} <value>`) })),
    ...policyOptions(),
  ];
  return new Map(
    flags.flatMap(({ becomes, option: { long } }) => {
      const value = becomes
        .split('.')
        .reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), shared);
      if (value === undefined || long === undefined || long === null) return [];
      const all = Array.isArray(value) ? value : [value];
      const words = all.map((one) => (one === true ? long : `${long} ${readableWord(String(one))}`));
      return [[long, words.join(' ')] as const];
    }),
  );
}
