import { prefixOf, type Word } from '../../../model/index.ts';
import {
  type Behaviour,
  type Call,
  type Finding,
  finding,
  type Grammar,
  type PathUse,
  type ProgramRow,
  programs,
  type Runs,
  type Use,
  verbs,
  withVersion,
} from '../behaviour.ts';
import {
  argumentOf,
  behindOptions,
  hasOption,
  NOTHING,
  optionValue,
  parseOptions,
  readOptions,
  refused,
  runText,
  runWords,
} from '../options.ts';
import { scriptsOfManager } from '../package-scripts.ts';
import { npmStays } from '../stays-local.ts';

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
const JAVASCRIPT_TOOLS: readonly ProgramRow[] = [
  ...programs('tsc tsgo vue-tsc', 'low', 'unknown', {
    grammar: {
      source: 'typescript 7.0.2',
      open: true,
      style: 'single-dash',
      values: anyCase(
        't target m module lib jsx moduleResolution locale types checkers customConditions moduleSuffixes maxNodeModuleJsDepth mapRoot sourceRoot newLine jsxFactory jsxFragmentFactory jsxImportSource moduleDetection reactNamespace watchInterval watchFile watchDirectory fallbackPolling excludeDirectories excludeFiles builders',
      ),
      reads: anyCase('p project rootDir rootDirs baseUrl typeRoots'),
      writes: anyCase('outDir outFile declarationDir out'),
      produces: anyCase('tsBuildInfoFile generateTrace generateCpuProfile pprofDir'),
      writing: 'init',
      removing: 'clean',
    },
    inspect: inspectTsc,
  }),
  ...programs('eslint', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      source: 'eslint 10.15.0',
      flags:
        'h help v version quiet color no-color cache debug fix-dry-run no-inline-config no-eslintrc no-config-lookup no-ignore stdin report-unused-disable-directives pass-on-unpruned-suppressions env-info no-error-on-unmatched-pattern exit-on-fatal-error no-warn-ignored pass-on-no-patterns stats mcp',
      values:
        'f format ext rule env global max-warnings parser-options stdin-filename cache-strategy fix-type report-unused-disable-directives-severity report-unused-inline-configs flag concurrency',
      reads: 'ignore-path ignore-pattern print-config',
      loads: 'c config',
      writes: 'o output-file',
      produces: 'cache-location cache-file suppressions-location',
      writing: 'fix init suppress-all suppress-rule prune-suppressions',
      executes: 'plugin resolve-plugins-relative-to rulesdir parser',
      executing: 'inspect-config',
    },
    inspect: modules('f format', ESLINT_FORMATS),
  }),
  ...programs('jest', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      source: 'jest 30.5.2',
      flags: eitherCase(
        'i b o f h v e help version all automock cache changedFilesWithAncestor clearCache clearMocks collectCoverage collectTests color colors coverage debug detectLeaks detectOpenHandles errorOnDeprecated expand findRelatedTests forceExit injectGlobals lastCommit listTests logHeapUsage noStackTrace notify onlyChanged onlyFailures passWithNoTests randomize resetMocks resetModules restoreMocks runTestsByPath showConfig showSeed skipFilter testLocationInResults useStderr waitForUnhandledRejections watch watchAll watchman workerThreads runInBand ci silent verbose bail json',
      ),
      values: eitherCase(
        't testNamePattern w maxWorkers testPathPattern testPathPatterns env testEnvironment reporters preset test-environment changedSince collectCoverageFrom coveragePathIgnorePatterns coverageProvider coverageReporters coverageThreshold ignoreProjects maxConcurrency moduleFileExtensions modulePathIgnorePatterns notifyMode openHandlesTimeout seed selectProjects shard testEnvironmentOptions testFailureExitCode testMatch testPathIgnorePatterns testRegex testTimeout transformIgnorePatterns unmockedModulePathPatterns watchPathIgnorePatterns workerGracefulExitTimeout',
      ),
      reads: eitherCase('rootDir roots projects moduleDirectories modulePaths'),
      loads: eitherCase(
        'c config setupFiles setupFilesAfterEnv globalSetup globalTeardown runner testRunner test-runner resolver transform filter testSequencer testResultsProcessor snapshotSerializers watchPlugins dependencyExtractor moduleLoader moduleNameMapper prettierPath haste globals',
      ),
      writes: eitherCase('outputFile coverageDirectory'),
      produces: eitherCase('cacheDirectory'),
      writing: eitherCase('u updateSnapshot init'),
    },
    inspect: modules(
      'env testEnvironment test-environment reporters preset coverageReporters coverage-reporters',
    ),
  }),
  ...programs('vitest', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      source: 'vitest 4.1.12',
      flags: 'h help v version w run watch coverage',
      values: eitherCase(
        't testNamePattern reporter maxWorkers environment pool project coverage.provider coverage.include coverage.exclude coverage.reporter coverage.thresholds.lines coverage.thresholds.functions coverage.thresholds.branches coverage.thresholds.statements coverage.ignoreClassMethods coverage.processingConcurrency coverage.changed mode shard vmMemoryLimit testTimeout hookTimeout teardownTimeout bail retry exclude slowTestThreshold maxConcurrency expect.poll.interval expect.poll.timeout configLoader tagsFilter',
      ),
      optionals: eitherCase('silent changed inspect inspectBrk mergeReports listTags api'),
      reads: eitherCase('r root dir coverage.htmlDir'),
      loads: eitherCase(
        'c config globalSetup setupFiles runner diff snapshotEnvironment coverage.customProviderModule experimental.vcsProvider',
      ),
      writes: eitherCase('outputFile coverage.reportsDirectory attachmentsDir'),
      writing: 'u update init',
      executes: eitherCase('execArgv poolOptions.forks.execArgv poolOptions.threads.execArgv'),
    },
    inspect: modules('reporter environment pool coverage.reporter'),
  }),
  ...programs('mocha', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      source: 'mocha 12.0.3',
      flags:
        'A async-only b bail c color colors C no-color no-colors h help i invert p parallel G growl w watch exit V version allow-uncaught check-leaks delay diff no-diff dry-run fail-hook-affected-tests pass-on-failing-test-suite fail-zero forbid-only forbid-pending full-trace inline-diffs list-interfaces list-reporters posix-exit-codes recursive S sort',
      values: eitherCase(
        'f fgrep g grep j jobs s slow t timeout R reporter u ui O reporter-option reporter-options extension global globals watch-files watch-ignore retries timeouts',
      ),
      reads: 'spec ignore exclude package',
      loads: eitherCase('r require import loader experimental-loader config file'),
      executes: eitherCase('n node-option eval e'),
    },
    inspect: (use) => [...modules('R reporter', MOCHA_REPORTERS)(use), ...modules('u ui')(use)],
    morePaths: outputsOfMocha,
  }),
  ...programs('biome', 'low', 'unknown', {
    grammar: {
      open: true,
      exact: true,
      source: 'biome 2.6.8',
      flags:
        'h help use-server verbose skip-parse-errors no-errors-on-unmatched error-on-warnings profile-rules profile-type-inference staged changed watch',
      values:
        'reporter max-diagnostics diagnostic-level colors stdin-file-path only skip since log-prefix-name log-level log-kind reason threads enforce-assist indent-style indent-width line-ending line-width attribute-position bracket-same-line bracket-spacing delimiter-spacing expand trailing-newline use-editorconfig',
      loads: 'config-path',
      produces: 'log-file log-path',
      writes: 'reporter-file',
      writing: 'fix write apply apply-unsafe apply-suggested unsafe suppress',
    },
  }),
  ...programs(
    'ava tap karma xo standard knip depcheck madge ncu attw publint tsd dpdm size-limit',
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
    },
  ),
  ...programs('stylelint', 'low', 'unknown', {
    grammar: {
      source: 'stylelint 17.16.0',
      open: true,
      exact: true,
      flags:
        'print-config compute-edit-info cei stdin ignore-disables id disable-default-ignores di quiet q quiet-deprecation-warnings report-needless-disables rd report-invalid-scope-disables risd report-descriptionless-disables rdd allow-empty-input aei version v help h cache no-cache',
      values: 'f formatter ignore-pattern ip stdin-filename cache-strategy max-warnings mw globby-options go',
      reads: 'config-basedir i ignore-path',
      writes: 'o output-file suppress-location',
      produces: 'cache-location',
      loads: 'c config',
      writing: 'fix suppress',
      executes: 'custom-syntax custom-formatter',
    },
  }),
  ...programs('c8', 'low', 'unknown', {
    operands: 'none',
    // Two verbs of its own run nothing.
    runs: behindOptions((read) =>
      /^(?:report|check-coverage)$/.test(read.rest[0]?.value ?? '') ? NOTHING : runWords(read.rest),
    ),
    grammar: {
      source: 'c8 12.0.0',
      stopAtOperand: true,
      exact: true,
      flags: eitherCase(
        'help version all a exclude-node-modules exclude-after-remap skip-full check-coverage per-file 100 clean omit-relative allow-external merge-async experimental-monocart',
      ),
      values: eitherCase(
        'r reporter n include x exclude e extension branches functions lines statements wrapper-length',
      ),
      reads: 'src resolve',
      writes: eitherCase('o reports-dir report-dir temp-directory'),
      loads: 'c config',
    },
  }),
  ...programs('nyc', 'low', 'unknown', {
    operands: 'none',
    runs: behindOptions((read) =>
      /^(?:report|check-coverage|instrument|merge)$/.test(read.rest[0]?.value ?? '')
        ? NOTHING
        : runWords(read.rest),
    ),
    grammar: {
      source: 'nyc 18.0.0',
      stopAtOperand: true,
      exact: true,
      flags: eitherCase(
        'h help version exclude-node-modules auto-wrap es-modules compact preserve-comments produce-source-map source-map instrument exclude-after-remap per-file check-coverage show-process-tree skip-empty skip-full s silent a all eager c cache babel-cache use-spawn-wrap hook-require hook-run-in-context hook-run-in-this-context clean no-clean no-cache no-source-map no-instrument',
      ),
      values: eitherCase(
        'x exclude n include e extension ignore-class-methods parser-plugins branches functions lines statements r reporter',
      ),
      reads: 'cwd',
      writes: eitherCase('t temp-dir report-dir cache-dir'),
      loads: eitherCase('nycrc-path i require'),
    },
  }),
  ...programs('oxlint', 'low', 'unknown', {
    grammar: {
      source: 'oxlint 1.94.0',
      open: true,
      exact: true,
      flags:
        'disable-unicorn-plugin disable-oxc-plugin disable-typescript-plugin import-plugin react-plugin jsdoc-plugin jest-plugin vitest-plugin jsx-a11y-plugin nextjs-plugin react-perf-plugin promise-plugin node-plugin vue-plugin no-ignore quiet deny-warnings silent no-error-on-unmatched-pattern print-config report-unused-disable-directives rules lsp disable-nested-config type-aware type-check h help V version',
      values:
        'A allow W warn D deny ignore-pattern max-warnings f format debug threads report-unused-disable-directives-severity',
      reads: 'tsconfig ignore-path',
      loads: 'c config',
      writing: 'fix fix-suggestions fix-dangerously init',
    },
  }),
  ...programs('prettier', 'low', 'unknown', {
    grammar: {
      source: 'prettier 3.10.1',
      open: true,
      exact: true,
      flags:
        'c check l list-different u ignore-unknown bracket-same-line no-bracket-spacing no-experimental-ternaries jsx-single-quote no-semi single-attribute-per-line single-quote use-tabs vue-indent-script-and-style no-config no-editorconfig with-node-modules cache check-ignore-pragma no-color no-error-on-unmatched-pattern insert-pragma require-pragma no-plugin-search support-info v version',
      values:
        'parser log-level stdin-filepath arrow-parens cache-strategy config-precedence cursor-offset embedded-language-formatting end-of-line experimental-operator-position h help html-whitespace-sensitivity object-wrap print-width prose-wrap quote-props range-end range-start tab-width trailing-comma',
      reads: 'ignore-path file-info find-config-path',
      loads: 'config plugin',
      produces: 'cache-location',
      writing: 'w write',
    },
  }),
];

