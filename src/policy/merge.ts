import type { PolicyFile } from './schema.ts';
import { LIST_SETTINGS } from './settings.ts';

/** Layers of the policy, weakest first. What a later one says replaces what an earlier one said; lists add up. */
export type LayerName = 'system' | 'user' | 'option';

/** One policy file of the operator, read and valid. */
export interface PolicyLayer {
  readonly name: LayerName;
  /** Path of the file; `undefined`: it was given as an object. */
  readonly path: string | undefined;
  /** Its text, to find lines in. */
  readonly text: string | undefined;
  readonly file: PolicyFile;
}

/** One value of one layer. A list that adds up has one per item. */
export interface Entry {
  /** `filesystem.read`. */
  readonly key: string;
  readonly value: unknown;
  readonly layer: PolicyLayer;
  /** Where in the layer's file: `['filesystem', 'read', 0]`. */
  readonly place: readonly (string | number)[];
}

/** Every other list is replaced: a later `commands.allow` is the whole list. */
const ADDING_UP: ReadonlySet<string> = new Set(LIST_SETTINGS.map(({ key }) => key));

function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function entriesOf(layer: PolicyLayer, table: object, above: readonly string[]): readonly Entry[] {
  return Object.entries(table).flatMap(([name, value]): readonly Entry[] => {
    const place = [...above, name];
    const key = place.join('.');
    if (value === undefined) return [];
    if (isTable(value)) return entriesOf(layer, value, place);
    if (!ADDING_UP.has(key) || !Array.isArray(value)) return [{ key, value, layer, place }];
    return value.map((item: unknown, index) => ({ key, value: item, layer, place: [...place, index] }));
  });
}

/** What is in force of all layers, each value with its layer. Pure. */
export function mergedEntries(layers: readonly PolicyLayer[]): readonly Entry[] {
  const all = layers.flatMap((layer) => entriesOf(layer, layer.file, []));
  return all.filter(
    (entry, index) =>
      ADDING_UP.has(entry.key) || !all.slice(index + 1).some((later) => later.key === entry.key),
  );
}

/** The layers as one file. Pure. */
export function mergeLayers(layers: readonly PolicyLayer[]): PolicyFile {
  const root: Record<string, unknown> = {};
  for (const { key, value, place } of mergedEntries(layers)) {
    let table = root;
    const names = ADDING_UP.has(key) ? place.slice(0, -1) : place;
    for (const name of names.slice(0, -1)) table = subTable(table, String(name));
    const last = String(names.at(-1));
    const before = table[last];
    table[last] = ADDING_UP.has(key) ? [...(Array.isArray(before) ? before : []), value] : value;
  }
  // Parts of valid files, put together as they were.
  return root as PolicyFile;
}

function subTable(table: Record<string, unknown>, name: string): Record<string, unknown> {
  const known = table[name];
  if (isTable(known)) return known as Record<string, unknown>;
  const made: Record<string, unknown> = {};
  table[name] = made;
  return made;
}
