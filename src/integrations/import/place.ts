import type { Place } from './importer.ts';

/** `permissions.deny[0]`; a key that is no plain name stands in quotes. */
export function placeText(place: Place): string {
  return place
    .map((part, index) =>
      typeof part === 'number'
        ? `[${part}]`
        : /^[\w-]+$|^line \d+$/.test(part)
          ? `${index === 0 ? '' : '.'}${part}`
          : `[${JSON.stringify(part)}]`,
    )
    .join('');
}

/** A leaf: what has nothing beneath it. */
export interface Leaf {
  readonly place: Place;
  readonly value: unknown;
}

export type Table = Readonly<Record<string, unknown>>;

export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** Every leaf of a value, empty tables and lists among them. */
export function leavesOf(value: unknown, place: Place = []): readonly Leaf[] {
  const members: readonly (readonly [string | number, unknown])[] = Array.isArray(value)
    ? value.map((item, index) => [index, item] as const)
    : isTable(value)
      ? Object.entries(value)
      : [];
  if (members.length === 0) return [{ place, value }];
  return members.flatMap(([key, member]) => leavesOf(member, [...place, key]));
}

/** True if `inner` is `outer` or lies beneath it. */
export function isWithin(inner: Place, outer: Place): boolean {
  return outer.every((part, index) => inner[index] === part);
}
