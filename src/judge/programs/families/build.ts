import { leadingText, prefixOf, type Word } from '../../../model/index.ts';
import {
  type Argument,
  type Call,
  type Finding,
  finding,
  type PathUse,
  type ProgramRow,
  programs,
  type Runs,
  type Use,
  withVersion,
} from '../behaviour.ts';
import { recipesOfMake } from '../makefile.ts';
import { argumentOf, hasOption, NOTHING, plainPaths, refused, replacedPaths } from '../options.ts';
import { variableRule } from '../variables.ts';

/** `make SHELL=…` is code on the command line; `CC=…` names a program as the environment does. */
function inspectMake(use: Use): readonly Finding[] {
  const prints = hasOption(use, 'n just-print dry-run recon q question');
  return [...(prints ? [] : changes(use.operands)), ...inspectVariables(use.operands)];
}

/** Targets that do more than to build, by the names that they have by convention. */
const TARGETS: readonly { readonly names: RegExp; readonly code: string; readonly does: string }[] = [
  {
    names: /^(?:un)?install(?:$|\/|[-_](?:strip|bin|exec|data|libs?|headers|man|local)$)/,
    code: 'installs',
    does: 'installs what it builds',
  },
  { names: /^(?:clean|distclean|mrproper|clobber)$/, code: 'cleans', does: 'deletes what was built' },
  {
    names: /^(?:deploy|publish|release|upload|push)$/,
    code: 'publishes',
    does: 'may change what is elsewhere',
  },
];

function changes(operands: readonly Argument[]): readonly Finding[] {
  return operands.flatMap(({ text, word }) =>
    TARGETS.flatMap(({ names, code, does }) =>
      names.test(text) ? [finding('writes', code, does, word.source)] : [],
    ),
  );
}

