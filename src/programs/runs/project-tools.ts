import { hasOption, type OptionTable, optionValue, readOptions } from './options.ts';
import { NOTHING, type Runner, refused, runWords } from './runner.ts';

/** Programs of the form `name [options] verb [options] command`, which run it in a project's environment. */
interface ProjectTool {
  readonly before: OptionTable;
  /** The verb in one or two words. */
  readonly verbs: readonly string[];
  readonly options: OptionTable;
  /** Operands between the verb's options and the command. */
  readonly operands?: number;
  /** Options that make the rest something else than a command line. */
  readonly otherwise?: readonly string[];
  readonly directory?: readonly string[];
}

const GLOBAL: OptionTable = {
  flags: 'qvnhV',
  values: 'CPp',
  long: {
    quiet: 'flag',
    verbose: 'flag',
    version: 'flag',
    help: 'flag',
    directory: 'value',
    project: 'value',
    'no-interaction': 'flag',
    'no-ansi': 'flag',
    ansi: 'flag',
    'no-plugins': 'flag',
    'no-cache': 'flag',
    offline: 'flag',
    color: 'value',
  },
};
const UV_RUN: OptionTable = {
  flags: 'qvnmsi',
  values: 'pwC',
  long: {
    frozen: 'flag',
    locked: 'flag',
    'no-sync': 'flag',
    isolated: 'flag',
    active: 'flag',
    'no-project': 'flag',
    'all-extras': 'flag',
    offline: 'flag',
    'no-dev': 'flag',
    dev: 'flag',
    exact: 'flag',
    'no-env-file': 'flag',
    quiet: 'flag',
    verbose: 'flag',
    refresh: 'flag',
    'no-cache': 'flag',
    'all-packages': 'flag',
    module: 'flag',
    script: 'flag',
    'all-groups': 'flag',
    with: 'value',
    'with-editable': 'value',
    'with-requirements': 'value',
    python: 'value',
    extra: 'value',
    group: 'value',
    'only-group': 'value',
    'no-group': 'value',
    project: 'value',
    directory: 'value',
    'env-file': 'value',
    package: 'value',
    'index-url': 'value',
    from: 'value',
  },
};

const TOOLS: Readonly<Record<string, ProjectTool>> = {
  uv: {
    before: GLOBAL,
    verbs: ['run', 'tool run'],
    options: UV_RUN,
    otherwise: ['m', 's', 'module', 'script'],
    directory: ['directory'],
  },
  poetry: { before: GLOBAL, verbs: ['run'], options: { flags: 'qv' }, directory: ['C', 'directory'] },
  pipenv: { before: GLOBAL, verbs: ['run'], options: {} },
  pdm: {
    before: GLOBAL,
    verbs: ['run'],
    options: { flags: 's', values: 'p', long: { site: 'flag', project: 'value' } },
  },
  hatch: {
    before: { flags: 'vq', values: 'ep', long: { env: 'value', project: 'value' } },
    verbs: ['run'],
    options: {},
  },
  rye: { before: GLOBAL, verbs: ['run'], options: {} },
  bundle: {
    before: { long: { gemfile: 'value' } },
    verbs: ['exec', 'e'],
    options: { long: { 'keep-file-descriptors': 'flag', gemfile: 'value' } },
  },
  direnv: { before: {}, verbs: ['exec'], options: {}, operands: 1, directory: [] },
  conda: {
    before: {},
    verbs: ['run'],
    options: {
      values: 'np',
      long: {
        name: 'value',
        prefix: 'value',
        'no-capture-output': 'flag',
        'live-stream': 'flag',
        cwd: 'value',
      },
    },
    directory: ['cwd'],
  },
  mise: { before: { flags: 'qvy', values: 'C' }, verbs: ['exec', 'x'], options: {} },
  rustup: { before: { flags: 'qv' }, verbs: ['run'], options: { long: { install: 'flag' } }, operands: 1 },
};

/** The names that `projectTool` knows. */
export const PROJECT_TOOLS: readonly string[] = Object.keys(TOOLS);

export const projectTool: Runner = (call) => {
  const tool = TOOLS[call.name];
  if (tool === undefined) return NOTHING;
  const before = readOptions(call.words.slice(1), tool.before);
  // Other verbs have options of their own, and run nothing that stands here.
  if (!before.ok)
    return call.words.some((word) => word.value !== undefined && tool.verbs.includes(word.value))
      ? refused(`${call.name}: ${before.message}`, before.word)
      : NOTHING;
  const [first, second] = before.rest;
  if (first !== undefined && first.value === undefined)
    return refused(`${call.name}: the verb ${first.source} must be written out.`, first);
  const length = tool.verbs.includes(first?.value ?? '')
    ? 1
    : tool.verbs.includes(`${first?.value} ${second?.value}`)
      ? 2
      : 0;
  if (length === 0) return NOTHING;
  const read = readOptions(before.rest.slice(length), tool.options);
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  if (hasOption(read.options, ...(tool.otherwise ?? []))) return NOTHING;
  const directory = optionValue([...before.options, ...read.options], ...(tool.directory ?? []));
  const operands = tool.operands ?? 0;
  const dashes = call.name === 'mise' ? read.rest.findIndex((word) => word.value === '--') + 1 : 0;
  return runWords(read.rest.slice(Math.max(operands, dashes)), directory === undefined ? {} : { directory });
};

/** uvx and pipx run: a tool that is fetched and run. */
export const toolRunner: Runner = (call) => {
  const args = call.name === 'pipx' ? call.words.slice(2) : call.words.slice(1);
  if (call.name === 'pipx' && call.words[1]?.value !== 'run') return NOTHING;
  const read = readOptions(args, {
    ...UV_RUN,
    long: { ...UV_RUN.long, spec: 'value', version: 'flag', help: 'flag', isolated: 'flag' },
  });
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  return runWords(read.rest);
};