const CHANGES: Behaviour = { risk: 'medium', reach: 'network', operands: 'none', onlyFetches: false };
const SCRIPT: Behaviour = { risk: 'low', reach: 'network', operands: 'none' };
const READS: Behaviour = { risk: 'low', reach: 'network', operands: 'none', onlyFetches: true };
const PUBLISHES: Behaviour = { ...CHANGES, outward: 'changes what is published' };

/** `npm audit --fix` is `npm audit fix`. */
function fixes({ command, verbs: [, inner] }: Use): readonly Finding[] {
  return command.words
    .filter(({ value }) => inner === undefined && value !== undefined && /^--fix(?:=(?!false)|$)/.test(value))
    .map(({ source }) => finding('writes', 'rewrites', 'changes what is installed', source));
}

/** Programs of packages with the same name, which print their version and no more. */
const TOOLS_ASKED: ReadonlySet<string> = new Set(
  'tsc eslint prettier jest vitest mocha vite webpack rollup esbuild tsx stylelint'.split(' '),
);

/** `npx tsc --version`: what it would run is listed beside it, and does nothing. */
function asksVersion({ program, command }: Use): boolean {
  const words = command.words.slice(1).map(({ value }) => value);
  if (words[0] === '--no-install') words.shift();
  const [tool, option] = words;
  return (
    program.name === 'npx' &&
    words.length === 2 &&
    TOOLS_ASKED.has(tool ?? '') &&
    (option === '--version' || option === '--help' || (option === '-v' && tool === 'tsc'))
  );
}

