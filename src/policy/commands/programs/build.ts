import { type Finding, finding, type ProgramRow, programs } from '../behaviour.ts';
import type { Use } from '../use.ts';
import { variableRule } from '../variables.ts';

/** `make SHELL=…` is code on the command line; `CC=…` names a program as the environment does. */
function inspectMake({ operands }: Use): readonly Finding[] {
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

/** Settings of cmake that name programs or files of code. */
function inspectCmake({ options }: Use): readonly Finding[] {
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

/** Builders and compilers. What their files say is code of the workspace. */
export const BUILD: readonly ProgramRow[] = [
  ...programs('make gmake', 'low', 'unknown', {
    grammar: {
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
      flags: 'L A',
      values: 'G D j parallel target config preset t',
      reads: 'S B build C',
      // -E is a tool box of file commands.
      loads: 'P E toolchain',
    },
    operands: 'guess',
    inspect: inspectCmake,
  }),
  ...programs('ninja samu ctest', 'low', 'unknown', {
    grammar: {
      open: true,
      flags: 'v n V Q N output-on-failure progress rerun-failed k',
      values: 'j R E L t d l w',
      reads: 'C test-dir',
      loads: 'f S script SP',
      executes: 'test-command build-and-test overwrite',
    },
    operands: 'none',
  }),
  ...programs(
    'meson bear autoconf automake autoreconf libtool scons waf xmake conan vcpkg ccache sccache distcc icecc',
    'medium',
    'unknown',
    {
      operands: 'guess',
    },
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
    operands: 'guess',
  }),
  ...programs('nm objdump readelf size addr2line c++filt', 'low', 'local', {
    grammar: {
      open: true,
      style: 'single-dash',
      values: 'j M section',
      writes: 'o',
      executes: 'plugin load',
    },
    operands: 'guess',
  }),
  ...programs('ld lld gold mold as ldd objcopy strip ranlib patchelf install_name_tool', 'medium', 'local', {
    operands: 'guess',
  }),
  ...programs('clang-tidy cppcheck iwyu', 'low', 'unknown', {
    grammar: {
      open: true,
      style: 'single-dash',
      writing: 'fix fix-errors',
      loads: 'load addon',
      writes: 'export-fixes',
    },
    operands: 'guess',
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
    operands: 'guess',
  }),
  ...programs(
    'actionlint vale taplo checkov tflint buf protolint sqlfluff protoc flatc thrift bison flex yacc lex m4 gperf swig doxygen pdflatex xelatex lualatex latexmk bibtex tex latex dot plantuml convert magick identify ffmpeg ffprobe sox gs inkscape',
    'medium',
    'unknown',
    {
      operands: 'guess',
    },
  ),
  ...programs('patch', 'medium', 'local', {
    grammar: {
      open: true,
      flags: 'R N E s f u t b',
      values: 'p F V z',
      reads: 'i input d directory',
      writes: 'o output r reject-file',
    },
    operands: 'writes',
  }),
];
