import type { Word } from '../model/command-line.ts';

/** What expansions that are known beforehand stand for. */
interface KnownValues {
  readonly home: string;
  readonly cwd: string | undefined;
}

/** One thing a word may become. */
interface WordText {
  readonly text: string;
  /** False if an expansion follows of which nothing is known. */
  readonly complete: boolean;
}

const MOST_TEXTS = 64;

/**
 * What a word may become: `~` and `$HOME` resolved, braces expanded, patterns left as they are. `undefined`: it names
 * the home directory of another user.
 */
export function wordTexts(word: Word, known: KnownValues): readonly WordText[] | undefined {
  if (word.value !== undefined) return [{ text: word.value, complete: true }];
  let texts: WordText[] = [{ text: '', complete: true }];
  const append = (...suffixes: readonly string[]): void => {
    texts = texts
      .flatMap((old) =>
        old.complete ? suffixes.map((suffix) => ({ ...old, text: old.text + suffix })) : [old],
      )
      .slice(0, MOST_TEXTS);
  };
  for (const part of word.parts) {
    switch (part.kind) {
      case 'literal':
      case 'glob':
        append(part.text);
        break;
      case 'tilde':
        if (part.user === '+' && known.cwd !== undefined) append(known.cwd);
        else if (part.user === '') append(known.home);
        else return undefined;
        break;
      case 'brace':
        append(...alternatives(part.text));
        break;
      case 'parameter': {
        const value = !part.plain
          ? undefined
          : part.name === 'HOME'
            ? known.home
            : part.name === 'PWD'
              ? known.cwd
              : undefined;
        if (value !== undefined) append(value);
        else texts = texts.map((old) => ({ ...old, complete: false }));
        break;
      }
      case 'arithmetic':
      case 'command-substitution':
      case 'process-substitution':
      case 'input':
        texts = texts.map((old) => ({ ...old, complete: false }));
        break;
    }
  }
  return texts;
}

/** `{a,b}` gives `a` and `b`; nested braces and ranges stay as they are written, which no file is called. */
function alternatives(brace: string): readonly string[] {
  if (!brace.startsWith('{') || !brace.endsWith('}')) return [brace];
  const inner = brace.slice(1, -1);
  return /[{}"'\\]/.test(inner) || !inner.includes(',') ? [brace] : inner.split(',');
}
