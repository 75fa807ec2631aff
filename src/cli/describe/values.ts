import { TAINTS } from '../../model/words.ts';
import { PROFILES } from '../../policy/profiles/built-in.ts';

/**
 * What may stand for an argument or the value of an option: one of some words, several with commas between them, a file,
 * a directory, a variable of the environment, a program with its arguments, or any text.
 */
export type ValueKind =
  | { readonly kind: 'words' | 'list'; readonly words: readonly string[] }
  | { readonly kind: 'file' | 'directory' | 'variable' | 'command' | 'text' };

/** Words that are checked later than by the parser, so that commander does not know them. */
export const WORDS_OF_OPTIONS: Readonly<Record<string, ValueKind>> = {
  '--profile': { kind: 'words', words: PROFILES.map(({ name }) => name) },
  '--taint': { kind: 'list', words: TAINTS },
};

/** By what stands between the angle brackets, for options and arguments. */
const KIND_OF_NAME: Readonly<Record<string, ValueKind>> = {
  dir: { kind: 'directory' },
  file: { kind: 'file' },
  path: { kind: 'file' },
  'name[=value]': { kind: 'variable' },
  command: { kind: 'command' },
  taint: { kind: 'words', words: TAINTS },
};

/** What a value may be. `choices` as commander knows them. */
export function valueKind(name: string, choices: readonly string[] | undefined, option = ''): ValueKind {
  if (choices !== undefined) return { kind: 'words', words: choices };
  return WORDS_OF_OPTIONS[option] ?? KIND_OF_NAME[name] ?? { kind: 'text' };
}