const EXEC_VALUES = 'p c C package registry call loglevel prefix filter dir';
const EXEC: Grammar = {
  flags:
    'y q v h s yes no no-install quiet silent offline prefer-offline version help bun workspaces include-workspace-root ignore-existing recursive parallel',
  values: `w workspace ${EXEC_VALUES}`,
};

/** There `-w` is the root of the workspace. */
const EXEC_OF_PNPM: Grammar = {
  ...EXEC,
  flags: `${EXEC.flags} w workspace-root`,
  values: EXEC_VALUES,
};

/** `npx [options] [--] program words`, or `-c text`. */
function execute({ name, args }: Call): Runs {
  const read = readOptions(args, /^(?:pnpm|pnpx|yarn)$/.test(name) ? EXEC_OF_PNPM : EXEC);
  if (!read.ok) return refused(`${name}: ${read.message}`, read.word);
  const text = optionValue(read.options, 'c call');
  if (text !== undefined) return runText([text]);
  if (hasOption(read, 'version help v h')) return NOTHING;
  const dashes = read.rest.findIndex((word) => word.value === '--');
  // npm takes away the first "--" behind the program's name.
  const command = name === 'npm' && dashes === 1 ? read.rest.filter((_, index) => index !== 1) : read.rest;
  const elsewhere = hasOption(read, 'w workspace C prefix dir recursive filter');
  return runWords(command, elsewhere ? 'unknown' : undefined);
}

