import { basename } from 'node:path';
import type { ObeyedFile } from '../policy/profiles/obeyed-files.ts';
import { directoriesBetween } from '../util/absolute-path.ts';

/** Files that programs obey, by name. */
export interface ObeyedNames {
  /** Of the last part of their paths: what the workspace is looked through for. */
  readonly names: readonly string[];
  readonly suffixes: readonly string[];
  /** Those that are only obeyed at the top of the workspace. Absolute. */
  readonly paths: readonly string[];
  /** The row that a path in the workspace, or a directory around it, falls under. */
  rowFor(path: string): ObeyedFile | undefined;
}

/** Makes the rows of a table findable. */
export function obeyedNames(rows: readonly ObeyedFile[], workspace: string): ObeyedNames {
  const exact = new Map<string, ObeyedFile[]>();
  const suffixed = rows.filter(({ path }) => path.startsWith('*'));
  for (const row of rows) {
    if (row.path.startsWith('*') || row.where === 'top') continue;
    const name = basename(row.path);
    exact.set(name, [...(exact.get(name) ?? []), row]);
  }
  const atTop = new Map(
    rows.filter(({ where }) => where === 'top').map((row) => [`${workspace}/${row.path}`, row]),
  );
  const rowOf = (path: string) =>
    atTop.get(path) ??
    exact.get(basename(path))?.find((row) => path.endsWith(`/${row.path}`)) ??
    suffixed.find((row) => path.endsWith(row.path.slice(1)));
  return {
    names: [...exact.keys()],
    paths: [...atTop.keys()],
    suffixes: suffixed.map(({ path }) => path.slice(1)),
    rowFor: (path) => [path, ...directoriesBetween(path, workspace)].map(rowOf).find(Boolean),
  };
}
