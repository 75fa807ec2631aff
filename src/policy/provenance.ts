import type { Policy } from '../model/policy.ts';
import { locateKey } from './locate-key.ts';
import { type Entry, mergedEntries, type PolicyLayer } from './merge.ts';
import { LIST_SETTINGS, SCALAR_SETTINGS, TABLE_SETTINGS } from './settings.ts';

/** Where a value comes from, strongest last. */
export interface Source {
  readonly layer: 'profile' | PolicyLayer['name'] | 'caller' | 'workspace';
  readonly path?: string;
  readonly line?: number;
}

/** One value of the effective policy. Of a list that adds up, one item. */
export interface ExplainedValue {
  readonly key: string;
  readonly value: unknown;
  /** True for an item of a list that adds up. */
  readonly item: boolean;
  readonly source: Source;
}

/** Everything that a policy was made from. */
export interface PolicyHistory {
  /** Of the profile in force. */
  readonly base: Policy;
  readonly layers: readonly PolicyLayer[];
  /** With files and the caller's options. */
  readonly operators: Policy;
  /** With the workspace's file. */
  readonly narrowed: Policy;
  readonly workspaceFile: { readonly path: string; readonly text: string } | undefined;
}

const same = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

/** Every value of the effective policy with its source. Pure. */
export function explainPolicy(history: PolicyHistory): readonly ExplainedValue[] {
  const entries = mergedEntries(history.layers);
  return [
    ...SCALAR_SETTINGS.map(({ key, of }) => scalar(history, entries, key, of)),
    ...LIST_SETTINGS.flatMap(({ key, of }) => list(history, entries, key, of)),
    ...TABLE_SETTINGS.flatMap(({ key, of }) =>
      Object.keys(of(history.narrowed)).map((name) =>
        scalar(history, entries, `${key}.${name}`, (policy) => of(policy)[name]),
      ),
    ),
  ];
}

function scalar(
  history: PolicyHistory,
  entries: readonly Entry[],
  key: string,
  of: (policy: Policy) => unknown,
): ExplainedValue {
  const { base, operators, narrowed } = history;
  const value = of(narrowed);
  const place = key.split('.');
  if (!same(value, of(operators))) return { key, value, item: false, source: ofWorkspace(history, place) };
  // Of a table that is one value here, such as the reviewer, any of its keys.
  const entry = entries.find((candidate) => candidate.key === key || candidate.key.startsWith(`${key}.`));
  // The same value from a file and from the caller: the file is named, which is where one would look.
  const fromFile = entry !== undefined && (entry.key !== key || saysThe(entry.value, value));
  if (fromFile) return { key, value, item: false, source: ofEntry(entry) };
  return { key, value, item: false, source: { layer: same(value, of(base)) ? 'profile' : 'caller' } };
}

/** `limits.umask` may be written `0022` and is shown as `022`. */
function saysThe(written: unknown, value: unknown): boolean {
  return same(written, value) || Number(written) === Number(value);
}

function list(
  history: PolicyHistory,
  entries: readonly Entry[],
  key: string,
  of: (policy: Policy) => readonly unknown[],
): readonly ExplainedValue[] {
  const { base, operators, narrowed } = history;
  // Each step adds at the end of the one before.
  const ofProfile = of(base).length;
  const ofFiles = entries.filter((entry) => entry.key === key);
  const ofOperators = of(operators).length;
  return of(narrowed).map((value, index): ExplainedValue => {
    const entry = ofFiles[index - ofProfile];
    const source = (): Source => {
      if (index < ofProfile) return { layer: 'profile' };
      if (index >= ofOperators) return ofWorkspace(history, [...key.split('.'), index - ofOperators]);
      return entry === undefined ? { layer: 'caller' } : ofEntry(entry);
    };
    return { key, value, item: true, source: source() };
  });
}

function ofEntry({ layer, place }: Entry): Source {
  return {
    layer: layer.name,
    ...(layer.path === undefined ? {} : { path: layer.path }),
    ...lineOf(layer.text, place),
  };
}

function ofWorkspace({ workspaceFile }: PolicyHistory, place: readonly (string | number)[]): Source {
  if (workspaceFile === undefined) return { layer: 'workspace' };
  return { layer: 'workspace', path: workspaceFile.path, ...lineOf(workspaceFile.text, place) };
}

function lineOf(text: string | undefined, place: readonly (string | number)[]): { readonly line?: number } {
  const line = text === undefined ? undefined : locateKey(text, place);
  return line === undefined ? {} : { line };
}
