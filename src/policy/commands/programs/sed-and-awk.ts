import { inspectAwkProgram } from '../awk-program.ts';
import { type Finding, finding, type ProgramRow, programs } from '../behaviour.ts';
import { inspectSedScript } from '../sed-script.ts';
import type { Argument, Use } from '../use.ts';

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

function inspectAwk(use: Use): readonly Finding[] {
  return scriptsOf(use, ['e', 'source'], ['f', 'file', 'E', 'exec']).flatMap((script) =>
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

/** Programs that run a small program of their own over text. */
export const SED_AND_AWK: readonly ProgramRow[] = [
  ...programs('sed gsed', 'low', 'local', {
    grammar: {
      flags:
        'n quiet silent E r regexp-extended s separate u unbuffered z null-data posix debug sandbox b binary follow-symlinks help version',
      values: 'e expression l line-length',
      writing: 'i in-place',
      loads: 'f file',
    },
    operands: 'script-then-reads',
    scriptOptions: 'e expression f file',
    inspect: inspectSed,
    strict: strictSed,
  }),
  ...programs('awk gawk mawk nawk', 'low', 'local', {
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
  }),
  ...programs('perl', 'medium', 'network', {
    grammar: { open: true, values: 'e E M m I 0 i', flags: 'n p l a w' },
    operands: 'guess',
  }),
];
