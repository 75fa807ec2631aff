import { HINT, isSecretOption, SECRET_PATTERNS, type Take } from './secret-patterns.ts';

/** What stands in place of a secret. */
export const REDACTED = '[redacted]';

/** Shorter ones are not looked for elsewhere: they occur by chance. */
const SHORTEST_REMEMBERED = 6;
const MOST_REMEMBERED = 64;

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
  const found = new Set<string>();
  const take: Take = (secret) => {
    if (secret.length >= SHORTEST_REMEMBERED && found.size < MOST_REMEMBERED && !secret.includes(REDACTED))
      found.add(secret);
    return REDACTED;
  };
  const known = (text: string): string => {
    let rest = text;
    for (const secret of found) if (rest.includes(secret)) rest = rest.replaceAll(secret, REDACTED);
    return rest;
  };
  const byPattern = (text: string): string => {
    const isHinted = HINT.test(text);
    return SECRET_PATTERNS.reduce(
      (rest, { mayMatch, replace }) => (mayMatch(rest, isHinted) ? replace(rest, take) : rest),
      withoutPrivateKeys(text, take),
    );
  };
  return {
    text: (text) => known(byPattern(text)),
    words: (words) => {
      // What only several words together tell (`-u me:X`, `mysql -pX`) is remembered, and then known.
      byPattern(words.join(' '));
      const redacted = words.map((word, index) =>
        !word.startsWith('-') && isSecretOption(words[index - 1] ?? '') ? take(word) : byPattern(word),
      );
      return redacted.map(known);
    },
  };
}

const KEY_BEGIN = '-----BEGIN ';
const KEY_END = '-----END ';

/** Blocks of private keys, whose first line stays; by hand, because one without an end reaches to the end of the text. */
function withoutPrivateKeys(text: string, take: Take): string {
  let done = '';
  let from = 0;
  for (;;) {
    const begin = text.indexOf(KEY_BEGIN, from);
    if (begin === -1) return done + text.slice(from);
    const title = text.slice(begin + KEY_BEGIN.length, begin + KEY_BEGIN.length + 64);
    const length = title.indexOf('-----');
    if (length === -1 || !title.slice(0, length).includes('PRIVATE KEY')) {
      done += text.slice(from, begin + KEY_BEGIN.length);
      from = begin + KEY_BEGIN.length;
      continue;
    }
    const body = begin + KEY_BEGIN.length + length + 5;
    const end = text.indexOf(KEY_END, body);
    done += text.slice(from, body) + take(text.slice(body, end === -1 ? undefined : end));
    if (end === -1) return done;
    from = end;
  }
}
