import type { Effect, Grammar } from './behaviour.ts';

/** One option. */
export interface OptionRule {
  readonly name: string;
  readonly effect: Effect;
  readonly value: 'none' | 'required' | 'optional';
  /** It changes the files of the operands. */
  readonly inPlace: boolean;
}

/** A grammar, ready for look-ups. */
export interface OptionTable {
  readonly rules: ReadonlyMap<string, OptionRule>;
  /** Those that may be abbreviated. */
  readonly longNames: readonly string[];
  /** An option can execute or write, so an unknown one might too. */
  readonly powerful: boolean;
}

const COLUMNS: readonly {
  readonly key:
    | 'flags'
    | 'values'
    | 'optionals'
    | 'reads'
    | 'writes'
    | 'produces'
    | 'producesAttached'
    | 'writing'
    | 'removing'
    | 'loads'
    | 'executes'
    | 'executing'
    | 'network'
    | 'networking';
  readonly effect: Effect;
  readonly value: OptionRule['value'];
}[] = [
  { key: 'flags', effect: 'harmless', value: 'none' },
  { key: 'values', effect: 'harmless', value: 'required' },
  { key: 'optionals', effect: 'harmless', value: 'optional' },
  { key: 'reads', effect: 'reads', value: 'required' },
  { key: 'writes', effect: 'writes', value: 'required' },
  { key: 'produces', effect: 'produces', value: 'required' },
  { key: 'producesAttached', effect: 'produces', value: 'optional' },
  { key: 'writing', effect: 'writes', value: 'optional' },
  { key: 'removing', effect: 'removes', value: 'optional' },
  { key: 'loads', effect: 'loads', value: 'required' },
  { key: 'executes', effect: 'executes', value: 'required' },
  { key: 'executing', effect: 'executes', value: 'optional' },
  { key: 'network', effect: 'network', value: 'required' },
  { key: 'networking', effect: 'network', value: 'optional' },
];

const POWERFUL: ReadonlySet<Effect> = new Set(['writes', 'removes', 'loads', 'executes', 'network']);

/** Built once per grammar, at the first use: loading the tables stays cheap. */
const built = new WeakMap<Grammar, OptionTable>();

/** The look-up table of a grammar. */
export function optionTable(grammar: Grammar): OptionTable {
  const known = built.get(grammar);
  if (known !== undefined) return known;
  const rules = new Map<string, OptionRule>();
  let powerful = false;
  for (const { key, effect, value } of COLUMNS) {
    const names = grammar[key];
    if (names === undefined) continue;
    powerful ||= POWERFUL.has(effect);
    for (const name of names.split(' ')) rules.set(name, { name, effect, value, inPlace: key === 'writing' });
  }
  const longNames = grammar.exact === true ? [] : [...rules.keys()].filter((name) => name.length > 1);
  const table = { rules, longNames, powerful };
  built.set(grammar, table);
  return table;
}

/** The rule of a long option, which may be abbreviated as long as it is not ambiguous. */
export function findLong(table: OptionTable, name: string): OptionRule | undefined {
  const exact = name.length > 1 ? table.rules.get(name) : undefined;
  if (exact !== undefined) return exact;
  if (name === '') return undefined;
  let found: OptionRule | undefined;
  for (const candidate of table.longNames) {
    if (!candidate.startsWith(name)) continue;
    if (found !== undefined) return undefined;
    found = table.rules.get(candidate);
  }
  return found;
}
