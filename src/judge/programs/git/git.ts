import {
  type Argument,
  type Behaviour,
  type Finding,
  finding,
  type Loss,
  type PrintedChanges,
  type ProgramRow,
  programs,
  type Use,
  verbs,
} from '../behaviour.ts';
import { argumentOf, hasOption, plainPaths } from '../options.ts';
import { isMadeAnew } from '../regenerable.ts';
import { GIT_READING } from './reading.ts';
import { runsOfGit } from './runs.ts';
import { isHarmlessSetting } from './settings.ts';

/** Verbs that only read. Commands cannot write the settings that they obey in a repository, so they run nothing. */
const READING: Behaviour = {
  risk: 'low',
  runsNothing: true,
  operands: 'revisions',
  grammar: 'git log',
  // A merge that is made again is, for a while, among the objects of the repository.
  onlyReads: ({ command: { words } }) =>
    words.some(({ value = '' }) => /remerge|diff-?merges=r/i.test(value)) ? false : undefined,
};
const PLAIN: Behaviour = {
  risk: 'low',
  runsNothing: true,
  operands: 'revisions',
  // Those that walk through revisions take --output, as diff does.
  grammar: 'git status',
};
const CHANGING: Behaviour = { risk: 'medium', operands: 'revisions' };
/** Transports that run a program: `ext::sh -c …`, `fd::`. */
function inspectRemote(use: Use): readonly Finding[] {
  return use.operands
    .filter(({ text }) => /^(?:ext|fd)::|^-/.test(text) || /^(?!https?|ssh|git|file|ftps?)\w+::/.test(text))
    .map(({ word }) => finding('executes', 'transport', 'uses a transport that runs a program', word.source));
}

/** `https://host/path`, `git@host:path`; names of remotes and paths are none. */
function remotesOf({ operands }: Use): readonly Argument[] {
  return operands.filter(({ text }) => /^[a-z][a-z0-9+.-]*:\/\/|^[\w.-]+@[\w.-]+:/.test(text));
}

/** A verb that only lists unless operands or flags say more. */
function listsUnless(pattern: RegExp, harmless = /^$/): (use: Use) => readonly Finding[] {
  return (use) => {
    const found = use.command.words.filter(({ value }) => value === undefined || pattern.test(value));
    const listing = use.command.words.some(({ value }) => value !== undefined && harmless.test(value));
    const names = listing ? [] : use.operands.map(({ word }) => word);
    return [...found, ...names]
      .slice(0, 1)
      .map(({ source }) => finding('writes', 'changes_repository', 'changes the repository', source));
  };
}

/** Reading a setting is harmless; writing one, or editing the file, may plant a program. */
function inspectConfig(use: Use): readonly Finding[] {
  const has = (names: RegExp) =>
    use.command.words.some(({ value }) => value !== undefined && names.test(value));
  if (
    has(/^--(?:get|get-all|get-regexp|get-urlmatch|list|get-color)$|^-l$/) &&
    !has(/^-e$|^--(?:add|unset|e|re[pnm])/)
  )
    return [];
  const [first, second] = use.operands;
  if (first === undefined) return has(/^(?:-e|--e[a-z]*)$/) ? [changesConfig('--edit')] : [];
  if (first.complete && (first.text === 'list' || first.text === 'get')) return [];
  if (second === undefined && first.complete && first.text.includes('.') && !has(/^--(?:un|rem|ren|ad)/)) {
    return [];
  }
  return [changesConfig(first.word.source)];
}

function changesConfig(source: string): Finding {
  return finding('writes', 'changes_config', 'changes settings that may name programs', source);
}

/** `-c KEY=VALUE`, `--config-env`, and aliases by way of unknown verbs. */
function inspectGit(use: Use): readonly Finding[] {
  const findings: Finding[] = [];
  for (const { name, value, word } of use.options) {
    if (name !== 'c' || (use.verbs.length > 0 && !isGlobal(use, word.span.start))) continue;
    if (value?.complete !== true || !isHarmlessSetting(value.text)) {
      findings.push(
        finding(
          'executes',
          'git_setting',
          'gets a setting that may name a program',
          value?.word.source ?? word.source,
        ),
      );
    }
  }
  return findings;
}

