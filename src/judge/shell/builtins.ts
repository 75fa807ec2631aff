import { isSingle, prefixOf, type Span, type Word } from '../../model/index.ts';
import { type Numbers, needNumber, noteArray, noteAssignment, noteImplicit, noteInput } from './numbers.ts';
import { isVariableName } from './text-checks.ts';

/** What a rule says about a call of a builtin: what is wrong with it, or `undefined`. */
type Rule = (args: readonly Word[], numbers: Numbers) => string | undefined;

const anything: Rule = () => undefined;

/** Only these options, each a word of letters behind a dash, then anything. */
function only(letters: string): Rule {
  return (args) => {
    for (const word of args) {
      const text = prefixOf(word);
      if (text === '--' || text === '-') return undefined;
      if (word.value === undefined && text === '') return isHarmless(word) ? undefined : mustBeWritten(word);
      if (!text.startsWith('-')) return undefined;
      if (word.value === undefined || [...text.slice(1)].some((letter) => !letters.includes(letter))) {
        return `the option ${word.source} is not understood`;
      }
    }
    return undefined;
  };
}

function isHarmless(word: Word): boolean {
  return word.parts.length === 1 && word.parts[0]?.kind === 'parameter' && word.parts[0].name === '!';
}

function mustBeWritten(word: Word): string {
  return `${word.source} could be an option: write it out`;
}

/** Names of variables: a subscript would be evaluated, and run what it holds. */
function names(note: (numbers: Numbers, name: string, span: Span) => void): Rule {
  return (args, numbers) => {
    for (const word of args) {
      if (word.value === undefined || !isVariableName(word.value))
        return `${word.source} is not a plain name`;
      note(numbers, word.value, word.span);
    }
    return undefined;
  };
}

const inputs = names(noteInput);
const forgets = names(noteImplicit);

