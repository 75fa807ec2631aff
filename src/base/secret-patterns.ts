import { findInAddresses } from './secret-address.ts';
import {
  isRandom,
  isReference,
  isTrivial,
  looksSecretOption,
  looksSecretParameter,
  looksSecretVariable,
} from './secret-name.ts';

/** Says that a part of a text is a secret. */
export type Found = (from: number, to: number) => void;

/** One way in which a secret can be recognized. */
interface SecretPattern {
  /** Quick: false if the pattern cannot match. Most commands have nothing of what makes a secret. */
  readonly mayMatch: (text: string, hinted: boolean) => boolean;
  /** Linear in the length of the text: a match starts only where a run of its characters begins. */
  readonly find: (text: string, found: Found) => void;
}

/** Part of every name that says that a secret follows. Broader than those names. */
export const HINT =
  /key|secret|token|pass|pwd|cred|auth|private|cookie|session|pat|dsn|connection|bearer|jwt|sig/i;

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

const SCHEMES = 'bearer|basic|token|digest|negotiate|apikey|ntlm';
/** With a scheme, which stays if it is a known one: up to the end of the line, as some have several parameters. */
const HEADER = new RegExp(
  `(?<![\\w-])((?:proxy-)?authorization["']?\\s{0,4}[:=](?:\\s{1,4}["']?|\\s{0,4}["'])(?:(?:${SCHEMES})\\s{1,4})?)([^\\s"'\\\\$][^"'\\r\\n|;&<>]*)`,
  'gi',
);
const HEADER_WORD = /(?<![\w-])((?:proxy-)?authorization[:=])([^\s"'\\$]+)/gi;
const COOKIE = /(?<![\w-])((?:set-)?cookie["']?:\s{0,4}["']?)([^\s"'][^"'\r\n]*)/gi;
const BEARER = /(?<![\w-])(bearer\s{1,4})([\w.~+/=-]{16,})/gi;
const SLACK_HOOK = /(hooks\.slack\.com\/(?:services|workflows)\/)([\w/-]+)/g;
/** `//user:password@`; up to the last `@` of the authority, because people do not encode theirs. */
const URL_PASSWORD = /(:\/\/[^\s/:@"'<>]*:)([^\s/"'<>]+)(?=@)/g;
/** Before a password that says nothing, the user is the secret. */
const URL_USER = /([\w+.-]{0,16}:\/\/)([^\s/:@"'<>?#]+)(?=@|:(?:x-oauth-basic)?@)/g;
const PARAMETER = /([?&#;]([A-Za-z][\w.-]{0,63})=)([^&\s"'#;<>]+)/g;
const OPENSSL_PASSWORD = /(?<![\w-])(pass:)([^\s"']+)/g;
const KEY_BEGIN = '-----BEGIN ';
const KEY_END = '-----END ';

const hinted = (_: string, isHinted: boolean) => isHinted;
const has = (mark: string) => (text: string) => text.includes(mark);

/** A pattern whose first group stays. `accept` is given the groups. */
const after = (pattern: RegExp, accept: (...groups: readonly string[]) => boolean = () => true) => {
  return (text: string, found: Found) => {
    for (const match of text.matchAll(pattern)) {
      const [all, ...groups] = match;
      if (accept(...groups)) found(match.index + (groups[0]?.length ?? 0), match.index + all.length);
    }
  };
};

/** THE table of what tells a secret in any text; see `markCommand` for what only the words of a command tell. */
export const SECRET_PATTERNS: readonly SecretPattern[] = [
  { mayMatch: hinted, find: after(HEADER, isHeader) },
  { mayMatch: hinted, find: after(HEADER_WORD, (_, value = '') => !isScheme(value)) },
  { mayMatch: hinted, find: after(COOKIE, (_, value = '') => value.includes('=')) },
  { mayMatch: hinted, find: after(BEARER) },
  { mayMatch: has('hooks.slack.com/'), find: after(SLACK_HOOK) },
  { mayMatch: has('://'), find: after(URL_PASSWORD) },
  { mayMatch: has('://'), find: after(URL_USER, (scheme = '', user = '') => !isUser(scheme, user)) },
  { mayMatch: has('://'), find: findInAddresses },
  { mayMatch: hinted, find: after(PARAMETER, (_, name = '', value = '') => isParameter(name, value)) },
  { mayMatch: has('pass:'), find: after(OPENSSL_PASSWORD) },
  { mayMatch: (text) => /[\w-]{16}/.test(text), find: findShapes },
  { mayMatch: hinted, find: findAssignments },
  { mayMatch: has(KEY_BEGIN), find: findPrivateKeys },
];

/** True if a text has a private key in it, or what is a key by its shape, whatever it is called. */
export function holdsKnownKey(text: string): boolean {
  let isFound = false;
  const found = () => {
    isFound = true;
  };
  findShapes(text, found);
  if (!isFound) findPrivateKeys(text, found);
  return isFound;
}

function isScheme(value: string): boolean {
  return new RegExp(`^(?:${SCHEMES})(?![\\w-])`, 'i').test(value);
}

/** `authorization: fix the flow` is prose. */
function isHeader(head = '', value = ''): boolean {
  if (isScheme(value)) return false;
  return /^[AP]|["']|\w\s+$/.test(head) || isRandom(value);
}

/** A plain name; where keys are used to log in, whatever is not long. */
function isUser(scheme: string, user: string): boolean {
  return /ssh|sftp|rsync/.test(scheme) ? user.length < 20 : /^[A-Za-z][A-Za-z_.-]{0,11}$/.test(user);
}

function isParameter(name: string, value: string): boolean {
  if (isTrivial(value) || isReference(value)) return false;
  return name === 'key' ? isRandom(value) : looksSecretParameter(name);
}

function findShapes(text: string, found: Found): void {
  for (const match of text.matchAll(SHAPES)) {
    const { index } = match;
    const [all, ...groups] = match;
    const kept = groups.find((group) => typeof group === 'string') ?? '';
    const key = all.slice(kept.length);
    // What people name `sk-` has no digits or no capitals.
    const isName =
      kept.startsWith('sk-') &&
      (!/\d/.test(key) ||
        (kept === 'sk-' && !/^[a-f0-9]{32,}$/.test(key) && !/^(?=.*[A-Z]).{20,}$/.test(key)));
    if (!isName) found(index + kept.length, index + all.length);
  }
}

/** `NAME=value`, `name = value`, `"name": "value"`. */
const NAME = /(?<![\w./-])(-{0,2})([A-Za-z_][\w.-]{0,63})(\\?["']?)(\s{0,4}[:=])(\s{0,4})\\?/g;
const VALUE = /"(?!\s)(?:[^"\\]|\\.)*"?|'(?!\s)[^']*'?|[^\s"';&|)}<>,\\]+/y;

function findAssignments(text: string, found: Found): void {
  NAME.lastIndex = 0;
  for (let match = NAME.exec(text); match !== null; match = NAME.exec(text)) {
    const [, dashes = '', name = '', quote = '', sign = '', space = ''] = match;
    const isVariable = dashes === '' && sign === '=' && /^[A-Z_][A-Z0-9_]*$/.test(name);
    if (!looksSecretOption(name) && !(isVariable && looksSecretVariable(name))) continue;
    const from = NAME.lastIndex;
    VALUE.lastIndex = from;
    const value = VALUE.exec(text)?.[0] ?? '';
    // Nothing is looked at twice.
    NAME.lastIndex = from + value.length;
    const mark = /^["']/.exec(value)?.[0] ?? '';
    const isClosed = mark !== '' && value.length > 1 && value.endsWith(mark);
    const inner = value.slice(mark.length, isClosed ? -1 : undefined);
    // A brace ends a value, and belongs to one that says where the secret comes from.
    if (inner === '' || isReference(value) || isReference(`${value}}`)) continue;
    const isOne = sign.endsWith('=')
      ? !isTrivial(inner)
      : mark === ''
        ? isRandom(inner) || (name.includes('-') && /^(?:x-|[A-Z])/.test(name))
        : quote !== '' || space !== '';
    if (isOne) found(from + mark.length, from + mark.length + inner.length);
  }
}

/** Blocks of private keys, whose first line stays; one without an end reaches to the end of the text. */
function findPrivateKeys(text: string, found: Found): void {
  for (let begin = text.indexOf(KEY_BEGIN); begin !== -1; ) {
    const titleBegin = begin + KEY_BEGIN.length;
    const title = text.slice(titleBegin, titleBegin + 64);
    const length = title.indexOf('-----');
    if (length === -1 || !title.slice(0, length).includes('PRIVATE KEY')) {
      begin = text.indexOf(KEY_BEGIN, titleBegin);
      continue;
    }
    const body = titleBegin + length + 5;
    const end = text.indexOf(KEY_END, body);
    found(body, end === -1 ? text.length : end);
    begin = end === -1 ? -1 : text.indexOf(KEY_BEGIN, end);
  }
}
