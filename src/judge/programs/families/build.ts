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

/** Behind `--help-full` and its kin, behind `--version` and `--system-information` stands the file that they go to. */
function writesHelp({ options, operands }: Use): readonly PathUse[] {
  return options.some(({ name }) => /^(?:help-.*|version|system-information)$/.test(name))
    ? operands.map((argument) => ({ argument, effect: 'writes' as const }))
    : [];
}

const HELP_OF_CMAKE = {
  flags:
    'help help-full help-manual-list help-command-list help-commands help-module-list help-modules help-policy-list help-policies help-property-list help-properties help-variable-list help-variables version',
  values: 'help-manual help-command help-module help-policy help-property help-variable',
} as const;

const BINUTILS = 'GNU binutils 2.40';

/** What prints object files. One letter means something else in each. */
const OBJECT_READERS: readonly ProgramRow[] = [
  ...programs('nm', 'low', 'local', {
    grammar: {
      source: BINUTILS,
      open: true,
      flags:
        'a debug-syms A print-file-name o B C no-demangle recurse-limit no-recurse-limit recursion-limit no-recursion-limit D dynamic e g extern-only j just-symbols l line-numbers n v numeric-sort p no-sort P portability r reverse-sort S print-size s print-armap quiet size-sort special-syms synthetic u undefined-only defined-only W no-weak with-symbol-versions without-symbol-versions h help V version',
      values: 'U f format ifunc-chars t radix target unicode X',
      optionals: 'demangle',
      executes: 'plugin',
    },
    operands: 'reads',
  }),
  ...programs('objdump', 'low', 'local', {
    grammar: {
      source: BINUTILS,
      open: true,
      flags:
        'a archive-headers f file-headers p private-headers h headers section-headers x all-headers d D disassemble-all S source s full-contents g debugging e debugging-tags G stabs L process-links t syms T dynamic-syms r reloc R dynamic-reloc v V version i info H help file-start-context l line-numbers F file-offsets C recurse-limit no-recurse-limit recursion-limit no-recursion-limit w wide z disassemble-zeroes no-addresses prefix-addresses show-raw-insn no-show-raw-insn show-all-symbols special-syms inlines dwarf-check',
      values:
        'P private b target m architecture j section M disassembler-options E endian U unicode start-address stop-address insn-width adjust-vma prefix-strip dwarf-depth dwarf-start ctf-parent disassembler-color',
      optionals: 'disassemble source-comment W dwarf ctf sframe demangle visualize-jumps',
      reads: 'I include prefix',
      executes: 'plugin',
    },
    operands: 'reads',
  }),
  ...programs('readelf', 'low', 'local', {
    grammar: {
      source: BINUTILS,
      open: true,
      flags:
        'a all h file-header l program-headers segments S section-headers sections g section-groups t section-details e headers s syms symbols dyn-syms lto-syms C no-demangle recurse-limit no-recurse-limit recursion-limit no-recursion-limit n notes r relocs u unwind d dynamic V version-info A arch-specific c archive-index D use-dynamic L lint enable-checks z decompress P process-links I histogram W wide T silent-truncation H help v version',
      values:
        'U unicode x hex-dump p string-dump R relocated-dump dwarf-depth dwarf-start ctf ctf-parent ctf-symbols ctf-strings',
      optionals: 'sym-base demangle w debug-dump sframe',
    },
    operands: 'reads',
  }),
  ...programs('size', 'low', 'local', {
    grammar: {
      source: BINUTILS,
      open: true,
      flags: 'A B G o d x t totals f common h H ? help v V version',
      values: 'format radix target',
    },
    operands: 'reads',
  }),
  ...programs('addr2line', 'low', 'local', {
    grammar: {
      source: BINUTILS,
      open: true,
      flags:
        'a addresses i inlines p pretty-print s basenames f functions C R recurse-limit recursion-limit r no-recurse-limit no-recursion-limit h help v version',
      values: 'b target j section',
      optionals: 'demangle',
      reads: 'e exe',
    },
    // Addresses.
    operands: 'none',
  }),
  ...programs('c++filt', 'low', 'local', {
    grammar: {
      source: BINUTILS,
      open: true,
      flags:
        '_ strip-underscore n no-strip-underscores p no-params i no-verbose R recurse-limit recursion-limit r no-recurse-limit no-recursion-limit t types h help v version',
      values: 's format',
    },
    // Names.
    operands: 'none',
  }),
];