/** `export NAME`, `export NAME=value`. */
function declares(options: string): Rule {
  return (args, numbers) => {
    for (const word of args) {
      const text = prefixOf(word);
      if (/^[-+]/.test(text)) {
        if (
          word.value === undefined ||
          [...text.slice(1)].some((letter) => !`${options}-`.includes(letter))
        ) {
          return `the option ${word.source} is not understood`;
        }
        continue;
      }
      const name = /^([A-Za-z_][A-Za-z0-9_]*)(?:\+?=|$)/.exec(text)?.[1];
      if (name === undefined || (word.value === undefined && !text.includes('=')))
        return `${word.source} is not a plain name`;
      if (!text.includes('=')) noteImplicit(numbers, name);
      // The value of an array is read again if it looks like one.
      if (numbers.arrays.has(name) || /^[^=]*=\(/.test(text)) return `${word.source} could declare an array`;
      // Values of words that the parser read as assignments are noted there; here are those behind `command`.
      if (text.includes('=') && !/^(?:0|[1-9]\d*)$/.test(text.slice(text.indexOf('=') + 1)))
        noteAssignment(numbers, name, undefined, word.span);
    }
    return undefined;
  };
}

const printf: Rule = ([format]) => {
  const text = format === undefined ? '' : prefixOf(format);
  if (format === undefined || (text === '' && format.value === undefined))
    return 'its format must be written out';
  return text.startsWith('-') && text !== '--' && text !== '-'
    ? `the option ${format.source} is not understood`
    : undefined;
};

const set: Rule = (args) => {
  for (let at = 0; at < args.length; at += 1) {
    const text = args[at]?.value;
    if (text === '--' || text === '-') return undefined;
    if (text === undefined || !/^[-+][eufxCbhmo]*$/.test(text))
      return `${args[at]?.source} is not understood`;
    if (!text.includes('o')) continue;
    at += 1;
    const name = args[at]?.value;
    if (name === undefined || !SET_OPTIONS.has(name)) return `${args[at]?.source ?? '-o'} is not understood`;
  }
  return undefined;
};

const SET_OPTIONS = new Set('pipefail errexit nounset xtrace noglob noclobber errtrace functrace'.split(' '));

const SHOPT_OPTIONS = new Set('nullglob globstar dotglob failglob nocaseglob inherit_errexit'.split(' '));

const shopt: Rule = (args) => {
  const wrong = args.find(
    (word) => !/^-[suqp]$/.test(word.value ?? '') && !SHOPT_OPTIONS.has(word.value ?? ''),
  );
  return wrong === undefined ? undefined : `${wrong.source} may change how the rest is read`;
};

const read: Rule = (args, numbers) => {
  let at = 0;
  for (; at < args.length; at += 1) {
    const word = args[at];
    const text = word === undefined ? '' : prefixOf(word);
    if (word?.value === '--') {
      at += 1;
      break;
    }
    if (!text.startsWith('-')) break;
    const letters = /^-([rs]*)([nNtudp]?)(.*)$/s.exec(text);
    if (letters === null || (letters[2] === '' && (letters[3] !== '' || word?.value === undefined))) {
      return `the option ${word?.source} is not understood`;
    }
    if (word !== undefined && !isSingle(word)) return `${word.source} could be several words: quote it`;
    if (letters[2] !== '' && letters[3] === '' && word?.value !== undefined) {
      at += 1;
      const value = args[at];
      if (value !== undefined && !isSingle(value)) return `${value.source} could be several words: quote it`;
    }
  }
  return inputs(args.slice(at), numbers);
};

const mapfile: Rule = (args, numbers) => {
  const rest = args[0]?.value === '-t' ? args.slice(1) : args;
  const name = rest[0]?.value;
  if (rest.length > 1 || (rest.length === 1 && (name === undefined || !isVariableName(name)))) {
    return 'it is understood only as mapfile [-t] NAME';
  }
  noteArray(numbers, name ?? 'MAPFILE', rest[0]?.span);
  numbers.implicit.add(name ?? 'MAPFILE');
  return undefined;
};

const wait: Rule = (args, numbers) => {
  for (const word of args) {
    if (word.value !== undefined ? /^(?:-[nf]|%?[0-9]+|%[%+-])$/.test(word.value) : isHarmless(word))
      continue;
    const parameter = word.parts.length === 1 ? word.parts[0] : undefined;
    if (parameter?.kind !== 'parameter' || !parameter.plain) return `${word.source} is not a process: use $!`;
    needNumber(numbers, parameter.name, word.span);
  }
  return undefined;
};

const unset: Rule = (args, numbers) => {
  const first = args[0]?.value;
  return forgets(first === '-v' || first === '-f' ? args.slice(1) : args, numbers);
};

const getopts: Rule = (args, numbers) => {
  if (args.length < 2 || args[0]?.value === undefined) return 'its options must be written out';
  return inputs(args.slice(1, 2), numbers);
};

const hash: Rule = (args) => {
  const option = args.find((word) => prefixOf(word).startsWith('-') || word.value === undefined);
  return option === undefined || option.value === '-r' ? undefined : `${option.source} is not understood`;
};

/** A file that is read as commands: the policy judges the file, so its name must be known. */
const source: Rule = (args) => {
  const file = args[0]?.value === '--' ? args[1] : args[0];
  if (file?.value === undefined || file.value === '') return 'the file must be written out';
  return file.value.startsWith('-') ? `the option ${file.source} is not understood` : undefined;
};

/** What a trap runs is judged like any other command; a trap that moves the shell would do so at any time. */
const trap: Rule = ([action, ...signals]) => {
  const known = signals.every((word) =>
    /^(?:SIG)?(?:EXIT|0|INT|TERM|HUP|QUIT|ERR|PIPE)$/.test(word.value ?? ''),
  );
  if (action?.value === undefined || action.value.startsWith('--') || signals.length === 0 || !known) {
    return 'it is understood only as trap TEXT EXIT, INT, TERM, HUP, QUIT, PIPE or ERR';
  }
  return /\b(?:cd|pushd|popd|eval|source|command|builtin)\b|(?:^|[\s;&|])\.\s/.test(action.value)
    ? 'it could change the directory at any time'
    : undefined;
};

/** Builtins that are accepted with any words. What the last four run is judged on its own. */
const WITH_ANY_WORDS =
  ': true false echo cd pwd exit return break continue shift times type umask ulimit kill disown bg fg suspend logout pushd popd dirs help eval exec command builtin';

/** Builtins that are accepted, each with what must hold. */
const RULES: Readonly<Record<string, Rule>> = {
  ...Object.fromEntries(WITH_ANY_WORDS.split(' ').map((name) => [name, anything])),
  printf,
  test: testProblem,
  '[': (args, numbers) =>
    args.at(-1)?.value === ']' ? testProblem(args.slice(0, -1), numbers) : 'the closing ] is missing',
  export: declares('p'),
  readonly: declares('p'),
  declare: declares('xrglup'),
  typeset: declares('xrglup'),
  local: declares('xrlu'),
  read,
  set,
  shopt,
  mapfile,
  readarray: mapfile,
  wait,
  unset,
  getopts,
  hash,
  jobs: only('lnprs'),
  source,
  '.': source,
  trap,
};

/** Builtins that are not accepted, each with the reason. */
const REFUSED: Readonly<Record<string, string>> = {
  alias: 'an alias changes what later words mean',
  unalias: 'aliases are not understood',
  bind: 'it can bind commands to keys',
  caller: 'it serves debuggers',
  compgen: 'it can run commands',
  complete: 'it can run commands',
  compopt: 'it can run commands',
  enable: 'it changes what names mean',
  fc: 'it runs commands from the history',
  history: 'it changes files',
  let: 'it evaluates its arguments and what they hold: use $((…))',
};

/** Says why a call of a shell builtin is not understood; `undefined`: it is, or the name is not that of a builtin. */
export function builtinProblem(name: string, args: readonly Word[], numbers: Numbers): string | undefined {
  if (!isBuiltin(name)) return undefined;
  const reason = REFUSED[name];
  if (reason !== undefined) return `The builtin ${name} is not understood: ${reason}.`;
  const problem = RULES[name]?.(args, numbers);
  return problem === undefined ? undefined : `The builtin ${name} is not understood here: ${problem}.`;
}

/** True for the name of a builtin of bash. */
export function isBuiltin(name: string): boolean {
  return Object.hasOwn(RULES, name) || Object.hasOwn(REFUSED, name);
}

const UNARY = /^-[abcdefghkLnNoOprsStuwxzG]$/;
const BINARY = /^(?:==?|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))$/;

