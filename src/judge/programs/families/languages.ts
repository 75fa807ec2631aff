import {
  type Behaviour,
  type Finding,
  finding,
  type Grammar,
  type PathUse,
  type ProgramRow,
  programs,
  type Use,
  verbs,
  withVersion,
} from '../behaviour.ts';
import { argumentOf, hasOption } from '../options.ts';
import { cargoStays } from '../stays-local.ts';

const LOW: Behaviour = { risk: 'low' };
const MEDIUM: Behaviour = { risk: 'medium' };

/** `cargo doc --open` starts a browser; its name may come from the settings of the workspace. */
function opensBrowser({ command }: Use): readonly Finding[] {
  return command.words
    .filter(({ value }) => value === '--open')
    .map(({ source }) => finding('loads', 'opens_browser', 'starts a browser', source));
}

/** The linker that -ldflags names is a program. */
function inspectGo({ options }: Use): readonly Finding[] {
  return options
    .filter(({ name, value }) => name === 'ldflags' && value?.word.source.includes('-extld') === true)
    .map(({ word }) =>
      finding('executes', 'executes_by_option', 'can run a program through -extld', word.source),
    );
}

const RUST_VALUES =
  'C codegen Z crate-type crate-name edition cfg check-cfg extern target A allow W warn force-warn D deny F forbid cap-lints error-format json color diagnostic-width remap-path-prefix';

/** `-C linker=PROGRAM` and its kin. */
function inspectRust({ options }: Use): readonly Finding[] {
  return options
    .filter(
      ({ name, value }) =>
        /^(?:C|codegen|Z)$/.test(name) &&
        value !== undefined &&
        (!value.complete || /^(?:linker|ar|codegen-backend|llvm-plugins)=/.test(value.text)),
    )
    .map(({ word }) =>
      finding('executes', 'executes_by_option', 'can run a program through its settings', word.source),
    );
}

/** `--emit TYPE=FILE`, `--print INFO=FILE`. */
function outputsOfRust({ options }: Use): readonly PathUse[] {
  return options.flatMap(({ name, value }) => {
    const equals = /^(?:emit|print)$/.test(name) ? (value?.text.indexOf('=') ?? -1) : -1;
    return value === undefined || equals < 0
      ? []
      : [{ argument: argumentOf(value.word, value.start + equals + 1), effect: 'writes' as const }];
  });
}

const RUBY: Behaviour = {
  code: 'language',
  grammar: { open: true, values: 'e', loads: 'r' },
  verbs: {
    ...verbs('list show info check outdated', LOW),
    ...verbs('exec install update add remove', MEDIUM),
  },
};
const PHP: Behaviour = {
  code: 'language',
  grammar: { open: true, values: 'r d', flags: 'l i m', reads: 'working-dir' },
  verbs: verbs('show validate outdated why diagnose licenses', LOW),
};
/** `-d NAME=VALUE`: some settings of PHP name a file of code. */
function inspectPhpunit({ options }: Use): readonly Finding[] {
  return options
    .filter(
      ({ name, value }) =>
        name === 'd' &&
        value !== undefined &&
        (!value.complete ||
          /^(?:auto_(?:ap|pre)pend_file|(?:zend_)?extension|include_path)\b/.test(value.text)),
    )
    .map(({ word }) => finding('loads', 'loads_by_option', 'runs code from a file through -d', word.source));
}
/** Rules and filters of phpcs may be files, which name code or are such. */
function loadsStandard({ options }: Use): readonly Finding[] {
  return options
    .filter(
      ({ name, value }) =>
        /^(?:standard|filter)$/.test(name) &&
        value !== undefined &&
        (!value.complete || value.text.includes('/')),
    )
    .map(({ name, word }) =>
      finding('loads', 'loads_by_option', `runs code from a file through --${name}`, word.source),
    );
}

