import { type Finding, finding, type Program, programs } from '../behaviour.ts';
import type { Use } from '../use.ts';

/** `make SHELL=…`, `--eval`: code on the command line instead of in the makefile. */
function inspectMake({ operands }: Use): readonly Finding[] {
  return operands
    .filter(
      ({ text }) =>
        /^(?:SHELL|\.SHELLFLAGS|MAKEFLAGS|MAKE|PATH|LD_\w+)\s*[:+?!]*=/.test(text) ||
        /\$[({]shell\b/.test(text),
    )
    .map(({ word }) =>
      finding('executes', 'make_variable', 'gets a variable that names a program', word.source),
    );
}

/** Builders and compilers. What their files say is code of the workspace. */
export const BUILD: readonly Program[] = [
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
      loads: 'P E',
      executes: 'toolchain',
    },
    operands: 'guess',
    // `-E` is a tool box of file commands; they change files.
  }),
  ...programs('ninja samu ctest', 'low', 'unknown', {
    grammar: {
      open: true,
      flags: 'v n V Q N output-on-failure progress rerun-failed k',
      values: 'j R E L t d l w',
      reads: 'C test-dir',
      loads: 'f S script SP',
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
  ...programs('ld lld gold mold as nm objdump readelf ldd size addr2line c++filt', 'low', 'local', {
    grammar: {
      open: true,
      style: 'single-dash',
      values: 'j M section',
      writes: 'o',
      executes: 'plugin load',
    },
    operands: 'guess',
  }),
  ...programs('objcopy strip ranlib patchelf install_name_tool', 'medium', 'local', { operands: 'guess' }),
  ...programs('clang-tidy cppcheck iwyu', 'low', 'unknown', {
    grammar: {
      open: true,
      style: 'single-dash',
      writing: 'fix fix-errors',
      loads: 'load',
      writes: 'export-fixes',
    },
    operands: 'guess',
  }),
  ...programs('clang-format shfmt', 'low', 'local', {
    grammar: { open: true, writing: 'i w', values: 'style', flags: 'd l' },
    operands: 'reads',
  }),
  ...programs(
    'shellcheck hadolint yamllint actionlint markdownlint markdownlint-cli2 codespell typos vale taplo checkov tflint buf protolint sqlfluff',
    'low',
    'local',
    {
      grammar: { open: true, writing: 'w fix write-changes', values: 's S e f format severity' },
      operands: 'guess',
    },
  ),
  ...programs(
    'protoc flatc thrift bison flex yacc lex m4 gperf swig doxygen pdflatex xelatex lualatex latexmk bibtex tex latex dot plantuml convert magick identify ffmpeg ffprobe sox gs inkscape',
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