/** Builders and compilers. What their files say is code of the workspace. */
export const BUILD: readonly ProgramRow[] = [
  ...programs('make gmake', 'low', 'unknown', {
    runs: runsOfMake,
    recipes: recipesOfMake,
    grammar: {
      source: 'make 4.3',
      flags:
        'B always-make b m d e environment-overrides i ignore-errors k keep-going L check-symlink-times n just-print dry-run recon p print-data-base q question r no-builtin-rules R no-builtin-variables s silent quiet no-silent S no-keep-going stop t touch trace v version w print-directory no-print-directory warn-undefined-variables h help',
      values: 'o old-file assume-old W what-if new-file assume-new jobserver-auth jobserver-fds sync-mutex',
      optionals: 'j jobs l load-average max-load debug O output-sync shuffle',
      reads: 'C directory',
      loads: 'f file makefile I include-dir',
      executes: 'E eval',
    },
    operands: 'none',
    inspect: inspectMake,
  }),
  ...programs('cmake', 'low', 'unknown', {
    grammar: {
      source: 'cmake 3.25.1',
      open: true,
      exact: true,
      flags: `N h H usage fresh workflow list-presets clean-first use-stderr v verbose strip compile-no-warning-as-error debug-trycompile debug-output debug-find trace trace-expand warn-uninitialized no-warn-unused-cli check-system-vars find-package ${HELP_OF_CMAKE.flags} system-information`,
      values: `G A T U D target config preset t component default-directory-permissions ${HELP_OF_CMAKE.values}`,
      // -LAH, -Wno-dev; -j may stand alone.
      optionals:
        'L W j parallel resolve-package-references log-level log-context trace-format trace-source profiling-format debug-find-pkg debug-find-var list-presets',
      reads: 'S build install',
      produces: 'B graphviz trace-redirect profiling-output debugger-dap-log prefix install-prefix',
      // -E is a tool box of file commands.
      loads: 'C P E toolchain',
      executes: 'open',
    },
    inspect: inspectCmake,
    morePaths: writesHelp,
  }),
  ...programs('ninja samu', 'low', 'unknown', {
    grammar: {
      source: 'ninja 1.11.1',
      open: true,
      flags: 'v n verbose quiet h help version',
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
      source: 'ctest 3.25.1',
      flags: `V verbose extra-verbose debug Q quiet N F h H U union output-on-failure stop-on-failure progress rerun-failed no-label-summary no-subproject-summary build-nocmake build-two-config build-noclean tomorrow-tag force-new-ctest-process schedule-random no-compress-output print-labels list-presets http1.0 ${HELP_OF_CMAKE.flags}`,
      values: `j parallel R tests-regex E exclude-regex L label-regex label-exclude fixture-exclude-any fixture-exclude-setup fixture-exclude-cleanup C build-config D dashboard M test-model T test-action group repeat repeat-until-fail max-width W interactive-debug-mode preset test-output-size-passed test-output-size-failed test-output-truncation build-target build-generator build-generator-platform build-generator-toolset build-project build-config-sample build-options test-timeout test-load submit-index timeout stop-time ${HELP_OF_CMAKE.values}`,
      optionals: 'show-only no-tests',
      reads:
        'test-dir A add-notes I tests-information resource-spec-file build-run-dir build-exe-dir extra-submit',
      produces: 'O output-log output-junit',
      loads: 'S script script-new-process',
      executes: 'test-command build-and-test overwrite build-makeprogram',
    },
    morePaths: writesHelp,
    operands: 'none',
  }),
  ...programs(
    'meson bear autoconf automake autoreconf libtool scons waf xmake conan vcpkg icecc',
    'medium',
    'unknown',
  ),
  ...programs('gcc g++ cc c++ clang clang++ tcc nvcc', 'medium', 'unknown', {
    alsoCalled: withVersion('gcc g++ clang clang++'),
    // Compilers write what -o names, and run what -wrapper, -B and specs say.
    grammar: {
      source: 'gcc 12.2.0',
      open: true,
      style: 'single-dash',
      flags: 'c S E v pie shared pipe time w g M MM MD MMD MG MP',
      values:
        'x std MT MQ Xlinker Xassembler Xpreprocessor Xclang isystem iquote idirafter iprefix iwithprefix iwithprefixbefore isysroot target arch L I l D U A u z e G dumpdir dumpbase dumpbase-ext param',
      reads: 'include imacros T',
      writes: 'o MF MJ aux-info serialize-diagnostics',
      executes: 'wrapper specs fplugin B fuse-ld',
    },
    // `-oFILE`, `-MFFILE`.
    morePaths: ({ command: { words } }) =>
      words.flatMap((word) => {
        const option = /^-(?:o|MF)(?=.)/.exec(leadingText(word))?.[0];
        return option === undefined
          ? []
          : [{ argument: argumentOf(word, option.length), effect: 'writes' as const }];
      }),
  }),
  ...OBJECT_READERS,
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
  ...programs('cppcheck', 'low', 'unknown', {
    grammar: {
      source: 'cppcheck 2.10',
      open: true,
      style: 'single-dash',
      flags:
        'check-config check-library debug debug-normal debug-simplified debug-template debug-warnings doc E errorlist exception-handling f force h help inconclusive inline-suppr q quiet report-progress v verbose version xml',
      // All are attached, but for -I, -i, -D, -U, -j, -l and -x, which may be.
      values: 'D U I i j l x',
      optionals:
        'checks-max-time disable enable error-exitcode file-filter language max-configs max-ctu-depth platform premium project-configuration rp relative-paths rule showtime std suppress template template-location template-max-time typedef-max-time valueflow-max-iterations xml-version',
      reads:
        'exitcode-suppressions file-list includes-file config-exclude config-excludes-file include library rule-file suppressions-list suppress-xml project',
      loads: 'addon',
      writes: 'output-file plist-output cppcheck-build-dir checkers-report',
      // Beside each file that it looks at.
      writing: 'dump',
      executes: 'addon-python',
      executing: 'clang?',
    },
  }),
  ...programs('clang-tidy', 'low', 'unknown', {
    alsoCalled: withVersion('clang-tidy'),
    grammar: {
      source: 'clang-tidy 14.0.6',
      open: true,
      style: 'single-dash',
      flags:
        'help help-hidden help-list help-list-hidden version dump-config enable-check-profile explain-config list-checks quiet system-headers use-color',
      values:
        'checks config extra-arg extra-arg-before format-style header-filter line-filter warnings-as-errors',
      reads: 'config-file p vfsoverlay',
      loads: 'load',
      writes: 'export-fixes store-check-profile',
      writing: 'fix fix-errors fix-notes',
    },
  }),
  ...programs('iwyu', 'low', 'unknown', {
    grammar: {
      open: true,
      style: 'single-dash',
      writing: 'fix fix-errors',
      loads: 'load addon',
      writes: 'export-fixes',
    },
  }),
  ...programs('clang-format', 'low', 'local', {
    alsoCalled: withVersion('clang-format'),
    grammar: {
      source: 'clang-format 14',
      open: true,
      style: 'single-dash',
      flags:
        'Werror dry-run n dump-config output-replacements-xml sort-includes verbose help help-list version',
      values:
        'Wno-error assume-filename cursor fallback-style ferror-limit length lines offset qualifier-alignment style',
      reads: 'files',
      writing: 'i',
    },
    operands: 'reads',
  }),
  ...programs('shfmt', 'low', 'local', {
    grammar: {
      source: 'shfmt 3.6.0',
      open: true,
      style: 'single-dash',
      flags:
        'version l list d diff s simplify mn minify p posix bn binary-next-line ci case-indent sr space-redirects kp keep-padding fn func-next-line f find to-json from-json',
      values: 'ln language-dialect filename i indent',
      writing: 'w write',
    },
    operands: 'reads',
  }),
  ...programs('shellcheck', 'low', 'local', {
    grammar: {
      source: 'shellcheck 0.9.0',
      open: true,
      flags: 'a check-sourced list-optional norc V version x external-sources',
      values: 'i include e exclude f format o enable s shell S severity W wiki-link-count',
      optionals: 'C color',
      // -P and --source-path name where sourced files are looked for, which need not be there: left to be guessed.
    },
  }),
  ...programs('codespell', 'low', 'local', {
    grammar: {
      source: 'codespell 2.2.2',
      open: true,
      flags:
        'h help version d disable-colors c enable-colors s summary count e hard-encoding-detection f check-filenames H check-hidden',
      values:
        'builtin ignore-regex L ignore-words-list uri-ignore-words-list r regex uri-regex S skip i interactive q quiet-level A after-context B before-context C context',
      reads: 'D dictionary I ignore-words x exclude-file config toml',
      writing: 'w write-changes',
    },
  }),
  ...programs('hadolint', 'low', 'local', {
    grammar: {
      source: 'README.md of hadolint, commit 8f936c5e975d',
      open: true,
      flags: 'h help v version no-fail no-color V verbose strict-labels disable-ignore-pragma',
      values:
        'f format file-path-in-report error warning info style ignore trusted-registry require-label t failure-threshold',
      reads: 'c config',
    },
  }),
  ...programs('yamllint', 'low', 'local', {
    grammar: {
      source: 'yamllint 1.29.0',
      open: true,
      flags: 'h help list-files s strict no-warnings v version',
      values: 'd config-data f format',
      reads: 'c config-file',
    },
  }),
  ...programs('markdownlint', 'low', 'local', {
    grammar: {
      source: 'markdownlint-cli 0.48.0',
      open: true,
      exact: true,
      flags: 'h help V version d dot j json q quiet s stdin',
      // Those of --enable and --disable are as many as there are.
      values: 'configPointer i ignore',
      reads: 'p ignore-path',
      writes: 'o output',
      // Settings may be a script, as rules are.
      loads: 'c config r rules',
      writing: 'f fix',
    },
  }),
  ...programs('markdownlint-cli2', 'low', 'local', {
    grammar: {
      source: 'markdownlint-cli2 0.22.1',
      open: true,
      exact: true,
      flags: 'format help no-globs',
      values: 'configPointer',
      loads: 'config',
      writing: 'fix',
    },
  }),
  ...programs('typos', 'low', 'local', {
    grammar: {
      source: 'typos-cli of typos, commit 3bc303c2',
      open: true,
      exact: true,
      flags:
        'sort force-exclude isolated diff files file-types highlight-identifiers identifiers highlight-words words type-list v verbose q quiet binary no-binary hidden no-hidden ignore no-ignore ignore-dot no-ignore-dot ignore-global no-ignore-global ignore-parent no-ignore-parent ignore-vcs no-ignore-vcs check-filenames no-check-filenames check-files no-check-files unicode no-unicode h help V version',
      values: 'j threads locale exclude format color',
      reads: 'file-list c config',
      writes: 'dump-config',
      writing: 'w write-changes',
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
        'l ignore-whitespace c context n normal u unified N forward R reverse E remove-empty-files Z set-utc T set-time b backup backup-if-mismatch no-backup-if-mismatch t batch f force s quiet silent verbose dry-run posix binary follow-symlinks v version help',
      values:
        'p strip F fuzz D ifdef quoting-style V version-control z suffix x debug reject-format read-only',
      optionals: 'merge',
      reads: 'i input d directory',
      // What the names of its backups begin with may be another directory.
      writes: 'o output r reject-file B prefix Y basename-prefix',
      // It has ed run a script, or gets files by the programs of a version control.
      executing: 'e ed',
      executes: 'g get',
    },
    paths: ({ operands: [original, ...others] }) => [
      ...replacedPaths([original]),
      ...plainPaths(others, 'writes'),
    ],
    operands: 'writes',
    patches: (use) =>
      hasOption(use, 'dry-run') ? undefined : hasOption(use, 'R reverse') ? 'reverse' : 'forward',
  }),
];
