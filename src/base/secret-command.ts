import {
  isRandom,
  isReference,
  isTrivial,
  looksSecretHeader,
  looksSecretOption,
  looksSecretVariable,
} from './secret-name.ts';

/** Says that a part of a word is a secret; up to its end if `to` is missing. */
type Mark = (word: number, from: number, to?: number) => void;

/** A word as the program is given it; see `LexedWord`. */
interface CommandWord {
  readonly value: string;
  readonly mayBeText: boolean;
}

/** A short option whose meaning depends on the program: its value is the next word or the rest of the same one. */
interface ProgramOption {
  readonly program: RegExp;
  /** The rest is the value. */
  readonly option: RegExp;
  /** Where in the value the secret begins; -1: nowhere. */
  readonly begin: (value: string) => number;
}

const whole = () => 0;
const afterColon = (value: string) => (/^\w+:\/\//.test(value) ? -1 : value.indexOf(':') + 1 || -1);
const HTTP = /curl|^(?:wget2?|https?|xh|aria2c)$/i;

/** THE table of options whose names say nothing. */
const PROGRAM_OPTIONS: readonly ProgramOption[] = [
  {
    program: HTTP,
    option: /^(?:-[sSLkfviIgjNOqR#\d]*[uUEa]|--(?:user|proxy-user|cert|auth)=?)/,
    begin: afterColon,
  },
  {
    program: HTTP,
    option: /^(?:-[sSLkfviIgjNOqR#\d]*b|--cookie=?)/,
    begin: (value) => (value.includes('=') ? 0 : -1),
  },
  { program: /^(?:mysql|mariadb|mycli|mongo|sshpass$|rar$|unrar$)/, option: /^-p/, begin: whole },
  { program: /^login$/, option: /^-p/, begin: whole },
  { program: /^secret$/, option: /^(?:-b|--body=?)/, begin: whole },
  { program: /^7z/, option: /^-p(?=.)/, begin: whole },
  { program: /^(?:zip|unzip|zipcloak|sqlcmd|bcp)$/, option: /^-P/, begin: whole },
  { program: /^redis-cli$/, option: /^-a$/, begin: whole },
  { program: /^ldap/, option: /^-w/, begin: whole },
  { program: /^lftp$/, option: /^-u/, begin: (value) => value.indexOf(',') + 1 || -1 },
  { program: /^(?:smbclient|rpcclient)$/, option: /^-U/, begin: (value) => value.indexOf('%') + 1 || -1 },
  { program: /^ssh-keygen$/, option: /^-[NP]/, begin: whole },
];

/** Quick: most words are none of them. */
const ANY_PROGRAM =
  /curl|wget|http|xh|aria2c|mysql|mariadb|mycli|mongo|sshpass|rar|login|secret|7z|zip|sqlcmd|bcp|redis|ldap|lftp|client|keygen/i;

/** False if nothing in the text is marked unless `HINT` finds something; quick, for what most commands are. */
export function mayMark(text: string): boolean {
  return text.includes('@') || text.includes('sudo') || ANY_PROGRAM.test(text);
}

const HEADER_OPTION = /^(?:-[sSLkfviIgjNOqR#\d]*H|--(?:proxy-)?header=?)/;
const SCHEME = /^(?:bearer|basic|token|digest|negotiate|apikey|ntlm)\s+(?=\S)/i;
const SETTING = new Set(['set', 'put', 'config', 'configure', 'machine']);
const READS_SECRET = /^(?:chpasswd|passwd|--password-stdin|--with-token|--passphrase-fd(?:=0)?)$/;

/** Marks what the words of one command tell about each other. Linear in their length. */
export function markCommand(words: readonly CommandWord[], mark: Mark): void {
  const options = new Set<ProgramOption>();
  let isSetting = false;
  let isEnvironment = false;
  const values = words.map(({ value }) => value);
  let previous = '';
  for (let index = 0; index < words.length; index += 1) {
    const { value: word = '', mayBeText = false } = words[index] ?? {};
    if (isSecretOption(previous) || (isSetting && isSettingOf(previous, word))) markValue(word, index, mark);
    markProgramOption({ words: values, index, options }, mark);
    if (!mayBeText || isEnvironment || !isCommandText(word, previous)) markAssignment(word, index, mark);
    markHeader(word, index, previous, mark);
    if (SETTING.has(word)) isSetting = true;
    else if (word === 'env' || word === 'export') isEnvironment = true;
    learnProgram(word, options);
    previous = word;
  }
  if (values.includes('chpasswd')) markInput(values, true, mark);
}

/** Marks what a command gives to the next one in a pipeline. */
export function markPiped(words: readonly string[], next: readonly string[], mark: Mark): void {
  const isSudo = next.includes('sudo') && next.includes('-S');
  if (isSudo || next.some((word) => READS_SECRET.test(baseName(word))))
    markInput(
      words,
      next.some((word) => baseName(word) === 'chpasswd'),
      mark,
    );
}

function markInput(words: readonly string[], hasUser: boolean, mark: Mark): void {
  const echo = words.findIndex((word) => /^(?:echo|printf|chpasswd)$/.test(baseName(word)));
  if (echo === -1) return;
  for (const [index, word] of words.entries()) {
    if (index <= echo || word.startsWith('-') || /^(?:%s|\\n)+$/.test(word) || isReference(word)) continue;
    const from = hasUser ? word.indexOf(':') + 1 : 0;
    if (!hasUser || from > 0) mark(index, from);
  }
}

/** `--password`: the next word is a secret. */
function isSecretOption(word: string): boolean {
  if (!word.startsWith('-')) return false;
  const name = /^--?([A-Za-z][\w-]{0,63})$/.exec(word)?.[1];
  // `-p` and its like mean too many things.
  return name !== undefined && name.length > 2 && looksSecretOption(name);
}

/** `config set //registry/:_authToken X`; but not `set token expiry`, which is prose. */
function isSettingOf(name: string, value: string): boolean {
  return (
    !name.startsWith('-') &&
    looksSecretOption(name.slice(-64).replace(/^.*[/:]/, '')) &&
    (/[_./:]/.test(name) || isRandom(value))
  );
}

function markValue(word: string, index: number, mark: Mark): void {
  // Another option: long, or a few letters. A secret may begin with a dash.
  if (/^--|^-[A-Za-z]{0,3}$/.test(word) || isReference(word) || /^(?:\$|true|false)$/.test(word)) return;
  mark(index, 0);
}

function baseName(word: string): string {
  return word.slice(-64).replace(/^.*\//, '');
}

function learnProgram(word: string, options: Set<ProgramOption>): void {
  if (!/^[^-=]/.test(word) || !ANY_PROGRAM.test(word)) return;
  const name = baseName(word);
  for (const option of PROGRAM_OPTIONS) if (option.program.test(name)) options.add(option);
}

interface InCommand {
  readonly words: readonly string[];
  readonly index: number;
  /** Those of the programs that were named before: also behind `sudo`, `docker exec x` and `xargs`. */
  readonly options: ReadonlySet<ProgramOption>;
}

function markProgramOption({ words, index, options }: InCommand, mark: Mark): void {
  const word = words[index] ?? '';
  if (options.size === 0 || !word.startsWith('-')) return;
  for (const { option, begin } of options) {
    const length = option.exec(word)?.[0].length;
    if (length === undefined) continue;
    const isAttached = word.length > length;
    // `--user-agent` is not `--user`.
    if (isAttached && word.startsWith('--') && !word.slice(0, length).endsWith('=')) continue;
    const value = isAttached ? word.slice(length) : (words[index + 1] ?? '');
    const from = begin(value);
    if (from === -1 || from >= value.length || isReference(value.slice(from))) continue;
    // `--name mysql -p 3306:3306`, `ssh login -p 2222`
    if (!isAttached && /^(?:[\d.]+:)?\d{1,5}(?::\d{1,5})?(?:\/\w+)?$|^-/.test(value)) continue;
    mark(isAttached ? index : index + 1, isAttached ? length + from : from);
  }
}

/** `bash -c 'TOKEN=x run'`, `ssh host 'TOKEN=x run'`: what follows is no part of the value. */
function isCommandText(word: string, previous: string): boolean {
  return /^[A-Za-z_]\w{0,63}=\S*\s/.test(word) && (!previous.startsWith('-') || /^-\w{0,8}c$/.test(previous));
}

/** `NAME=value`, `--env=NAME=value`, `-Dname=value`, `--set=a=b,name=value`. */
function markAssignment(word: string, index: number, mark: Mark): void {
  let begin = 0;
  for (let sign = word.indexOf('='); sign !== -1; sign = word.indexOf('=', begin)) {
    const segment = word.slice(Math.max(begin, sign - 80), sign);
    const [, before = '', name = ''] = /^(.*?[^\w.-])?([\w.-]{0,64})$/s.exec(segment) ?? [];
    if (namesSecret(name)) {
      const isList = before !== '' && begin > 0;
      const end = isList ? endOfItem(word, sign + 1) : word.length;
      const value = word.slice(sign + 1, end);
      if (!isTrivial(value) && !isReference(value) && !isSmallNumber(value)) mark(index, sign + 1, end);
      if (!isList) return;
    }
    begin = sign + 1;
  }
}

function isSmallNumber(value: string): boolean {
  return /^\d{1,3}$/.test(value);
}

function endOfItem(word: string, from: number): number {
  const end = /[&;\s"']|,(?=[\w.-]{1,64}=)/.exec(word.slice(from, from + 4096))?.index;
  return end === undefined ? word.length : from + end;
}

function namesSecret(written: string): boolean {
  const name = written.replace(/^--?/, '');
  // `-Dname=`, `-Pname=`, `-eNAME=`
  const short = /^-[A-Za-z]/.test(written) ? name.slice(1) : '';
  return [name, short].some(
    (one) =>
      looksSecretOption(one) ||
      (!written.startsWith('--') && /^[A-Z_][A-Z0-9_]*$/.test(one) && looksSecretVariable(one)),
  );
}

/** `X-Auth: value`; also behind an option and behind `http.extraheader=`. */
function markHeader(word: string, index: number, previous: string, mark: Mark): void {
  if (!word.includes(':')) return;
  const start = beginOfHeader(word);
  const header = /^["']?([A-Za-z][\w-]{0,63})["']?:\s{0,8}(?=\S)/.exec(word.slice(start, start + 90));
  const name = header?.[1];
  if (header === null || name === undefined || !looksSecretHeader(name)) return;
  const isAuthorization = /authorization$/i.test(name);
  const from = start + header[0].length;
  const scheme = isAuthorization ? (SCHEME.exec(word.slice(from, from + 40))?.[0] ?? '') : '';
  const value = word.slice(from + scheme.length);
  if (isReference(value) || /^(?:\/\/|(?:bearer|basic)$)/i.test(value)) return;
  const isSure =
    start > 0 ||
    scheme !== '' ||
    (HEADER_OPTION.test(previous) && !previous.includes('=')) ||
    (/^(?:x-|[A-Z])/.test(name) && (isAuthorization || name.includes('-'))) ||
    isRandom(value);
  if (isSure) mark(index, from + scheme.length);
}

function beginOfHeader(word: string): number {
  if (word.startsWith('-')) return HEADER_OPTION.exec(word)?.[0].length ?? 0;
  const sign = word.indexOf('=') + 1;
  return /extraheader=$/i.test(word.slice(0, sign)) ? sign : 0;
}
