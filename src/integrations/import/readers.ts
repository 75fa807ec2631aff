import type { Autonomy } from '../../model/decision.ts';
import { looksSecretVariable } from '../../util/secret-name.ts';
import { as, type Draft, isTable, leavesOf, narrower, type Outcome, type Reader, tableOf } from './draft.ts';

/** The settings of a table that are known: what becomes of each. */
export type Rows = Readonly<Record<string, Reader | Outcome | undefined>>;

/** A table, each setting by its row, in the order of the rows. */
export const keys =
  (rows: Rows): Reader =>
  ({ place, value }, draft) => {
    if (!isTable(value) || Object.keys(value).length === 0) return undefined;
    const readers = new Map(Object.entries(rows));
    const known = [...readers.keys()].filter((key) => Object.hasOwn(value, key));
    for (const key of new Set([...known, ...Object.keys(value)]))
      draft.read({ place: [...place, key], value: value[key] }, readers.get(key));
    return 'noted';
  };

/** Rows for names that only the source knows. */
export const named = (table: unknown, row: (name: string) => Rows[string]): Rows =>
  Object.fromEntries(Object.keys(tableOf(table)).map((name) => [name, row(name)]));

/** A table whose keys are names. */
export const byName =
  (row: (name: string) => Reader): Reader =>
  (part, draft) =>
    keys(named(part.value, row))(part, draft);

/** A list, item by item; what is said where there is none. */
export const items =
  (reader: Reader | Outcome, none?: Outcome): Reader =>
  ({ place, value }, draft) => {
    if (!Array.isArray(value) || value.length === 0) return Array.isArray(value) ? none : undefined;
    for (const [index, item] of value.entries())
      draft.read({ place: [...place, index], value: item }, reader);
    return 'noted';
  };

/** Of whatever form, leaf by leaf. */
export const leaves =
  (reader: Reader | Outcome): Reader =>
  ({ place, value }, draft) => {
    for (const leaf of leavesOf(value, place)) draft.read(leaf, reader);
    return 'noted';
  };

/** What one value of a setting puts into the policy, and what is said of it. */
type Choice = readonly [Partial<Draft['policy']>, Outcome];

/** One of some words. */
export const choice =
  (choices: Readonly<Record<string, Choice>>): Reader =>
  ({ value }, draft) => {
    const [change, outcome] = new Map<unknown, Choice>(Object.entries(choices)).get(value) ?? [];
    Object.assign(draft.policy, change);
    return outcome;
  };

/** A mode of asking. */
export const autonomy = (word: Autonomy, outcome = as(`security.autonomy = "${word}"`)): Choice => [
  { security: { autonomy: word } },
  outcome,
];

/** A switch that here is always in one position. */
export const isAlways =
  (position: boolean, why: string, what?: string): Reader =>
  ({ value }) => {
    if (typeof value !== 'boolean') return undefined;
    return value === position ? as(why) : narrower(why, what);
  };

/** Variables that are set, by name. */
export const variables = byName((name) => ({ place, value }, draft) => {
  if (typeof value !== 'string') return undefined;
  const hidden = { place, value: '(not shown)' };
  if (looksSecretVariable(name)) draft.note(hidden, SECRET);
  else if (!/^[A-Za-z_]\w*$/.test(name)) draft.note(hidden, NO_NAME);
  else {
    draft.policy.environment.set[name] = value;
    return as('environment.set');
  }
  return 'noted';
});

const SECRET = narrower('it looks like a secret, which no policy should have', 'pass it by name: --pass-env');
const NO_NAME = narrower('it is no name of a variable', 'correct it');
