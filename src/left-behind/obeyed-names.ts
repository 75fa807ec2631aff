import { basename } from 'node:path';
import type { ObeyedFile } from '../policy/profiles/obeyed-files.ts';
import { directoriesBetween } from '../util/absolute-path.ts';

/** Files that programs obey, by name. */
export interface ObeyedNames {
  /**
   * Of the last part of their paths: what the workspace is looked through for. Also of what is only obeyed at its top, as
   * that is there: a name costs nothing where nothing has it, a path is looked at each time.
   */
  readonly names: readonly string[];
  readonly suffixes: readonly string[];
  /** Those that the names do not find. Absolute. */
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
  const rowOf = (path: string): ObeyedFile | undefined => {
    const row =
      atTop.get(path) ??
      exact.get(basename(path))?.find((one) => path.endsWith(`/${one.path}`)) ??
      suffixed.find((one) => path.endsWith(one.path.slice(1)));
    // What packages bring for those who work on them; a directory may be opened, but hardly such a one.
    if (row?.treatment !== 'shut' || row.where === 'project') {
      if (/\/node_modules\//.test(path) && row?.path.startsWith('node_modules/') !== true) return undefined;
    }
    const isBeneath = row?.where === 'project' && path !== `${workspace}/${row.path}`;
    return isBeneath ? { ...row, treatment: 'told' } : row;
  };
  function rowFor(path: string): ObeyedFile | undefined {
    const found = [path, ...directoriesBetween(path, workspace)].flatMap((one) => rowOf(one) ?? []);
    return found.find(({ treatment }) => treatment === 'shut') ?? found[0];
  }
  return {
    names: [
      ...exact.keys(),
      ...[...atTop.values()].flatMap(({ path }) => (path.includes('/') ? [] : [path])),
    ],
    paths: [...atTop].flatMap(([path, row]) => (row.path.includes('/') ? [path] : [])),
    suffixes: suffixed.map(({ path }) => path.slice(1)),
    rowFor,
  };
}
