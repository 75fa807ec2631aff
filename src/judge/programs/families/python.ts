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
import { pipStays } from '../stays-local.ts';

const CHANGES: Behaviour = { risk: 'medium', reach: 'network', operands: 'guess' };

/** Verbs that only query: their options can still write a log, read files and name a Python to run. */
const ASKS: Behaviour = {
  risk: 'low',
  reach: 'network',
  onlyFetches: true,
  operands: 'none',
  grammar: 'pip tree',
};

/** Verbs that only query; those of pip itself need no network. */
const LISTS: Behaviour = { ...ASKS, staysLocal: (use) => /^pip3?$/.test(use.program.name) && pipStays(use) };

/** A verb that runs the command behind its options in the environment of a project. */
function running(grammar: string, launches: Behaviour['launches'] = {}): Behaviour {
  return { ...CHANGES, operands: 'none', grammar, launches };
}

const UV_CHANGES: Behaviour = { ...CHANGES, grammar: 'uv add' };

const UV_RUN = running('uv run', { directory: 'directory', inert: 'm s module script' });
const UV_TOOL_RUN = running('uv tool run', { directory: 'directory' });

/** What installs packages for Python. */
const MANAGER: Behaviour = {
  grammar: 'pipenv',
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

/** A package manager with further verbs. */
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

/** Formatters change their operands, except with these options; `word` names the option that changes them. */
function rewritesUnless(asking: string, word: number): (use: Use) => readonly Finding[] {
  return (use) =>
    hasOption(use, asking)
      ? []
      : [finding('writes', 'rewrites', 'rewrites files', use.command.words[word]?.source ?? '')];
}

const PYTHON_ITSELF: Behaviour = {
  grammar: 'ipython',
  onlyReads: printsJson,
  code: 'language',
};

/** Python, its package managers and tools. */
export const PYTHON: readonly ProgramRow[] = [
  ...programs(
    'python python2 python3 pypy pypy3',
    'medium',
    'network',
    () => ({
      ...PYTHON_ITSELF,
      grammar: 'python',
      interprets: 'script',
      versionOption: '-V',
    }),
    withVersion('python pypy'),
  ),
  ...programs('ipython jupyter bpython', 'medium', 'network', () => PYTHON_ITSELF),
  ...programs(
    'pip pip3 easy_install',
    'medium',
    'network',
    () => ({
      ...MANAGER,
      optionsAnywhere: true,
      grammar: 'pip',
    }),
    withVersion('pip'),
  ),
  ...programs('uv', 'medium', 'network', () => ({
    operands: 'none',
    grammar: 'uv',
    verbs: {
      ...verbs(
        'add remove sync lock upgrade export format check audit build cache self auth workspace',
        UV_CHANGES,
      ),
      ...verbs('init venv', { ...CHANGES, operands: 'writes', grammar: 'uv init' }),
      python: CHANGES,
      ...verbs('tree help', ASKS),
      version: {
        ...UV_CHANGES,
        // With operands or `--bump` it sets the project's version.
        onlyReads: ({ operands, command }) =>
          operands.length === 0 && command.words.every(({ value }) => value?.startsWith('--bump') === false),
      },
      publish: {
        ...CHANGES,
        outward: 'changes what is published',
        grammar: 'uv publish',
      },
      pip: {
        ...CHANGES,
        grammar: 'uv',
        verbs: {
          ...verbs('install uninstall sync compile', UV_CHANGES),
          ...verbs('list show freeze check tree debug', ASKS),
        },
      },
      run: UV_RUN,
      tool: {
        ...CHANGES,
        grammar: 'uv',
        verbs: {
          ...verbs('run uvx', UV_TOOL_RUN),
          ...verbs('install upgrade update uninstall', UV_CHANGES),
        },
      },
    },
  })),
  ...programs('pipx', 'medium', 'network', () => ({
    ...MANAGER,
    grammar: 'pipx',
    verbs: { ...MANAGER.verbs, run: running('pipx run') },
  })),
  ...programs('poetry', 'medium', 'network', () => ({
    ...manager({
      run: running('poetry run', { directory: 'C directory' }),
      ...verbs('build export', {
        ...MANAGER.verbs?.build,
        grammar: 'poetry build',
      }),
    }),
    grammar: 'poetry',
  })),
  ...programs('pipenv rye', 'medium', 'network', () => manager({ run: running('pipenv run') })),
  ...programs('pdm', 'medium', 'network', () => ({
    ...manager({
      run: running('pdm run'),
    }),
    grammar: 'pdm',
  })),
  ...programs('hatch', 'medium', 'network', () => manager({ run: running('hatch run') })),
  ...programs('conda mamba micromamba', 'medium', 'network', () =>
    manager({
      run: running('conda run', { directory: 'cwd' }),
    }),
  ),
  // Runs a tool that it downloads if need be; the tables of reach of the field call it unknown.
  ...programs('uvx', 'medium', 'unknown', () => ({
    operands: 'none',
    grammar: 'uv tool run',
    launches: { directory: 'directory' },
  })),
  ...programs('pytest py.test', 'low', 'unknown', () => ({
    grammar: 'pytest',
    inspect: loadsPlugin,
    morePaths: reportsOfCoverage,
  })),
  ...programs('mypy dmypy', 'low', 'unknown', () => ({ grammar: 'mypy' })),
  ...programs('nose2', 'low', 'unknown', () => ({ grammar: 'nose2' })),
  ...programs('pyright', 'low', 'unknown', () => ({ grammar: 'pyright' })),
  ...programs('basedpyright', 'low', 'unknown', () => ({ grammar: 'basedpyright' })),
  ...programs('pylint', 'low', 'unknown', () => ({ grammar: 'pylint' })),
  ...programs('flake8', 'low', 'unknown', () => ({ grammar: 'flake8' })),
  ...programs('pycodestyle', 'low', 'unknown', () => ({ grammar: 'pycodestyle' })),
  ...programs('bandit', 'low', 'unknown', () => ({ grammar: 'bandit' })),
  ...programs('vulture', 'low', 'unknown', () => ({ grammar: 'vulture' })),
  ...programs('pyre pytype pydocstyle radon ty', 'low', 'unknown', () => ({ grammar: 'pyre' })),
  ...programs('ruff', 'low', 'unknown', () => ({
    grammar: 'ruff',
    verbs: {
      check: {
        risk: 'low',
        operands: 'guess',
        grammar: 'ruff check',
      },
      format: {
        risk: 'low',
        operands: 'guess',
        grammar: 'ruff format',
        inspect: rewritesUnless('check diff', 1),
      },
    },
  })),
  ...programs('isort', 'low', 'unknown', () => ({
    grammar: 'isort',
    inspect: rewritesUnless('check diff df check-only c', 0),
  })),
  ...programs('black', 'low', 'unknown', () => ({
    grammar: 'black',
    inspect: rewritesUnless('check diff c code', 0),
  })),
  // Settings can make it, and autoflake, change files where no option does.
  ...programs('autopep8', 'low', 'unknown', () => ({
    grammar: 'autopep8',
    inspect: rewritesUnless('d diff', 0),
  })),
  ...programs('autoflake', 'low', 'unknown', () => ({
    grammar: 'autoflake',
    inspect: rewritesUnless('c check check-diff', 0),
  })),
  ...programs('yapf', 'low', 'unknown', () => ({ grammar: 'yapf' })),
  ...programs('pyupgrade', 'low', 'unknown', () => ({
    grammar: 'pyupgrade',
    inspect: rewritesUnless('', 0),
  })),
  ...programs('docformatter', 'low', 'unknown', () => ({
    grammar: 'docformatter',
    inspect: rewritesUnless('check diff check-only c', 0),
  })),
  ...programs('twine', 'medium', 'network', () => ({
    operands: 'none',
    verbs: {
      check: { reach: 'local' },
      ...verbs('upload register', { outward: 'changes what is published' }),
    },
  })),
  ...programs(
    'tox nox coverage celery gunicorn uvicorn flask django-admin alembic streamlit sphinx-build mkdocs cookiecutter scrapy dbt airflow locust manim invoke fab ansible ansible-playbook virtualenv pyenv pyinstaller cython f2py pydoc pydoc3 2to3',
    'medium',
    'unknown',
  ),
];
