import type { SimpleCommand, Word } from '../../model/command-line.ts';
import type { Reach, Risk } from '../../model/decision.ts';
import type { Behaviour, Effect, Program } from './behaviour.ts';

/** A word of a command, or what is left of it behind an option's name. */
export interface Argument {
  readonly word: Word;
  /** Where it begins in the literal text of the word. */
  readonly start: number;
  /** The text that is known: all of it, or what stands before the first expansion. */
  readonly text: string;
  /** False if an expansion follows. */
  readonly complete: boolean;
}

/** An option that was recognised. */
export interface OptionUse {
  /** As in the table, without dashes. */
  readonly name: string;
  readonly effect: Effect;
  readonly value: Argument | undefined;
  /** It changes the files of the operands; its value is no path. */
  readonly inPlace: boolean;
  readonly word: Word;
}

/** What a command means to its program: verb, options, operands. */
export interface Use {
  readonly command: SimpleCommand;
  readonly program: Program;
  /** The verbs found, outermost first: `['stash', 'drop']`. */
  readonly verbs: readonly string[];
  /** Of the innermost verb. */
  readonly behaviour: Behaviour;
  readonly risk: Risk;
  readonly reach: Reach;
  readonly options: readonly OptionUse[];
  readonly operands: readonly Argument[];
  /** Index in `operands` of the first one behind `--`. */
  readonly afterDashes: number;
  /** Words that look like options and are not in the table. */
  readonly unknown: readonly Word[];
  /** Dynamic words that may turn out to be options. */
  readonly openEnded: readonly Word[];
}

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
