import type { Word } from '../../../model/index.ts';
import {
  type Argument,
  type Finding,
  finding,
  type PathUse,
  type ProgramRow,
  programs,
  type Use,
  withVersion,
} from '../behaviour.ts';
import { pathInside, plainPaths, scriptsOf } from '../options.ts';

/** Behind these, `/` begins a regular expression; behind anything else it divides. */
const BEFORE_REGEXP = /(?:^|[(,!~&|{};\n=?:]|\b(?:print|printf|return|case)) ?$/;

/**
 * The program without its strings, comments and regular expressions, each of which leaves a place holder. One pass; in
 * doubt a `/` divides, so that what follows is still looked at.
 */
export function withoutLiterals(program: string): string {
  const code: string[] = [];
  // The end of the code so far: joining it for each look back would take time that grows with the square.
  let recent = '';
  const put = (text: string): void => {
    code.push(text);
    // Blanks count once, else enough of them would look like the beginning.
    if (text !== ' ' && text !== '\t') recent = (recent + text).slice(-16);
    else if (!recent.endsWith(' ')) recent += ' ';
  };
  let index = 0;
  /** Up to here no regular expression ends. */
  let noRegexpBefore = 0;
  while (index < program.length) {
    const char = program[index] ?? '';
    if (char === '"') {
      index = behindDelimiter(program, index, '"') ?? program.length;
      put('""');
    } else if (char === '\\' && program[index + 1] === '\n') {
      // A continued line.
      put(' ');
      index += 2;
    } else if (char === '#') {
      const end = program.indexOf('\n', index);
      index = end < 0 ? program.length : end;
    } else if (char === '/' && index >= noRegexpBefore && BEFORE_REGEXP.test(recent)) {
      const end = behindDelimiter(program, index, '/');
      if (end === undefined) {
        const line = program.indexOf('\n', index);
        noRegexpBefore = line < 0 ? program.length : line;
        put(char);
        index++;
      } else {
        put('//');
        index = end;
      }
    } else {
      put(char);
      index++;
    }
  }
  return code.join('');
}

/** Behind the delimiter that closes what begins at `start`; `undefined`: the line ends first. */
function behindDelimiter(program: string, start: number, delimiter: string): number | undefined {
  for (let index = start + 1; index < program.length; index++) {
    const char = program[index];
    if (char === '\\') index++;
    else if (char === '\n') return undefined;
    else if (char === delimiter) return index + 1;
  }
  return undefined;
}

/** Output to where it goes anyway, or through sort, which such programs often end with. */
const HARMLESS_OUTPUT = />{1,2}\s*"\/dev\/std(?:err|out)"|\|\s*"sort(?: -[bdfghinrucsV]+| -k ?[\d.,nr]+)*"/g;

/** What a program of awk would do besides printing. */
export function inspectAwkProgram(program: string, source: string): readonly Finding[] {
  const found: Finding[] = [];
  const code = withoutLiterals(program.replace(HARMLESS_OUTPUT, ''));
  if (/\bsystem\s*\(|@load|@include|@\w+\s*\(/.test(code)) {
    found.push(finding('executes', 'awk_executes', 'runs a command through its program', source));
  }
  // `|` is a pipe into or out of a command, `||` is not; `|&` is a coprocess, or a socket.
  if (/(?<!\|)\|(?!\|)/.test(code)) {
    found.push(finding('executes', 'awk_executes', 'pipes to or from a command in its program', source));
  }
  if (/\/inet[46]?\//.test(program)) {
    found.push(finding('network', 'awk_network', 'connects through its program (/inet)', source));
  }
  if (code.split(/[;}\n]/).some(redirectsOutput)) {
    found.push(finding('writes', 'awk_writes', 'may write a file through its program', source));
  }
  return found;
}

function redirectsOutput(statement: string): boolean {
  const print = statement.search(/\bprintf?\b/);
  return print >= 0 && statement.indexOf('>', print) >= 0;
}

/** A file that a program names as a string of its own. */
interface AwkFile {
  readonly path: string;
  readonly effect: 'reads' | 'writes';
}

/** Between a word and its redirect stand strings and other text of one statement; bounded, so that time is too. */
const FILES: readonly { readonly pattern: RegExp; readonly effect: AwkFile['effect'] }[] = [
  { pattern: /\bgetline\b[^;\n{}"<]{0,200}<\s*"((?:[^"\\\n]|\\.)*)"/g, effect: 'reads' },
  {
    pattern: /\bprintf?\b(?:"(?:[^"\\\n]|\\.){0,400}"|[^;\n{}">]){0,200}>{1,2}\s*"((?:[^"\\\n]|\\.)*)"/g,
    effect: 'writes',
  },
  // Its operands are an array that it can change.
  { pattern: /\bARGV\s*\[[^\]\n]{0,80}\]\s*=\s*"((?:[^"\\\n]|\\.)*)"/g, effect: 'reads' },
];

/** The files that a program reads with getline or as an operand, or prints to. */
export function filesOfAwkProgram(program: string): readonly AwkFile[] {
  if (!/\b(?:getline|printf?|ARGV)\b/.test(program)) return [];
  return FILES.flatMap(({ pattern, effect }) =>
    [...program.matchAll(pattern)].map((match) => ({ path: match[1] ?? '', effect })),
  );
}

/*
 * What is plain. What inspects a program above says what it would do, and the kernel has the last word. The application
 * backend has nothing that comes after: only what is plain in every reading is let through there.
 */

