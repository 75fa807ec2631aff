import { looksSecret, looksSecretOption } from './secret-name.ts';

/** Given a secret, says what stands in its place. */
export type Take = (secret: string) => string;

/** One way in which a secret can be recognized. */
export interface SecretPattern {
  /** Quick: false if the pattern cannot match. Most commands have nothing of what makes a secret. */
  readonly mayMatch: (text: string, hinted: boolean) => boolean;
  /** Linear in the length of the text: a match starts only where a run of its characters begins. */
  readonly replace: (text: string, take: Take) => string;
}

/** Part of every name that says that a secret follows. Broader than those names. */
export const HINT =
  /key|secret|token|pass|pwd|credential|auth|private|cookie|session|pat|dsn|connection|bearer|mysql|mariadb/i;

/** Shapes that are secrets wherever they stand. A prefix that says whose it is stays. */
const SHAPES = new RegExp(
  `(?<![A-Za-z0-9_-])(?:${[
    '(AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])',
    '(gh[pousr]_)[A-Za-z0-9]{20,}',
    '(github_pat_)\\w{20,}',
    '(glpat-|gldt-|glrt-)[\\w-]{20,}',
    '(xox[abeoprs]-|xapp-)[\\w-]{11,}',
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
    '(eyJ)[\\w-]{13,}\\.[\\w-]{4,}(?:\\.[\\w-]*)?',
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

const hinted = (_: string, isHinted: boolean) => isHinted;
const has = (mark: string) => (text: string) => text.includes(mark);
const simple = (pattern: RegExp) => (text: string, take: Take) =>
  text.replace(pattern, (_, kept: string, secret: string) => kept + take(secret));

/** THE table of patterns, applied in this order. */
export const SECRET_PATTERNS: readonly SecretPattern[] = [
  { mayMatch: hinted, replace: simple(HEADER) },
  { mayMatch: hinted, replace: simple(COOKIE) },
  { mayMatch: hinted, replace: simple(BEARER) },
  { mayMatch: has('hooks.slack.com/'), replace: simple(SLACK_HOOK) },
  { mayMatch: has('://'), replace: simple(URL_PASSWORD) },
  { mayMatch: has('://'), replace: simple(URL_TOKEN) },
  { mayMatch: (text) => /-(?:u|U|-user|-proxy-user)/.test(text), replace: replaceUserPassword },
  { mayMatch: hinted, replace: simple(PROGRAM_PASSWORD) },
  { mayMatch: has('pass:'), replace: simple(OPENSSL_PASSWORD) },
  { mayMatch: (text) => /[\w-]{16}/.test(text), replace: replaceShapes },
  { mayMatch: hinted, replace: replaceAssignments },
  { mayMatch: hinted, replace: replaceOptions },
];

function replaceUserPassword(text: string, take: Take): string {
  return text.replace(USER_PASSWORD, (all, kept, user, secret) =>
    // `docker run -u 1000:1000`
    /^\d+$/.test(user) ? all : `${kept}${user}:${take(secret)}`,
  );
}

function replaceShapes(text: string, take: Take): string {
  return text.replace(SHAPES, (all, ...groups) => {
    const prefix = String(groups.find((group) => typeof group === 'string') ?? '');
    return prefix + take(all.slice(prefix.length));
  });
}

function replaceAssignments(text: string, take: Take): string {
  return text.replace(ASSIGNMENT, (all, dashes, name, sign, value) =>
    namesSecret(dashes, name, sign) && !isReference(value)
      ? `${dashes}${name}${sign}${quoted(value, take)}`
      : all,
  );
}

function replaceOptions(text: string, take: Take): string {
  return text.replace(OPTION, (all, option, space, value) =>
    isSecretOption(option) && !isReference(value) ? `${option}${space}${quoted(value, take)}` : all,
  );
}

function quoted(value: string, take: Take): string {
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

/** `--password`: the next word is a secret. */
export function isSecretOption(word: string): boolean {
  const name = /^--?([A-Za-z][\w-]{0,63})$/.exec(word)?.[1];
  // `-p` and its like mean too many things.
  return name !== undefined && name.length > 2 && looksSecretOption(name);
}

/** `$TOKEN`, `${TOKEN}`, `$(pass show x)`: where the secret comes from, not the secret. */
function isReference(value: string): boolean {
  return /^"?\$(?:[A-Z_][A-Z0-9_]*"?$|\{[A-Z_][A-Z0-9_]*\}"?$|\()/.test(value);
}