/** `--report-json=FILE`, for each kind of report. */
function reportsOfPhpcs({ command }: Use): readonly PathUse[] {
  return command.words.flatMap((word) => {
    const match = /^--report-(?!file=|width=)\w+=/.exec(word.value ?? '');
    return match === null ? [] : [{ argument: argumentOf(word, match[0].length), effect: 'writes' as const }];
  });
}
const BUNDLE_EXEC: Behaviour = {
  ...MEDIUM,
  operands: 'none',
  launches: {},
  grammar: {
    stopAtOperand: true,
    flags: 'keep-file-descriptors no-color verbose V',
    values: 'gemfile r retry',
  },
};
const BUNDLE_CHANGES: Behaviour = {
  ...MEDIUM,
  grammar: {
    open: true,
    flags:
      'clean deployment redownload force frozen full-index local no-cache no-prune q quiet system no-color verbose V print patch minor major strict conservative',
    values: 'j jobs r retry shebang trust-policy with without g group v version add-platform remove-platform',
    optionals: 'standalone',
    reads: 'gemfile',
    writes: 'path lockfile cache-path',
    producesAttached: 'binstubs',
  },
};

/** What builds, and what builds before it runs, takes the same options. */
const GO_BUILD: Grammar = {
  style: 'single-dash',
  open: true,
  flags:
    'a n race msan asan v work x linkshared modcacherw trimpath buildvcs cover benchmem failfast json short c i e m u compiled deps export find test versions retracted',
  values:
    'run bench benchtime count timeout tags asmflags ldflags gcflags buildmode compiler installsuffix mod p cpu covermode coverpkg f skip fuzz fuzztime fuzzminimizetime list parallel shuffle vet blockprofilerate memprofilerate mutexprofilefraction reuse',
  writes:
    'o coverprofile cpuprofile memprofile blockprofile mutexprofile trace outputdir test.coverprofile test.cpuprofile test.memprofile test.blockprofile test.mutexprofile test.trace test.outputdir test.testlogfile',
  produces: 'pkgdir',
  reads: 'C pgo',
  loads: 'overlay modfile',
  executes: 'exec toolexec vettool gccgoflags',
};

const PUBLISHES = 'changes what is published';

const CARGO_CHANGES: Behaviour = {
  risk: 'medium',
  operands: 'none',
  grammar: {
    open: true,
    values:
      'Z color F features p package j jobs bin example target profile message-format exclude version index registry git branch tag rev rename base vcs edition name',
    reads: 'manifest-path path',
    produces: 'lockfile-path',
    writes: 'target-dir root',
    executes: 'config',
  },
};

