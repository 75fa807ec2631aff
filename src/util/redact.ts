import { looksSecret, looksSecretOption } from './secret-name.ts';

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
 * others, too. By pattern, so it finds what looks like a secret and nothing else. Time is linear in the length of a text:
 * each pattern starts only where a run of its characters begins.
 */
export function createRedactor(): Redactor {
  const found = new Set<string>();
  const take = (secret: string): string => {
    if (secret.length >= SHORTEST_REMEMBERED && found.size < MOST_REMEMBERED && !secret.includes(REDACTED))
      found.add(secret);
    return REDACTED;
  };
  const known = (text: string): string => {
    let rest = text;
    for (const secret of found) if (rest.includes(secret)) rest = rest.replaceAll(secret, REDACTED);
    return rest;
  };
  const byPattern = (text: string): string =>
    TAKERS.reduce((rest, taker) => taker(rest, take), withoutPrivateKeys(text, take));
  return {
    text: (text) => known(byPattern(text)),
    words: (words) => {
      const redacted = words.map((word, index) =>
        !word.startsWith('-') && isSecretOption(words[index - 1] ?? '') ? take(word) : byPattern(word),
      );
      return redacted.map(known);
    },
  };
}

type Taker = (text: string, take: (secret: string) => string) => string;

/** Shapes that are secrets wherever they stand. A prefix that says whose it is stays. */
const SHAPES = new RegExp(
  `(?<![A-Za-z0-9_-])(?:${[
    '(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])',
    '(gh[pousr]_)[A-Za-z0-9]{20,}',
    '(github_pat_)\\w{20,}',
    '(glpat-|gldt-|glrt-)[\\w-]{20,}',
    '(xox[abeoprs]-|xapp-)[\\w-]{10,}',
    '(sk-ant-|sk-proj-|sk-or-|sk-)[\\w-]{16,}',
    '((?:sk|rk|pk)_(?:live|test)_)\\w{10,}',
    '(AIza)[\\w-]{30,}',
    '(ya29\\.)[\\w-]{20,}',
    '(npm_)[A-Za-z0-9]{30,}',
    '(pypi-)[\\w-]{30,}',
    '(hf_)[A-Za-z0-9]{20,}',
    '(dop_v1_|doo_v1_)[a-f0-9]{32,}',
    '(SG\\.)[\\w-]{16,}\\.[\\w-]{16,}',
    '(AGE-SECRET-KEY-1)[A-Z0-9]{20,}',
    '(eyJ)[\\w-]{6,}\\.[\\w-]{4,}(?:\\.[\\w-]*)?',
  ].join('|')})`,
  'g',
);

const HEADER =
  /(?<![\w-])((?:proxy-)?authorization["']?\s{0,4}[:=]\s{0,4}["']?(?:(?:bearer|basic|token|digest|negotiate|apikey)[\s\\]{1,4})?)([^\s"']+)/gi;