/** True if an option stands before the verb. */
function isGlobal(use: Use, start: number): boolean {
  const verb = use.command.words.find(({ value }) => value === use.verbs[0]);
  return verb === undefined || start < verb.span.start;
}

const always = (message: string) => (): Loss => ({ what: 'always', message, repository: 'history' });

/**
 * An option of git's where its verb has no table: git takes abbreviations, and letters together (`-qf`), up to one of
 * those that take a value.
 */
function isGiven({ command: { words } }: Use, long: string, letter = '', withValue = 'bBcCsX'): boolean {
  return words.some(({ value = '' }) => {
    if (value.startsWith('--'))
      return value.length > 2 && long.startsWith(value.slice(2).replace(/=.*/s, ''));
    const letters = /^-[A-Za-z]+$/.test(value) ? value.slice(1) : '';
    const end = [...letters].findIndex((one) => withValue.includes(one));
    return letter !== '' && letters.slice(0, end === -1 ? undefined : end).includes(letter);
  });
}

/** Files that are not tracked: there is no other copy. Whether it needs `--force` is a setting. */
function lossOfClean(use: Use): Loss | undefined {
  const onlyTells = hasOption(use, 'n dry-run') && !hasOption(use, 'no-dry-run');
  const { operands } = use;
  // `:!build` means all the others.
  const isNarrow = operands.length > 0 && operands.every((one) => isMadeAnew(one) && !/^:/.test(one.text));
  if (onlyTells || isNarrow) return undefined;
  const message = 'would delete files that are not tracked';
  const areNames = operands.every(({ text, complete }) => complete && !/[*?[\\]|^:/.test(text));
  if (!areNames) return { what: 'always', message, repository: 'nowhere' };
  return {
    what: 'untracked',
    message,
    repository: 'nowhere',
    ...(operands.length === 0 ? {} : { paths: operands }),
  };
}

const LOCAL_CHANGES = 'would throw away changes that are not committed';
const STAGED = 'would throw away changes that are staged';
const SINCE_STOP = 'would throw away what was staged or worked on since it came to a stop';

/** `git merge --abort` and its kin put the index back, with what somebody staged meanwhile; a rebase all files. */
const lossByAbort =
  (what: Loss['what']) =>
  (use: Use): Loss | undefined =>
    isGiven(use, 'abort') || isGiven(use, 'skip')
      ? { what, message: SINCE_STOP, repository: 'history' }
      : undefined;

/** Verbs that put files back to what was committed, by their options and paths. */
function lossOfChanges(use: Use): Loss | undefined {
  const [verb] = use.verbs;
  const everything: Loss = { what: 'changes', message: LOCAL_CHANGES, repository: 'index' };
  // Any operand but HEAD may be a commit or a branch, and the verb may move HEAD to it.
  const all: Loss = use.operands.some(({ text }) => text !== 'HEAD')
    ? { ...everything, repository: 'history' }
    : everything;
  // A pattern, or a path from the top (`:/`): which files are meant only git knows.
  const isPattern = ({ text, complete }: Argument) => !complete || /^:|[*?[\\]/.test(text);
  const only = (paths: Use['operands'], fromIndex: boolean): Loss | undefined => {
    if (paths.length === 0) return undefined;
    const loss: Loss = fromIndex ? { ...everything, what: 'unstaged' } : everything;
    return paths.some(isPattern) ? loss : { ...loss, paths };
  };
  switch (verb) {
    case 'reset':
      if (isGiven(use, 'hard')) return all;
      return isGiven(use, 'merge') ? { ...all, what: 'staged', message: STAGED } : undefined;
    case 'switch':
      return isGiven(use, 'force', 'f') || isGiven(use, 'discard-changes') ? all : undefined;
    case 'restore':
      if (isGiven(use, 'staged', 'S') && !isGiven(use, 'worktree', 'W')) return undefined;
      return isGiven(use, 'pathspec-from-file') || isGiven(use, 'patch', 'p')
        ? everything
        : only(use.operands, !isGiven(use, 'source', 's') && !isGiven(use, 'staged', 'S'));
    default:
      if (isGiven(use, 'force', 'f') || isGiven(use, 'pathspec-from-file') || isGiven(use, 'patch', 'p'))
        return use.afterDashes < use.operands.length ? everything : all;
      // Without `--` a word may be a branch or a path; git refuses one that could be both.
      return use.afterDashes < use.operands.length
        ? only(use.operands.slice(use.afterDashes), use.afterDashes === 0)
        : only(pathsAmong(use), use.operands.length < 2);
  }
}

/** Plumbing that writes files over what is there, with the option that makes it. */
function lossByForce(use: Use): Loss | undefined {
  const [verb, inner] = use.verbs;
  const isForced = isGiven(use, 'force', 'f');
  // With one tree, what is staged goes; what is not makes it fail.
  if (verb === 'read-tree' && isGiven(use, '', 'u') && isGiven(use, '', 'm'))
    return { what: 'staged', message: STAGED, repository: 'index' };
  const loses =
    verb === 'checkout-index'
      ? isForced
      : verb === 'read-tree'
        ? isGiven(use, 'reset') && isGiven(use, '', 'u')
        : verb === 'submodule' || verb === 'worktree'
          ? isForced && (inner === 'deinit' || inner === 'remove')
          : false;
  const isOfOthers = verb === 'submodule' || verb === 'worktree';
  return loses
    ? {
        what: FORCED[verb ?? ''] ?? 'changes',
        message: LOCAL_CHANGES,
        repository: isOfOthers ? 'history' : 'index',
      }
    : undefined;
}

const FORCED: Readonly<Record<string, Loss['what']>> = {
  worktree: 'always',
  submodule: 'always',
  'checkout-index': 'unstaged',
};

/** Where another file takes its place, or it goes with what is staged of it. */
function lossInPlace(use: Use): Loss | undefined {
  const paths = use.verbs[0] === 'mv' ? use.operands.slice(-1) : use.operands;
  const isForced = hasOption(use, 'f force') && !hasOption(use, 'n dry-run cached');
  return isForced && paths.length > 0
    ? { what: 'changes', message: LOCAL_CHANGES, repository: 'index', paths }
    : undefined;
}

/** The stash is a reference like any other. */
function lossOfReference(use: Use): Loss | undefined {
  const isStash = use.command.words.some(({ value = '' }) => value === 'refs/stash');
  return isStash && isGiven(use, '', 'd')
    ? { what: 'always', message: 'would throw away stashed changes', repository: 'history' }
    : undefined;
}

/** Two commits, or one range of them: nothing that is not committed. */
const isBetweenCommits = ({ operands, afterDashes, command: { words } }: Use): boolean => {
  const hasDashes = words.some(({ value }) => value === '--');
  const commits = hasDashes ? operands.slice(0, afterDashes) : operands;
  return commits.some(({ text }) => text.includes('..')) || (hasDashes && commits.length > 1);
};

/** `git diff`, `git diff -R`: what was changed since it was committed or staged. */
function printsChanges(use: Use): PrintedChanges | undefined {
  if (isBetweenCommits(use)) return undefined;
  const { verbs, operands, afterDashes } = use;
  const isOfIndex = verbs[0] !== 'diff-index' && (operands.length === 0 || afterDashes === 0);
  const what = hasOption(use, 'cached staged') ? 'staged' : isOfIndex ? 'unstaged' : 'changes';
  return { what, isReverse: hasOption(use, 'R') };
}

/** `git show HEAD:file`: a file as it was. */
const printsFile = (use: Use) => (use.operands.some(({ text }) => text.includes(':')) ? 'files' : undefined);
const printsFiles = () => 'files' as const;

/** `git apply`; not where it only tells, or touches the index alone. */
function patchesFiles(use: Use): 'forward' | 'reverse' | undefined {
  const has = (...names: readonly string[]) => names.some((name) => isGiven(use, name));
  const onlyTells = has('check', 'stat', 'numstat', 'summary') && !has('apply');
  if (onlyTells || use.command.words.some(({ value }) => value === '--cached')) return undefined;
  return isGiven(use, 'reverse', 'R', 'pC') ? 'reverse' : 'forward';
}

/** Commits that nothing names any more are the way back, unless they are deleted before the usual two weeks. */
function lossOfCommits(use: Use): Loss | undefined {
  const texts = use.command.words.map(({ value }) => value ?? '');
  const isSoon = (text: string) =>
    /^(?:--(?:p|pr|pru|prun|prune|e|ex|exp|expi|expir|expire)|gc\.(?:prune|reflog)expire(?:unreachable)?)=(?!never$|\d+\.(?:weeks|months|years)\.ago$)/i.test(
      text,
    );
  const prunes = use.verbs[0] === 'prune' && !isGiven(use, 'dry-run', 'n');
  return prunes || texts.some(isSoon)
    ? {
        what: 'always',
        message: 'would delete reflog entries or unreferenced commits, the only way back to older work',
        repository: 'history',
      }
    : undefined;
}

/** The directory `.git` itself is moved to where the sandbox may take it away. */
function lossOfInit({ command: { words } }: Use): Loss | undefined {
  const texts = words.map(({ value, source }) => value ?? source.replace(/["'\\]/g, ''));
  const to = texts.flatMap((text, index) => {
    const [option, attached] = /^--sep[a-z-]*(?:=(.*))?/s.exec(text) ?? [];
    return option === undefined ? [] : [attached ?? texts[index + 1] ?? ''];
  });
  return to.some((path) => /^[/~$`]|\.\./.test(path))
    ? {
        what: 'always',
        message: 'would move the history of the repository out of the workspace',
        repository: 'history',
      }
    : undefined;
}

/** `git checkout .`, `git checkout Makefile`, `git checkout HEAD src/a.js`; not `git checkout -b feature/x`. */
function pathsAmong(use: Use): Use['operands'] {
  const makesBranch = use.options.some(({ name }) => /^(?:b|B|c|C|orphan|track)$/.test(name));
  return makesBranch ? [] : use.operands;
}

const WITH_REMOTE: Behaviour = {
  risk: 'medium',
  reach: 'network',
  operands: 'none',
  grammar: 'git fetch',
  inspect: inspectRemote,
  hosts: remotesOf,
  connects: { ssh: true },
};
/** Options of `git push` by which it deletes and overwrites nothing at the remote: none that git would take for another one. */
const ADDING =
  /^(?:-[uvqn46]+|--(?:set-upstream|verbose|quiet|dry-run|tags|follow-tags|(?:no-)?progress|porcelain|atomic|no-verify|ipv[46]))$/;

/** True where the remote takes the commits only if nothing is lost there. A word that is not known may be `+main`. */
function pushAdds({ command: { words } }: Use): boolean {
  const texts = words.slice(1).map(({ value }) => value);
  const at = texts.indexOf('push');
  const isPlain = at === 0 || (at === 2 && texts[0] === '-C');
  return (
    isPlain &&
    texts
      .slice(at + 1)
      .every((text) => text !== undefined && (text.startsWith('-') ? ADDING.test(text) : !/^[+:]/.test(text)))
  );
}

const outwardOfPush = (use: Use) =>
  pushAdds(use) ? 'sends commits to a remote' : 'may overwrite or delete what a remote has';

const VERBS: Readonly<Record<string, Behaviour>> = {
  ...verbs('log whatchanged range-diff diff-tree', READING),
  shortlog: {
    ...READING,
    grammar: 'git shortlog',
  },
  ...verbs('diff diff-index diff-files', { ...READING, printsVersions: printsChanges }),
  show: { ...READING, printsVersions: printsFile },
  ...verbs(
    'status rev-parse rev-list describe ls-tree name-rev show-ref for-each-ref merge-base cherry count-objects var check-ignore check-attr check-mailmap check-ref-format verify-commit verify-tag show-branch version get-tar-commit-id patch-id stripspace column',
    PLAIN,
  ),
  'cat-file': { ...PLAIN, printsVersions: printsFiles },
  fsck: { ...PLAIN, grammar: 'git fsck' },
  // It keeps the trees that it makes, and says nothing else of them than their names.
  'merge-tree': { ...PLAIN, onlyReads: () => false },
  'ls-files': {
    ...PLAIN,
    grammar: 'git ls-files',
  },
  help: { ...PLAIN, grammar: 'git help' },
  // Runs the filters of the repository's own configuration only.
  'format-patch': {
    risk: 'medium',
    operands: 'revisions',
    grammar: 'git format-patch',
  },
  blame: {
    ...PLAIN,
    grammar: 'git blame',
  },
  annotate: PLAIN,
  grep: {
    risk: 'low',
    runsNothing: true,
    operands: 'none',
    grammar: 'git grep',
  },
  archive: {
    risk: 'low',
    runsNothing: true,
    operands: 'revisions',
    grammar: 'git archive',
    printsVersions: printsFiles,
  },
  bundle: CHANGING,
  reflog: {
    ...READING,
    verbs: {
      ...verbs('show exists list', READING),
      ...verbs('expire delete drop', {
        ...CHANGING,
        loses: always('would throw away the way back to older commits'),
      }),
    },
  },
  branch: {
    risk: 'low',
    runsNothing: true,
    operands: 'none',
    grammar: 'git branch',
    inspect: listsUnless(
      /^(?:-[a-z]*[dDmMcCfut][a-zA-Z]*|--(?:de|mov|copy|for(?:c|$)|se|un|ed|tr)[a-z-]*(?:=.*)?)$/,
      /^(?:-l|--list|-a|-r|--all|--remotes|--contains|--no-contains|--merged|--no-merged|--points-at|--show-current|-v*[ar][arv]*)$/,
    ),
  },
  tag: {
    risk: 'low',
    runsNothing: true,
    operands: 'none',
    grammar: 'git tag',
    inspect: listsUnless(
      /^(?:-[a-z]*[adfFsum][a-z]*|--(?:delete|force|annotate|sign|message|file|edit)(?:=.*)?)$/,
      /^(?:-l|--list|-n\d*|--contains|--no-contains|--merged|--no-merged|--points-at)$/,
    ),
  },
  remote: {
    risk: 'low',
    runsNothing: true,
    operands: 'none',
    grammar: 'git remote',
    verbs: {
      'get-url': { risk: 'low' },
      ...verbs('show', { risk: 'medium', reach: 'network' }),
      ...verbs('update prune', { risk: 'medium', reach: 'network' }),
      ...verbs('add set-url rename rm remove set-head set-branches', {
        risk: 'medium',
        inspect: inspectRemote,
      }),
    },
  },
  config: {
    risk: 'low',
    runsNothing: true,
    operands: 'none',
    grammar: 'git config',
    inspect: inspectConfig,
    paths: (use) =>
      plainPaths(
        use.options.filter(({ name }) => name === 'f' || name === 'file').map(({ value }) => value),
        inspectConfig(use).length > 0 ? 'writes' : 'reads',
      ),
  },
  stash: {
    risk: 'medium',
    runsNothing: true,
    operands: 'none',
    verbs: {
      ...verbs('list show', READING),
      ...verbs('push save pop apply branch create store', { risk: 'medium', operands: 'none' }),
      ...verbs('drop clear', {
        risk: 'medium',
        operands: 'none',
        loses: always('would throw away stashed changes'),
      }),
    },
  },
  worktree: {
    risk: 'medium',
    operands: 'guess',
    verbs: {
      list: { risk: 'low', runsNothing: true },
      ...verbs('add move', { risk: 'medium', operands: 'guess' }),
      remove: { risk: 'medium', loses: lossByForce },
      ...verbs('prune lock unlock repair', { risk: 'medium' }),
    },
  },
  submodule: {
    risk: 'medium',
    operands: 'none',
    verbs: {
      ...verbs('status summary', { risk: 'low', runsNothing: true }),
      deinit: { risk: 'medium', reach: 'network', loses: lossByForce },
      ...verbs('update init sync set-url set-branch absorbgitdirs', {
        risk: 'medium',
        reach: 'network',
        inspect: inspectRemote,
      }),
      add: {
        ...{ risk: 'medium', reach: 'network', inspect: inspectRemote },
        ...{ hosts: remotesOf, connects: { ssh: true } },
      },
      foreach: { risk: 'low' },
    },
  },
  notes: { ...CHANGING, verbs: verbs('list show', { risk: 'low', runsNothing: true }) },
  bisect: { ...CHANGING, verbs: verbs('log', { risk: 'low' }) },
  add: { risk: 'medium', runsNothing: true, operands: 'reads' },
  rm: {
    risk: 'high',
    runsNothing: true,
    operands: 'removes',
    grammar: 'git rm',
    // Without force it removes only files that are as committed. Operands that are written out are checked anyway.
    // A variable may hold that option: `git rm $flags notes`.
    keeps: (use) =>
      hasOption(use, 'n dry-run cached') ||
      (!hasOption(use, 'f force') &&
        use.operands.some(({ complete }) => !complete) &&
        use.openEnded.every(({ parts: [first] }) => first?.kind !== 'parameter' || first.quoted === true)),
    loses: lossInPlace,
  },
  clean: {
    risk: 'medium',
    runsNothing: true,
    operands: 'guess',
    grammar: 'git clean',
    loses: lossOfClean,
  },
  mv: {
    risk: 'medium',
    runsNothing: true,
    operands: 'moves-then-writes',
    grammar: 'git mv',
    loses: lossInPlace,
  },
  commit: {
    risk: 'medium',
    operands: 'revisions',
    grammar: 'git commit',
  },
  rebase: {
    ...CHANGING,
    // What `--exec` runs is listed as a command of its own.
    grammar: 'git rebase',
    loses: lossByAbort('stopped-changes'),
  },
  ...verbs('merge am', {
    risk: 'medium',
    operands: 'revisions',
    grammar: 'git merge',
    loses: lossByAbort('stopped'),
  }),
  ...verbs('cherry-pick revert', {
    risk: 'medium',
    operands: 'revisions',
    grammar: 'git cherry-pick',
    loses: lossByAbort('stopped'),
  }),
  apply: { risk: 'medium', operands: 'reads', grammar: 'git apply', patches: patchesFiles },
  'update-ref': { risk: 'medium', operands: 'revisions', grammar: 'git merge', loses: lossOfReference },
  ...verbs(
    'pack-refs replace update-index symbolic-ref write-tree commit-tree hash-object mktree rerere sparse-checkout maintenance filter-branch filter-repo fast-import fast-export lfs flow request-pull mergetool citool gui gitk daemon credential fsmonitor--daemon hook',
    {
      risk: 'medium',
      operands: 'revisions',
      grammar: 'git merge',
    },
  ),
  ...verbs('repack instaweb', { risk: 'medium', operands: 'revisions', grammar: 'git repack' }),
  init: { risk: 'medium', operands: 'revisions', grammar: 'git merge', loses: lossOfInit },
  ...verbs('gc prune', { risk: 'medium', operands: 'revisions', loses: lossOfCommits }),
  ...verbs('read-tree checkout-index', { risk: 'medium', operands: 'revisions', loses: lossByForce }),
  ...verbs('reset restore', {
    risk: 'medium',
    runsNothing: true,
    operands: 'revisions',
    // Not `git merge`, whose `-m` has a value: here it has none.
    grammar: 'git reset',
    loses: lossOfChanges,
  }),
  ...verbs('checkout switch', {
    risk: 'medium',
    operands: 'revisions',
    grammar: 'git checkout',
    loses: lossOfChanges,
  }),
  difftool: { ...CHANGING, grammar: 'git difftool' },
  fetch: WITH_REMOTE,
  pull: { ...WITH_REMOTE, grammar: 'git pull' },
  push: { ...WITH_REMOTE, outward: outwardOfPush, onlySends: pushAdds },
  'ls-remote': { ...WITH_REMOTE, grammar: 'git ls-remote' },
  clone: {
    ...WITH_REMOTE,
    operands: 'guess',
    grammar: 'git clone',
  },
  ...verbs(
    'svn p4 cvsimport send-email imap-send http-fetch http-push send-pack fetch-pack upload-pack receive-pack',
    {
      risk: 'high',
      reach: 'network',
    },
  ),
};

/** A program that asks a forge for something, or changes something there. */
const forge = (names: string, own: Behaviour = {}) =>
  programs(names, 'high', 'network', () => ({ ...FORGE, ...own }));
const FORGE: Behaviour = {
  operands: 'none',
  needs: 'network',
  outward: 'changes things at the forge',
};
const FORGE_ASKS = verbs('list view status diff checks', { risk: 'medium', outward: () => undefined });

/** git, whose global options before the verb do not hide it. */
export const GIT: readonly ProgramRow[] = [
  ...programs('git', 'medium', 'unknown', () => ({
    runs: runsOfGit,
    operands: 'none',
    grammar: 'git',
    repository: (use) => ({
      itself: hasOption(use, 'bare'),
      moves: use.options.flatMap(({ name, value }) => (name === 'C' && value !== undefined ? [value] : [])),
      named: [
        ...use.options.flatMap(({ name, value }) =>
          value !== undefined && /^(?:git-dir|work-tree)$/.test(name) ? [value] : [],
        ),
        ...use.command.assignments.flatMap(({ name, value }) =>
          /^GIT_(?:DIR|WORK_TREE)$/.test(name) ? [argumentOf(value)] : [],
        ),
      ],
    }),
    inspect: inspectGit,
    hasAliases: true,
    verbs: VERBS,
    application: GIT_READING,
  })),
  ...forge('gh', {
    connects: { entry: '@github' },
    verbs: {
      ...verbs('issue run release workflow', { verbs: FORGE_ASKS }),
      pr: { verbs: { ...FORGE_ASKS, ...verbs('create merge update-branch', { movesCommits: true }) } },
      repo: { verbs: { ...FORGE_ASKS, sync: { movesCommits: true } } },
      ...verbs('version help', { risk: 'medium', needs: 'nothing' }),
    },
  }),
  ...forge('glab', { verbs: { mr: { verbs: verbs('create merge rebase', { movesCommits: true }) } } }),
  ...forge('hub'),
  ...programs('dulwich', 'medium', 'unknown', () => ({
    verbs: verbs('push pull rebase send-pack', { movesCommits: true }),
  })),
  ...programs('svn', 'medium', 'network'),
  ...programs('hg', 'medium', 'unknown'),
  ...programs('jj', 'medium', 'unknown', () => ({
    verbs: { git: { verbs: { push: { movesCommits: true } } } },
  })),
  ...programs('tig', 'medium', 'unknown', () => ({ operands: 'none' })),
  ...programs('lazygit', 'medium', 'unknown', () => ({ operands: 'none' })),
  ...programs('pre-commit', 'medium', 'network', () => ({ operands: 'none' })),
];