/**
 * Why the words of `test` or `[` are not understood. `-v` and `-R` evaluate the subscript of their operand, and so run
 * what it holds; a word that is not known could be `-v` where an operator is expected. So operators are written out,
 * everything else is one word each, and the longer forms are understood only without expansions.
 */
function testProblem(args: readonly Word[], numbers: Numbers): string | undefined {
  const evaluating = args.find((word) => word.value === '-v' || word.value === '-R');
  if (evaluating !== undefined) return `${evaluating.value} may run what its operand holds`;
  if (args.every((word) => word.value !== undefined)) return undefined;
  const several = args.find((word) => !isSingle(word) && !isNumeric(word, numbers));
  if (several !== undefined) return `${several.source} could be several words: quote it`;
  return isPlainForm(args)
    ? undefined
    : 'with expansions only one comparison is understood: use && between two';
}

function isPlainForm(args: readonly Word[]): boolean {
  const [first, second, third] = args.map((word) => word.value);
  switch (args.length) {
    case 1:
      return true;
    case 2:
      return first === '!' || UNARY.test(first ?? '');
    case 3:
      if (BINARY.test(second ?? '')) return true;
      return first === '!' && UNARY.test(second ?? '');
    case 4:
      return first === '!' && BINARY.test(third ?? '');
    default:
      return false;
  }
}

/** `$?` and its kin expand to digits, and so does a variable to which the script assigns only numbers. */
function isNumeric(word: Word, numbers: Numbers): boolean {
  const [only, ...others] = word.parts;
  if (others.length > 0) return false;
  if (only?.kind === 'arithmetic') return true;
  if (only?.kind !== 'parameter') return false;
  if (/^\$\{#\w+\}$/.test(word.source)) return true;
  if (!only.plain || !/^(?:[?#$]|[A-Za-z_]\w*)$/.test(only.name)) return false;
  needNumber(numbers, only.name, word.span, 'unquoted');
  return true;
}