/** Programs that the package manager starts in place of its own. */
const EXECUTING =
  /^--?(?:script-shell|shell|editor|viewer|browser|git|node-options|init-module|ignore-scripts=false)\b/;

const EXECUTING_VERBS: Readonly<Record<string, RegExp>> = {
  npm: /^(?:exec|x|ex|exe)$/,
  pnpm: /^(?:exec|dlx)$/,
  yarn: /^(?:exec|dlx)$/,
  bun: /^(?:x)$/,
};

/** npm, pnpm, yarn and bun, with the verbs that run a program. Scripts of package.json are a file's business. */
function runsOfManager(call: Call): Runs {
  const { args } = call;
  const setting = args.find((word) => EXECUTING.test(prefixOf(word)));
  if (setting !== undefined)
    return refused(`${call.name}: ${setting.source} names a program to run.`, setting);
  const at = parseOptions(args, 0, call.grammar, true).next;
  const verb = args[at];
  if (verb === undefined) return NOTHING;
  if (verb.value === undefined)
    return refused(`${call.name}: the verb ${verb.source} must be written out.`, verb);
  if (call.name === 'npm' && verb.value === 'explore') return explore(args.slice(at + 2));
  if (EXECUTING_VERBS[call.name]?.test(verb.value) !== true) return NOTHING;
  return execute({ ...call, args: args.slice(at + 1) });
}

/** `npm explore package -- text`: a shell runs it in the package's folder. */
function explore(args: readonly Word[]): Runs {
  const text = args[0]?.value === '--' ? args.slice(1) : args;
  if (text.length === 0) return refused('npm explore would start a shell: name the command.', args[0]);
  return runText(text, 'posix', 'unknown');
}

