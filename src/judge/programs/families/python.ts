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
import { pipStays } from '../stays-local.ts';

const CHANGES: Behaviour = { risk: 'medium', reach: 'network', operands: 'guess' };

/** What package managers are asked: with options that can still write a log, read files and run a Python. */
const ASKS: Behaviour = {
  risk: 'low',
  reach: 'network',
  onlyFetches: true,
  operands: 'none',
  grammar: {
    open: true,
    flags: 'q quiet v verbose l local u uptodate o outdated e editable f files all no-input user pre',
    values: 'i index-url extra-index-url format exclude timeout retries proxy',
    reads: 'r requirement path directory project cert client-cert',
    loads: 'python',
    produces: 'log log-file local-log cache-dir',
  },
};

/** The same from the disk alone, by pip itself. */
const LISTS: Behaviour = { ...ASKS, staysLocal: (use) => /^pip3?$/.test(use.program.name) && pipStays(use) };

/** A verb that runs the command behind its options in the environment of a project. */
function running(grammar: Grammar, launches: Behaviour['launches'] = {}): Behaviour {
  return { ...CHANGES, operands: 'none', grammar: { ...grammar, stopAtOperand: true }, launches };
}

const UV_MANUAL = 'crates/uv-cli of uv, commit 26a9dd4b2125';
/** What every verb of uv takes. */
const UV: Grammar = {
  source: UV_MANUAL,
  open: true,
  exact: true,
  flags:
    'q quiet v verbose n no-cache no-cache-dir managed-python no-managed-python allow-python-downloads no-python-downloads no-color native-tls no-native-tls system-certs no-system-certs offline no-offline preview no-preview isolated show-settings no-progress no-installer-metadata no-config h help V version',
  values:
    'python-preference python-fetch color allow-insecure-host trusted-host preview-features preview-feature',
  reads: 'directory project config-file',
  writes: 'cache-dir',
};

/** What it installs, resolves and builds with; what is not listed may be a path, and is guessed. */
const UV_PROJECT: Grammar = {
  ...UV,
  flags: `${UV.flags} U upgrade no-index all-extras dev no-dev frozen locked active dry-run all-packages`,
  values: `${UV.values} p python i index-url extra-index-url default-index index extra group w with P upgrade-package C config-setting config-settings exclude-newer link-mode resolution prerelease index-strategy keyring-provider python-version python-platform torch-backend format`,
  reads: `${UV.reads} r requirement requirements c constraint constraints b build-constraint build-constraints override overrides excludes with-requirements script`,
  writes: `${UV.writes} o output-file out-dir t target prefix`,
};
/** Of these the first operand is what it makes. */
const UV_CREATES: Grammar = {
  ...UV,
  flags: `${UV.flags} bare virtual package no-package app application lib library script no-readme no-description pin-python no-pin-python workspace no-workspace project no-project system no-system seed force clear c no-clear allow-existing system-site-packages relocatable no-relocatable no-index`,
  values: `${UV.values} p python name description vcs build-backend author-from prompt i index-url extra-index-url default-index index f find-links index-strategy keyring-provider exclude-newer exclude-newer-package link-mode`,
};
const UV_CHANGES: Behaviour = { ...CHANGES, grammar: UV_PROJECT };

