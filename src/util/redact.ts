import { markCommand, markPiped, mayMark } from './secret-command.ts';
import { type LexedCommand, type LexedWord, lexCommands, plainWord } from './secret-lexer.ts';
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
      // What has nothing that divides it was seen as a word.
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