/** Compilers, run times and project tools of other languages. */
export const LANGUAGES: readonly ProgramRow[] = [
  ...programs('cargo', 'medium', 'network', {
    operands: 'none',
    grammar: {
      source: 'cargo 1.95.0',
      open: true,
      exact: true,
      flags: 'V version list h help v verbose q quiet offline locked frozen',
      values: 'color Z explain',
      reads: 'C',
      executes: 'config',
    },
    verbs: {
      ...verbs(
        'build b check c test t bench doc d clippy tree metadata search info locate-project pkgid read-manifest verify-project version help report nextest audit deny outdated machete udeps llvm-cov expand',
        {
          risk: 'low',
          operands: 'none',
          grammar: {
            open: true,
            values:
              'Z p package F features j jobs bin bench example target profile message-format exclude test color e edges i invert prune depth prefix charset f format filter-platform format-version limit registry index',
            reads: 'manifest-path',
            produces: 'lockfile-path',
            writes: 'target-dir artifact-dir out-dir',
            executes: 'config',
            writing: 'fix',
          },
          inspect: opensBrowser,
          staysLocal: cargoStays,
        },
      ),
      fmt: {
        risk: 'low',
        operands: 'none',
        grammar: { open: true, flags: 'check', reads: 'manifest-path' },
        inspect: ({ command }) =>
          command.words.some(({ value }) => value === '--check')
            ? []
            : [finding('writes', 'rewrites', 'rewrites files', 'fmt')],
      },
      ...verbs(
        'add remove rm install uninstall clean update login logout fix package fetch generate-lockfile run r',
        CARGO_CHANGES,
      ),
      ...verbs('new init', { ...CARGO_CHANGES, operands: 'writes' }),
      vendor: {
        ...CARGO_CHANGES,
        operands: 'writes',
        grammar: { ...CARGO_CHANGES.grammar, reads: 's sync manifest-path' },
      },
      ...verbs('publish yank owner', { ...CARGO_CHANGES, outward: PUBLISHES }),
    },
  }),
  ...programs('rustc', 'medium', 'unknown', {
    grammar: {
      source: 'rustc 1.95.0',
      open: true,
      exact: true,
      flags: 'h help g O test V version v verbose',
      values: `${RUST_VALUES} l emit print explain remap-path-scope`,
      reads: 'L',
      writes: 'o out-dir',
      loads: 'sysroot',
      executes: 'linker',
    },
    inspect: inspectRust,
    morePaths: outputsOfRust,
  }),
  ...programs('rustdoc', 'medium', 'unknown', {
    grammar: {
      source: 'rustdoc 1.95.0',
      open: true,
      exact: true,
      flags:
        'h help V version v verbose extern-html-root-takes-precedence document-private-items document-hidden-items test markdown-no-toc display-doctest-warnings sort-modules-by-appearance enable-index-page show-coverage check generate-redirect-map no-run show-type-layout no-capture nocapture generate-link-to-definition scrape-tests html-no-source disable-minification generate-macro-expansion no-defaults',
      values: `${RUST_VALUES} w output-format r input-format extern-html-root-url test-args markdown-playground-url playground-url crate-version default-theme default-setting resource-suffix static-root-path test-runtool-arg emit merge-doctests scrape-examples-target-crate merge doctest-build-arg passes`,
      reads:
        'L library-path test-run-directory markdown-css html-in-header html-before-content html-after-content markdown-before-content markdown-after-content e extend-css theme check-theme index-page with-examples include-parts-dir',
      writes: 'o out-dir output persist-doctests scrape-examples-output-path parts-out-dir',
      loads: 'sysroot plugin-path plugins',
      executes: 'linker test-runtool test-builder test-builder-wrapper',
    },
    inspect: inspectRust,
    morePaths: outputsOfRust,
  }),
  ...programs('rustup', 'medium', 'unknown', {
    grammar: { source: 'rustup 1.29.0', open: true, flags: 'q v h V quiet verbose help version' },
    verbs: {
      run: {
        operands: 'none',
        grammar: { stopAtOperand: true, flags: 'install' },
        launches: { operands: 1 },
      },
    },
  }),
  ...programs(
    'rustfmt cbindgen bindgen wasm-pack trunk maturin cross miri just task mage',
    'medium',
    'unknown',
  ),
  ...programs('go', 'medium', 'network', {
    grammar: { source: 'go 1.19.8', style: 'single-dash', open: true, reads: 'C' },
    verbs: {
      ...verbs('build test vet list env version doc help', {
        risk: 'low',
        operands: 'guess',
        grammar: GO_BUILD,
        inspect: inspectGo,
      }),
      env: {
        risk: 'low',
        operands: 'none',
        grammar: { style: 'single-dash', open: true, writing: 'w u' },
      },
      mod: {
        risk: 'medium',
        operands: 'none',
        verbs: verbs('graph verify why', { risk: 'low' }),
      },
      run: {
        risk: 'medium',
        operands: 'guess',
        // Words behind the package are its own.
        grammar: { ...GO_BUILD, stopAtOperand: true },
        inspect: inspectGo,
      },
      ...verbs('get install generate clean work tool fix telemetry bug fmt', {
        risk: 'medium',
        operands: 'guess',
        grammar: GO_BUILD,
        inspect: inspectGo,
      }),
    },
  }),
  ...programs('gofmt', 'low', 'local', {
    grammar: {
      source: 'go 1.19.8',
      style: 'single-dash',
      open: true,
      flags: 'l d e s h help',
      values: 'r',
      writing: 'w',
      writes: 'cpuprofile',
    },
    operands: 'reads',
  }),
  ...programs('goimports', 'low', 'local', {
    grammar: {
      source: 'cmd/goimports of golang/tools, commit 8f0f8c7bde0e',
      style: 'single-dash',
      open: true,
      flags: 'l d e v format-only h help',
      values: 'srcdir local memrate',
      writing: 'w',
      writes: 'cpuprofile memprofile trace',
    },
    operands: 'reads',
  }),
  ...programs('gofumpt', 'low', 'local', {
    grammar: { style: 'single-dash', open: true, flags: 'l d e s', values: 'r', writing: 'w' },
    operands: 'reads',
  }),
  ...programs('golangci-lint', 'low', 'unknown', {
    optionsAnywhere: true,
    grammar: {
      source: 'docs/data/cli_help.json of golangci-lint, commit 6fb5dee3889d',
      open: true,
      exact: true,
      flags:
        'h help v verbose version no-config fast-only tests allow-parallel-runners allow-serial-runners show-stats output.text.print-linter-name output.text.print-issued-lines output.text.colors output.tab.print-linter-name output.tab.colors output.junit-xml.extended uniq-by-line n new whole-files json d diff diff-colored stdin skip-validation',
      values:
        'color default D disable E enable enable-only j concurrency modules-download-mode issues-exit-code build-tags timeout path-prefix path-mode max-issues-per-linter max-same-issues new-from-rev new-from-merge-base format name',
      reads: 'new-from-patch',
      writes:
        'output.text.path output.json.path output.tab.path output.html.path output.checkstyle.path output.code-climate.path output.junit-xml.path output.teamcity.path output.sarif.path cpu-profile-path mem-profile-path trace-path destination',
      loads: 'c config',
      writing: 'fix',
    },
    verbs: {
      ...verbs('run linters formatters config help version', LOW),
      // Builds a linter, or writes other settings.
      ...verbs('custom migrate cache', MEDIUM),
      fmt: {
        risk: 'low',
        inspect: (use) =>
          hasOption(use, 'd diff diff-colored stdin')
            ? []
            : [finding('writes', 'rewrites', 'rewrites files', 'fmt')],
      },
    },
  }),
  ...programs('staticcheck', 'low', 'unknown', {
    grammar: {
      source: 'lintcmd of staticcheck, commit d69e7ee19e2d',
      style: 'single-dash',
      open: true,
      flags:
        'tests version show-ignored list-checks merge matrix debug.version debug.no-compile-errors h help',
      values: 'tags f explain checks fail go',
      writes: 'debug.cpuprofile debug.memprofile debug.measure-analyzers debug.trace',
    },
  }),
  ...programs('golint revive', 'low', 'unknown', {
    grammar: { open: true, writing: 'fix', loads: 'c config' },
  }),
  ...programs('gotestsum gopls dlv', 'medium', 'unknown'),
  ...programs('mvn mvnw', 'medium', 'unknown', {
    grammar: {
      source: 'Maven 3.8.7',
      open: true,
      style: 'single-dash',
      flags:
        'am also-make amd also-make-dependents B batch-mode C strict-checksums c lax-checksums cpu check-plugin-updates e errors fae fail-at-end ff fail-fast fn fail-never h help llr legacy-local-repository N non-recursive npr no-plugin-registry npu no-plugin-updates nsu no-snapshot-updates o offline q quiet U update-snapshots up update-plugins v version V show-version X debug',
      values:
        'b builder D define emp encrypt-master-password ep encrypt-password P activate-profiles pl projects rf resume-from T threads',
      reads: 'f file gs global-settings gt global-toolchains s settings t toolchains',
      writes: 'l log-file',
    },
    operands: 'none',
  }),
  ...programs('gradle gradlew', 'medium', 'unknown', {
    grammar: {
      source: 'gradle 4.4.1',
      open: true,
      exact: true,
      flags:
        '? h help a no-rebuild all build-cache no-build-cache continue configure-on-demand no-configure-on-demand d debug i info m dry-run offline parallel no-parallel profile q quiet recompile-scripts refresh-dependencies rerun-tasks S full-stacktrace s stacktrace scan no-scan t continuous u no-search-upward v version w warn daemon no-daemon foreground status stop',
      values: 'console D system-prop max-workers P project-prop x exclude-task',
      reads: 'include-build p project-dir',
      loads: 'b build-file c settings-file I init-script',
      produces: 'g gradle-user-home project-cache-dir',
    },
    operands: 'none',
  }),
  ...programs('ant', 'medium', 'unknown', {
    grammar: {
      source: 'ant 1.10.13',
      open: true,
      style: 'single-dash',
      flags:
        'help h projecthelp p version diagnostics quiet q silent S verbose v debug d emacs e noinput keep-going k nouserlib noclasspath autoproxy',
      // Names of classes, which are found by -lib.
      values: 'logger listener inputhandler main nice',
      reads: 'propertyfile',
      writes: 'logfile l',
      loads: 'lib buildfile file f find s',
    },
    operands: 'none',
  }),
  ...programs('sbt', 'medium', 'unknown', {
    grammar: {
      source: 'the script sbt of sbt, commit 0c00dbaf4bd1',
      open: true,
      style: 'single-dash',
      flags:
        'h help v verbose V version numeric-version script-version d debug debug-inc no-colors traces timings sbt-create no-share no-global batch client server',
      values: 'mem jvm-debug sbt-version',
      optionals: 'color supershell',
      writes: 'sbt-dir sbt-boot sbt-cache ivy',
      loads: 'sbt-jar',
      executes: 'java-home',
    },
    operands: 'none',
  }),
  ...programs('lein mill bazel bazelisk buck2 pants scala-cli kotlinc scalac groovy', 'medium', 'unknown', {
    grammar: { open: true, reads: 'f file p project-dir', values: 'pl P D' },
    operands: 'none',
  }),
  ...programs('java javaw jshell jbang kotlin scala clojure clj', 'medium', 'network', {
    alsoCalled: withVersion('java'),
  }),
  ...programs('javac javap jar javadoc jps jcmd jstack jmap jdeps keytool', 'medium', 'unknown'),
  ...programs('perl', 'medium', 'network', {
    alsoCalled: withVersion('perl'),
    code: 'language',
    interprets: 'script',
    versionOption: '-v',
    grammar: {
      source: 'perl 5.36.0',
      open: true,
      // Words behind the script are its own.
      stopAtOperand: true,
      // The digits are those of -0777 and -l012, behind which more letters may stand.
      flags: '0 1 2 3 4 5 6 7 a c d f h l n p s S t T u U v w W X',
      values: 'e E M m',
      // Only attached: in -pi -e the code is that of -e.
      optionals: 'C D F V x',
      reads: 'I',
      writing: 'i?',
    },
  }),
  ...programs('ruby', 'medium', 'network', {
    alsoCalled: withVersion('ruby'),
    code: 'language',
    interprets: 'script',
    versionOption: '-v',
    grammar: {
      source: 'ruby 3.1.2',
      open: true,
      exact: true,
      // Words behind the script are its own.
      stopAtOperand: true,
      flags:
        'a c d h l n p s S U v w y copyright version debug help verbose yydebug jit yjit mjit 0 1 2 3 4 5 6 7',
      values: 'e E F K encoding external-encoding internal-encoding',
      // Only attached.
      optionals: 'T W x dump enable disable',
      reads: 'C X I',
      loads: 'r',
      writing: 'i?',
    },
  }),
  ...programs('irb', 'medium', 'network', {
    ...RUBY,
    grammar: {
      source: 'irb of ruby 3.1',
      open: true,
      exact: true,
      flags:
        'version U d f w h help inspect noinspect multiline nomultiline singleline nosingleline extra-doc-dir echo noecho echo-on-assignment noecho-on-assignment truncate-echo-on-assignment colorize nocolorize autocomplete noautocomplete verbose noverbose inf-ruby-mode simple-prompt noprompt tracer',
      values: 'E encoding prompt prompt-mode back-trace-limit',
      optionals: 'W',
      reads: 'I',
      loads: 'r',
    },
  }),
  ...programs('erb', 'medium', 'network', {
    ...RUBY,
    grammar: {
      source: 'erb of ruby 3.1',
      open: true,
      exact: true,
      flags: 'version P U d debug h help n v x',
      values: 'E encoding S T',
      loads: 'r',
    },
  }),
  ...programs('rake', 'medium', 'network', {
    ...RUBY,
    grammar: {
      source: 'rake 13.0.6',
      open: true,
      flags:
        'm multitask B build-all N no-search nosearch G no-system nosystem g system rules n dry-run P prereqs v verbose q quiet s silent X no-deprecation-warnings comments A all V version h H help',
      values: 'suppress-backtrace e execute p execute-print E execute-continue',
      optionals: 'j jobs backtrace t trace T tasks D describe W where job-stats',
      reads: 'I libdir',
      loads: 'r require f rakefile R rakelib rakelibdir',
    },
  }),
  ...programs('rspec', 'medium', 'network', {
    ...RUBY,
    grammar: {
      source: 'rspec 3.12',
      open: true,
      flags:
        'd debugger X drb no-drb configure b backtrace c color colour no-color no-colour p profile v version h help fail-fast',
      values: 'order seed failure-exit-code drb-port f format P pattern e example l line_number t tag',
      reads: 'I default_path',
      // Options of a file may load more.
      loads: 'r require O options',
      writes: 'o out',
      writing: 'init',
    },
  }),
  ...programs('rails jruby', 'medium', 'network', RUBY),
  ...programs('bundle bundler', 'medium', 'network', {
    ...RUBY,
    grammar: {
      source: 'bundler 2.3.15',
      open: true,
      flags: 'no-color verbose V version v help',
      values: 'r retry',
    },
    verbs: {
      ...RUBY.verbs,
      ...verbs('install update lock add package cache', BUNDLE_CHANGES),
      ...verbs('exec e', BUNDLE_EXEC),
    },
  }),
  ...programs('rubocop', 'low', 'unknown', {
    grammar: {
      source: 'lib/rubocop/options.rb of rubocop, commit 3a42c6221',
      open: true,
      flags:
        'l lint safe only-guide-cops F fail-fast disable-pending-cops enable-pending-cops disable-all-cops enable-all-cops ignore-disable-comments force-exclusion only-recognized-file-types ignore-parent-exclusion ignore-unrecognized-cops force-default-config editor-mode P parallel no-parallel raise-cop-error D display-cop-names no-display-cop-names E extra-details S display-style-guide stderr display-time display-only-failed display-only-fail-level-offenses display-only-correctable display-only-safe-correctable display-suppressed report-unused-todo-entries no-exclude-limit offense-counts no-offense-counts auto-gen-only-exclude no-auto-gen-only-exclude auto-gen-timestamp no-auto-gen-timestamp auto-gen-enforced-style no-auto-gen-enforced-style server no-server restart-server start-server stop-server server-status no-detach L list-target-files d debug color no-color v version V verbose-version profile memory lsp mcp h help',
      values: 's stdin fail-level f format C cache exclude-limit list-enabled-cops-for',
      optionals: 'except only show-cops show-docs-url',
      produces: 'cache-root',
      writes: 'o out',
      loads: 'c config r require plugin',
      writing:
        'a A autocorrect autocorrect-all auto-correct auto-correct-all safe-auto-correct x fix-layout disable-uncorrectable auto-gen-config regenerate-todo init',
    },
  }),
  ...programs('standardrb brakeman sorbet srb steep reek', 'low', 'unknown', {
    grammar: {
      open: true,
      flags: 'D',
      loads: 'c config r require',
      writes: 'o out output',
      writing: 'a A autocorrect autocorrect-all auto-correct x',
    },
  }),
  ...programs('php', 'medium', 'network', {
    alsoCalled: withVersion('php'),
    code: 'language',
    interprets: 'script',
    versionOption: '-v',
    grammar: {
      source: 'php 8.2.36',
      open: true,
      // Words behind the script are its own.
      stopAtOperand: true,
      flags:
        'a C e h H i l m n q s v w interactive no-chdir no-header no-php-ini help hide-args info syntax-check modules syntax-highlight version strip ini',
      values:
        'r B R E d b S T run process-begin process-code process-end define bindpath server timing rf rc re rz ri rfunction rclass rextension rzendextension rextinfo',
      reads: 't docroot working-dir',
      loads: 'f file F process-file z zend-extension c php-ini',
    },
  }),
  ...programs('composer', 'medium', 'network', {
    ...PHP,
    grammar: {
      source: 'composer 2.5.5',
      open: true,
      flags:
        'h help q quiet V version ansi no-ansi n no-interaction profile no-plugins no-scripts no-cache v verbose',
      reads: 'd working-dir',
    },
  }),
  ...programs('artisan symfony wp drush', 'medium', 'network', PHP),
  ...programs('phpunit', 'low', 'unknown', {
    grammar: {
      source: 'PHPUnit 9.6.7',
      open: true,
      exact: true,
      flags:
        'warm-coverage-cache path-coverage disable-coverage-ignore no-coverage reverse-list no-logging list-suites list-groups list-tests dont-report-useless-tests strict-coverage strict-global-state disallow-test-output disallow-resource-usage enforce-time-limit disallow-todo-tests process-isolation globals-backup static-backup stderr stop-on-defect stop-on-error stop-on-failure stop-on-warning stop-on-risky stop-on-skipped stop-on-incomplete fail-on-incomplete fail-on-risky fail-on-skipped fail-on-warning v verbose debug teamcity testdox no-interaction cache-result do-not-cache-result no-configuration no-extensions h help version check-version',
      values:
        'testsuite group exclude-group covers uses filter test-suffix default-time-limit columns repeat testdox-group testdox-exclude-group order-by random-order-seed atleast-version d',
      optionals: 'colors',
      reads: 'coverage-filter',
      writes:
        'coverage-clover coverage-cobertura coverage-crap4j coverage-html coverage-php coverage-xml log-junit log-teamcity testdox-html testdox-text testdox-xml list-tests-xml coverage-openclover log-otr log-events-text log-events-verbose-text generate-baseline',
      produces: 'coverage-cache cache-result-file',
      producesAttached: 'coverage-text',
      loads: 'prepend bootstrap c configuration include-path printer extensions',
      writing: 'generate-configuration migrate-configuration',
    },
    inspect: inspectPhpunit,
  }),
  ...programs('phpstan', 'low', 'unknown', {
    grammar: {
      source: 'website/src/user-guide/command-line-usage.md of phpstan, commit d871b7a411b6',
      open: true,
      flags:
        'allow-empty-baseline no-progress xdebug debug v q quiet ansi no-ansi V version h help n no-interaction',
      values: 'l level error-format memory-limit',
      loads: 'c configuration a autoload-file bootstrap',
      // Its value may be left out.
      writing: 'b generate-baseline',
      networking: 'pro',
    },
  }),
  ...programs('phpcs', 'low', 'unknown', {
    grammar: {
      source: 'PHP_CodeSniffer 3.7.1',
      open: true,
      exact: true,
      flags:
        'h ? i v l s a e p q m n w help version colors no-colors no-cache ignore-annotations config-show',
      values: 'd',
      // Values of long options are attached.
      optionals:
        'runtime-set sniffs exclude stdin-path report report-width extensions suffix parallel severity error-severity warning-severity ignore generator encoding tab-width standard filter',
      reads: 'basepath file-list',
      loads: 'bootstrap',
      writes: 'report-file',
      producesAttached: 'cache',
      writing: 'config-set config-delete',
    },
    inspect: (use) => [...inspectPhpunit(use), ...loadsStandard(use)],
    morePaths: reportsOfPhpcs,
  }),
  ...programs('psalm pest', 'low', 'unknown', {
    grammar: { open: true, loads: 'bootstrap a autoload-file c configuration prepend' },
  }),
  ...programs('php-cs-fixer phpcbf rector', 'medium', 'unknown'),
  ...programs('dotnet', 'medium', 'network', {
    verbs: {
      ...verbs('build test', {
        ...LOW,
        grammar: {
          open: true,
          values: 'c configuration f framework r runtime v verbosity filter a arch os',
          reads: 's settings runsettings',
          loads: 'test-adapter-path',
          produces: 'o output artifacts-path results-directory',
        },
      }),
      ...verbs('run add remove publish restore new tool clean pack ef format', MEDIUM),
      nuget: { ...MEDIUM, verbs: verbs('push delete', { outward: PUBLISHES }) },
    },
  }),
  ...programs('swift', 'medium', 'network', {
    verbs: {
      ...verbs('build test', {
        ...LOW,
        grammar: {
          open: true,
          exact: true,
          values: 'c configuration target product filter skip j jobs',
          reads: 'package-path',
          produces: 'build-path scratch-path cache-path xunit-output',
          executes: 'toolchain destination toolset',
        },
      }),
      ...verbs('run package', MEDIUM),
    },
  }),
  ...programs('swiftc swiftlint swiftformat xcodebuild xcrun pod fastlane', 'medium', 'unknown'),
  ...programs('lua luajit tclsh Rscript', 'medium', 'network', {
    alsoCalled: withVersion('lua'),
    code: 'language',
    interprets: 'script',
  }),
  ...programs(
    'wish osascript R julia octave matlab ghci runghc ocaml erl elixir iex escript racket guile sbcl swipl gnuplot dart flutter crystal nim zig pwsh powershell dc',
    'medium',
    'network',
    { code: 'language' },
  ),
  ...programs(
    'ghc stack cabal mix rebar3 dune opam luac luarocks hlint fourmolu ormolu elm purs gleam idris2 agda coqc lake lean',
    'medium',
    'unknown',
  ),
  ...programs('bc', 'low', 'local'),
];
