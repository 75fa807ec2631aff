import { type Behaviour, type ProgramRow, programs, verbs } from '../behaviour.ts';

const CHANGES: Behaviour = { risk: 'medium', reach: 'network', operands: 'guess' };
const READS: Behaviour = { risk: 'low', operands: 'none' };

/** Python, its package managers and tools. */
export const PYTHON: readonly ProgramRow[] = [
  ...programs('python python2 python3 pypy pypy3 ipython jupyter bpython', 'medium', 'network', {
    grammar: { open: true, stopAtOperand: true, flags: 'b B d E i I O q s S u v x P', values: 'c m W X' },
    operands: 'guess',
  }),
  ...programs(
    'pip pip3 uv pipx conda mamba micromamba poetry pdm hatch pipenv rye easy_install',
    'medium',
    'network',
    {
      grammar: {
        open: true,
        flags: 'q quiet v verbose no-input',
        values: 'index-url i extra-index-url',
        reads: 'r requirement c constraint directory project C',
        loads: 'python',
        writes: 'target t prefix root cache-dir log',
      },
      operands: 'none',
      verbs: {
        ...verbs(
          'install uninstall download wheel add remove sync lock update upgrade init new venv run tool build publish cache config create env self python exec shell compile',
          CHANGES,
        ),
        ...verbs('list show freeze check tree help inspect debug version info', {
          ...READS,
          reach: 'network',
        }),
        pip: { ...CHANGES, verbs: verbs('list show freeze check tree', { ...READS, reach: 'network' }) },
      },
    },
  ),
  // Runs a tool that it downloads if need be; the tables of reach of the field call it unknown.
  ...programs('uvx', 'medium', 'unknown', { operands: 'none' }),
  ...programs(
    'pytest py.test nose2 mypy pyright basedpyright pyre pytype pylint flake8 pycodestyle pydocstyle bandit vulture radon ty',
    'low',
    'unknown',
    {
      grammar: {
        open: true,
        values: 'k m n W tb maxfail durations cov-report select ignore max-line-length cov',
        reads: 'rootdir confcutdir',
        writes: 'o output junitxml junit-xml html-report basetemp output-file',
        loads: 'p c rcfile config config-file load-plugins init-hook override-ini',
      },
      operands: 'guess',
    },
  ),
  ...programs('ruff', 'low', 'unknown', {
    grammar: { open: true, reads: 'config' },
    operands: 'guess',
    verbs: {
      check: {
        risk: 'low',
        operands: 'guess',
        grammar: {
          open: true,
          values: 'select ignore extend-select output-format line-length target-version',
          reads: 'config',
          writing: 'fix fix-only unsafe-fixes add-noqa',
          writes: 'o output-file cache-dir',
        },
      },
      format: {
        risk: 'low',
        operands: 'guess',
        grammar: { open: true, flags: 'check diff', reads: 'config', values: 'line-length' },
        inspect: ({ options, command }) =>
          options.some(({ name }) => name === 'check' || name === 'diff')
            ? []
            : [
                {
                  effect: 'writes',
                  code: 'rewrites',
                  message: 'rewrites files',
                  words: [command.words[1]?.source ?? ''],
                },
              ],
      },
    },
  }),
  ...programs('black isort autopep8 yapf autoflake pyupgrade docformatter', 'low', 'unknown', {
    grammar: { open: true, flags: 'check diff c check-only', values: 'l line-length k', reads: 'config' },
    operands: 'guess',
    inspect: ({ options, command }) =>
      options.some(({ name }) => name === 'check' || name === 'diff' || name === 'check-only' || name === 'c')
        ? []
        : [
            {
              effect: 'writes',
              code: 'rewrites',
              message: 'rewrites files',
              words: [command.words[0]?.source ?? ''],
            },
          ],
  }),
  ...programs(
    'tox nox coverage celery gunicorn uvicorn flask django-admin alembic streamlit twine sphinx-build mkdocs cookiecutter scrapy dbt airflow locust manim invoke fab ansible ansible-playbook virtualenv pyenv pyinstaller cython f2py pydoc pydoc3 2to3',
    'medium',
    'unknown',
    { operands: 'guess' },
  ),
];
