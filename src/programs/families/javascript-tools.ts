import type { Use } from '../behaviour.ts';
import { type Finding, finding, type PathUse, type ProgramRow, programs } from '../behaviour.ts';
import { argumentOf } from '../options.ts';

/** The options of these names load a module unless their value is known, or at least no path. */
function modules(names: string, known?: ReadonlySet<string>): (use: Use) => readonly Finding[] {
  const wanted = new Set(names.split(' '));
  return ({ options }) =>
    options
      .filter(({ name, value }) => {
        if (!wanted.has(name) || value === undefined) return false;
        if (!value.complete) return true;
        return known === undefined ? /^[./~]/.test(value.text) : !known.has(value.text);
      })
      .map(({ name, word }) =>
        finding('loads', 'loads_by_option', `runs code from a file through --${name}`, word.source),
      );
}

/** Formats that come with eslint, in one version or another. */
const ESLINT_FORMATS: ReadonlySet<string> = new Set(
  'stylish json json-with-metadata html compact unix tap junit checkstyle jslint-xml visualstudio codeframe table'.split(
    ' ',
  ),
);
const MOCHA_REPORTERS: ReadonlySet<string> = new Set(
  'spec dot nyan tap landing list progress json json-stream html min doc markdown xunit base github'.split(
    ' ',
  ),
);

/** `--reporter-option output=FILE`. */
function outputsOfMocha({ options }: Use): readonly PathUse[] {
  return options.flatMap(({ name, value }) => {
    const match = /^O$|^reporter-options?$/.test(name)
      ? /(?:^|,)(?:output|filename|mochaFile)=/.exec(value?.text ?? '')
      : null;
    return match === null || value === undefined
      ? []
      : [
          {
            argument: argumentOf(value.word, value.start + match.index + match[0].length),
            effect: 'writes' as const,
          },
        ];
  });
}

/** `tsc @file` reads more options there. */
function inspectTsc({ operands }: Use): readonly Finding[] {
  return operands
    .filter(({ text }) => text[0] === '@')
    .map(({ word }) => finding('loads', 'response_file', 'reads more options from a file', word.source));
}

/** tsc takes its options in any case. */
function anyCase(names: string): string {
  return [...new Set([...names.split(' '), ...names.toLowerCase().split(' ')])].join(' ');
}

/** yargs and cac take `--testRunner` and `--test-runner` alike. */
function eitherCase(names: string): string {
  const both = names
    .split(' ')
    .flatMap((name) => [
      name,
      name.replace(/(?<=[a-z])[A-Z]/g, (letter) => `-${letter.toLowerCase()}`),
      name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    ]);
  return [...new Set(both)].join(' ');
}

/** Compilers, linters and test runners. Their configuration is code of the workspace, like a test that they run. */
export const JAVASCRIPT_TOOLS: readonly ProgramRow[] = [
  ...programs('tsc tsgo vue-tsc', 'low', 'unknown', {
    grammar: {
      open: true,
      style: 'single-dash',
      values: anyCase('t target m module lib jsx moduleResolution locale types'),
      reads: anyCase('p project rootDir baseUrl typeRoots'),
      writes: anyCase('outDir outFile declarationDir out'),
      produces: anyCase('tsBuildInfoFile generateTrace generateCpuProfile'),
      writing: 'init',
      removing: 'clean',
    },
    operands: 'guess',
    inspect: inspectTsc,
  }),
  ...programs('eslint', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      flags: 'h v quiet color no-color cache debug fix-dry-run no-inline-config no-eslintrc no-ignore stdin',
      values: 'f format ext rule env global max-warnings parser-options stdin-filename cache-strategy',
      reads: 'ignore-path ignore-pattern',
      loads: 'c config',
      writes: 'o output-file',
      produces: 'cache-location cache-file suppressions-location',
      writing: 'fix init suppress-all suppress-rule prune-suppressions',
      executes: 'plugin resolve-plugins-relative-to rulesdir parser',
      executing: 'inspect-config',
    },
    operands: 'guess',
    inspect: modules('f format', ESLINT_FORMATS),
  }),
  ...programs('jest', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      flags: 'i b o f h v e coverage watch watchAll runInBand ci silent verbose bail json',
      values: eitherCase(
        't testNamePattern w maxWorkers testPathPattern testPathPatterns env testEnvironment reporters preset test-environment',
      ),
      reads: eitherCase('rootDir roots'),
      loads: eitherCase(
        'c config setupFiles setupFilesAfterEnv globalSetup globalTeardown runner testRunner test-runner resolver transform filter testSequencer testResultsProcessor snapshotSerializers watchPlugins dependencyExtractor moduleLoader prettierPath haste globals',
      ),
      writes: eitherCase('outputFile coverageDirectory'),
      produces: eitherCase('cacheDirectory'),
      writing: eitherCase('u updateSnapshot init'),
    },
    operands: 'guess',
    inspect: modules('env testEnvironment test-environment reporters preset'),
  }),
  ...programs('vitest', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      flags: 'h v w run watch coverage silent',
      values: eitherCase('t testNamePattern reporter maxWorkers environment pool project'),
      reads: 'r root dir',
      loads: eitherCase(
        'c config globalSetup setupFiles runner diff snapshotEnvironment coverage.customProviderModule',
      ),
      writes: eitherCase('outputFile coverage.reportsDirectory'),
      writing: 'u update init',
      executes: eitherCase('execArgv poolOptions.forks.execArgv poolOptions.threads.execArgv'),
    },
    operands: 'guess',
    inspect: modules('reporter environment pool'),
  }),
  ...programs('mocha', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      flags: 'A b bail c color colors C h help i invert p parallel G growl w watch exit V version',
      values: eitherCase(
        'f fgrep g grep j jobs s slow t timeout R reporter u ui O reporter-option reporter-options extension',
      ),
      reads: 'spec ignore package',
      loads: eitherCase('r require import loader experimental-loader config file'),
      executes: eitherCase('n node-option eval e'),
    },
    operands: 'guess',
    inspect: (use) => [...modules('R reporter', MOCHA_REPORTERS)(use), ...modules('u ui')(use)],
    morePaths: outputsOfMocha,
  }),
  ...programs('biome', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      values: 'reporter max-diagnostics diagnostic-level colors stdin-file-path only skip',
      loads: 'config-path',
      writing: 'fix write apply apply-unsafe apply-suggested unsafe',
    },
    operands: 'guess',
  }),
  ...programs(
    'ava tap c8 karma oxlint xo standard stylelint knip depcheck madge ncu attw publint tsd dpdm size-limit',
    'low',
    'unknown',
    {
      grammar: {
        open: true,
        values: 't w ext format rule reporter env target module',
        reads: 'p project root',
        loads: 'c config r require',
        writes: 'o output-file outputFile',
        // --fix and its kin change what they are given.
        writing: 'fix write init u update-snapshots',
        executes: 'plugin rulesdir parser custom-formatter custom-syntax node-arguments node-arg',
      },
      operands: 'guess',
    },
  ),
  ...programs('prettier', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      flags: 'c check l list-different u ignore-unknown',
      values: 'parser log-level stdin-filepath',
      reads: 'ignore-path',
      loads: 'config plugin',
      produces: 'cache-location',
      writing: 'w write',
    },
    operands: 'guess',
  }),
];
