import type { Word } from '../model/command-line.ts';
import type { Argument, Use } from './behaviour.ts';

export type { Argument, OptionUse, Use } from './behaviour.ts';

/** True if the option is used, under any of its names (separated by blanks). */
export function hasOption(use: Use, names: string): boolean {
  const wanted = names.split(' ');
  return use.options.some((option) => wanted.includes(option.name));
}

/** The literal text at the beginning of a word; all of it if the word is static. */
export function leadingText(word: Word): string {
  if (word.value !== undefined) return word.value;
  let text = '';
  for (const part of word.parts) {
    if (part.kind !== 'literal') {
      // Not an option, whatever follows.
      return part.kind === 'tilde' ? `${text}~${part.user}` : text;
    }
    text += part.text;
  }
  return text;
}

/** A whole word as an argument. */
export function argumentOf(word: Word, start = 0): Argument {
  const text = leadingText(word);
  return { word, start, text: start === 0 ? text : text.slice(start), complete: word.value !== undefined };
}
