import type { Word } from '../../model/command-line.ts';
import { filesOfAwkProgram, inspectAwkProgram, isPlainAwk } from '../awk-program.ts';
import {
  type Argument,
  type Finding,
  finding,
  type PathUse,
  type ProgramRow,
  programs,
  type Use,
} from '../behaviour.ts';
import { pathInside, plainPaths } from '../plain-paths.ts';
import { inspectSedScript, isPlainSed, type SedFile } from '../sed-script.ts';

/** The scripts on the command line: values of options, else the first operand. */
function scriptsOf(
  use: Use,
  scriptOptions: readonly string[],
  fileOptions: readonly string[],
): readonly Argument[] {
  const given = use.options.flatMap(({ name, value }) =>
    scriptOptions.includes(name) && value !== undefined ? [value] : [],
  );
  if (given.length > 0 || use.options.some(({ name }) => fileOptions.includes(name))) return given;
  return use.operands.slice(0, 1);
}

function inspectSed(use: Use): readonly Finding[] {
  return scriptsOf(use, ['e', 'expression'], ['f', 'file']).flatMap((script) =>
    script.complete
      ? inspectSedScript(script.text, script.word.source)
      : inspectUnknownSed(script.word.source),
  );
}

/** The rest of a script may hold `e` and `w` commands. */
function inspectUnknownSed(source: string): readonly Finding[] {
  return [finding('invalid', 'dynamic_script', 'has a script that is only known when it runs', source)];
}

function strictSed(use: Use): readonly Finding[] {
  return inspectSed(use)
    .filter(({ effect }) => effect === 'reads')
    .map((found) => ({ ...found, effect: 'invalid' }));
}

/** The files that the scripts of sed read and write. */
function filesOfSed(use: Use): readonly PathUse[] {
  return scriptsOf(use, ['e', 'expression'], ['f', 'file']).flatMap((script) => {
    const files: SedFile[] = [];
    if (script.complete) inspectSedScript(script.text, script.word.source, files);
    return files.map(({ path, effect }) => ({ argument: pathInside(script, path), effect }));
  });
}

function objectionToSed(use: Use): string | undefined {
  // The name of a backup is another one than was judged: `sed -ifig p .git/con`.
  const suffix = use.options.some(({ inPlace, value }) => inPlace && value !== undefined);
  if (suffix) return 'may write elsewhere with this option (-i takes no suffix here)';
  const texts = scriptsOf(use, ['e', 'expression'], []).map(({ text }) => text);
  return texts.length > 0 && texts.every(isPlainSed) && isPlainSed(texts.join('\n'))
    ? undefined
    : 'has a script that is not plain: only p, d, q, n, s/…/…/ without e and w, and their like';
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

/** Operands and -v set variables of awk, those of its own too. */
const isNoSetting = ({ value }: Word) => value === undefined || !/^(?:-v)?(?:ARG|[A-Z]+TAB)/.test(value);

function objectionToAwk({ command, operands }: Use): string | undefined {
  return operands.slice(0, 1).every(({ text }) => isPlainAwk(text)) && command.words.every(isNoSetting)
    ? undefined
    : 'has a program that is not plain: only printing and computing, without functions of its own, getline, system, ARGV and its like, @, pipes, or > behind a brace';
}

/** Programs that run a small program of their own over text. */
export const SED_AND_AWK: readonly ProgramRow[] = [
  ...programs('sed gsed', 'low', 'local', {
    grammar: {
      source: 'sed 4.9',
      flags:
        'n quiet silent E r regexp-extended s separate u unbuffered z null-data posix debug sandbox b binary follow-symlinks help version',
      values: 'e expression l line-length',
      writing: 'i in-place',
      loads: 'f file',
    },
    operands: 'script-then-reads',
    scriptOptions: 'e expression f file',
    inspect: inspectSed,
    morePaths: filesOfSed,
    strict: strictSed,
    application: {
      names: 'sed',
      without: 'follow-symlinks',
      objection: objectionToSed,
      changesEntries: true,
    },
  }),
  ...programs('awk gawk mawk nawk', 'low', 'local', {
    code: 'language',
    grammar: {
      flags:
        'b characters-as-bytes c traditional C copyright h help n non-decimal-data N use-lc-numeric O optimize P posix r re-interval s no-optimize S sandbox t lint-old V version g gen-pot I trace csv k',
      values: 'F field-separator v assign e source W',
      optionals: 'L lint',
      writing: 'd dump-variables p profile o pretty-print D debug',
      loads: 'f file E exec i include l load',
    },
    operands: 'script-then-reads',
    scriptOptions: 'e source f file E exec',
    inspect: inspectAwk,
    morePaths: filesOfAwk,
    application: {
      names: 'awk',
      // Options end at the program, and not every awk has long ones.
      grammar: { values: 'F v', stopAtOperand: true },
      // A plain program opens nothing; what else is found in it only looks so, as the pattern `/inet/`.
      inspect: () => [],
      morePaths: () => [],
      objection: objectionToAwk,
    },
  }),
  ...programs('perl', 'medium', 'network', {
    code: 'language',
    grammar: { open: true, values: 'e E M m I 0 i', flags: 'n p l a w' },
    operands: 'guess',
  }),
];
