import type { Word } from '../../model/command-line.ts';

/** A word with its value, where that is known, and as it was written. */
export type Argument = Pick<Word, 'value' | 'source'>;

/** `git [options] verb …`, taken apart. */
export interface Invocation {
  /** `undefined`: only options. */
  readonly verb: Argument | undefined;
  readonly args: readonly Argument[];
  /** `-C`, in order. */
  readonly directories: readonly Argument[];
  /** `-c alias.NAME=…`, by name. */
  readonly aliases: ReadonlyMap<string, string>;
  /** An option, besides `-C` and such aliases, by which the aliases of the repository may be others. */
  readonly otherSettings: string | undefined;
}

const WITH_VALUE = new Set([
  '--git-dir',
  '--work-tree',
  '--namespace',
  '--super-prefix',
  '--attr-source',
  '--config-env',
]);
const LEADS_ELSEWHERE = /^--(?:git-dir|work-tree|config-env|exec-path|bare)(?:=|$)/;

/** Reads the global options. */
export function invocationOf(words: readonly Argument[]): Invocation {
  const directories: Argument[] = [];
  const aliases = new Map<string, string>();
  let otherSettings: string | undefined;
  let at = 0;
  for (; at < words.length; at += 1) {
    const { value, source } = words[at] ?? { value: undefined, source: '' };
    if (value === undefined && !source.startsWith('-')) break;
    const option = value ?? source;
    if (!option.startsWith('-')) break;
    // They are the verb.
    if (/^(?:-h|--help|-v|--version)$/.test(option)) break;
    if (option === '-c') {
      at += 1;
      const alias = aliasOf(words[at]);
      if (alias === undefined) otherSettings ??= '-c';
      else if (alias !== 'other') addAlias(aliases, alias.name, alias.value);
    } else if (option === '-C') {
      at += 1;
      directories.push(words[at] ?? { value: undefined, source: '' });
    } else {
      if (value === undefined || LEADS_ELSEWHERE.test(option)) otherSettings ??= option;
      if (WITH_VALUE.has(option)) at += 1;
    }
  }
  return { verb: words[at], args: words.slice(at + 1), directories, aliases, otherSettings };
}

/** Two that differ in capitals only may be two: what cannot be told is no alias that can be read. */
export function addAlias(aliases: Map<string, string>, name: string, value: string): void {
  const key = name.toLowerCase();
  const known = aliases.get(key);
  aliases.set(key, known === undefined || known === value ? value : '');
}

/** `undefined`: the setting may define any alias. */
function aliasOf(
  setting: Argument | undefined,
): { readonly name: string; readonly value: string } | 'other' | undefined {
  const text = setting?.value;
  if (text === undefined || /^include/i.test(text)) return undefined;
  const [, name, value] = /^alias\.([^=]*?)(?:\.command)?=(.*)$/is.exec(text) ?? [];
  return name === undefined || value === undefined ? 'other' : { name, value };
}
