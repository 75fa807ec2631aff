import type { Word } from '../../model/command-line.ts';
import { prefixOf } from '../../model/word.ts';
import { hasOption, type OptionTable, optionValue, readOptions } from './options.ts';
import { type Call, NOTHING, type Runner, type Runs, refused, runWords } from './runner.ts';

const EXEC: OptionTable = {
  flags: 'yqvhs',
  values: 'pwcC',
  long: {
    yes: 'flag',
    no: 'flag',
    'no-install': 'flag',
    quiet: 'flag',
    silent: 'flag',
    offline: 'flag',
    'prefer-offline': 'flag',
    version: 'flag',
    help: 'flag',
    bun: 'flag',
    package: 'value',
    workspace: 'value',
    workspaces: 'flag',
    'include-workspace-root': 'flag',
    registry: 'value',
    call: 'value',
    loglevel: 'value',
    prefix: 'value',
    'ignore-existing': 'flag',
    recursive: 'flag',
    parallel: 'flag',
    filter: 'value',
    dir: 'value',
  },
};

/** `npx [options] [--] program words`, or `-c text`. */
export const npx: Runner = (call) => execute(call, call.words.slice(1));

function execute(call: Call, args: readonly Word[]): Runs {
  const read = readOptions(args, EXEC);
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  const text = optionValue(read.options, 'c', 'call');
  if (text !== undefined) return { runs: [{ kind: 'text', text: [text], dialect: 'posix' }] };
  if (hasOption(read.options, 'version', 'help', 'v', 'h')) return NOTHING;
  const dashes = read.rest.findIndex((word) => word.value === '--');
  // npm takes away the first "--" behind the program's name.
  const command =
    call.name === 'npm' && dashes === 1 ? read.rest.filter((_, index) => index !== 1) : read.rest;
  const elsewhere = hasOption(read.options, 'w', 'workspace', 'C', 'prefix', 'dir', 'recursive', 'filter');
  return runWords(command, elsewhere ? { directory: 'unknown' } : {});
}

/** Options before the verb that take a value. */
const WITH_VALUE =
  /^(?:-C|-w|-F|--prefix|--workspace|--registry|--loglevel|--filter|--cwd|--dir|--package|-p|--userconfig|--cache)$/;
/** Programs that the package manager starts in place of its own. */
const EXECUTING =
  /^--?(?:script-shell|shell|editor|viewer|browser|git|node-options|init-module|ignore-scripts=false)\b/;

const VERBS: Readonly<Record<string, RegExp>> = {
  npm: /^(?:exec|x|ex|exe)$/,
  pnpm: /^(?:exec|dlx)$/,
  yarn: /^(?:exec|dlx)$/,
  bun: /^(?:x)$/,
};

/** npm, pnpm, yarn and bun, with the verbs that run a program. Scripts of package.json are a file's business. */
export const packageManager: Runner = (call) => {
  const args = call.words.slice(1);
  const setting = args.find((word) => EXECUTING.test(prefixOf(word)));
  if (setting !== undefined)
    return refused(`${call.name}: ${setting.source} names a program to run.`, setting);
  let at = 0;
  while (prefixOf(args[at] ?? EMPTY).startsWith('-')) at += WITH_VALUE.test(args[at]?.value ?? '') ? 2 : 1;
  const verb = args[at];
  if (verb === undefined) return NOTHING;
  if (verb.value === undefined)
    return refused(`${call.name}: the verb ${verb.source} must be written out.`, verb);
  if (call.name === 'npm' && verb.value === 'explore') return explore(args.slice(at + 2));
  if (VERBS[call.name]?.test(verb.value) !== true) return NOTHING;
  return execute(call, args.slice(at + 1));
};

/** `npm explore package -- text`: a shell runs it in the package's folder. */
function explore(args: readonly Word[]): Runs {
  const text = args[0]?.value === '--' ? args.slice(1) : args;
  if (text.length === 0) return refused('npm explore would start a shell: name the command.', args[0]);
  return { runs: [{ kind: 'text', text, dialect: 'posix', directory: 'unknown' }] };
}

const EMPTY: Word = { value: '', parts: [], source: '', span: { start: 0, end: 0 } };