/** What reaches files, programs, other variables by their names, or the operands, wherever it stands, be it in strings. */
const REACHES =
  /@|\\\n|getline|system|extension|include|load|textdomain|gettext|TEXTDOMAIN|SYMTAB|FUNCTAB|PROCINFO|ENVIRON|ARG(?:V|C|IND)/;
/** Functions of every awk that compute, and words that stand before a parenthesis. */
const COMPUTES: ReadonlySet<string> = new Set(
  'length substr index split sub gsub gensub match sprintf tolower toupper sin cos atan2 exp log sqrt int rand srand and or xor compl lshift rshift strtonum asort asorti patsplit systime strftime mktime typeof isarray print printf if while for switch in return exit else do case delete'.split(
    ' ',
  ),
);
const STRING_OR_PATTERN =
  /"(?:[^"\\\n]|\\[^\n])*"|(?<=(?:^|[~!(,;{}&|\n])[ \t]{0,8})\/(?:[^/\\\n[]|\\[^\n])*\//g;

/**
 * True for a program of awk that reads its operands and prints. It calls nothing but what is known to compute, defines
 * nothing, and does not hold the names of what reaches further: awk makes none at run time but by those.
 */
export function isPlainAwk(program: string): boolean {
  if (REACHES.test(program)) return false;
  // A pipe; `||` is none.
  if (/[|&]/.test(program.replace(/\|\||&&/g, ' '))) return false;
  const code = program.replace(STRING_OR_PATTERN, '""');
  if (/\bfunc(?:tion)?\b/.test(code)) return false;
  for (const [, name = ''] of code.matchAll(/\b([A-Za-z_]\w*)[ \t\n]{0,8}\(/g))
    if (!COMPUTES.has(name)) return false;
  // Before the first brace nothing is printed: there `>` compares. So does `<` everywhere without getline.
  const greater = program.lastIndexOf('>');
  return greater < 0 || !program.slice(0, greater).includes('{');
}

/** Settings of mawk that run nothing; `exec`, by any of its abbreviations, loads a program file as -f does. */
const HARMLESS_W: ReadonlySet<string> = new Set('version help usage dump interactive posix'.split(' '));

/** What -W says that is not known to be harmless: to gawk it is any long option. */
function unknownW({ options }: Use): readonly Argument[] {
  return options.flatMap(({ name, value }) =>
    name === 'W' && value !== undefined && !(value.complete && HARMLESS_W.has(value.text)) ? [value] : [],
  );
}

function programsOfAwk(use: Use): readonly Argument[] {
  return unknownW(use).length > 0 ? [] : scriptsOf(use, ['e', 'source'], ['f', 'file', 'E', 'exec']);
}

/** The files that programs of awk name, and those of -W. */
function filesOfAwk(use: Use): readonly PathUse[] {
  const settings = unknownW(use);
  const named = settings.flatMap((value) => {
    const equals = value.text.indexOf('=');
    return equals < 0 ? [] : [pathInside(value, value.text.slice(equals + 1))];
  });
  return [
    ...plainPaths(settings.length === 0 ? [] : [...named, ...use.operands.slice(0, 1)], 'reads'),
    ...programsOfAwk(use).flatMap((program) =>
      filesOfAwkProgram(program.text).map(({ path, effect }) => ({
        argument: pathInside(program, path),
        effect,
      })),
    ),
  ];
}

function inspectAwk(use: Use): readonly Finding[] {
  const settings = unknownW(use).map(({ word }) =>
    finding('loads', 'loads_by_option', 'may run a program from a file through -W', word.source),
  );
  if (settings.length > 0) return settings;
  return programsOfAwk(use).flatMap((script) =>
    script.complete
      ? inspectAwkProgram(script.text, script.word.source)
      : [
          finding(
            'invalid',
            'dynamic_script',
            'has a program that is only known when it runs',
            script.word.source,
          ),
        ],
  );
}

/** `-o../x`, `--profile=x`: what gawk writes. */
function filesOfOptions({ options }: Use): readonly PathUse[] {
  return plainPaths(
    options.flatMap(({ inPlace, value }) => (inPlace ? [value] : [])),
    'writes',
  );
}

/** Operands and -v set variables of awk, those of its own too. */
const isNoSetting = ({ value }: Word) => value === undefined || !/^(?:-v)?(?:ARG|[A-Z]+TAB)/.test(value);

function objectionToAwk({ command, operands }: Use): string | undefined {
  return operands.slice(0, 1).every(({ text }) => isPlainAwk(text)) && command.words.every(isNoSetting)
    ? undefined
    : 'has a program that is not plain: only printing and computing, without functions of its own, getline, system, ARGV and its like, @, pipes, or > behind a brace';
}

/** The language for lines of fields. */
export const AWK: readonly ProgramRow[] = [
  ...programs(
    'awk gawk mawk nawk',
    'low',
    'local',
    () => ({
      code: 'language',
      grammar: 'awk',
      operands: 'script-then-reads',
      scriptOptions: 'e source f file E exec',
      inspect: inspectAwk,
      morePaths: (use) => [...filesOfAwk(use), ...filesOfOptions(use)],
      application: {
        names: 'awk',
        // Options end at the program, and not every awk has long ones.
        grammar: 'awk application',
        // A plain program opens nothing; what else is found in it only looks so, as the pattern `/inet/`.
        inspect: () => [],
        morePaths: () => [],
        objection: objectionToAwk,
      },
    }),
    withVersion('awk'),
  ),
];
