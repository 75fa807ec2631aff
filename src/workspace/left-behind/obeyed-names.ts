import { basename } from 'node:path';
import { directoriesBetween, innermostAround } from '../../base/absolute-path.ts';
import type { ObeyedFile } from '../../policy/index.ts';

/** Files that programs obey, by name. */
export interface ObeyedNames {
  /**
   * Of the last part of their paths: what the workspace is looked through for. Also of what is only obeyed at its top, as
   * that is there: a name costs nothing where nothing has it, a path is looked at each time.
   */
  readonly names: readonly string[];
  readonly suffixes: readonly string[];
  /** Names of directories of which everything beneath is noted. */
  readonly wholes: readonly string[];
  /** Absolute paths that the names do not find. */
  readonly paths: readonly string[];
  /** The row that a path in one of the directories, or a directory around it, falls under. */
  rowFor(path: string): ObeyedFile | undefined;
}

/** Directories that commands can write, canonical. */
export interface LookedThrough {
  readonly workspace: string;
  /** Writable directories beside the workspace, none within another. */
  readonly beside?: readonly string[];
  /** Directories of `beside` that are projects: only in these are project files reported. */
  readonly projects?: readonly string[];
}

/** Makes the rows of a table findable. */
export function obeyedNames(
  rows: readonly ObeyedFile[],
  { workspace, beside = [], projects = [] }: LookedThrough,
): ObeyedNames {
  const roots = [workspace, ...beside];
  const exact = new Map<string, ObeyedFile[]>();
  const suffixed = rows.filter(({ path }) => path.startsWith('*'));
  for (const row of rows) {
    if (row.path.startsWith('*') || row.where === 'top') continue;
    const name = basename(row.path);
    exact.set(name, [...(exact.get(name) ?? []), row]);
  }
  const atTop = new Map<string, ObeyedFile>(
    rows
      .filter(({ where }) => where === 'top')
      .flatMap((row) => [
        [`${workspace}/${row.path}`, row] as const,
        ...beside.flatMap((root) => restsIn(root, row.path).map((rest) => [`${root}/${rest}`, row] as const)),
      ]),
  );
  const rowOf = (path: string, root: string): ObeyedFile | undefined => {
    const row =
      atTop.get(path) ??
      exact.get(basename(path))?.find((one) => path.endsWith(`/${one.path}`)) ??
      suffixed.find((one) => path.endsWith(one.path.slice(1)));
    // What packages bring for those who work on them; a directory may be opened, but hardly such a one.
    if (row?.treatment !== 'shut' || row.where === 'project') {
      if (/\/node_modules\//.test(path) && row?.path.startsWith('node_modules/') !== true) return undefined;
      if (/\/site-packages\//.test(path) && row?.path.endsWith('customize.py') !== true) return undefined;
    }
    const isBeneath = row?.where === 'project' && path !== `${root}/${row.path}`;
    return isBeneath ? { ...row, treatment: 'told' } : row;
  };
  const isToldIn = (root: string) => root === workspace || projects.includes(root);
  function rowFor(path: string): ObeyedFile | undefined {
    const root = innermostAround(path, roots);
    if (root === undefined) return undefined;
    const found = [path, ...directoriesBetween(path, root)].flatMap((one) => rowOf(one, root) ?? []);
    return found.find(({ treatment }) => treatment === 'shut') ?? (isToldIn(root) ? found[0] : undefined);
  }
  return {
    names: [
      ...exact.keys(),
      ...new Set([...atTop.values()].flatMap(({ path }) => (path.includes('/') ? [] : [path]))),
    ],
    paths: [...atTop].flatMap(([path, row]) => (row.path.includes('/') ? [path] : [])),
    wholes: rows.flatMap(({ isWhole, path }) => (isWhole === true ? [basename(path)] : [])),
    suffixes: suffixed.map(({ path }) => path.slice(1)),
    rowFor,
  };
}

/**
 * What of a row's path lies in a directory that is granted: all of it, or the rest of it where the directory has the name of its
 * beginning, as `~/.config` has of `.config/autostart`, or `main/.git` of `.git/hooks`.
 */
function restsIn(root: string, path: string): readonly string[] {
  const names = path.split('/');
  return names.flatMap((_, taken) =>
    taken === 0 || root.endsWith(`/${names.slice(0, taken).join('/')}`) ? [names.slice(taken).join('/')] : [],
  );
}

/** The row for a path that is obeyed, or that lies in an obeyed directory: granting it lets commands write that. */
export function rowAround(rows: readonly ObeyedFile[], path: string): ObeyedFile | undefined {
  return rows.find(
    (row) =>
      row.treatment === 'shut' &&
      !row.path.startsWith('*') &&
      (path.endsWith(`/${row.path}`) || path.includes(`/${row.path}/`)),
  );
}
