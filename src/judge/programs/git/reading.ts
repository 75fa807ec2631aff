import type { ObeyedState, Word } from '../../../model/index.ts';
import type { Application, Argument, Grammar, Use } from '../behaviour.ts';
import { argumentOf, parseOptions } from '../options.ts';

/*
 * git where nothing holds it (backend `application`): three verbs that read, with options that start nothing, write nothing and read
 * no other file. What the configuration of the repository names is turned off by words and variables of our own; what cannot be
 * turned off is refused by `src/workspace/host/obeyed-files.ts`, which reads the configuration first.
 */

/** Left out: what runs a program (`--ext-diff`, `--textconv`, `--show-signature`, `--remerge-diff`), reads or writes a file. */
const DIFF: Grammar = {
  exact: true,
  numeric: true,
  flags:
    'p u patch s no-patch raw patch-with-raw indent-heuristic no-indent-heuristic minimal patience histogram numstat shortstat compact-summary summary patch-with-stat z name-only name-status no-color check full-index binary R a text b ignore-space-change w ignore-all-space ignore-blank-lines ignore-space-at-eol ignore-cr-at-eol W function-context exit-code quiet q no-ext-diff no-textconv no-prefix default-prefix pickaxe-all pickaxe-regex find-copies-harder no-renames rename-empty cached staged merge-base no-relative D irreversible-delete no-color-moved',
  values:
    'S G l stat-width stat-name-width stat-count stat-graph-width color-moved-ws word-diff-regex anchored inter-hunk-context ws-error-highlight diff-filter diff-algorithm line-prefix src-prefix dst-prefix find-object',
  optionals:
    'U unified stat X dirstat cumulative dirstat-by-file color color-moved word-diff color-words B break-rewrites M find-renames C find-copies abbrev relative',
};

const LOG: Grammar = {
  ...DIFF,
  flags: `${DIFF.flags} oneline graph follow no-decorate all merges no-merges first-parent reverse date-order author-date-order topo-order no-walk left-right left-only right-only cherry cherry-pick cherry-mark boundary simplify-by-decoration full-history dense sparse simplify-merges ancestry-path parents children relative-date no-notes no-mailmap i regexp-ignore-case E extended-regexp F fixed-strings P perl-regexp all-match invert-grep full-diff`,
  values: `${DIFF.values} n max-count skip since after until before author committer grep min-parents max-parents date exclude glob decorate-refs decorate-refs-exclude`,
  optionals: `${DIFF.optionals} pretty format decorate branches tags remotes`,
};

const STATUS: Grammar = {
  exact: true,
  flags: 's short b branch long no-renames show-stash ahead-behind no-ahead-behind z',
  optionals: 'porcelain u untracked-files ignored',
};

const VERBS: ReadonlyMap<string, Grammar> = new Map([
  ['status', STATUS],
  ['diff', DIFF],
  ['log', LOG],
]);

/** Before the verb; they are put in for every call. */
const BEFORE = /^(?:--no-pager|-P|--no-optional-locks)$/;

/** A signature is looked at by another program, and `%(describe)` is one. */
const RUNS_BY_FORMAT = /%G|%\(describe/;

/** The verb and what follows it. */
function afterOptions<Item>(words: readonly Item[], textOf: (item: Item) => string | undefined) {
  const at = words.findIndex((word, index) => index > 0 && !BEFORE.test(textOf(word) ?? ''));
  return at === -1 ? { verb: undefined, at: words.length } : { verb: textOf(words[at] as Item), at };
}

function objection({ command: { words } }: Use): string | undefined {
  const { verb, at } = afterOptions(words, ({ value }: Word) => value);
  const grammar = VERBS.get(verb ?? '');
  if (grammar === undefined) return 'runs here only to read, as git status, git diff and git log';
  const { unknown, openEnded, doubt, options } = parseOptions(words, at + 1, grammar);
  const [first] = [...unknown, ...openEnded];
  if (first !== undefined) return `${verb} takes no option ${first.source} here`;
  if (doubt !== undefined) return `${verb} has options that may mean something else`;
  return options.some(({ value }) => RUNS_BY_FORMAT.test(value?.text ?? ''))
    ? `${verb} would run a program for this format`
    : undefined;
}

/** Every word that is no option: git takes one that leads out of the repository for a file to compare. */
function paths({ command: { words } }: Use): readonly { argument: Argument; effect: 'reads' }[] {
  const { at } = afterOptions(words, ({ value }: Word) => value);
  const dashes = words.findIndex(({ value }) => value === '--');
  return words.flatMap((word, index) =>
    index > at && ((word.value ?? '-')[0] !== '-' || (dashes !== -1 && index > dashes))
      ? [{ argument: argumentOf(word), effect: 'reads' }]
      : [],
  );
}

/** Settings that start something, read a file elsewhere, or write; given by words, they go before those of the repository. */
const SETTINGS = [
  'core.fsmonitor=false',
  'core.hooksPath=/dev/null',
  'core.pager=cat',
  'core.attributesFile=/dev/null',
  'core.excludesFile=/dev/null',
  'core.sshCommand=false',
  'core.alternateRefsCommand=false',
  'core.untrackedCache=false',
  'diff.autoRefreshIndex=false',
  'diff.orderFile=/dev/null',
  'diff.submodule=short',
  'format.pretty=medium',
  'gpg.program=false',
  'gpg.ssh.program=false',
  'gpg.x509.program=false',
  'log.diffMerges=separate',
  'log.showSignature=false',
  'mailmap.blob=',
  'mailmap.file=/dev/null',
  'status.submoduleSummary=false',
  'submodule.recurse=false',
].flatMap((setting) => ['-c', setting]);

/** Behind the verb. Submodules have settings of their own, so that nothing looks into them. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  status: ['--ignore-submodules=all'],
  diff: ['--no-ext-diff', '--no-textconv', '--submodule=short', '--ignore-submodules=all'],
  log: ['--no-ext-diff', '--no-textconv', '--submodule=short'],
};

function started(words: readonly string[], { repository }: Exclude<ObeyedState, string>): readonly string[] {
  const { verb = '', at } = afterOptions(words, (word) => word);
  // Named, so that git looks for no other one, and takes none that a directory pretends to be.
  const named =
    repository === undefined
      ? []
      : [`--git-dir=${repository.directory}`, `--work-tree=${repository.worktree}`];
  const before = ['--no-pager', '--no-optional-locks', ...named, ...SETTINGS];
  return [words[0] ?? '', ...before, verb, ...(OPTIONS[verb] ?? []), ...words.slice(at + 1)];
}

/** git as the backend `application` runs it. */
export const GIT_READING: Application = {
  words: 'expression',
  objection,
  paths,
  obeys: () => 'repository',
  started,
  environment: {
    without: /^(?:GIT_|PAGER$|SSH_ASKPASS$)/,
    variables: {
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_CONFIG_GLOBAL: '/dev/null',
      GIT_ATTR_NOSYSTEM: '1',
      GIT_NO_LAZY_FETCH: '1',
      // No transport has that name.
      GIT_ALLOW_PROTOCOL: 'none',
      GIT_TERMINAL_PROMPT: '0',
    },
  },
  obeysEnvironment: () => true,
};
