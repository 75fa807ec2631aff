import type { PathLookup } from '../../model/path-lookup.ts';
import type { LOSS_EFFECTS } from '../../model/words.ts';

/** What `policy import --from` takes. */
export const IMPORT_SOURCES = ['srt', 'claude-code', 'codex'] as const;

/** A place in the source, from its root on: `['permissions', 'deny', 0]`. */
export type Place = readonly (string | number)[];

/** A part of the source. */
export interface Part {
  readonly place: Place;
  readonly value: unknown;
}

/** It is represented in the policy. */
export interface Represented {
  /** What stands for it. */
  readonly to: string;
}

/** It has no equivalent, or not the same one. */
export interface Lost {
  /**
   * What it does to what is allowed. `narrower`: less is allowed here than there; `wider`: something is allowed here that
   * was not there; `none`: it is not about what commands may do.
   */
  readonly effect: (typeof LOSS_EFFECTS)[number];
  /** One sentence. */
  readonly why: string;
  /** What to do about it. */
  readonly what: string;
}

export type Loss = Part & Lost;

/** A source as a policy. Every leaf of the source is in `translated` or in `losses`. */
export interface Imported {
  /** As it would stand in a file. */
  readonly policy: Table;
  readonly translated: readonly (Part & Represented)[];
  readonly losses: readonly Loss[];
  /** What is different as a whole. */
  readonly remarks: readonly string[];
}

/** What is known of the place for which a policy is made. */
export interface ImportPlace {
  /** Canonical. */
  readonly workspace: string;
  readonly home: string;
  /** Absolute path of the source. */
  readonly file: string;
  /** Whether a path is there: a policy with a path that is not there cannot be used. */
  readonly exists: (path: string) => boolean;
  /** Where paths lead: a denial and an allowance of one place may name it by different links. */
  readonly lookup: PathLookup;
}

export type Table = Readonly<Record<string, unknown>>;

export function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** The table, or an empty one in place of anything else. */
export const tableOf = (value: unknown): Table => (isTable(value) ? value : {});

/** `permissions.deny[0]`; a key that is no plain name stands in quotes. */
export function placeText(place: Place): string {
  const shown = place.map((key) => {
    if (typeof key === 'number') return `[${key}]`;
    return /^[\w-]+$|^line \d+$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  });
  return shown.join('').replace(/^\./, '');
}

/** Every part that has nothing beneath it, empty tables and lists among them. */
export function leavesOf(value: unknown, place: Place = []): readonly Part[] {
  const members = Array.isArray(value) ? [...value.entries()] : Object.entries(tableOf(value));
  if (members.length === 0) return [{ place, value }];
  return members.flatMap(([key, member]) => leavesOf(member, [...place, key]));
}