const UV_OPTIONS: Grammar = {
  stopAtOperand: true,
  exact: true,
  flags:
    'no-all-extras editable inexact no-exact no-active no-offline no-upgrade no-reinstall build binary sources show-resolution no-color no-native-tls system-certs no-system-certs allow-python-downloads preview no-preview show-settings no-installer-metadata no-compile-bytecode lfs q v n m s U h frozen locked no-sync isolated active no-project no_workspace all-extras offline no-dev only-dev dev exact no-env-file quiet verbose refresh no-cache no-cache-dir all-packages module script gui-script all-groups compile-bytecode compile help managed-python no-managed-python native-tls no-binary no-build no-build-isolation no-config no-default-groups no-editable no-index no-progress no-python-downloads no-sources reinstall force-reinstall upgrade',
  values:
    'p w C f i P with with-editable python extra group only-group no-group no-extra package index-url from allow-insecure-host trusted-host color config-setting config-settings default-index index extra-index-url exclude-newer find-links fork-strategy index-strategy keyring-provider link-mode no-binary-package no-build-isolation-package no-build-package prerelease refresh-package reinstall-package resolution upgrade-package upgrade-group no-editable-package config-settings-package exclude-newer-package max-recursion-depth python-platform torch-backend python-preference python-fetch preview-feature preview-features',
  reads: 'directory project env-file with-requirements config-file',
  writes: 'cache-dir',
};
const UV_RUN = running(UV_OPTIONS, { directory: 'directory', inert: 'm s module script' });
/** uvx: a tool that is fetched and run. */
const UVX: Grammar = {
  ...UV_OPTIONS,
  source: UV_MANUAL,
  flags: `${UV_OPTIONS.flags} V version`,
  reads: `${UV_OPTIONS.reads} b c build-constraints build-constraint constraints constraint overrides override`,
};
const UV_TOOL_RUN = running(UVX, { directory: 'directory' });

const PIPX_RUN: Grammar = {
  flags:
    'h help q quiet v verbose global no-cache refresh no-path-check path pypackages system-site-packages e editable fetch-missing-python',
  values: 'python-args with spec python fetch-python i index-url pip-args cooldown backend',
};

/** What installs packages for Python. */
const MANAGER: Behaviour = {
  grammar: {
    open: true,
    flags:
      'q quiet v verbose h help V version no-input no-interaction no-ansi ansi no-plugins no-cache offline',
    values: 'index-url i extra-index-url color p e env',
    reads: 'r requirement c constraint directory project C',
    loads: 'python',
    writes: 'target t prefix root cache-dir log',
  },
  operands: 'none',
  verbs: {
    ...verbs(
      'install uninstall download wheel add remove sync lock update upgrade init new venv run tool build cache config create env self python exec shell compile',
      CHANGES,
    ),
    publish: { ...CHANGES, outward: 'changes what is published' },
    ...verbs('tree help debug version info', ASKS),
    ...verbs('list show freeze check inspect', LISTS),
    pip: { ...CHANGES, verbs: verbs('list show freeze check tree', ASKS) },
  },
};

/** One grammar for all verbs of pip, whose words `-e`, `-f` and `-i` take values only where they install. */
const PIP: Grammar = {
  source: 'pip 23.2.1',
  open: true,
  flags:
    'h q v V U I l help quiet verbose version debug isolated require-virtualenv no-input no-cache-dir disable-pip-version-check no-color no-python-version-warning no-deps pre dry-run user upgrade force-reinstall ignore-installed ignore-requires-python no-build-isolation use-pep517 no-use-pep517 check-build-dependencies break-system-packages compile no-compile no-warn-script-location no-warn-conflicts prefer-binary require-hashes no-clean no-index y yes outdated uptodate local exclude-editable include-editable not-required all',
  values:
    'i index-url pypi-url extra-index-url f find-links proxy retries timeout exists-action trusted-host keyring-provider use-feature use-deprecated platform python-version implementation abi upgrade-strategy C config-settings global-option no-binary only-binary root-user-action progress-bar build-option format exclude e editable',
  reads: 'r requirement c constraint cert client-cert path',
  loads: 'python',
  writes:
    't target prefix root src d dest download download-dir w wheel-dir report cache-dir log log-file local-log',
};

/** Such a manager with verbs of its own. */
function manager(own: Readonly<Record<string, Behaviour>>): Behaviour {
  return { ...MANAGER, verbs: { ...MANAGER.verbs, ...own } };
}

