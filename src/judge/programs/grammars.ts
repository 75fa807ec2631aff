import { readFileSync } from 'node:fs';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { refuseShortage } from '../../base/errors/shortage.ts';
import type { Behaviour, Effect, Grammar } from './behaviour.ts';

/** The groups of options that a grammar has: what they do, and whether a value stands behind them. A later group wins. */
export const GROUPS = {
  flags: { effect: 'harmless', value: 'none' },
  values: { effect: 'harmless', value: 'required' },
  optionals: { effect: 'harmless', value: 'optional' },
  reads: { effect: 'reads', value: 'required' },
  writes: { effect: 'writes', value: 'required' },
  produces: { effect: 'produces', value: 'required' },
  producesAttached: { effect: 'produces', value: 'optional' },
  writing: { effect: 'writes', value: 'none' },
  removing: { effect: 'removes', value: 'none' },
  loads: { effect: 'loads', value: 'required' },
  executes: { effect: 'executes', value: 'required' },
  executing: { effect: 'executes', value: 'none' },
  network: { effect: 'network', value: 'required' },
  networking: { effect: 'network', value: 'none' },
} as const satisfies Readonly<Record<string, { effect: Effect; value: 'none' | 'required' | 'optional' }>>;

type Group = keyof typeof GROUPS;
export const GROUP_NAMES = Object.keys(GROUPS) as readonly Group[];

/** The keys of a grammar's entry, and their types. */
const KEYS: Readonly<Record<string, 'string' | 'boolean'>> = {
  ...{ source: 'string', like: 'string', note: 'string', style: 'string' },
  ...{ stopAtOperand: 'boolean', numeric: 'boolean', exact: 'boolean', open: 'boolean' },
  ...Object.fromEntries(GROUP_NAMES.map((name) => [name, 'string' as const])),
};

/** An entry of a grammar file. */
interface Entry extends Grammar {
  /** The name of another one, whose options this one has too. Options that are listed here are as they are listed here. */
  readonly like?: string;
  /** For readers of the JSON file; not used by the program. */
  readonly note?: string;
}

/** Read once per process: the files are as much out of the reach of commands as the code. */
const known = new Map<string, Grammar>();

/**
 * The grammar of a name. The first word is the program: `git commit` is an entry of `grammars/git.options.json`.
 * @throws {SandboxError} `package.incomplete`: the file is missing or damaged. So nothing is allowed for want of it. For a shortage
 *   `launch.failed`.
 */
export function grammarNamed(name: string): Grammar {
  const before = known.get(name);
  if (before !== undefined) return before;
  const { like, ...own } = entryNamed(name);
  const grammar = like === undefined ? own : extended(grammarNamed(like), own);
  known.set(name, grammar);
  return grammar;
}

/** The grammar of a program, or of one verb of it; `undefined`: its options are not known. */
export function grammarOf({ grammar }: Pick<Behaviour, 'grammar'>): Grammar | undefined {
  return typeof grammar === 'string' ? grammarNamed(grammar) : grammar;
}

/** Files that were read: the whole file is checked when its first entry is needed. */
const files = new Map<string, Readonly<Record<string, Entry>>>();

function entryNamed(name: string): Entry {
  const [program = ''] = name.split(' ');
  const entries = files.get(program) ?? readEntries(program);
  files.set(program, entries);
  const entry = entries[name];
  if (entry === undefined) throw damaged(program, `it has no entry ${name}`);
  return entry;
}

function readEntries(program: string): Readonly<Record<string, Entry>> {
  try {
    const url = new URL(`./grammars/${program}.options.json`, import.meta.url);
    const entries: Readonly<Record<string, Entry>> = JSON.parse(readFileSync(url, 'utf8'));
    for (const entry of Object.values(entries))
      for (const [key, value] of Object.entries(entry))
        if (KEYS[key] !== typeof value) throw new TypeError(`${key} is not known, or of another type`);
    return entries;
  } catch (error) {
    refuseShortage(error);
    throw damaged(program, errorMessage(error));
  }
}

function damaged(program: string, why: string): SandboxError {
  return new SandboxError(
    'package.incomplete',
    `the options of ${program} cannot be read, so that nothing is known of the command (${why}): install sandbox-run again`,
  );
}

const namesOf = (list: string | undefined) => (list === undefined ? [] : list.split(' '));

/** A grammar with the options of another one. */
function extended(base: Grammar, own: Grammar): Grammar {
  const listed = new Set(GROUP_NAMES.flatMap((group) => namesOf(own[group])));
  const grammar: { -readonly [Key in keyof Grammar]: Grammar[Key] } = { ...base, ...own };
  for (const group of GROUP_NAMES) {
    const names = [...namesOf(base[group]).filter((name) => !listed.has(name)), ...namesOf(own[group])];
    if (names.length > 0) grammar[group] = names.join(' ');
    else delete grammar[group];
  }
  return grammar;
}
