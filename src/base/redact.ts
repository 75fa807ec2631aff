import { markCommand, markPiped, mayMark } from './secret-command.ts';
import { type Found, HINT, SECRET_PATTERNS } from './secret-patterns.ts';

/** What stands in place of a secret. */
const REDACTED = '[redacted]';

/** Shorter ones are not looked for elsewhere: they occur by chance. */
const SHORTEST_REMEMBERED = 6;
const MOST_REMEMBERED = 64;
/** A text in a word of a command in a word of a command …; what is quoted more often is not looked into. */
const DEEPEST = 5;

/** Takes secrets out of texts that belong together. */
export interface Redactor {
  /** Takes out what looks like a secret, and every secret that was found before. */
  text(text: string): string;
  /** The same for the words of a command, where the value of an option is the next word. */
  words(words: readonly string[]): readonly string[];
}

/** Takes secrets out of one text. */
export function redact(text: string): string {
  return createRedactor().text(text);
}

/**
 * A redactor that remembers: a secret that is told by its surroundings in one text (`--password X`) is taken out of the
 * others, too. By pattern, so it finds what looks like a secret and nothing else. Time is linear in the length of a text.
 */
export function createRedactor(): Redactor {
  const remembered = new Set<string>();
  const remember = (secret: string) => {
    if (
      secret.length >= SHORTEST_REMEMBERED &&
      remembered.size < MOST_REMEMBERED &&
      !secret.includes(REDACTED)
    )
      remembered.add(secret);
  };
  const withoutKnown = (text: string): string => {
    let rest = text;
    for (const secret of remembered) if (rest.includes(secret)) rest = rest.replaceAll(secret, REDACTED);
    return rest;
  };
  return {
    text: (text) => {
      const parts: Part[] = [];
      findInText(text, (from, to) => parts.push([from, to]), remember, 0);
      return withoutKnown(withoutParts(text, parts));
    },
    words: (words) => {
      const parts = words.map((): Part[] => []);
      const command = { words: words.map((word) => plainWord(word)), piped: false };
      findInCommand(command, undefined, (word, from, to) => void parts[word]?.push([from, to]), remember);
      for (const [index, word] of words.entries())
        findInText(word, (from, to) => parts[index]?.push([from, to]), remember, 1);
      return words.map((word, index) => withoutParts(word, parts[index] ?? [])).map(withoutKnown);
    },
  };
}

type Part = readonly [from: number, to: number];
type Remember = (secret: string) => void;

/** In the text, in the commands it may consist of, and in the texts that are words of those. */
function findInText(text: string, found: Found, remember: Remember, depth: number): void {
  const isHinted = HINT.test(text);
  for (const { mayMatch, find } of SECRET_PATTERNS) {
    if (!mayMatch(text, isHinted)) continue;
    find(text, (from, to) => {
      remember(text.slice(from, to));
      found(from, to);
    });
  }
  if (!isHinted && !mayMark(text)) return;
  const commands = lexCommands(text);
  for (const [index, command] of commands.entries()) {
    const { words } = command;
    const foundInWord = (word: LexedWord | undefined, from: number, to: number) => {
      if (word !== undefined && to > from) found(...word.place(from, to));
    };
    findInCommand(command, commands[index + 1], (at, from, to) => foundInWord(words[at], from, to), remember);
    if (depth >= DEEPEST) continue;
    for (const word of words) {
      const { value } = word;
      // A value without a separator has been examined as a word.
      if (!/[\s"'`\\()|;&]/.test(value)) continue;
      findInText(value, (from, to) => foundInWord(word, from, to), remember, depth + 1);
      // `OPTIONS="--token X"`
      const head = /^(?:[\w.-]{1,64}=){1,3}/.exec(value)?.[0].length ?? 0;
      if (head > 0 && depth + 1 < DEEPEST)
        findInText(
          value.slice(head),
          (from, to) => foundInWord(word, head + from, head + to),
          remember,
          DEEPEST,
        );
    }
  }
}

function findInCommand(
  { words, piped }: LexedCommand,
  next: LexedCommand | undefined,
  found: (word: number, from: number, to: number) => void,
  remember: Remember,
): void {
  const values = words.map(({ value }) => value);
  const mark = (index: number, from: number, to = values[index]?.length ?? 0) => {
    if (to <= from) return;
    remember((values[index] ?? '').slice(from, to));
    found(index, from, to);
  };
  markCommand(words, mark);
  if (piped && next !== undefined)
    markPiped(
      values,
      next.words.map(({ value }) => value),
      mark,
    );
}

function withoutParts(text: string, parts: readonly Part[]): string {
  let done = '';
  let at = 0;
  for (const [from, to] of parts.toSorted(([a], [b]) => a - b)) {
    if (to <= at) continue;
    // What overlaps or follows at once is the same secret.
    if (from > at || at === 0) done += text.slice(at, from) + REDACTED;
    at = to;
  }
  return done + text.slice(at);
}

/** A word of a command: what the program is given, and where each of its characters was written. */
interface LexedWord {
  readonly value: string;
  /** The word may contain a command: it was quoted from its beginning, or comes from an argument vector. */
  readonly mayBeText: boolean;
  /** The place in the text of a part of the value; whole quotes, if the part reaches over one of their ends. */
  place(from: number, to: number): readonly [from: number, to: number];
}

/** The words between two separators. */
interface LexedCommand {
  readonly words: readonly LexedWord[];
  /** Its output is what the next one reads. */
  readonly piped: boolean;
}

interface Quote {
  readonly from: number;
  to: number;
}

/** A word that has no quotes in it. */
function plainWord(value: string, offset = 0): LexedWord {
  return { value, mayBeText: true, place: (from, to) => [offset + from, offset + to] };
}

/**
 * Splits a text as a shell would, as far as it matters for finding secrets: nothing is expanded, no text is an error, and
 * what a quote without an end leaves open is one word. Linear in the length of the text.
 */
function lexCommands(text: string): readonly LexedCommand[] {
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
