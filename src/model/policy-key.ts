import type { z } from 'zod';
import { AUTONOMIES, isAtLeast, NETWORK_MODES } from '../base/words.ts';
import type { BackendId } from '../confine/plan/enforcement-report.ts';
import type { Autonomy } from './decision.ts';

/**
 * zod is handed to the table when a file is read: most starts meet no policy file, and must not pay for loading it.
 */
export type Zod = typeof z;

/** How much of the network commands have. */
export type NetworkMode = (typeof NETWORK_MODES)[number];

/** The stricter of two values: the operator's (`before`; `undefined`: none) and that of a file in the workspace. */
export const NARROWINGS = {
  smaller: (before: number | undefined, said: number) =>
    before === undefined ? said : Math.min(before, said),
  /** 0 means no time-out, which is the longest. */
  shorter: (before: number | undefined, said: number) => {
    if (before === undefined || before === 0) return said;
    return said === 0 ? before : Math.min(before, said);
  },
  /** No list allows everything. */
  intersection: (before: readonly string[] | undefined, said: readonly string[]) =>
    before === undefined ? said : before.filter((entry) => said.includes(entry)),
  stricterAutonomy: (before: Autonomy | undefined, said: Autonomy) =>
    before !== undefined && AUTONOMIES.indexOf(before) >= AUTONOMIES.indexOf(said) ? before : said,
  narrowerNetwork: (before: NetworkMode | undefined, said: NetworkMode) =>
    before !== undefined && NETWORK_MODES.indexOf(before) <= NETWORK_MODES.indexOf(said) ? before : said,
  strongerBackend: (before: BackendId | undefined, said: BackendId) =>
    before !== undefined && !isAtLeast(said, before) ? before : said,
} as const;

/** How bad it is if what a trusted file opens is used against the user; worst first. */
export const TRUST_RISKS = ['high', 'medium', 'low'] as const;

/** How a flag's word is read: `src/cli/shared/options.ts` has one reader for each. */
export type FlagKind = 'choice' | 'word' | 'paths' | 'ports' | 'seconds' | 'size' | 'count';

/** A row of the table of keys, as it is written. */
interface KeyRow<
  Schema extends z.ZodType = z.ZodType,
  Default = unknown,
  Name extends string = string,
  Value = unknown,
> {
  /** What a file may say. */
  readonly schema: (zod: Zod) => Schema;
  /** What it means, for people: in the schema, in the file that `policy init` writes, in the reference. */
  readonly text: string;
  /** In TOML. Uncommented, all examples together are a valid policy. */
  readonly example: string;
  /** What holds where no layer says anything. Missing: it is not set. */
  readonly default?: Default;
  /** What a later layer does: takes the place of an earlier one (missing: that), adds to its list, or does either name by name. */
  readonly layers?: 'replace' | 'add' | 'by-name';
  /** What a file in the workspace may say, and its effect. Missing: it may not have this key. */
  readonly workspace?: {
    /**
     * `adds`: as any other layer; what it adds is forbidden or demanded, so that nothing is given. `strictest`: it may say
     * one value only, that of `only`.
     */
    readonly narrow: keyof typeof NARROWINGS | 'adds' | 'strictest';
    /** The one value that it may say, of a table the one for each name. */
    readonly only?: string;
    /** Where less is allowed there in another way. */
    readonly schema?: (zod: Zod) => z.ZodType;
    readonly text?: string;
  };
  /**
   * What a workspace's file may do with it once a person has trusted the file (`sandbox-run trust`). `risk`: nothing more than
   * the reason for the order in which a person reads it. Missing: nothing, for the reason of `NEVER_TRUSTED`.
   */
  readonly trust?: {
    readonly opens: string;
    readonly risk: (typeof TRUST_RISKS)[number];
    /** A narrower schema, if a trusted file may set less than the operator. */
    readonly schema?: (zod: Zod) => z.ZodType;
  };
  /** What is weaker than the default, for `policy show`. */
  readonly weaker?: { readonly is: (value: NoInfer<Value>) => boolean; readonly meaning: string };
  /** Paths: `~` is the home directory, others are relative to the workspace. Made absolute before use. */
  readonly paths?: true;
  /** Its name in {@link Policy}, where that is not the key in camel case. */
  readonly name?: Name;
  /** What the program uses of what a file says, where that is something else. */
  readonly value?: (said: z.output<Schema>) => Value;
  /** The option of `createSandbox` that says the same. */
  readonly option?: { readonly name: string; readonly said?: (given: never) => unknown };
  /** The option of the command line, whose value becomes that of `option`. */
  readonly flag?: {
    readonly name: string;
    readonly text: string;
    readonly kind: FlagKind;
    readonly choices?: readonly string[];
  };
}

/** One key of policy files: everything that there is to know about it. */
export interface PolicyKey<
  Schema extends z.ZodType = z.ZodType,
  Default = unknown,
  Name extends string = string,
  Value = unknown,
> extends KeyRow<Schema, Default, Name, Value> {
  readonly default: Default;
  readonly layers: NonNullable<KeyRow['layers']>;
}

/** Lets TypeScript infer the types of a row, and checks the default against the schema. */
export function key<
  Schema extends z.ZodType,
  Default extends z.output<Schema> | undefined = undefined,
  Name extends string = '',
  Value = z.output<Schema>,
>(row: KeyRow<Schema, Default, Name, Value>): PolicyKey<Schema, Default, Name, Value> {
  return { layers: 'replace', default: undefined as Default, ...row };
}

/** A row with its place in files and in {@link Policy}. */
export interface PlacedKey {
  /** `limits.timeout_seconds`. */
  readonly key: string;
  /** `['limits', 'timeout_seconds']`. */
  readonly place: readonly string[];
  /** `['limits', 'timeoutMs']`. */
  readonly at: readonly string[];
  // Rows differ in their types; what reads them all treats values as what the row's own schema accepted.
  // biome-ignore lint/suspicious/noExplicitAny: the types of one row fit each other, which key() checked
  readonly row: PolicyKey<z.ZodType, unknown, string, any>;
}

// biome-ignore lint/suspicious/noExplicitAny: as above
function isRow(entry: object): entry is PolicyKey<z.ZodType, unknown, string, any> {
  return typeof Reflect.get(entry, 'schema') === 'function';
}

function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The rows of a table, in their order. */
export function placedKeys(table: object, above: readonly string[] = []): readonly PlacedKey[] {
  return Object.entries(table).flatMap(([name, entry]: [string, object]): readonly PlacedKey[] => {
    const place = [...above, name];
    if (!isRow(entry)) return placedKeys(entry, place);
    return [{ key: place.join('.'), place, at: [...above, entry.name ?? camelCase(name)], row: entry }];
  });
}

export type AnyKey = { readonly schema: (zod: Zod) => z.ZodType };
export type Said<Row> = Row extends { readonly schema: (zod: Zod) => infer Schema extends z.ZodType }
  ? z.output<Schema>
  : never;
type CamelCase<Key> = Key extends `${infer Head}_${infer Letter}${infer Rest}`
  ? `${Head}${Uppercase<Letter>}${CamelCase<Rest>}`
  : Key;
export type NameOf<Key, Row> =
  Row extends PolicyKey<z.ZodType, unknown, infer Name, infer _>
    ? Name extends ''
      ? CamelCase<Key>
      : Name
    : never;
export type ValueOf<Row> = Row extends {
  readonly default: infer Default;
  readonly value?: (said: never) => infer Value;
}
  ? [Default] extends [undefined]
    ? Value | undefined
    : Value
  : never;
