/** What git has been shipping in every installation for many years: no alias can take the place of one. */
const ALWAYS =
  'add am annotate apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects credential describe diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack fmt-merge-msg for-each-ref format-patch fsck fsck-objects gc get-tar-commit-id grep hash-object help index-pack init init-db interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit merge merge-base merge-file merge-index merge-ours merge-recursive merge-subtree merge-tree mktag mktree mv name-rev notes pack-objects pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase receive-pack reflog remote repack replace rerere reset rev-list rev-parse revert rm send-pack shortlog show show-branch show-index show-ref stage stash status stripspace submodule symbolic-ref tag unpack-file unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag version worktree write-tree';

/**
 * Newer, deprecated or packaged apart: where git does not have one, or lets an alias go first, an alias of this name is
 * what runs.
 */
const SOMEWHERE =
  'archimport backfill bugreport checkout--worker citool cvsimport cvsserver credential-cache credential-cache--daemon credential-store daemon diagnose diff-pairs difftool--helper env--helper filter-branch for-each-repo fsmonitor--daemon gui hook http-backend http-fetch imap-send instaweb last-modified lfs maintenance merge-octopus merge-one-file merge-recursive-ours merge-recursive-theirs merge-resolve mergetool multi-pack-index p4 pack-redundant pickaxe quiltimport refs repo request-pull restore send-email sh-i18n--envsubst sparse-checkout subtree svn switch upload-archive--writer web--browse whatchanged add--interactive bisect--helper';

const set = (names: string): ReadonlySet<string> => new Set(names.split(' '));

/** Commands of git that no alias can hide. */
export const BUILT_IN = set(ALWAYS);
/** Commands of git that an alias of the same name may hide. */
export const SHIPPED = set(SOMEWHERE);

const TO_A_PERSON = 'the policy (hooks.git_guard) leaves pushing, pulling and rebasing to a person';

/** Commands that are refused whatever their words. `remote-…` and `rebase-…` are refused besides. */
export const REFUSED: Readonly<Record<string, string>> = {
  push: `git push sends commits away: ${TO_A_PERSON}`,
  pull: `git pull merges or rebases what it fetches: ${TO_A_PERSON}; git fetch alone is allowed`,
  'send-pack': `git send-pack is what git push runs: ${TO_A_PERSON}`,
  'http-push': `git http-push pushes: ${TO_A_PERSON}`,
  'receive-pack': `git receive-pack takes what is pushed: ${TO_A_PERSON}`,
  shell: `git shell starts what receives a push: ${TO_A_PERSON}`,
  cvsexportcommit: `git cvsexportcommit sends commits away: ${TO_A_PERSON}`,
  replay: `git replay rebases: ${TO_A_PERSON}`,
  history: `git history rebases what follows a commit: ${TO_A_PERSON}`,
  'submodule--helper': `git submodule--helper is internal and can rebase: call git submodule`,
};

/** `git rebase` with this word alone ends a rebase and changes no commit. */
export const ENDS_REBASE = set('--abort --quit --show-current-patch');
export const REBASE = `git rebase rewrites commits, also when it continues or skips: ${TO_A_PERSON}; git rebase --abort is allowed`;

/** Programs around git: all that they may be told to do, as the first word that is no option. */
export const ALLOWED_SUBCOMMANDS: Readonly<Record<string, ReadonlySet<string>>> = {
  lfs: set(
    'checkout clean completion env ext fetch filter-process fsck install lock locks logs ls-files merge-driver migrate pointer post-checkout post-commit post-merge prune pull smudge status track uninstall unlock untrack update version help',
  ),
  svn: set(
    'blame clone create-ignore fetch find-rev gc help info init log migrate propget proplist show-externals show-ignore',
  ),
  p4: set('branches clone sync'),
  subtree: set('add merge split'),
};

/** Other programs that do the same: names and their first words that are no options. */
export const OTHER_PROGRAMS: readonly (readonly [program: string, ...words: string[]])[] = [
  ['gh', 'pr', 'create'],
  ['gh', 'pr', 'merge'],
  ['gh', 'pr', 'update-branch'],
  ['gh', 'repo', 'sync'],
  ['glab', 'mr', 'create'],
  ['glab', 'mr', 'merge'],
  ['glab', 'mr', 'rebase'],
  ['jj', 'git', 'push'],
  ['dulwich', 'push'],
  ['dulwich', 'pull'],
  ['dulwich', 'rebase'],
  ['dulwich', 'send-pack'],
];
export const OTHER = `pushes, pulls or merges: ${TO_A_PERSON}`;

/** Programs that take code as a word, and what in such code runs git to this end. Patterns of awk are none. */
export const INTERPRETER =
  /^(?:python[\d.]*|pypy\d*|node|nodejs|deno|bun|perl|ruby|php|lua|tclsh|[gmn]?awk)$/;
export const MOVES_COMMITS = /\b(?:push|pull|rebase|send-pack)\b/;
export const RUNS_PROGRAMS = /system|exec|spawn|popen|subprocess|Command|shell|`|\bqx\b|%x/i;

/** Editors, whose commands may be words, and what in those runs a program. */
export const EDITOR = /^(?:r?ed|ex|e?vim?|n?vim|view|r?g?vim(?:diff)?|emacs|emacsclient|kak|hx|helix)$/;
export const RUNS_FROM_EDITOR = /!|system|shell|\bterm|job|process|\$\(|%sh/i;

/** Variables and options whose value is a command, or names one. */
export const COMMAND_VARIABLE =
  /^(?:GIT_EDITOR|GIT_SEQUENCE_EDITOR|GIT_PAGER|GIT_SSH|GIT_SSH_COMMAND|GIT_ASKPASS|GIT_EXTERNAL_DIFF|GIT_PROXY_COMMAND|GIT_CONFIG_VALUE_\d+|EDITOR|VISUAL|PAGER|SSH_ASKPASS)$/;

/** Variables that lead git to other settings, and so to other aliases. */
export const SETTINGS_VARIABLE =
  /^(?:GIT_CONFIG\w*|GIT_DIR|GIT_COMMON_DIR|GIT_WORK_TREE|GIT_CEILING_DIRECTORIES|GIT_DISCOVERY_ACROSS_FILESYSTEM|HOME|XDG_CONFIG_HOME)$/;
