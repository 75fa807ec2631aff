/** A word of a command: what the program is given, and where each of its characters was written. */
export interface LexedWord {
  readonly value: string;
  /** It was quoted from its beginning, or was never written for a shell: it may be a command of its own. */
  readonly mayBeText: boolean;
  /** The place in the text of a part of the value; whole quotes, if the part reaches over one of their ends. */
  place(from: number, to: number): readonly [from: number, to: number];
}

/** The words between two separators. */
export interface LexedCommand {
  readonly words: readonly LexedWord[];
  /** Its output is what the next one reads. */
  readonly piped: boolean;
}

interface Quote {
  readonly from: number;
  to: number;
}

/** A word that has no quotes in it. */
export function plainWord(value: string, offset = 0): LexedWord {
  return { value, mayBeText: true, place: (from, to) => [offset + from, offset + to] };
}

/**
 * Splits a text as a shell would, as far as it matters for finding secrets: nothing is expanded, no text is an error, and
 * what a quote without an end leaves open is one word. Linear in the length of the text.
 */
export function lexCommands(text: string): readonly LexedCommand[] {
  const commands: LexedCommand[] = [];
  let words: LexedWord[] = [];
  let at = 0;
  while (at < text.length) {
    const character = text.charAt(at);
    if (SEPARATORS.includes(character)) {
      const twice = text.charAt(at + 1) === character;
      if (words.length > 0) commands.push({ words, piped: character === '|' && !twice });
      words = [];
      at += twice ? 2 : 1;
    } else if (BETWEEN.includes(character)) at += 1;
    else {
      const [word, end] = lexWord(text, at);
      words.push(word);
      at = end;
    }
  }
  if (words.length > 0) commands.push({ words, piped: false });
  return commands;
}

const SEPARATORS = '\n\r;|&()`';
const BETWEEN = ' \t\v\f<>';
const PLAIN = /[^\s;|&()`<>'"\\$]+/y;

function lexWord(text: string, begin: number): readonly [LexedWord, number] {
  PLAIN.lastIndex = begin;
  const plain = PLAIN.exec(text)?.[0] ?? '';
  const after = begin + plain.length;
  // Most words have no quotes.
  if (after === text.length || isOutside(text.charAt(after))) return [plainWord(plain, begin), after];
  return lexQuoted(text, begin);
}

function isOutside(character: string): boolean {
  return SEPARATORS.includes(character) || BETWEEN.includes(character);
}

function lexQuoted(text: string, begin: number): readonly [LexedWord, number] {
  const characters: string[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  const quotes: (Quote | undefined)[] = [];
  let quote: Quote | undefined;
  const put = (from: number, to: number) => {
    characters.push(text.charAt(to - 1));
    starts.push(from);
    ends.push(to);
    quotes.push(quote);
  };
  let at = begin;
  for (; at < text.length; ) {
    const character = text.charAt(at);
    if (isOutside(character)) break;
    const isDollar = character === '$' && /["']/.test(text.charAt(at + 1));
    const mark = isDollar ? text.charAt(at + 1) : character;
    if (mark === '"' || mark === "'") {
      quote = { from: at, to: text.length };
      at += isDollar ? 2 : 1;
      const escapes = mark === '"' || isDollar;
      while (at < text.length && text.charAt(at) !== mark) {
        const isEscape =
          escapes &&
          text.charAt(at) === '\\' &&
          at + 1 < text.length &&
          (isDollar || /["\\$`]/.test(text.charAt(at + 1)));
        put(at, at + (isEscape ? 2 : 1));
        at += isEscape ? 2 : 1;
      }
      at = Math.min(text.length, at + 1);
      quote.to = at;
      quote = undefined;
    } else if (character === '\\' && at + 1 < text.length) {
      if (text.charAt(at + 1) !== '\n') put(at, at + 2);
      at += 2;
    } else {
      put(at, at + 1);
      at += 1;
    }
  }
  const place = (from: number, to: number): readonly [number, number] => {
    const first = quotes[from];
    const last = quotes[to - 1];
    const isWithin = first === last;
    const start = starts[from] ?? begin;
    const end = ends[to - 1] ?? start;
    return [isWithin ? start : (first?.from ?? start), isWithin ? end : (last?.to ?? end)];
  };
  return [{ value: characters.join(''), mayBeText: quotes[0] !== undefined, place }, at];
}