/** Verbs of npm and its kin, with their aliases. */
const VERBS: Readonly<Record<string, Behaviour>> = {
  ...verbs(
    'install i in ins inst insta instal isnt isnta isntal isntall add a ci clean-install ic install-clean isntall-clean install-test it install-ci-test cit update up upgrade udpate uninstall un unlink remove rm r link ln rebuild rb dedupe ddp prune shrinkwrap import fetch',
    CHANGES,
  ),
  ...verbs(
    'pack version set config c get pkg cache init create innit exec x dlx start restart stop edit explore store patch patch-commit env setup self-update global workspace workspaces plugin set-script approve-builds licenses node server docs repo bugs',
    CHANGES,
  ),
  ...verbs(
    'publish unpublish deprecate undeprecate dist-tag dist-tags owner access team org token login logout adduser add-user star unstar hook profile trust deploy',
    PUBLISHES,
  ),
  ...verbs('run run-script rum urn test t tst build lint', SCRIPT),
  ...verbs('ls list la ll explain why root prefix', { ...READS, staysLocal: npmStays }),
  ...verbs(
    'outdated view info show v doctor help bin ping whoami search fund query diff sbom completion find-dupes',
    READS,
  ),
  audit: { ...READS, verbs: verbs('fix', CHANGES), inspect: fixes },
  config: { ...CHANGES, verbs: verbs('get list ls', READS) },
  c: { ...CHANGES, verbs: verbs('get list ls', READS) },
};

const MANAGER: Behaviour & { readonly versionOption: string } = {
  versionOption: '-v',
  runs: runsOfManager,
  recipes: scriptsOfManager,
  optionsAnywhere: true,
  operands: 'none',
  verbs: VERBS,
};
const MANAGER_OPTIONS: Grammar = {
  open: true,
  flags:
    's silent q quiet d dd ddd g global D save-dev no-audit no-fund offline prefer-offline r recursive ws if-present json',
  values: 'loglevel registry tag otp fetch-timeout https-proxy libc os proxy save-prefix user-agent package',
  reads: 'C prefix dir cwd',
  executes:
    'script-shell shell node-options git viewer editor browser onload-script init-module node-gyp python',
};

const NODE: Behaviour = {
  code: 'language',
  interprets: 'script',
  grammar: {
    open: true,
    flags: 'c check i interactive watch test enable-source-maps no-warnings',
    values: 'e eval p print input-type C conditions test-name-pattern test-reporter',
    // A module by name or path, loaded before the script.
    loads: 'r require import loader experimental-loader env-file',
  },
};

/** Options of its own that take a value, or write. Words behind the script are looked at too. */
const NODE_ITSELF: Grammar = {
  ...NODE.grammar,
  source: 'node 20.20.2',
  flags: `${NODE.grammar?.flags} h help v version`,
  values: `${NODE.grammar?.values} allow-fs-read allow-fs-write cpu-prof-interval disable-proto disable-warning dns-result-order experimental-default-type heap-prof-interval heapsnapshot-near-heap-limit heapsnapshot-signal inspect-port debug-port inspect-publish-uid max-http-header-size network-family-autoselection-attempt-timeout policy-integrity report-signal secure-heap secure-heap-min test-concurrency test-shard test-timeout title tls-cipher-list trace-event-categories unhandled-rejections use-largepages v8-pool-size`,
  optionals: 'inspect inspect-brk inspect-wait trace-require-module',
  reads: 'icu-data-dir watch-path',
  produces:
    'cpu-prof-dir cpu-prof-name diagnostic-dir heap-prof-dir heap-prof-name report-directory report-dir report-filename',
  writes: 'redirect-warnings test-reporter-destination tls-keylog trace-event-file-pattern',
  loads: `${NODE.grammar?.loads} env-file-if-exists build-snapshot-config experimental-policy experimental-sea-config openssl-config snapshot-blob`,
};