/** `python -m json.tool FILE` prints; the second file would be its output. */
function printsJson({ command }: Use): boolean {
  const [, module, name, ...rest] = command.words.map(({ value }) => value);
  if (module !== '-m' || name !== 'json.tool') return false;
  const files = rest.filter(
    (text) =>
      text === undefined ||
      !/^--(?:sort-keys|no-indent|compact|json-lines|no-ensure-ascii|tab|indent=\d+)$/.test(text),
  );
  return files.length <= 1 && files[0]?.startsWith('-') !== true;
}

/** `-p NAME` loads a module; `-p no:NAME` leaves one out. */
function loadsPlugin({ options }: Use): readonly Finding[] {
  return options
    .filter(({ name, value }) => name === 'p' && value?.text.startsWith('no:') !== true)
    .map(({ word }) => finding('loads', 'loads_by_option', 'runs code from a file through -p', word.source));
}

/** `html:DIR`, `xml:FILE`: where a report of coverage goes. */
function reportsOfCoverage({ options }: Use): readonly PathUse[] {
  return options.flatMap(({ name, value }) => {
    const colon = name === 'cov-report' ? (value?.text.indexOf(':') ?? -1) : -1;
    return value === undefined || colon < 0
      ? []
      : [{ argument: argumentOf(value.word, value.start + colon + 1), effect: 'writes' as const }];
  });
}

/** Formatters that change what they are given, but for these options; `word` names what does it. */
function rewritesUnless(asking: string, word: number): (use: Use) => readonly Finding[] {
  return (use) =>
    hasOption(use, asking)
      ? []
      : [finding('writes', 'rewrites', 'rewrites files', use.command.words[word]?.source ?? '')];
}

/** That of the interpreter; `-P` of 3.11 and later. */
const INTERPRETER: Grammar = {
  source: 'CPython 3.11.7',
  open: true,
  exact: true,
  stopAtOperand: true,
  flags: 'b B d E h ? i I O P q s S u v V x help help-env help-xoptions help-all version',
  values: 'c m W X check-hash-based-pycs',
};

const PYTHON_ITSELF: Behaviour = {
  grammar: { open: true, stopAtOperand: true, flags: 'b B d E i I O q s S u v x P', values: 'c m W X' },
  onlyReads: printsJson,
  code: 'language',
};

const PYRIGHT: Grammar = {
  source: 'docs/command-line.md of pyright, commit 93a6550b2acc',
  open: true,
  exact: true,
  flags:
    'dependencies h help ignoreexternal outputjson skipunannotated stats verbose version warnings w watch',
  values: 'level pythonplatform pythonversion verifytypes',
  optionals: 'threads',
  reads: 't typeshedpath',
  loads: 'p project',
  // Its value is the name of a module, for which it writes files.
  writing: 'createstub',
  executes: 'pythonpath v venvpath',
};