const COOKIE = /(?<![\w-])((?:set-)?cookie["']?:\s{0,4})([^"'\r\n]+)/gi;
const BEARER = /(?<![\w-])(bearer\s{1,4})([\w.~+/=-]{16,})/gi;
const SLACK_HOOK = /(hooks\.slack\.com\/(?:services|workflows)\/)([\w/-]+)/g;
/** `//user:password@`; up to the last `@` of the authority, because people do not encode theirs. */
const URL_PASSWORD = /(:\/\/[^\s/:@"'<>]*:)([^\s/"'<>]+)(?=@)/g;
/** A token in place of the user: only a long one is no name. */
const URL_TOKEN = /(:\/\/)([^\s/:@"'<>]{20,})(?=@)/g;
const USER_PASSWORD = /((?:^|\s)(?:-u|-U|--user|--proxy-user)[ =]?["']?)([^\s:"'=]{1,128}):([^\s"']+)/g;
const PROGRAM_PASSWORD =
  /(?<![\w-])((?:sshpass\s{1,4}-p|(?:mysql|mysqldump|mysqladmin|mariadb)\b[^\n;|&]{0,200}?\s-p)\s?["']?)([^\s"']+)/g;
const OPENSSL_PASSWORD = /(?<![\w-])(pass:)([^\s"']+)/g;
/** `NAME=value`, `--name=value`, `"name": "value"`. */
const ASSIGNMENT =
  /(?<![\w.-])(-{0,2})([A-Za-z_][\w.-]{0,63})(\\?["']?\s{0,4}[:=]\s{0,4}\\?)("(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"';&|)}<>,\\]+)/g;
const OPTION =
  /(?<![\w.-])(--?[A-Za-z][\w-]{0,63})([ \t]{1,8})("(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s"'-][^\s"']*)/g;

const TAKERS: readonly Taker[] = [
  (text, take) => text.replace(HEADER, (_, kept, secret) => kept + take(secret)),
  (text, take) => text.replace(COOKIE, (_, kept, secret) => kept + take(secret)),
  (text, take) => text.replace(BEARER, (_, kept, secret) => kept + take(secret)),
  (text, take) => text.replace(SLACK_HOOK, (_, kept, secret) => kept + take(secret)),
  (text, take) => text.replace(URL_PASSWORD, (_, kept, secret) => kept + take(secret)),
  (text, take) => text.replace(URL_TOKEN, (_, kept, secret) => kept + take(secret)),
  (text, take) =>
    text.replace(USER_PASSWORD, (all, kept, user, secret) =>
      // `docker run -u 1000:1000`
      /^\d+$/.test(user) ? all : `${kept}${user}:${take(secret)}`,
    ),
  (text, take) => text.replace(PROGRAM_PASSWORD, (_, kept, secret) => kept + take(secret)),
  (text, take) => text.replace(OPENSSL_PASSWORD, (_, kept, secret) => kept + take(secret)),
  (text, take) => text.replace(SHAPES, (all, ...groups) => shapePrefix(groups) + rest(all, groups, take)),
  (text, take) =>
    text.replace(ASSIGNMENT, (all, dashes, name, sign, value) =>
      namesSecret(dashes, name, sign) && !isReference(value)
        ? `${dashes}${name}${sign}${quoted(value, take)}`
        : all,
    ),
  (text, take) =>
    text.replace(OPTION, (all, option, space, value) =>
      isSecretOption(option) && !isReference(value) ? `${option}${space}${quoted(value, take)}` : all,
    ),
];

function shapePrefix(groups: readonly unknown[]): string {
  return String(groups.find((group) => typeof group === 'string') ?? '');
}

function rest(all: string, groups: readonly unknown[], take: (secret: string) => string): string {
  return take(all.slice(shapePrefix(groups).length));
}

function quoted(value: string, take: (secret: string) => string): string {
  const quote = value.startsWith('"') || value.startsWith("'") ? value.charAt(0) : '';
  const closed = quote !== '' && value.length > 1 && value.endsWith(quote);
  const inner = value.slice(quote.length, closed ? -1 : undefined);
  return inner === '' ? value : `${quote}${take(inner)}${closed ? quote : ''}`;
}

/** Names of places and of people, not of secrets. */
const NOT_SECRET = /(?:_FILE|_PATH|_DIR|_SOCK|_NAME|_EMAIL|_DATE|_URL|^XAUTHORITY)$/;

function namesSecret(dashes: string, name: string, sign: string): boolean {
  if (looksSecretOption(name)) return true;
  // A variable: the whole table that decides what commands inherit.
  return (
    dashes === '' &&
    sign === '=' &&
    /^[A-Z_][A-Z0-9_]*$/.test(name) &&
    looksSecret(name) &&
    !NOT_SECRET.test(name)
  );
}

function isSecretOption(word: string): boolean {
  const name = /^--?([A-Za-z][\w-]{0,63})$/.exec(word)?.[1];
  // `-p` and its like mean too many things.
  return name !== undefined && name.length > 2 && looksSecretOption(name);
}

/** `$TOKEN`, `${TOKEN}`, `$(pass show x)`: where the secret comes from, not the secret. */
function isReference(value: string): boolean {
  return /^"?\$(?:[A-Z_][A-Z0-9_]*"?$|\{[A-Z_][A-Z0-9_]*\}"?$|\()/.test(value);
}

const KEY_BEGIN = '-----BEGIN ';
const KEY_END = '-----END ';

/** Blocks of private keys, whose first line stays; by hand, because one without an end reaches to the end of the text. */
function withoutPrivateKeys(text: string, take: (secret: string) => string): string {
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