/** Options of its run time; what is missing here are flags. */
const BUN: Grammar = {
  source: 'bun 1.4.5',
  open: true,
  exact: true,
  values:
    'elide-lines shell F filter watch-kill-signal cpu-prof-interval heap-prof-interval install e eval p print port conditions fetch-preconnect max-http-header-size dns-result-order disable-warning title unhandled-rejections console-depth user-agent cron-title cron-period main-fields extension-order d define drop feature l loader jsx-factory jsx-fragment jsx-import-source jsx-runtime',
  optionals: 'inspect inspect-wait inspect-brk',
  reads: 'cwd env-file tsconfig-override',
  loads: 'r preload require import c config',
  produces: 'cpu-prof-name cpu-prof-dir heap-prof-name heap-prof-dir',
  writes: 'redirect-warnings',
};
const BUN_TEST: Grammar = {
  ...BUN,
  flags: 'u update-snapshots',
  values: `${BUN.values} timeout rerun-each retry seed coverage-reporter t test-name-pattern reporter max-concurrency path-ignore-patterns parallel-delay shard`,
  optionals: `${BUN.optionals} bail changed parallel`,
  produces: `${BUN.produces} coverage-dir`,
  writes: `${BUN.writes} reporter-outfile timings`,
};
const BUN_BUILD: Grammar = {
  ...BUN,
  values: `${BUN.values} bytecode-order bytecode-depth compile-jit-policy target banner footer format min-chunk-size public-path external allow-unresolved packages entry-naming chunk-naming asset-naming env`,
  optionals: 'sourcemap css-chunking',
  reads: `${BUN.reads} root asset`,
  writes: 'outdir outfile metafile metafile-md',
  executes: 'compile-executable-path compile-exec-argv',
};

/** One grammar for all verbs of deno: what they have in common, and what some write. */
const DENO: Grammar = {
  source: 'deno 2.9.6',
  open: true,
  exact: true,
  flags:
    'A allow-all no-prompt q quiet V version no-clear-screen no-code-cache use-env-proxy no-remote no-npm no-config no-lock cached-only doc no-run clean shuffle parallel permit-no-files json compact rules no-editorconfig members if-present no-prefix no-save prod',
  values:
    'L log-level ext watch-exclude node-modules-linker min-dep-age inspect-publish-uid location seed conditions filter coverage-threshold reporter retry repeats shard line-width indent-width prose-wrap target engine app-name os arch',
  optionals:
    'h help check no-check watch hmr r reload frozen-lockfile node-modules-dir vendor unsafely-ignore-certificate-errors inspect inspect-brk inspect-wait v8-flags allow-scripts P permission-set R allow-read W allow-write I allow-import N allow-net E allow-env S allow-sys allow-run allow-ffi deny-read deny-write deny-net deny-env deny-sys deny-run deny-ffi deny-import ignore-env ignore-read fail-fast changed ignore use-tabs single-quote rules-tags rules-include rules-exclude env-file lock',
  reads: 'cert related icon include exclude cwd',
  loads: 'c config import-map preload require',
  produces: 'junit-path',
  producesAttached: 'coverage',
  writes: 'o output root',
  writing: 'fix u update-snapshots',
};

