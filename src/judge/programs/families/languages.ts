import {
  type Behaviour,
  type Finding,
  finding,
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

/** Output files of rustc: `--emit TYPE=FILE`, `--print INFO=FILE`. */
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
  grammar: 'rails',
  verbs: {
    ...verbs('list show info check outdated', LOW),
    ...verbs('exec install update add remove', MEDIUM),
  },
};
const PHP: Behaviour = {
  code: 'language',
  grammar: 'artisan',
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
/** Options of phpcs for rules and filters: their values may be files that contain or name code. */
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
  grammar: 'bundle exec',
};
const BUNDLE_CHANGES: Behaviour = {
  ...MEDIUM,
  grammar: 'bundle install',
};

const PUBLISHES = 'changes what is published';

const CARGO_CHANGES: Behaviour = {
  risk: 'medium',
  operands: 'none',
  grammar: 'cargo add',
};

/** Compilers, run times and project tools of other languages. */
export const LANGUAGES: readonly ProgramRow[] = [
  ...programs('cargo', 'medium', 'network', () => ({
    operands: 'none',
    grammar: 'cargo',
    verbs: {
      ...verbs(
        'build b check c test t bench doc d clippy tree metadata search info locate-project pkgid read-manifest verify-project version help report nextest audit deny outdated machete udeps llvm-cov expand',
        {
          risk: 'low',
          operands: 'none',
          grammar: 'cargo build',
          inspect: opensBrowser,
          staysLocal: cargoStays,
        },
      ),
      fmt: {
        risk: 'low',
        operands: 'none',
        grammar: 'cargo fmt',
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
        grammar: 'cargo vendor',
      },
      ...verbs('publish yank owner', { ...CARGO_CHANGES, outward: PUBLISHES }),
    },
  })),
  ...programs('rustc', 'medium', 'unknown', () => ({
    grammar: 'rustc',
    inspect: inspectRust,
    morePaths: outputsOfRust,
  })),
  ...programs('rustdoc', 'medium', 'unknown', () => ({
    grammar: 'rustdoc',
    inspect: inspectRust,
    morePaths: outputsOfRust,
  })),
  ...programs('rustup', 'medium', 'unknown', () => ({
    grammar: 'rustup',
    verbs: {
      run: {
        operands: 'none',
        grammar: 'rustup run',
        launches: { operands: 1 },
      },
    },
  })),
  ...programs(
    'rustfmt cbindgen bindgen wasm-pack trunk maturin cross miri just task mage',
    'medium',
    'unknown',
  ),
  ...programs('go', 'medium', 'network', () => ({
    grammar: 'go',
    verbs: {
      ...verbs('build test vet list env version doc help', {
        risk: 'low',
        operands: 'guess',
        grammar: 'go build',
        inspect: inspectGo,
      }),
      env: {
        risk: 'low',
        operands: 'none',
        grammar: 'go env',
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
        grammar: 'go run',
        inspect: inspectGo,
      },
      ...verbs('get install generate clean work tool fix telemetry bug fmt', {
        risk: 'medium',
        operands: 'guess',
        grammar: 'go build',
        inspect: inspectGo,
      }),
    },
  })),
  ...programs('gofmt', 'low', 'local', () => ({ grammar: 'gofmt', operands: 'reads' })),
  ...programs('goimports', 'low', 'local', () => ({ grammar: 'goimports', operands: 'reads' })),
  ...programs('gofumpt', 'low', 'local', () => ({ grammar: 'gofumpt', operands: 'reads' })),
  ...programs('golangci-lint', 'low', 'unknown', () => ({
    optionsAnywhere: true,
    grammar: 'golangci-lint',
    verbs: {
      ...verbs('run linters formatters config help version', LOW),
      // These verbs build a linter, write settings, or manage the cache.
      ...verbs('custom migrate cache', MEDIUM),
      fmt: {
        risk: 'low',
        inspect: (use) =>
          hasOption(use, 'd diff diff-colored stdin')
            ? []
            : [finding('writes', 'rewrites', 'rewrites files', 'fmt')],
      },
    },
  })),
  ...programs('staticcheck', 'low', 'unknown', () => ({ grammar: 'staticcheck' })),
  ...programs('golint revive', 'low', 'unknown', () => ({ grammar: 'golint' })),
  ...programs('gotestsum gopls dlv', 'medium', 'unknown'),
  ...programs('mvn mvnw', 'medium', 'unknown', () => ({ grammar: 'mvn', operands: 'none' })),
  ...programs('gradle gradlew', 'medium', 'unknown', () => ({ grammar: 'gradle', operands: 'none' })),
  ...programs('ant', 'medium', 'unknown', () => ({ grammar: 'ant', operands: 'none' })),
  ...programs('sbt', 'medium', 'unknown', () => ({ grammar: 'sbt', operands: 'none' })),
  ...programs(
    'lein mill bazel bazelisk buck2 pants scala-cli kotlinc scalac groovy',
    'medium',
    'unknown',
    () => ({
      grammar: 'lein',
      operands: 'none',
    }),
  ),
  ...programs(
    'java javaw jshell jbang kotlin scala clojure clj',
    'medium',
    'network',
    () => ({}),
    withVersion('java'),
  ),
  ...programs('javac javap jar javadoc jps jcmd jstack jmap jdeps keytool', 'medium', 'unknown'),
  ...programs(
    'perl',
    'medium',
    'network',
    () => ({
      code: 'language',
      interprets: 'script',
      versionOption: '-v',
      grammar: 'perl',
    }),
    withVersion('perl'),
  ),
  ...programs(
    'ruby',
    'medium',
    'network',
    () => ({
      code: 'language',
      interprets: 'script',
      versionOption: '-v',
      grammar: 'ruby',
    }),
    withVersion('ruby'),
  ),
  ...programs('irb', 'medium', 'network', () => ({ ...RUBY, grammar: 'irb' })),
  ...programs('erb', 'medium', 'network', () => ({ ...RUBY, grammar: 'erb' })),
  ...programs('rake', 'medium', 'network', () => ({ ...RUBY, grammar: 'rake' })),
  ...programs('rspec', 'medium', 'network', () => ({ ...RUBY, grammar: 'rspec' })),
  ...programs('rails jruby', 'medium', 'network', () => RUBY),
  ...programs('bundle bundler', 'medium', 'network', () => ({
    ...RUBY,
    grammar: 'bundle',
    verbs: {
      ...RUBY.verbs,
      ...verbs('install update lock add package cache', BUNDLE_CHANGES),
      ...verbs('exec e', BUNDLE_EXEC),
    },
  })),
  ...programs('rubocop', 'low', 'unknown', () => ({ grammar: 'rubocop' })),
  ...programs('standardrb brakeman sorbet srb steep reek', 'low', 'unknown', () => ({
    grammar: 'standardrb',
  })),
  ...programs(
    'php',
    'medium',
    'network',
    () => ({
      code: 'language',
      interprets: 'script',
      versionOption: '-v',
      grammar: 'php',
    }),
    withVersion('php'),
  ),
  ...programs('composer', 'medium', 'network', () => ({ ...PHP, grammar: 'composer' })),
  ...programs('artisan symfony wp drush', 'medium', 'network', () => PHP),
  ...programs('phpunit', 'low', 'unknown', () => ({ grammar: 'phpunit', inspect: inspectPhpunit })),
  ...programs('phpstan', 'low', 'unknown', () => ({ grammar: 'phpstan' })),
  ...programs('phpcs', 'low', 'unknown', () => ({
    grammar: 'phpcs',
    inspect: (use) => [...inspectPhpunit(use), ...loadsStandard(use)],
    morePaths: reportsOfPhpcs,
  })),
  ...programs('psalm pest', 'low', 'unknown', () => ({ grammar: 'psalm' })),
  ...programs('php-cs-fixer phpcbf rector', 'medium', 'unknown'),
  ...programs('dotnet', 'medium', 'network', () => ({
    verbs: {
      ...verbs('build test', {
        ...LOW,
        grammar: 'dotnet build',
      }),
      ...verbs('run add remove publish restore new tool clean pack ef format', MEDIUM),
      nuget: { ...MEDIUM, verbs: verbs('push delete', { outward: PUBLISHES }) },
    },
  })),
  ...programs('swift', 'medium', 'network', () => ({
    verbs: {
      ...verbs('build test', {
        ...LOW,
        grammar: 'swift build',
      }),
      ...verbs('run package', MEDIUM),
    },
  })),
  ...programs('swiftc swiftlint swiftformat xcodebuild xcrun pod fastlane', 'medium', 'unknown'),
  ...programs(
    'lua luajit tclsh Rscript',
    'medium',
    'network',
    () => ({
      code: 'language',
      interprets: 'script',
    }),
    withVersion('lua'),
  ),
  ...programs(
    'wish osascript R julia octave matlab ghci runghc ocaml erl elixir iex escript racket guile sbcl swipl gnuplot dart flutter crystal nim zig pwsh powershell dc',
    'medium',
    'network',
    () => ({ code: 'language' }),
  ),
  ...programs(
    'ghc stack cabal mix rebar3 dune opam luac luarocks hlint fourmolu ormolu elm purs gleam idris2 agda coqc lake lean',
    'medium',
    'unknown',
  ),
  ...programs('bc', 'low', 'local'),
];
