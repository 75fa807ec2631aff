import { NARROWINGS, PLACED_KEYS, type PlacedKey, type PolicyFile } from '../model/policy-keys.ts';
import { assertNever } from '../util/assert-never.ts';

/**
 * Layers of a policy, weakest first. What a later one says takes the place of what an earlier one said, or adds to it, as
 * the table of keys has it; that of the workspace can only take away.
 */
export const LAYER_NAMES = ['profile', 'system', 'user', 'option', 'caller', 'workspace'] as const;
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
  return place.reduce<unknown>(
    (value, name) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, name)
        ? Reflect.get(value, name)
        : undefined,
    table,
  );
}

/** Sets the value at a place of nested tables, which are made where they are missing. */
export function putAt(root: Record<string, unknown>, place: readonly string[], value: unknown): void {
  const [name = '', ...rest] = place;
  if (rest.length === 0) {
    Object.defineProperty(root, name, { value, enumerable: true, configurable: true, writable: true });
    return;
  }
  const known = valueAt(root, [name]);
  const table = typeof known === 'object' && known !== null ? { ...known } : {};
  putAt(table, rest, value);
  putAt(root, [name], table);
}

/** What of all layers is in force, each value with its layer. Pure. */
export function entriesInForce(
  layers: readonly PolicyLayer[],
  keys: readonly PlacedKey[] = PLACED_KEYS,
): readonly Entry[] {
  return keys.flatMap((key) => entriesOf(key, layers));
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

/** Entries as one file again: what all their layers say together. Pure. */
export function fileOf(entries: readonly Entry[]): PolicyFile {
  const file: Record<string, unknown> = {};
  for (const { value, item, place } of entries) {
    const names = place.filter((name) => typeof name === 'string');
    const list = valueAt(file, names);
    if (item && Array.isArray(list)) list.push(value);
    else putAt(file, names, item ? [value] : value);
  }
  // Parts of valid files, put together as they were.
  return file;
}
