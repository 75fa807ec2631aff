import { orElse } from '../../base/or-else.ts';
import {
  CONFIG_BYTES,
  editGitConfig,
  type GitConfigFile,
  inDirectoryOf,
  type NativeChangedCopy,
  parseGitConfig,
  readRegular,
  valuesByKey,
} from '../../workspace/index.ts';
import type { StoredCopy } from './store.ts';

/** Settings that come over, and the names of those that somebody else changed meanwhile, which stay. */
interface SettingsToTake {
  readonly copy: NativeChangedCopy;
  readonly changed: readonly string[];
}

/** What of git's settings comes into the workspace; `backwards`: what was there before the command does. */
export function settingsToTake(workspace: string, stored: StoredCopy, backwards: boolean): SettingsToTake {
  const [first, last] = [stored.before, stored.after].map((text) =>
    text === undefined ? undefined : Buffer.from(text, 'base64'),
  );
  const now = settingsNow(workspace, stored.source);
  const [from, to] = backwards ? [last, first] : [first, last];
  const [was, wanted, there] = [from, to, now].map((bytes) => bytes && parseGitConfig(bytes));
  // Who takes it over says what cannot be read.
  if (was === undefined || wanted === undefined || there === undefined)
    return { copy: { source: stored.source, before: from ?? now, after: to }, changed: [] };
  const [old, is, found] = [was, wanted, there].map(valuesOf) as [Values, Values, Values];
  const [since, left] = [differing(found, old), differing(found, is)];
  const moved = [...differing(is, old)].filter((key) => left.has(key));
  const changed = moved.filter((key) => since.has(key));
  const edits = moved.filter((key) => !since.has(key)).map((key) => ({ key, values: is.get(key) ?? [] }));
  return { copy: { source: stored.source, before: now, after: editGitConfig(there, edits) }, changed };
}

/** A configuration of git as it is now; nothing: there is none that can be read. */
export function settingsNow(workspace: string, source: string): Buffer {
  const read = () => inDirectoryOf(workspace, source, (at) => readRegular(at, CONFIG_BYTES));
  return orElse(read, undefined) ?? Buffer.alloc(0);
}

type Values = ReturnType<typeof valuesByKey>;

const valuesOf = ({ settings }: GitConfigFile): Values => valuesByKey(settings);

/** The keys whose values differ. */
function differing(one: Values, other: Values): ReadonlySet<string> {
  const keys = [...one.keys(), ...other.keys()];
  return new Set(keys.filter((key) => JSON.stringify(one.get(key)) !== JSON.stringify(other.get(key))));
}
