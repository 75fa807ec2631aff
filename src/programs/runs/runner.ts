import type { NotUnderstoodCode, Word } from '../../model/command-line.ts';

/** Something that a runner runs. */
export type Run =
  | {
      readonly kind: 'argv';
      readonly words: readonly Word[];
      /** The shell itself looks the name up: builtins and not only programs. */
      readonly inShell?: boolean;
      readonly directory?: Word | 'unknown';
    }
  | {
      readonly kind: 'text';
      /** Joined by blanks. */
      readonly text: readonly Word[];
      readonly dialect: Dialect;
      /** The text runs in the shell that reads the command, as with eval. */
      readonly sameShell?: boolean;
      readonly directory?: Word | 'unknown';
    };

/** The shell that reads an inner text; `posix`: any `sh`, or one that is not known. */
export type Dialect = 'bash' | 'posix' | 'zsh';

/** A runner whose words are not understood. */
interface Refusal {
  readonly code: NotUnderstoodCode;
  readonly message: string;
  readonly word?: Word;
}

/** A call of a runner. */
export interface Call {
  /** Name without folder. */
  readonly name: string;
  readonly words: readonly Word[];
  /** The text on its standard input, where it is known. */
  readonly input: string | undefined;
}

export type Runs = { readonly runs: readonly Run[] } | { readonly refusal: Refusal };

/** Says what a call runs; nothing at all is an empty list. */
export type Runner = (call: Call) => Runs;

export const NOTHING: Runs = { runs: [] };

export function refused(message: string, word?: Word, code: NotUnderstoodCode = 'runner'): Runs {
  return { refusal: { code, message, ...(word === undefined ? {} : { word }) } };
}

/** The words as a command of their own; none: nothing runs. */
export function runWords(words: readonly Word[], more: { readonly directory?: Word | 'unknown' } = {}): Runs {
  return words.length === 0 ? NOTHING : { runs: [{ kind: 'argv', words, ...more }] };
}
