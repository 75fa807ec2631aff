import type { Use } from '../behaviour.ts';
import {
  type Behaviour,
  type Finding,
  finding,
  type Grammar,
  type PathUse,
  type ProgramRow,
  programs,
  verbs,
} from '../behaviour.ts';
import { argumentOf, hasOption } from '../options.ts';

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

/** A verb that runs the command behind its options in the environment of a project. */
function running(grammar: Grammar, launches: Behaviour['launches'] = {}): Behaviour {
  return { ...CHANGES, operands: 'none', grammar: { ...grammar, stopAtOperand: true }, launches };
}

const UV_OPTIONS: Grammar = {
  stopAtOperand: true,
  flags:
    'q v n m s U h frozen locked no-sync isolated active no-project no_workspace all-extras offline no-dev only-dev dev exact no-env-file quiet verbose refresh no-cache no-cache-dir all-packages module script gui-script all-groups compile-bytecode compile help managed-python no-managed-python native-tls no-binary no-build no-build-isolation no-config no-default-groups no-editable no-index no-progress no-python-downloads no-sources reinstall force-reinstall upgrade',
  values:
    'p w C f i P with with-editable with-requirements python extra group only-group no-group no-extra project directory env-file package index-url from allow-insecure-host trusted-host color config-setting config-settings default-index index extra-index-url exclude-newer find-links fork-strategy index-strategy keyring-provider link-mode no-binary-package no-build-isolation-package no-build-package prerelease refresh-package reinstall-package resolution upgrade-package',
};
const UV_RUN = running(UV_OPTIONS, { directory: 'directory', inert: 'm s module script' });
/** uvx and `pipx run`: a tool that is fetched and run. */
const UV_TOOL: Grammar = {
  ...UV_OPTIONS,
  flags: `${UV_OPTIONS.flags} version`,
  values: `${UV_OPTIONS.values} spec`,
};

/** The command line reference of uv and that of poetry have no version in them. */
const UV_MANUAL = 'docs/reference/cli.md of uv, commit 0078aaead7c7';
const UVX: Grammar = {
  ...UV_TOOL,
  source: UV_MANUAL,
  values: `${UV_TOOL.values} b c build-constraints build-constraint constraints constraint overrides override`,
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
    ...verbs('list show freeze check tree help inspect debug version info', ASKS),
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

/** Python, its package managers and tools. */
export const PYTHON: readonly ProgramRow[] = [
  ...programs('python python2 python3 pypy pypy3', 'medium', 'network', {
    ...PYTHON_ITSELF,
    grammar: INTERPRETER,
    interprets: 'script',
    versionOption: '-V',
  }),
  ...programs('ipython jupyter bpython', 'medium', 'network', PYTHON_ITSELF),
  ...programs('pip pip3 easy_install', 'medium', 'network', {
    ...MANAGER,
    optionsAnywhere: true,
    grammar: PIP,
  }),
  ...programs(
    'uv',
    'medium',
    'network',
    manager({ run: UV_RUN, tool: { ...CHANGES, verbs: { run: UV_RUN } } }),
  ),
  ...programs('pipx', 'medium', 'network', {
    ...MANAGER,
    verbs: {
      ...MANAGER.verbs,
      run: { ...CHANGES, grammar: UV_TOOL, launches: {} },
    },
  }),
  ...programs('poetry', 'medium', 'network', {
    ...manager({ run: running({ flags: 'q v' }, { directory: 'C directory' }) }),
    grammar: {
      source: 'docs/cli.md of poetry, commit 004ffbe9cf18',
      open: true,
      flags: 'v verbose h help q quiet ansi no-ansi V version n no-interaction no-plugins no-cache',
      reads: 'C directory P project cert client-cert dist-dir',
      writes: 'o output',
    },
  }),
  ...programs('pipenv rye', 'medium', 'network', manager({ run: running({}) })),
  ...programs(
    'pdm',
    'medium',
    'network',
    manager({ run: running({ flags: 's site', values: 'p project' }) }),
  ),
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
  ...programs('uvx', 'medium', 'unknown', { operands: 'none', grammar: UVX, launches: {} }),
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
  ...programs(
    'nose2 pyright basedpyright pyre pytype pylint flake8 pycodestyle pydocstyle bandit vulture radon ty',
    'low',
    'unknown',
    {
      grammar: {
        open: true,
        values: 'k m n W tb maxfail durations cov-report select ignore max-line-length cov',
        reads: 'rootdir confcutdir',
        writes: 'o output junitxml junit-xml html-report basetemp output-file',
        loads: 'p c rcfile config config-file load-plugins init-hook override-ini',
        executes: 'pythonpath venvpath',
      },
    },
  ),
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
  ...programs('black autopep8 yapf autoflake pyupgrade docformatter', 'low', 'unknown', {
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