/** Python, its package managers and tools. */
export const PYTHON: readonly ProgramRow[] = [
  ...programs('python python2 python3 pypy pypy3', 'medium', 'network', {
    alsoCalled: withVersion('python pypy'),
    ...PYTHON_ITSELF,
    grammar: INTERPRETER,
    interprets: 'script',
    versionOption: '-V',
  }),
  ...programs('ipython jupyter bpython', 'medium', 'network', PYTHON_ITSELF),
  ...programs('pip pip3 easy_install', 'medium', 'network', {
    alsoCalled: withVersion('pip'),
    ...MANAGER,
    optionsAnywhere: true,
    grammar: PIP,
  }),
  ...programs('uv', 'medium', 'network', {
    operands: 'none',
    grammar: UV,
    verbs: {
      ...verbs(
        'add remove sync lock upgrade export format check audit build cache self auth workspace',
        UV_CHANGES,
      ),
      ...verbs('init venv', { ...CHANGES, operands: 'writes', grammar: UV_CREATES }),
      python: CHANGES,
      ...verbs('tree help', ASKS),
      version: {
        ...UV_CHANGES,
        // Else it sets the version of the project.
        onlyReads: ({ operands, command }) =>
          operands.length === 0 && command.words.every(({ value }) => value?.startsWith('--bump') === false),
      },
      publish: {
        ...CHANGES,
        outward: 'changes what is published',
        grammar: { ...UV, values: `${UV.values} index u username p password t token publish-url check-url` },
      },
      pip: {
        ...CHANGES,
        grammar: UV,
        verbs: {
          ...verbs('install uninstall sync compile', UV_CHANGES),
          ...verbs('list show freeze check tree debug', ASKS),
        },
      },
      run: UV_RUN,
      tool: {
        ...CHANGES,
        grammar: UV,
        verbs: {
          ...verbs('run uvx', UV_TOOL_RUN),
          ...verbs('install upgrade update uninstall', UV_CHANGES),
        },
      },
    },
  }),
  ...programs('pipx', 'medium', 'network', {
    ...MANAGER,
    grammar: { source: 'pipx 1.16.7', open: true, flags: 'h help version q quiet v verbose global' },
    verbs: { ...MANAGER.verbs, run: running(PIPX_RUN) },
  }),
  ...programs('poetry', 'medium', 'network', {
    ...manager({
      run: running({ flags: 'q v' }, { directory: 'C directory' }),
      ...verbs('build export', {
        ...MANAGER.verbs?.build,
        grammar: { open: true, values: 'f format', reads: 'C directory P project', writes: 'o output' },
      }),
    }),
    grammar: {
      source: 'docs/cli.md of poetry, commit 004ffbe9cf18',
      open: true,
      flags: 'v verbose h help q quiet ansi no-ansi V version n no-interaction no-plugins no-cache',
      reads: 'C directory P project cert client-cert dist-dir',
    },
  }),
  ...programs('pipenv rye', 'medium', 'network', manager({ run: running({}) })),
  ...programs('pdm', 'medium', 'network', {
    ...manager({
      run: running({ flags: 's site-packages site g global v verbose l list', values: 'p project' }),
    }),
    grammar: {
      source: 'pdm 2.2.1',
      open: true,
      flags: 'h help V version v verbose I ignore-python g global dry-run',
      reads: 'c config p project',
      writes: 'L lockfile',
    },
  }),
  ...programs('hatch', 'medium', 'network', manager({ run: running({}) })),
  ...programs(
    'conda mamba micromamba',
    'medium',
    'network',
    manager({
      run: running(
        { flags: 'no-capture-output live-stream', values: 'n p name prefix cwd' },
        { directory: 'cwd' },
      ),
    }),
  ),
  // Runs a tool that it downloads if need be; the tables of reach of the field call it unknown.
  ...programs('uvx', 'medium', 'unknown', {
    operands: 'none',
    grammar: UVX,
    launches: { directory: 'directory' },
  }),
  ...programs('pytest py.test', 'low', 'unknown', {
    grammar: {
      source: 'pytest 9.1.1',
      open: true,
      flags:
        'V funcargs fixtures-per-test strict runxfail cache-clear stepwise-skip sw-skip stepwise-reset sw-reset no-fold-skipped force-short-summary disable-pytest-warnings no-showlocals xfail-tb full-trace pyargs noconftest keep-duplicates collect-in-virtualenv continue-on-collection-errors doctest-modules doctest-ignore-import-errors doctest-continue-on-failure disable-plugin-autoload trace-config x q v s l h verbose quiet exitfirst lf ff nf last-failed failed-first new-first co collect-only no-header no-summary no-cov cov-reset no-cov-on-fail cov-branch cov-append fixtures markers strict-markers strict-config setup-show setup-only setup-plan sw stepwise trace pdb showlocals disable-warnings json-report help version',
      values:
        'k m n p W r tb maxfail durations durations-min cov-report cov-fail-under cov-context color capture show-capture import-mode log-level log-cli-level log-file-level log-file-mode log-format log-cli-format log-date-format log-file-format log-cli-date-format log-file-date-format log-auto-indent numprocesses dist junit-prefix timeout deselect assert code-highlight verbosity report-chars pythonwarnings max-warnings lfnf last-failed-no-failures doctest-report doctest-glob log-disable',
      optionals: 'cov cache-show',
      reads: 'rootdir confcutdir ignore ignore-glob cov-config',
      writes: 'basetemp',
      produces:
        'junitxml junit-xml log-file html report-log csv json-report-file benchmark-json benchmark-storage resultlog result-log',
      producesAttached: 'debug',
      loads: 'c config-file o override-ini',
      executes: 'pdbcls px tx rsyncdir pythonpath',
      network: 'pastebin',
    },
    inspect: loadsPlugin,
    morePaths: reportsOfCoverage,
  }),
  ...programs('mypy dmypy', 'low', 'unknown', {
    grammar: {
      source: 'mypy 1.0.1',
      open: true,
      flags: 'h v V i strict pretty incremental no-incremental sqlite-cache',
      values:
        'm module p package c command python-version platform exclude follow-imports always-true always-false custom-typing-module find-occurrences soft-error-limit disable-error-code enable-error-code untyped-calls-exclude',
      reads: 'custom-typeshed-dir package-root shadow-file',
      produces:
        'cache-dir junit-xml html-report any-exprs-report cobertura-xml-report linecount-report linecoverage-report lineprecision-report txt-report xml-report xslt-html-report xslt-txt-report timing-stats line-checking-stats',
      loads: 'config-file',
      executes: 'python-executable',
      executing: 'install-types',
    },
  }),
  ...programs('nose2', 'low', 'unknown', {
    grammar: {
      source: 'nose2 0.12.0',
      open: true,
      flags:
        'h help no-user-config no-plugins v verbose q quiet B output-buffer C with-coverage D debugger F fail-fast pretty-assert',
      reads: 's start-dir t top-level-directory project-directory coverage coverage-config',
      loads: 'c config plugin',
      produces: 'junit-xml-path',
      values: 'exclude-plugin verbosity log-level coverage-report',
    },
  }),
  ...programs('pyright', 'low', 'unknown', { grammar: PYRIGHT }),
  ...programs('basedpyright', 'low', 'unknown', {
    grammar: {
      ...PYRIGHT,
      source: 'docs/configuration/command-line.md of basedpyright, commit 162afb896956',
      // It brings its baseline up to date unasked.
      writes: 'gitlabcodequality baseline-file',
      writing: `${PYRIGHT.writing} writebaseline`,
    },
  }),
  ...programs('pylint', 'low', 'unknown', {
    grammar: {
      source: 'pylint 2.16.2',
      open: true,
      flags:
        'h help long-help v verbose E errors-only version enable-all-extensions list-msgs list-msgs-enabled list-groups list-conf-levels list-extensions full-documentation generate-rcfile generate-toml-config exit-zero from-stdin',
      values:
        'f output-format r reports s score d disable e enable j jobs confidence msg-template help-msg fail-under fail-on ignore ignore-patterns ignore-paths recursive py-version persistent limit-inference-results extension-pkg-allow-list max-line-length',
      reads: 'spelling-private-dict-file',
      writes: 'output import-graph ext-import-graph int-import-graph',
      loads: 'rcfile load-plugins',
      executes: 'init-hook',
    },
  }),
  ...programs('flake8', 'low', 'unknown', {
    grammar: {
      source: 'flake8 5.0.4',
      open: true,
      flags:
        'h help version v verbose isolated q quiet count diff hang-closing disable-noqa show-source no-show-source statistics exit-zero tee benchmark bug-report doctests',
      values:
        'enable-extensions require-plugins color exclude extend-exclude filename stdin-display-name format ignore extend-ignore per-file-ignores max-line-length max-doc-length indent-size select extend-select j jobs max-complexity builtins include-in-doctest exclude-from-doctest',
      writes: 'output-file',
      // Settings may name plugins of their own.
      loads: 'config append-config',
    },
  }),
  ...programs('pycodestyle', 'low', 'unknown', {
    grammar: {
      source: 'pycodestyle 2.10.0',
      open: true,
      flags:
        'h help version v verbose q quiet r repeat first show-source show-pep8 statistics count hang-closing diff benchmark doctest',
      values: 'exclude filename select ignore max-line-length max-doc-length indent-size format',
      reads: 'testsuite',
      loads: 'config',
    },
  }),
  ...programs('bandit', 'low', 'unknown', {
    grammar: {
      source: 'bandit 1.6.2',
      open: true,
      flags: 'h help r recursive l level i confidence v verbose d debug q quiet silent ignore-nosec version',
      values: 'a aggregate n number p profile t tests s skip f format msg-template x exclude',
      reads: 'b baseline ini',
      writes: 'o output',
      loads: 'c configfile',
    },
  }),
  ...programs('vulture', 'low', 'unknown', {
    grammar: {
      source: 'vulture 2.7',
      open: true,
      flags: 'h help make-whitelist sort-by-size v verbose version',
      values: 'exclude ignore-decorators ignore-names min-confidence',
      loads: 'config',
    },
  }),
  ...programs('pyre pytype pydocstyle radon ty', 'low', 'unknown', {
    grammar: {
      open: true,
      values: 'k m n W tb maxfail durations cov-report select ignore max-line-length cov',
      reads: 'rootdir confcutdir',
      writes: 'o output junitxml junit-xml html-report basetemp output-file',
      loads: 'p c rcfile config config-file load-plugins init-hook override-ini',
      executes: 'pythonpath venvpath',
    },
  }),
  ...programs('ruff', 'low', 'unknown', {
    grammar: {
      source: 'ruff 0.16.9',
      open: true,
      exact: true,
      flags: 'h help V version v verbose q quiet s silent isolated',
      values: 'color',
      reads: 'config',
    },
    verbs: {
      check: {
        risk: 'low',
        operands: 'guess',
        grammar: {
          source: 'ruff 0.16.9',
          open: true,
          exact: true,
          flags:
            'show-fixes diff w watch ignore-noqa preview statistics show-files show-settings h help respect-gitignore force-exclude n no-cache e exit-zero exit-non-zero-on-fix v verbose q quiet s silent isolated',
          values:
            'select ignore extend-select output-format line-length target-version extension per-file-ignores extend-per-file-ignores fixable unfixable extend-fixable exclude extend-exclude stdin-filename color',
          reads: 'config',
          writing: 'fix fix-only unsafe-fixes add-noqa add-ignore',
          writes: 'o output-file cache-dir',
        },
      },
      format: {
        risk: 'low',
        operands: 'guess',
        grammar: {
          source: 'ruff 0.16.9',
          open: true,
          exact: true,
          flags:
            'check diff preview h help n no-cache exit-non-zero-on-format respect-gitignore force-exclude v verbose q quiet s silent isolated',
          values:
            'extension target-version output-format stdin-filename exclude extend-exclude line-length range color',
          reads: 'config',
          produces: 'cache-dir',
        },
        inspect: rewritesUnless('check diff', 1),
      },
    },
  }),
  ...programs('isort', 'low', 'unknown', {
    grammar: {
      source: 'isort 9.0.2',
      open: true,
      flags:
        'h help V version vn version-number v verbose q quiet d stdout overwrite-in-place show-config show-files df diff c check check-only ws ignore-whitespace resolve-all-configs ac atomic interactive srx sort-reexports filter-files gitignore skip-gitignore dont-follow-links allow-root e balanced n color',
      values:
        'l w line-length line-width profile format-error format-success s skip extend-skip sg skip-glob extend-skip-glob ext extension supported-extension blocked-extension filename a add-import rm remove-import fs forced-separate i indent lbi lines-before-imports lai lines-after-imports lbt lines-between-types le line-ending m multi-line sort-order nsl single-line-exclusions wl wrap-length treat-comment-as-code formatter ext-format sd section-default t top nlb no-lines-before b builtin extra-builtin f future o thirdparty p project known-local-folder py python-version',
      optionals: 'j jobs fgw force-grid-wrap',
      reads: 'sp settings-path settings-file settings cr config-root src src-path virtual-env conda-env',
    },
    inspect: rewritesUnless('check diff df check-only c', 0),
  }),
  ...programs('black', 'low', 'unknown', {
    grammar: {
      source: 'black 23.1.0',
      open: true,
      exact: true,
      flags:
        'h help version pyi ipynb x skip-source-first-line S skip-string-normalization C skip-magic-trailing-comma experimental-string-processing preview check diff color no-color fast safe q quiet v verbose',
      values:
        'c code l line-length t target-version python-cell-magics required-version include exclude extend-exclude force-exclude stdin-filename W workers',
      reads: 'config',
    },
    inspect: rewritesUnless('check diff c code', 0),
  }),
  // Settings can make it, and autoflake, change files where no option does.
  ...programs('autopep8', 'low', 'unknown', {
    grammar: {
      source: 'autopep8 2.0.1',
      open: true,
      flags:
        'h help version v verbose d diff i in-place ignore-local-config r recursive a aggressive experimental list-fixes hang-closing exit-code',
      values: 'j jobs p pep8-passes exclude ignore select max-line-length line-range range indent-size',
      reads: 'global-config',
    },
    inspect: rewritesUnless('d diff', 0),
  }),
  ...programs('autoflake', 'low', 'unknown', {
    grammar: {
      source: 'autoflake 2.1.1',
      open: true,
      flags:
        'h help c check d check-diff remove-all-unused-imports r recursive expand-star-imports ignore-init-module-imports remove-duplicate-keys remove-unused-variables remove-rhs-for-unused-variables ignore-pass-statements ignore-pass-after-docstring version quiet v verbose i in-place s stdout',
      values: 'imports j jobs exclude stdin-display-name',
      reads: 'config',
    },
    inspect: rewritesUnless('c check check-diff', 0),
  }),
  ...programs('yapf', 'low', 'unknown', {
    grammar: {
      source: 'yapf 0.32.0',
      open: true,
      flags:
        'h help version v d diff q quiet r recursive style-help no-local-style verify p parallel vv verbose',
      values: 'l lines e exclude style',
      writing: 'i in-place',
    },
  }),
  ...programs('pyupgrade', 'low', 'unknown', {
    grammar: {
      source: 'pyupgrade 2.37.1',
      open: true,
      flags:
        'h help exit-zero-even-if-changed keep-percent-format keep-mock keep-runtime-typing py3-plus py3-only py36-plus py37-plus py38-plus py39-plus py310-plus py311-plus',
    },
    inspect: rewritesUnless('', 0),
  }),
  ...programs('docformatter', 'low', 'unknown', {
    grammar: { open: true, flags: 'check diff c check-only', values: 'l line-length k', reads: 'config' },
    inspect: rewritesUnless('check diff check-only c', 0),
  }),
  ...programs('twine', 'medium', 'network', {
    operands: 'none',
    verbs: {
      check: { reach: 'local' },
      ...verbs('upload register', { outward: 'changes what is published' }),
    },
  }),
  ...programs(
    'tox nox coverage celery gunicorn uvicorn flask django-admin alembic streamlit sphinx-build mkdocs cookiecutter scrapy dbt airflow locust manim invoke fab ansible ansible-playbook virtualenv pyenv pyinstaller cython f2py pydoc pydoc3 2to3',
    'medium',
    'unknown',
  ),
];