function inspectVariables(operands: readonly Argument[]): readonly Finding[] {
  return operands.flatMap(({ text, complete, word }) => {
    if (/^(?:SHELL|\.SHELLFLAGS)\s*[:+?!]*=/.test(text) || /\$[({]shell\b/.test(text)) {
      return [finding('executes', 'make_variable', 'gets a variable that names a program', word.source)];
    }
    const match = /^(\w+)[:+?!]*=/.exec(text);
    const rule =
      match === null
        ? undefined
        : variableRule(match[1] ?? '', complete ? text.slice(match[0].length) : undefined);
    return rule === undefined
      ? []
      : [finding('loads', 'make_variable', `gets a variable that ${rule.reason}`, word.source)];
  });
}

const PLAIN_SHELL = /^SHELL[:?+]*=\/(?:usr\/)?bin\/(?:ba|da)?sh$/;
const EXECUTING = /^(?:SHELL|\.SHELLFLAGS|MAKESHELL|MAKE|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES)[:?+!]*=/;

/**
 * make runs what its makefile says; the makefile is a file that the policy judges. Words that bring commands of their
 * own are not understood.
 */
function runsOfMake(call: Call): Runs {
  for (const word of call.args) {
    const text = prefixOf(word);
    if (word.value === undefined && text === '')
      return refused(`${call.name}: ${word.source} could be a setting: write it out.`, word);
    if (PLAIN_SHELL.test(word.value ?? '')) continue;
    if (EXECUTING.test(text))
      return refused(`${call.name}: ${word.source} changes what runs the recipes.`, word);
    if (/^--ev/.test(text) || /^-[a-zA-Z]*E/.test(text))
      return refused(`${call.name}: ${word.source} brings rules of its own.`, word);
    if (/^(?:-f-?|--f[a-z]*|--makefile)(?:=?-)?$/.test(text) && isInput(call.words, word)) {
      return refused(`${call.name} would read rules from its standard input.`, word);
    }
  }
  return NOTHING;
}

function isInput(words: readonly Word[], word: Word): boolean {
  return /-$/.test(word.value?.slice(2) ?? '') || words[words.indexOf(word) + 1]?.value === '-';
}

/** Settings of cmake that name programs or files of code. */
function inspectCmake(use: Use): readonly Finding[] {
  const { options, operands } = use;
  const targets = options.flatMap(({ name, value }) =>
    (name === 'target' || name === 't') && value !== undefined ? [value] : [],
  );
  const install = options
    .filter(({ name }) => name === 'install')
    .map(({ word }) => finding('writes', 'installs', 'installs what was built', word.source));
  return [...install, ...changes([...targets, ...operands]), ...toBuilder(use), ...inspectSettings(use)];
}

/** Options that cmake hands to make or ninja behind `--`: other files of rules, and variables. */
function toBuilder(use: Use): readonly Finding[] {
  const handed = use.operands.slice(use.afterDashes);
  return [
    ...handed
      .filter(({ text }) => /^(?:-[A-Za-z]*[fCEtI]|--(?:f|mak|ev|dir|inc))/.test(text))
      .map(({ word }) =>
        finding('loads', 'loads_by_option', 'hands on an option that loads rules', word.source),
      ),
    ...inspectVariables(handed),
  ];
}

function inspectSettings({ options }: Use): readonly Finding[] {
  return options
    .filter(
      ({ name, value }) =>
        name === 'D' &&
        /^CMAKE_(?:\w*(?:COMPILER|LAUNCHER|INCLUDE|PROGRAM|TOOLCHAIN_FILE|LINKER))(?::\w+)?=.*\//.test(
          value?.text ?? '',
        ),
    )
    .map(({ word }) =>
      finding('loads', 'cmake_variable', 'gets a variable that names a program or code', word.source),
    );
}

/** Tools of ninja that only print. */
const NINJA_PRINTS: ReadonlySet<string> = new Set(
  'commands compdb compdb-targets deps graph inputs list missingdeps multi-inputs query rules targets'.split(
    ' ',
  ),
);
/** Tools of ninja that change the build folder. */
const NINJA_CHANGES: ReadonlySet<string> = new Set('clean cleandead recompact restat'.split(' '));

function inspectNinja({ options, operands }: Use): readonly Finding[] {
  const tools = options.flatMap(({ name, value, word }) => {
    if (name !== 't' || (value?.complete === true && NINJA_PRINTS.has(value.text))) return [];
    return value?.complete === true && NINJA_CHANGES.has(value.text)
      ? [finding('writes', 'cleans', 'changes what was built', word.source)]
      : [finding('executes', 'runs_tool', 'runs a tool that is not known to print only', word.source)];
  });
  return [...tools, ...changes(operands)];
}

/** Behind `--help-full` and its kin, behind `--version` and `--system-information` stands the file that they go to. */
function writesHelp({ options, operands }: Use): readonly PathUse[] {
  return options.some(({ name }) => /^(?:help-.*|version|system-information)$/.test(name))
    ? operands.map((argument) => ({ argument, effect: 'writes' as const }))
    : [];
}

/** What prints object files. One letter means something else in each. */
const OBJECT_READERS: readonly ProgramRow[] = [
  ...programs('nm', 'low', 'local', () => ({ grammar: 'nm', operands: 'reads' })),
  ...programs('objdump', 'low', 'local', () => ({ grammar: 'objdump', operands: 'reads' })),
  ...programs('readelf', 'low', 'local', () => ({ grammar: 'readelf', operands: 'reads' })),
  ...programs('size', 'low', 'local', () => ({ grammar: 'size', operands: 'reads' })),
  ...programs('addr2line', 'low', 'local', () => ({
    grammar: 'addr2line',
    // Addresses.
    operands: 'none',
  })),
  ...programs('c++filt', 'low', 'local', () => ({
    grammar: 'c++filt',
    // Names.
    operands: 'none',
  })),
];

/** Builders and compilers. What their files say is code of the workspace. */
export const BUILD: readonly ProgramRow[] = [
  ...programs('make gmake', 'low', 'unknown', () => ({
    runs: runsOfMake,
    recipes: recipesOfMake,
    grammar: 'make',
    operands: 'none',
    inspect: inspectMake,
  })),
  ...programs('cmake', 'low', 'unknown', () => ({
    grammar: 'cmake',
    inspect: inspectCmake,
    morePaths: writesHelp,
  })),
  ...programs('ninja samu', 'low', 'unknown', () => ({
    grammar: 'ninja',
    operands: 'none',
    inspect: inspectNinja,
  })),
  ...programs('ctest', 'low', 'unknown', () => ({
    grammar: 'ctest',
    morePaths: writesHelp,
    operands: 'none',
  })),
  ...programs(
    'meson bear autoconf automake autoreconf libtool scons waf xmake conan vcpkg icecc',
    'medium',
    'unknown',
  ),
  ...programs(
    'gcc g++ cc c++ clang clang++ tcc nvcc',
    'medium',
    'unknown',
    () => ({
      // Compilers write what -o names, and run what -wrapper, -B and specs say.
      grammar: 'gcc',
      // `-oFILE`, `-MFFILE`.
      morePaths: ({ command: { words } }) =>
        words.flatMap((word) => {
          const option = /^-(?:o|MF)(?=.)/.exec(leadingText(word))?.[0];
          return option === undefined
            ? []
            : [{ argument: argumentOf(word, option.length), effect: 'writes' as const }];
        }),
    }),
    withVersion('gcc g++ clang clang++'),
  ),
  ...OBJECT_READERS,
  // ldd lets the loader open the file, which can run its code: only system files count as read.
  ...programs('ldd', 'medium', 'local', () => ({
    grammar: 'ldd',
    onlyReads: ({ operands }) =>
      operands.every(
        ({ text, complete }) => complete && /^\/(?:usr\/)?(?:bin|sbin|lib\w*)\/(?!.*\.\.)/.test(text),
      ),
  })),
  ...programs('ld lld gold mold as objcopy strip ranlib patchelf install_name_tool', 'medium', 'local'),
  ...programs('cppcheck', 'low', 'unknown', () => ({ grammar: 'cppcheck' })),
  ...programs('clang-tidy', 'low', 'unknown', () => ({ grammar: 'clang-tidy' }), withVersion('clang-tidy')),
  ...programs('iwyu', 'low', 'unknown', () => ({ grammar: 'iwyu' })),
  ...programs(
    'clang-format',
    'low',
    'local',
    () => ({
      grammar: 'clang-format',
      operands: 'reads',
    }),
    withVersion('clang-format'),
  ),
  ...programs('shfmt', 'low', 'local', () => ({ grammar: 'shfmt', operands: 'reads' })),
  ...programs('shellcheck', 'low', 'local', () => ({ grammar: 'shellcheck' })),
  ...programs('codespell', 'low', 'local', () => ({ grammar: 'codespell' })),
  ...programs('hadolint', 'low', 'local', () => ({ grammar: 'hadolint' })),
  ...programs('yamllint', 'low', 'local', () => ({ grammar: 'yamllint' })),
  ...programs('markdownlint', 'low', 'local', () => ({ grammar: 'markdownlint' })),
  ...programs('markdownlint-cli2', 'low', 'local', () => ({ grammar: 'markdownlint-cli2' })),
  ...programs('typos', 'low', 'local', () => ({ grammar: 'typos' })),
  ...programs(
    'actionlint vale taplo checkov tflint buf protolint sqlfluff protoc flatc thrift bison flex yacc lex m4 gperf swig doxygen pdflatex xelatex lualatex latexmk bibtex tex latex dot plantuml convert magick identify ffmpeg ffprobe sox gs inkscape',
    'medium',
    'unknown',
  ),
  ...programs('patch', 'medium', 'local', () => ({
    grammar: 'patch',
    paths: ({ operands: [original, ...others] }) => [
      ...replacedPaths([original]),
      ...plainPaths(others, 'writes'),
    ],
    operands: 'writes',
    patches: (use) =>
      hasOption(use, 'dry-run') ? undefined : hasOption(use, 'R reverse') ? 'reverse' : 'forward',
  })),
];