/** Node and what comes with it. */
export const JAVASCRIPT: readonly ProgramRow[] = [
  ...programs('npm', 'medium', 'network', {
    ...MANAGER,
    grammar: {
      ...MANAGER_OPTIONS,
      source: 'npm 11.19.1',
      // Some are the beginning of another one's name, which has a value.
      flags: `${MANAGER_OPTIONS.flags} audit provenance diff-name-only allow-same-version`,
      values: `${MANAGER_OPTIONS.values} w workspace m message L location F filter access allow-directory allow-file allow-git allow-remote also audit-level auth-type before ca cache-max cache-min cert cidr cpu depth diff diff-dst-prefix diff-src-prefix diff-unified expect-result-count expires fetch-retries fetch-retry-factor fetch-retry-maxtimeout fetch-retry-mintimeout heading include init-author-email init-author-name init-author-url init-license init-type init-version install-strategy key local-address lockfile-version logs-max maxsockets min-release-age min-release-age-exclude name noproxy omit only orgs orgs-permission packages packages-and-scopes-permission preid replace-registry-host sbom-format sbom-type scope scopes searchexclude searchlimit searchopts searchstaleness tag-version-prefix token-description umask`,
      reads: `${MANAGER_OPTIONS.reads} cafile nodedir provenance-file`,
      writes: 'cache userconfig globalconfig pack-destination logs-dir',
    },
  }),
  ...programs('pnpm', 'medium', 'network', {
    ...MANAGER,
    grammar: {
      ...MANAGER_OPTIONS,
      source: 'pnpm 12.21.0',
      flags: `${MANAGER_OPTIONS.flags} w workspace-root workspace lockfile save-catalog merge-git-branch-lockfiles`,
      values: `${MANAGER_OPTIONS.values} F filter filter-prod access allow-build changed-files-ignore-pattern cpu depth fetch-min-speed-ki-bps fetch-warn-timeout-ms find-by http-proxy merge-git-branch-lockfiles-branch-pattern network-concurrency no-proxy node-linker pack-gzip-level pnpr-server publication-name publish-branch publish-wait-timeout reporter resume-from save-catalog-name test-pattern upload-variant variant variant-integrity workspace-concurrency workspace-packages`,
      reads: `${MANAGER_OPTIONS.reads} env-file npmrc-auth-file release-notes`,
      loads: 'config-dir global-pnpmfile pnpmfile',
      writes:
        'cache userconfig globalconfig pack-destination out store-dir virtual-store-dir modules-dir lockfile-dir global-dir global-bin-dir state-dir cache-dir',
    },
  }),
  ...programs('yarn', 'medium', 'network', {
    ...MANAGER,
    grammar: {
      ...MANAGER_OPTIONS,
      source: 'yarn 1.22.22',
      values: `${MANAGER_OPTIONS.values} mutex network-concurrency network-timeout depth`,
      loads: 'use-yarnrc',
      writes: 'modules-folder cache-folder preferred-cache-folder global-folder link-folder',
    },
  }),
  ...programs('bun', 'medium', 'network', {
    code: 'language',
    interprets: 'script',
    runs: runsOfManager,
    recipes: scriptsOfManager,
    grammar: BUN,
    verbs: {
      ...VERBS,
      ...verbs('run x create upgrade', CHANGES),
      test: { ...SCRIPT, grammar: BUN_TEST },
      build: { ...CHANGES, grammar: BUN_BUILD },
    },
  }),
  ...programs('npx bunx pnpx', 'medium', 'network', {
    operands: 'none',
    onlyReads: asksVersion,
    runs: execute,
  }),
  ...programs('yarnpkg corepack nvm fnm volta n', 'medium', 'network', {
    operands: 'none',
    onlyReads: asksVersion,
  }),
  ...programs('node nodejs', 'medium', 'network', {
    alsoCalled: withVersion('node'),
    ...NODE,
    grammar: NODE_ITSELF,
    versionOption: '-v',
  }),
  ...programs('deno', 'medium', 'network', { ...NODE, grammar: DENO }),
  ...programs('tsx', 'medium', 'network', {
    ...NODE,
    grammar: {
      ...NODE_ITSELF,
      source: 'tsx 4.23.15 and node 20.20.2',
      flags: `${NODE_ITSELF.flags} no-cache`,
      loads: `${NODE_ITSELF.loads} tsconfig`,
    },
  }),
  ...programs('ts-node ts-node-esm', 'medium', 'network', {
    ...NODE,
    grammar: {
      source: 'ts-node 10.9.2',
      open: true,
      exact: true,
      flags: eitherCase(
        'p print i interactive h help v version s script-mode T transpile-only H compiler-host files pretty skip-project skip-ignore prefer-ts-exts log-error esm emit type-check cwd-mode show-config scope swc no-experimental-repl-await',
      ),
      values: eitherCase(
        'e eval I ignore D ignore-diagnostics O compiler-options experimental-specifier-resolution',
      ),
      reads: eitherCase('P project dir cwd scope-dir'),
      // Both of them are modules.
      loads: 'r require C compiler transpiler',
    },
  }),
  ...programs('esno swc-node babel-node zx electron', 'medium', 'network', NODE),
  ...JAVASCRIPT_TOOLS,
  ...programs('vercel netlify firebase wrangler changeset lerna semantic-release', 'medium', 'unknown', {
    outward: ({ command, program }) =>
      program.name === 'semantic-release' ||
      command.words.some(({ value }) =>
        /^(?:deploy(?::.*)?|publish|promote|rollback|--prod)$/.test(value ?? ''),
      )
        ? 'changes what runs or is published elsewhere'
        : undefined,
  }),
  ...programs('rimraf del-cli', 'high', 'unknown', { operands: 'removes' }),
  ...programs(
    'vite next nuxt astro webpack rollup esbuild parcel turbo nx tsup rslib rspack unbuild storybook svelte-kit gatsby ng vue expo metro remix playwright cypress puppeteer lighthouse husky lint-staged prisma drizzle-kit typeorm sequelize http-server serve npm-run-all run-s run-p dotenv pm2 gulp grunt bower lefthook nest',
    'medium',
    'unknown',
  ),
];
