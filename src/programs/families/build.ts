import type { Word } from '../../model/command-line.ts';
import { prefixOf } from '../../model/word.ts';
import {
  type Argument,
  type Call,
  type Finding,
  finding,
  type ProgramRow,
  programs,
  type Runs,
  type Use,
} from '../behaviour.ts';
import { hasOption } from '../options.ts';
import { NOTHING, refused } from '../runs.ts';
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
/** Those that change the build folder. */
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

/** Builders and compilers. What their files say is code of the workspace. */
export const BUILD: readonly ProgramRow[] = [
  ...programs('make gmake', 'low', 'unknown', {
    runs: runsOfMake,
    grammar: {
      source: 'make 4.3',
      flags:
        'B always-make b m d e environment-overrides i ignore-errors k keep-going L check-symlink-times n just-print dry-run recon p print-data-base q question r no-builtin-rules R no-builtin-variables s silent quiet no-silent S no-keep-going t touch trace v version w print-directory no-print-directory warn-undefined-variables h help',
      values: 'o old-file assume-old W what-if new-file assume-new',
      optionals: 'j jobs l load-average max-load debug O output-sync shuffle jobserver-auth',
      reads: 'C directory',
      loads: 'f file makefile I include-dir',
      executes: 'E eval',
    },
    operands: 'none',
    inspect: inspectMake,
  }),
  ...programs('cmake', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      flags: 'L A',
      values: 'G D j parallel target config preset t',
      reads: 'S build install',
      produces: 'B graphviz trace-redirect profiling-output debugger-dap-log prefix install-prefix',
      // -E is a tool box of file commands.
      loads: 'C P E toolchain',
      executes: 'open',
    },
    inspect: inspectCmake,
  }),
  ...programs('ninja samu', 'low', 'unknown', {
    grammar: {
      open: true,
      flags: 'v n verbose quiet h version',
      values: 'j k t d l w',
      reads: 'C',
      loads: 'f',
    },
    operands: 'none',
    inspect: inspectNinja,
  }),
  ...programs('ctest', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      flags: 'v n V Q N F H U W output-on-failure progress rerun-failed',
      values: 'j R E L t d l w C I LE D M T A',
      reads: 'test-dir',
      produces: 'O output-log output-junit',
      loads: 'S script SP',
      executes: 'test-command build-and-test overwrite',
    },
    operands: 'none',
  }),
  ...programs(
    'meson bear autoconf automake autoreconf libtool scons waf xmake conan vcpkg icecc',
    'medium',
    'unknown',
  ),
  ...programs('gcc g++ cc c++ clang clang++ tcc nvcc', 'medium', 'unknown', {
    // Compilers write what -o names, and run what -wrapper, -B and specs say.
    grammar: {
      open: true,
      style: 'single-dash',
      values: 'x std MF MT MQ Xlinker Xassembler Xpreprocessor isystem include target arch L I',
      writes: 'o',
      executes: 'wrapper specs fplugin B fuse-ld',
    },
  }),
  ...programs('nm objdump readelf size addr2line c++filt', 'low', 'local', {
    grammar: {
      open: true,
      style: 'single-dash',
      values: 'j M section',
      writes: 'o',
      executes: 'plugin load',
    },
  }),
  // It has the loader open the file, which may run code of it: only what the system brought is read.
  ...programs('ldd', 'medium', 'local', {
    grammar: {
      source: 'glibc 2.36',
      open: true,
      flags: 'd data-relocs r function-relocs u unused v verbose help version',
    },
    onlyReads: ({ operands }) =>
      operands.every(
        ({ text, complete }) => complete && /^\/(?:usr\/)?(?:bin|sbin|lib\w*)\/(?!.*\.\.)/.test(text),
      ),
  }),
  ...programs('ld lld gold mold as objcopy strip ranlib patchelf install_name_tool', 'medium', 'local'),
  ...programs('clang-tidy cppcheck iwyu', 'low', 'unknown', {
    grammar: {
      open: true,
      style: 'single-dash',
      writing: 'fix fix-errors',
      loads: 'load addon',
      writes: 'export-fixes',
    },
  }),
  ...programs('clang-format shfmt', 'low', 'local', {
    grammar: { open: true, writing: 'i w', values: 'style', flags: 'd l' },
    operands: 'reads',
  }),
  ...programs('shellcheck hadolint yamllint markdownlint markdownlint-cli2 codespell typos', 'low', 'local', {
    grammar: {
      open: true,
      writing: 'w fix write-changes',
      loads: 'r rules',
      values: 's S e f format severity',
    },
  }),
  ...programs(
    'actionlint vale taplo checkov tflint buf protolint sqlfluff protoc flatc thrift bison flex yacc lex m4 gperf swig doxygen pdflatex xelatex lualatex latexmk bibtex tex latex dot plantuml convert magick identify ffmpeg ffprobe sox gs inkscape',
    'medium',
    'unknown',
  ),
  ...programs('patch', 'medium', 'local', {
    grammar: {
      source: 'GNU patch 2.7.6',
      open: true,
      flags:
        'l ignore-whitespace c context e ed n normal u unified N forward R reverse merge E remove-empty-files Z set-utc T set-time b backup backup-if-mismatch no-backup-if-mismatch t batch f force s quiet silent verbose dry-run posix binary follow-symlinks v version help',
      values:
        'p strip F fuzz D ifdef quoting-style V version-control z suffix g get x debug reject-format read-only',
      reads: 'i input d directory',
      // What the names of its backups begin with may be another directory.
      writes: 'o output r reject-file B prefix Y basename-prefix',
    },
    operands: 'writes',
  }),
];
