import { parse, stringify, type TomlTable, type TomlValue } from 'smol-toml';
import type { Decide } from './table.ts';

/** What `decide` leaves of files in TOML, later ones winning. */
export function filterToml(texts: readonly string[], decide: Decide): string | undefined {
  let all: TomlTable = {};
  try {
    for (const [index, text] of texts.entries())
      all = merged(
        all,
        filterTable(parse(text), '', (key, value) => decide(key, value, index)),
      );
  } catch {
    return undefined;
  }
  return Object.keys(all).length === 0 ? '' : `${stringify(all)}\n`;
}

type DecideHere = (key: string, value: string) => string | undefined;

function filterTable(table: TomlTable, around: string, decide: DecideHere): TomlTable {
  const kept: TomlTable = {};
  for (const [key, value] of Object.entries(table)) {
    const filtered = filterValue(value, around === '' ? key : `${around}.${key}`, decide);
    if (filtered !== undefined) kept[key] = filtered;
  }
  return kept;
}

function filterValue(value: TomlValue, path: string, decide: DecideHere): TomlValue | undefined {
  if (typeof value === 'string') return decide(path.toLowerCase(), value);
  if (Array.isArray(value)) {
    const kept = value.flatMap((one) => filterValue(one, path, decide) ?? []);
    return kept.length === 0 ? undefined : kept;
  }
  if (typeof value === 'object' && !(value instanceof Date)) {
    const kept = filterTable(value, path, decide);
    return Object.keys(kept).length === 0 ? undefined : kept;
  }
  return decide(path.toLowerCase(), String(value)) === undefined ? undefined : value;
}

/** Tables one by one; of lists, those of the later file come first, as uv and cargo have it. */
function merged(one: TomlTable, other: TomlTable): TomlTable {
  const both: TomlTable = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const before = both[key];
    if (isTable(before) && isTable(value)) both[key] = merged(before, value);
    else if (Array.isArray(before) && Array.isArray(value)) both[key] = [...value, ...before];
    else both[key] = value;
  }
  return both;
}

const isTable = (value: TomlValue | undefined): value is TomlTable =>
  typeof value === 'object' && !Array.isArray(value) && !(value instanceof Date);
