import { leadingText, mergeLiterals, prefixOf, type Word } from '../../../model/index.ts';
import {
  type Argument,
  type Call,
  type Dialect,
  type Finding,
  finding,
  type PathUse,
  type ProgramRow,
  programs,
  type Runs,
  type Use,
} from '../behaviour.ts';
import { argumentOf, beginsWithPath, NOTHING, plainPaths, refused, runText, wordOf } from '../options.ts';

/** Builtins of bash. Which of them may run at all is the parser's business. */
export const BUILTINS: readonly ProgramRow[] = [
  ...programs('echo', 'low', 'local', () => ({
    operands: 'none',
    prints: printedByEcho,
    application: { words: 'any' },
  })),
  // `-v 'a[$(id)]'` has its subscript evaluated.
  ...programs('printf', 'low', 'local', () => ({
    operands: 'none',
    prints: printedByPrintf,
    application: { words: 'any', obeysEnvironment: () => true },
  })),
  ...programs(
    'true false : exit return break continue shift wait jobs umask getopts times',
    'low',
    'local',
    () => ({
      operands: 'none',
      application: { names: 'true false', words: 'any' },
    }),
  ),
  ...programs('export declare typeset readonly local', 'low', 'local', () => ({
    operands: 'none',
    assigns: ({ command }) => command.words.slice(1),
  })),
  ...programs('unset', 'low', 'local', () => ({ operands: 'none', assigns: setsOperands })),
  ...programs('set shopt type let', 'low', 'local', () => ({ operands: 'none' })),
  ...programs('read', 'low', 'local', () => ({
    grammar: 'read',
    operands: 'none',
    passesOn: 'r d=',
    assigns: setsOperands,
    descriptors: 'u',
    splitsInput: true,
  })),
  ...programs('mapfile readarray', 'low', 'local', () => ({
    grammar: 'mapfile',
    operands: 'none',
    builtin: true,
    runs: ({ args }) => atAnyTime(valuesOfOption('C', args)),
    assigns: setsOperands,
    descriptors: 'u',
  })),
  ...programs('test [ [[', 'low', 'local', () => ({
    application: {
      ...{ names: 'test [', words: 'expression', paths: pathsOfTest },
      // `-v 'a[$(id)]'` has its subscript evaluated.
      obeysEnvironment: () => true,
    },
  })),
  ...programs('cd pushd popd dirs', 'low', 'local', () => ({ grammar: 'cd', operands: 'reads' })),
  ...programs('pwd', 'low', 'local', () => ({
    grammar: 'pwd',
    operands: 'none',
    strict: ({ operands }) =>
      operands.length === 0
        ? []
        : [finding('invalid', 'arguments', 'takes no operands', ...operands.map(({ word }) => word.source))],
    application: {},
  })),
  ...programs('eval', 'medium', 'unknown', () => ({
    builtin: true,
    runs: ({ args }) => inThisShell(args[0]?.value === '--' ? args.slice(1) : args),
  })),
  ...programs('trap', 'medium', 'unknown', () => ({
    builtin: true,
    runs: ({ args }) => {
      const [action] = args[0]?.value === '--' ? args.slice(1) : args;
      return action === undefined || (action.value !== undefined && /^(?:-.*|)$/.test(action.value))
        ? NOTHING
        : inThisShell([action], 'unknown');
    },
  })),
  ...programs('alias', 'medium', 'unknown', () => ({
    builtin: true,
    runs: ({ args }) =>
      atAnyTime(args.flatMap((word) => (/^[^-=][^=]*=/.test(prefixOf(word)) ? behind(word, /^[^=]*=/) : []))),
  })),
  ...programs('complete compgen', 'medium', 'unknown', () => ({
    builtin: true,
    runs: ({ args }) => atAnyTime(valuesOfOption('C', args)),
  })),
  ...programs('bind', 'medium', 'unknown', () => ({
    builtin: true,
    // `"\C-x": TEXT`.
    runs: ({ args }) =>
      atAnyTime(valuesOfOption('x', args).flatMap((word) => behind(word, /^\s*"[^"]*":?\s*/))),
  })),
  // Code that is not seen, history, and what outlives the command.
  ...programs('source .', 'medium', 'unknown', () => ({ interprets: 'shell' })),
  ...programs('enable history fc hash unalias', 'medium', 'unknown'),
  ...programs('disown suspend fg bg', 'medium', 'local', () => ({ operands: 'none' })),
  ...programs('ulimit', 'low', 'local', () => ({ operands: 'none' })),
  ...programs('kill killall pkill', 'high', 'local', () => ({ operands: 'none', signals: true })),
];

/** `read NAME`, `unset NAME`. */
function setsOperands({ operands }: Use): readonly Word[] {
  return operands.map(({ word }) => word);
}

/** Backslashes, and what looks like an option, mean something to some shells. */
function printedByEcho([echo, ...words]: readonly Word[]): Word | undefined {
  const isPlain = words.every(({ parts }) =>
    parts.every((part) => part.kind !== 'literal' || !part.text.includes('\\')),
  );
  const [first] = words;
  if (echo === undefined || !isPlain || (first !== undefined && prefixOf(first).startsWith('-')))
    return undefined;
  return textOf(words.flatMap((word, at) => [...(at === 0 ? [] : [' ']), word]).concat('\n'), echo);
}

/** `printf '%s\n' text…`: the format is used until it has taken all words. */
function printedByPrintf([printf, format, ...rest]: readonly Word[]): Word | undefined {
  const texts = format?.value?.replaceAll('\\n', '\n').split('%s');
  if (printf === undefined || texts === undefined || texts.some((text) => /[%\\]/.test(text)))
    return undefined;
  if (texts[0]?.startsWith('-') === true) return undefined;
  const taken = texts.length - 1;
  const rounds = taken === 0 ? 1 : Math.max(1, Math.ceil(rest.length / taken));
  const pieces = Array.from({ length: rounds }, (_, round) =>
    texts.flatMap((text, at) => (at === 0 ? [text] : [rest[round * taken + at - 1] ?? '', text])),
  );
  return textOf(pieces.flat(), printf);
}

/** Words, and text between them, as one. */
function textOf(pieces: readonly (Word | string)[], { source, span }: Word): Word {
  const values = pieces.map((piece) => (typeof piece === 'string' ? piece : piece.value));
  const parts = pieces.flatMap((piece): Word['parts'] =>
    typeof piece === 'string' ? [{ kind: 'literal', text: piece }] : piece.parts,
  );
  const value = values.every((text) => text !== undefined) ? values.join('') : undefined;
  return { value, parts: mergeLiterals(parts), source, span };
}

/** Operands of `test` that are files: behind an operator about one file, or beside one that compares two. */
function pathsOfTest({ command: { words } }: Use): readonly PathUse[] {
  const found = words.flatMap((word, index): readonly Argument[] => {
    if (index === 0) return [];
    const around = `${words[index - 1]?.value} ${words[index + 1]?.value}`;
    const asked = /^-[a-hkLprsuwxGOSN] /.test(around) || /^-(?:nt|ot|ef) | -(?:nt|ot|ef)$/.test(around);
    return asked ? [argumentOf(word)] : [];
  });
  return plainPaths(found, 'reads');
}

/** A text that the current shell runs itself (`eval`). */
function inThisShell(text: readonly Word[], directory?: 'unknown'): Runs {
  if (text.length === 0) return NOTHING;
  const run = { kind: 'text', text, dialect: 'bash', sameShell: true } as const;
  return { runs: [directory === undefined ? run : { ...run, directory }] };
}

/** Texts that the current shell runs later, in an unknown directory. */
function atAnyTime(texts: readonly Word[]): Runs {
  const runs = texts.flatMap((text) => {
    const found = inThisShell([text], 'unknown');
    return 'runs' in found ? (found.runs ?? []) : [];
  });
  return { runs };
}

/** What an option of one letter gets: `-C TEXT`, `-CTEXT`. */
function valuesOfOption(letter: string, args: readonly Word[]): readonly Word[] {
  return args.flatMap((word, at) => {
    const [flag] = new RegExp(`^-[A-Za-z]*?${letter}`).exec(prefixOf(word)) ?? [];
    if (flag === undefined) return [];
    return word.value === flag ? args.slice(at + 1, at + 2) : behind(word, flag);
  });
}

/** What follows the beginning of a word. */
function behind(word: Word, beginning: RegExp | string): readonly Word[] {
  const text = leadingText(word);
  const length = typeof beginning === 'string' ? beginning.length : (beginning.exec(text)?.[0].length ?? 0);
  return [wordOf(argumentOf(word, length))];
}

/** Shells by the dialect that they read. */
const DIALECTS: Readonly<Record<string, Dialect>> = {
  bash: 'bash',
  rbash: 'bash',
  // Ours: bash, and inside a sandbox just that.
  'sandbox-sh': 'bash',
  sh: 'posix',
  dash: 'posix',
  ash: 'posix',
  zsh: 'zsh',
  ksh: 'zsh',
  mksh: 'zsh',
};

/** `csh -c text`, a script, or commands on the standard input: none is understood. */
function runsOfForeignShell(call: Call): Runs {
  const [, only, ...others] = call.words;
  if (others.length === 0 && only?.value !== undefined && INERT.has(only.value)) return NOTHING;
  return refused(`${call.name} reads another language: use sh -c or bash -c.`, call.words[0]);
}

/** Letters that only change how the shell starts or fails, `c` aside. */
const LETTERS = /^-[ceuxvnlfabsEC]+$/;
const LONG = new Set(['--login', '--noprofile', '--norc', '--restricted', '--verbose']);
const INERT = new Set(['--version', '--help']);

/** `sh [options] -c text [name [arguments]]`, `sh [options] file`, or commands on the standard input. */
function runsOfShell(call: Call): Runs {
  const dialect = DIALECTS[call.name] ?? 'posix';
  let hasText = false;
  let readsInput = false;
  let at = 1;
  for (; at < call.words.length; at += 1) {
    const word = call.words[at];
    if (word === undefined) break;
    const text = word.value;
    if (beginsWithPath(word)) break;
    if (text === undefined) {
      if (prefixOf(word) !== '' && !prefixOf(word).startsWith('-') && !hasText) break;
      if (hasText) break;
      return refused(`${call.name}: ${word.source} could be an option: write it out.`, word);
    }
    if (INERT.has(text)) return NOTHING;
    if (text === '--' || text === '-') {
      at += 1;
      break;
    }
    if (/^[-+]o$/.test(text) && SAFE_O.has(call.words[at + 1]?.value ?? '')) at += 1;
    else if (
      /^-[a-z]+o$/.test(text) &&
      LETTERS.test(text.slice(0, -1)) &&
      call.words[at + 1]?.value === 'pipefail'
    ) {
      hasText ||= text.includes('c');
      at += 1;
    } else if (LETTERS.test(text)) {
      hasText ||= text.includes('c');
      readsInput ||= text.includes('s');
    } else if (text.startsWith('-') || text.startsWith('+')) {
      if (!LONG.has(text)) return refused(`${call.name}: the option ${text} is not understood.`, word);
    } else break;
  }
  const operand = call.words[at];
  if (hasText) return behindC(call.name, operand, dialect);
  // A file of commands: the policy judges the file.
  if (operand !== undefined && !readsInput) return NOTHING;
  return fromInput(call.name, call.words[0], call.input, dialect);
}

const SAFE_O = new Set(['pipefail', 'errexit', 'nounset', 'xtrace']);

function behindC(name: string, operand: Word | undefined, dialect: Dialect): Runs {
  if (operand === undefined) return refused(`${name} -c has no text.`);
  return runText([operand], dialect);
}

function fromInput(name: string, word: Word | undefined, input: Word | undefined, dialect: Dialect): Runs {
  const runs =
    input === undefined || word === undefined ? NOTHING : runText([{ ...input, span: word.span }], dialect);
  if (input?.value !== undefined) return runs;
  const message = `${name} would run what it reads from its standard input: use ${name} -c or a file.`;
  return { ...runs, ...refused(message, word) };
}

/** A shell without a script runs its standard input, which was not seen beforehand. */
function inspectShell(use: Use): readonly Finding[] {
  const text = use.options.some(({ name, word }) => name === 'c' || /^-[a-zA-Z]*c/.test(word.value ?? ''));
  if (text) return [];
  const [script] = use.operands;
  return script === undefined
    ? [
        finding(
          'executes',
          'executes_input',
          'runs what it reads from its standard input',
          use.command.words[0]?.source ?? '',
        ),
      ]
    : [finding('loads', 'runs_script', 'runs a script', script.word.source)];
}

/** Shells that read their options alike. */
const shells = (names: string, grammar: string): readonly ProgramRow[] =>
  programs(names, 'low', 'network', () => ({
    grammar,
    inspect: inspectShell,
    ...(names.split(' ').every((name) => name in DIALECTS)
      ? { interprets: 'shell', runs: runsOfShell }
      : { interprets: 'script', runs: runsOfForeignShell }),
  }));

/** Shells, of which those that are not read run nothing but what asks for their version. */
export const SHELLS: readonly ProgramRow[] = [
  ...shells('bash rbash sandbox-sh', 'bash'),
  ...shells('sh dash ash', 'sh'),
  ...shells('zsh', 'zsh'),
  ...shells('ksh', 'ksh'),
  ...shells('mksh', 'mksh'),
  ...shells('csh tcsh', 'csh'),
  ...shells('fish', 'fish'),
  ...programs(
    'bcsh yash posh pdksh oksh lksh rksh ksh93 rzsh sash osh ysh nu elvish xonsh',
    'medium',
    'unknown',
    () => ({ interprets: 'script', runs: runsOfForeignShell }),
  ),
];
