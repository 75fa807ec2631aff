import { assertNever } from '../base/assert-never.ts';
import type { LAYER_NAMES } from '../base/words.ts';
import { NARROWINGS, PLACED_KEYS, type PlacedKey, type PolicyFile } from '../model/index.ts';

/**
 * Layers of a policy, weakest first. What a later one says takes the place of what an earlier one said, or adds to it, as
 * the table of keys has it; that of the workspace can only take away.
 */
export type LayerName = (typeof LAYER_NAMES)[number];

/** What one layer says, read and valid. */
export interface PolicyLayer {
  readonly name: LayerName;
  /** Path of its file; `undefined`: it is none. */
  readonly path?: string | undefined;
  /** Text of the file, to find lines in. */
  readonly text?: string | undefined;
  /** Of a workspace: valid for a workspace's file, which is less. */
  readonly says: PolicyFile;
}

/** A value in force, with the layer that said it. A list that adds up has one entry per item, a table one per name. */
export interface Entry {
  /** `filesystem.read`, `environment.set.NODE_ENV`. */
  readonly key: string;
  readonly value: unknown;
  /** An item of a list that adds up. */
  readonly item: boolean;
  readonly layer: PolicyLayer;
  /** Where in the layer's file: `['filesystem', 'read', 0]`. */
  readonly place: readonly (string | number)[];
}

/** What a layer says about a key. */
export function saidBy(layer: PolicyLayer, place: readonly string[]): unknown {
  return valueAt(layer.says, place);
}

/** The value at a place of nested tables; `undefined`: there is none. */
export function valueAt(table: unknown, place: readonly string[]): unknown {
  let value = table;
  for (const name of place) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

/** Sets the value at a place of nested tables that this function made, `root` included. Names are those of the table of keys. */
export function putAt(root: Record<string, unknown>, place: readonly string[], value: unknown): void {
  let table = root;
  for (const name of place.slice(0, -1)) {
    table[name] ??= {};
    // Nothing but a table is put where a place goes on.
    table = table[name] as Record<string, unknown>;
  }
  table[place.at(-1) ?? ''] = value;
}

/** One key with what is in force of it: a list that adds up has many entries, a key that no layer sets has none. */
interface KeyInForce {
  readonly key: PlacedKey;
  readonly entries: readonly Entry[];
}

/** What of all layers is in force, key by key, each value with its layer. Pure. */
export function keysInForce(
  layers: readonly PolicyLayer[],
  keys: readonly PlacedKey[] = PLACED_KEYS,
): readonly KeyInForce[] {
  return keys.map((key) => ({ key, entries: entriesOf(key, layers) }));
}

/** The entries of a key as one value again, as a file would say it; `undefined`: it is not set. */
export function valueInForce({ key, entries }: KeyInForce): unknown {
  switch (key.row.layers) {
    case 'add':
      return entries.map(({ value }) => value);
    case 'by-name':
      return Object.fromEntries(entries.map(({ place, value }) => [place.at(-1), value]));
    case 'replace':
      return entries[0]?.value;
    default:
      return assertNever(key.row.layers);
  }
}

/** What all layers say together, as one file. Pure. */
export function mergedFile(
  layers: readonly PolicyLayer[],
  keys: readonly PlacedKey[] = PLACED_KEYS,
): PolicyFile {
  const file: Record<string, unknown> = {};
  for (const one of keysInForce(layers, keys))
    if (one.entries.length > 0) putAt(file, one.key.place, valueInForce(one));
  // Parts of valid files, put together as they were.
  return file;
}

function entriesOf(key: PlacedKey, layers: readonly PolicyLayer[]): readonly Entry[] {
  const saying = layers.filter(
    (layer) =>
      saidBy(layer, key.place) !== undefined &&
      (layer.name !== 'workspace' || key.row.workspace !== undefined),
  );
  switch (key.row.layers) {
    case 'add':
      return saying.flatMap((layer) => itemsOf(layer, key));
    case 'by-name':
      return namesOf(saying, key);
    case 'replace':
      return lastOf(saying, key);
    default:
      return assertNever(key.row.layers);
  }
}

function itemsOf(layer: PolicyLayer, { key, place }: PlacedKey): readonly Entry[] {
  const items = saidBy(layer, place);
  if (!Array.isArray(items)) return [];
  return items.map((value: unknown, index) => ({ key, value, item: true, layer, place: [...place, index] }));
}

function namesOf(saying: readonly PolicyLayer[], { key, place, row }: PlacedKey): readonly Entry[] {
  const entries = new Map<string, Entry>();
  for (const layer of saying)
    for (const [name, value] of Object.entries(saidBy(layer, place) as object)) {
      // Its schema accepts nothing else; a mistake there shall give nothing either.
      const changesNothing =
        layer.name === 'workspace' && (value !== row.workspace?.only || entries.get(name)?.value === value);
      const entry = { key: `${key}.${name}`, value, item: false, layer, place: [...place, name] };
      if (!changesNothing) entries.set(name, entry);
    }
  return [...entries.values()];
}

function lastOf(saying: readonly PolicyLayer[], { key, place, row }: PlacedKey): readonly Entry[] {
  return saying.reduce<readonly Entry[]>((before, layer) => {
    const said = saidBy(layer, place);
    const entry = { key, item: false, layer, place };
    if (layer.name !== 'workspace') return [{ ...entry, value: said }];
    const value = narrowed(row, before[0]?.value, said);
    // A workspace that asks for no more than there is changes nothing: the value is that of the other layer.
    if (before[0] !== undefined && isSame(before[0].value, value)) return before;
    return [{ ...entry, value }];
  }, []);
}

/** Values of files are such as JSON has. */
function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

function narrowed({ workspace }: PlacedKey['row'], before: unknown, said: unknown): unknown {
  if (workspace === undefined || workspace.narrow === 'adds') return before;
  if (workspace.narrow === 'strictest') return said === workspace.only ? said : before;
  // Both were accepted by the row's own schemas.
  const narrow = NARROWINGS[workspace.narrow] as (before: unknown, said: unknown) => unknown;
  return narrow(before, said);
}
