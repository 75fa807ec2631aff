import type { Handling } from '../settings/table.ts';
import type { GitSetting } from './config-file.ts';

/**
 * What a key of git's configuration does, for a user who did not write it:
 * `runs` a program, `includes` another file, `redirects` what git reads, writes or sends, or only `names` something.
 */
type KeyEffect = 'runs' | 'includes' | 'redirects' | 'names' | 'unknown';

interface KeyRow {
  /** `section.name`, `section.*.name` with any subsection, or `section.**` for all of a section. Lower case. */
  readonly key: string;
  readonly effect: Exclude<KeyEffect, 'unknown'>;
  /** Only such values; with others the next row counts. */
  readonly values?: RegExp;
  readonly reason: string;
  /** What commands get of it where it is the user's own setting, if not what its effect says: its value, if it only names something. */
  readonly as?: Handling;
  /** What goes wrong for commands without a message, because they do not get this key. */
  readonly missed?: string;
}

/** A verb of git with what follows, and nothing in it that names a program: `!…`, `-c KEY=…`, `difftool --extcmd …`. */
const PLAIN_ALIAS =
  /^(?:--no-pager\s+)?(?![!-])(?!.*\s--(?:extcmd|exec|tool|upload-pack|receive-pack|open-files-in-pager))(?!(?:difftool|rebase)\s.*-x)/s;
const UNFILTERED = 'commands add and check out files without it';

const BOOLEAN = /^(true|false|yes|no|on|off|0|1)$/i;

const rows = (keys: string, row: Omit<KeyRow, 'key'>): readonly KeyRow[] =>
  keys.split(/\s+/).map((key) => ({ key, ...row }));
const runs = (reason: string, keys: string, missed?: string): readonly KeyRow[] =>
  rows(keys, { effect: 'runs', reason, ...(missed === undefined ? {} : { missed }) });
const redirects = (as: Handling, reason: string, keys: string): readonly KeyRow[] =>
  rows(keys, { effect: 'redirects', reason, as });
/** With and without an address in between. */
const http = (as: Handling, reason: string, keys: string): readonly KeyRow[] =>
  keys.split(' ').flatMap((key) => redirects(as, reason, `http.${key} http.*.${key}`));
const names = (reason: string, keys: string, values?: RegExp): readonly KeyRow[] =>
  rows(keys, { effect: 'names', reason, ...(values === undefined ? {} : { values }) });

/**
 * The keys of git-config(1) and of the programs that keep theirs beside them; the first row that fits counts. What no row
 * fits is unknown, and a command may not set it for others: a list of what is dangerous would be one release behind.
 */
const KEYS: readonly KeyRow[] = [
  { key: 'include.path', effect: 'includes', reason: 'the file can hold every other key' },
  { key: 'includeif.*.path', effect: 'includes', reason: 'the file can hold every other key' },

  ...names("git's own watcher", 'core.fsmonitor', BOOLEAN),
  ...runs('git status runs it', 'core.fsmonitor'),
  ...runs('git runs the hooks in it', 'core.hookspath', 'hooks in it do not run for commits of commands'),
  ...runs('git fetch and git push run it', 'core.sshcommand'),
  ...runs('git log and git diff run it', 'core.pager'),
  ...runs('git commit runs it', 'core.editor'),
  ...runs('git runs it for a password', 'core.askpass'),
  ...runs('git fetch runs it for git:// addresses', 'core.gitproxy'),
  ...runs('git fetch runs it', 'core.alternaterefscommand remote.*.uploadpack'),
  ...runs('git rebase -i runs it', 'sequence.editor'),
  ...runs('git diff runs it', 'diff.external diff.*.command'),
  ...runs('git diff, git log -p and git blame run it', 'diff.*.textconv'),
  // `git lfs install` writes exactly this; git-lfs itself is outside of the workspace.
  ...names('git-lfs', 'filter.lfs.process', /^git-lfs filter-process( --skip)?$/),
  ...names('git-lfs', 'filter.lfs.clean', /^git-lfs clean -- %f$/),
  ...names('git-lfs', 'filter.lfs.smudge', /^git-lfs smudge (--skip )?-- %f$/),
  ...names('git-lfs', 'filter.lfs.required', BOOLEAN),
  ...runs('git add, git checkout and git status run it', 'filter.*.process', UNFILTERED),
  ...runs('git merge runs it', 'merge.*.driver'),
  ...runs('git mergetool runs it', 'merge.tool merge.guitool mergetool.**'),
  ...runs('git difftool runs it', 'diff.tool diff.guitool difftool.**'),
  ...runs('git commit -S and git log --show-signature run it', 'gpg.**'),
  ...runs('git runs it, and hands it passwords', 'credential.**'),
  { key: 'alias.**', effect: 'runs', as: 'value', values: PLAIN_ALIAS, reason: 'a command of git' },
  ...runs('a command of the shell', 'alias.**'),
  ...runs('git runs it to show output', 'pager.**'),
  ...runs('git add -p runs it', 'interactive.difffilter'),
  ...runs('git help -w runs it', 'browser.** help.browser'),
  ...runs('git help runs it', 'man.**'),
  ...runs('git instaweb runs it', 'web.browser instaweb.**'),
  ...runs('git gui runs it', 'guitool.**'),
  ...runs('git gui runs some of it', 'gui.**'),
  ...runs('gitk runs some of it', 'gitk.**'),
  ...runs('git interpret-trailers runs it', 'trailer.**'),
  ...runs('git send-email runs some of it, and sends mail there', 'sendemail.**'),
  ...runs('git imap-send runs some of it', 'imap.**'),
  ...runs('git runs uploadpack.packObjectsHook at a fetch', 'uploadpack.**'),
  ...runs('decides what git accepts at a push', 'receive.**'),
  ...runs('git archive runs it', 'tar.**'),
  ...runs('git push runs it', 'remote.*.receivepack'),
  ...runs('git fetch runs git-remote-NAME', 'remote.*.vcs'),
  ...runs('git submodule update runs what begins with "!"', 'submodule.*.update'),
  ...runs('with which options ssh is run', 'ssh.variant'),
  ...runs('git svn runs some of it', 'svn-remote.**'),
  ...runs('git lfs runs it', 'lfs.customtransfer.** lfs.extension.**'),
  ...runs('git runs maintenance there by a timer', 'maintenance.repo'),
  ...runs('git runs it as a hook', 'hook.**'),

  ...runs('git add and git status run it', 'filter.*.clean', UNFILTERED),
  ...runs('git checkout runs it', 'filter.*.smudge', UNFILTERED),
  ...names('whether a filter may be missing', 'filter.*.required', BOOLEAN),

  ...redirects('nothing', 'git writes files there', 'core.worktree'),
  ...redirects('file', 'chooses filters and diff programs', 'core.attributesfile'),
  ...redirects('file', 'hides files from git status and git add', 'core.excludesfile'),
  ...redirects('value', 'sends what is meant for one server to another', 'url.**'),
  ...http('certificate', 'which servers are trusted', 'sslcainfo sslcapath proxysslcainfo'),
  ...http('proxy', 'sends traffic through a server', 'proxy proxyauthmethod'),
  ...http(
    'credential',
    'who has it is the user',
    'extraheader cookiefile sslkey sslcert proxysslkey proxysslcert',
  ),
  ...http(
    'value',
    'how servers are reached',
    'sslverify sslversion sslbackend sslcipherlist schannelcheckrevoke followredirects version postbuffer lowspeedlimit lowspeedtime useragent emptyauth delegation maxrequests minsessions noepsv',
  ),
  ...redirects('nothing', 'proxies, certificates and credentials', 'http.** https.**'),
  ...redirects('proxy', 'sends traffic through a server', 'remote.*.proxy'),
  ...redirects(
    'value',
    'git push sends somewhere else than git fetch reads',
    'remote.*.pushurl remote.pushdefault',
  ),
  ...redirects('value', 'allows transports that run programs', 'protocol.**'),
  ...redirects('value', 'whose repositories are trusted', 'safe.**'),
  ...redirects('value', 'what git checks of what it receives', 'transfer.**'),
  ...redirects('nothing', 'what git checks', 'fsck.skiplist fetch.fsck.skiplist'),
  ...redirects('value', 'what git checks', 'fsck.** fetch.fsck.**'),
  ...redirects('nothing', 'git fetch reads from there', 'fetch.bundleuri'),
  ...redirects('nothing', 'git gc runs it', 'gc.recentobjectshook'),
  {
    key: 'init.templatedir',
    effect: 'redirects',
    as: 'nothing',
    reason: 'hooks of new repositories come from there',
    missed: 'repositories that commands make have no hooks from it',
  },
  ...redirects('file', 'the text of a commit comes from there', 'commit.template'),
  ...redirects('file', 'names of authors come from there', 'mailmap.file'),
  ...redirects('nothing', 'names of authors come from there', 'mailmap.**'),

  { key: 'user.signingkey', effect: 'names', as: 'nothing', reason: 'which key commits are signed with' },
  // The user's keys are not there.
  { key: 'log.showsignature', effect: 'names', as: 'nothing', reason: 'what is shown' },
  { key: 'format.signaturefile', effect: 'names', as: 'file', reason: 'a text' },
  { key: 'blame.ignorerevsfile', effect: 'names', as: 'file', reason: 'what is shown' },
  ...names('which remote a branch belongs to', 'branch.*.remote'),
  ...names('which remote a branch is pushed to', 'branch.*.pushremote'),
  ...names('which branch it follows', 'branch.*.merge submodule.*.branch'),
  ...names('how git pull works', 'branch.*.rebase', /^(true|false|merges|interactive|m|i|preserve)$/),
  ...names('a text', 'branch.*.description merge.*.name'),
  ...names('a note of an editor', 'branch.*.vscode-merge-base branch.*.github-pr-owner-number'),
  ...names('how branches are made', 'branch.autosetupmerge branch.autosetuprebase'),
  ...names('order', 'branch.sort tag.sort versionsort.**'),
  ...names('where a remote is', 'remote.*.url'),
  ...names('which branches of a remote are fetched', 'remote.*.fetch'),
  ...names('which branches are pushed', 'remote.*.push'),
  ...names('what is pushed', 'remote.*.mirror', BOOLEAN),
  ...names('which tags are fetched', 'remote.*.tagopt', /^--(no-)?tags$/),
  ...names('whether branches go with those of the remote', 'remote.*.prune', BOOLEAN),
  ...names('whether tags go with those of the remote', 'remote.*.prunetags', BOOLEAN),
  ...names('objects that are missing are fetched', 'remote.*.promisor', BOOLEAN),
  ...names('which objects are missing', 'remote.*.partialclonefilter'),
  ...names('what git fetch --all does', 'remote.*.skipfetchall remote.*.skipdefaultupdate', BOOLEAN),
  ...names('what git fetch does', 'remote.*.followremotehead submodule.*.fetchrecursesubmodules'),
  ...names('a note of gh', 'remote.*.gh-resolved'),
  ...names('who commits', 'user.name user.email author.** committer.**'),
  ...names('whether git guesses it', 'user.useconfigonly', BOOLEAN),
  ...names('where a submodule comes from', 'submodule.*.url'),
  ...names('which submodules are used', 'submodule.*.active', BOOLEAN),
  ...names('what git status shows', 'submodule.*.ignore', /^(none|all|dirty|untracked)$/),
  ...names('which submodules are used', 'submodule.active'),
  ...names('what git checkout does', 'submodule.recurse', BOOLEAN),
  ...names(
    'a number',
    `submodule.fetchjobs fetch.parallel merge.renamelimit checkout.workers pack.window pack.depth
     pack.threads diff.renamelimit diff.context diff.interhunkcontext diff.statgraphwidth
     diff.statnamewidth`,
    /^\d+$/,
  ),
  ...names('which files are there', 'core.sparsecheckout core.sparsecheckoutcone', BOOLEAN),
  ...names(
    'how the file system is',
    'core.filemode core.symlinks core.ignorecase core.precomposeunicode core.trustctime core.longpaths',
    BOOLEAN,
  ),
  ...names('how the file system is', 'core.checkstat', /^(default|minimal)$/),
  ...names('whether it has files', 'core.bare', BOOLEAN),
  ...names('which reflogs are kept', 'core.logallrefupdates', /^(true|false|always)$/),
  ...names('format', 'core.repositoryformatversion', /^[01]$/),
  ...names('line ends', 'core.autocrlf', /^(true|false|input)$/),
  ...names('line ends', 'core.eol', /^(lf|crlf|native)$/),
  ...names('line ends', 'core.safecrlf', /^(true|false|warn)$/),
  ...names('what git diff marks', 'core.whitespace'),
  ...names('how names are shown', 'core.quotepath', BOOLEAN),
  ...names('how names are shown', 'core.abbrev', /^(auto|no|\d+)$/),
  ...names('how messages are read', 'core.commentchar core.commentstring'),
  ...names('speed', 'core.untrackedcache', /^(true|false|keep)$/),
  ...names(
    'speed',
    `core.preloadindex core.commitgraph core.multipackindex fetch.writecommitgraph index.skiphash
     feature.manyfiles diff.*.cachetextconv`,
    BOOLEAN,
  ),
  ...names('size', 'core.compression core.loosecompression', /^-?\d$/),
  ...names('size', 'core.bigfilethreshold', /^\d+[kmg]?$/i),
  ...names('only on is safe', 'core.protecthfs core.protectntfs', /^(true|yes|on|1)$/i),
  ...names('git reads config.worktree as well, which is looked at too', 'extensions.worktreeconfig', BOOLEAN),
  ...names(
    'format',
    'extensions.objectformat extensions.compatobjectformat init.defaultobjectformat',
    /^sha(1|256)$/,
  ),
  ...names('format', 'extensions.refstorage init.defaultrefformat', /^(files|reftable)$/),
  ...names('the remote that missing objects come from', 'extensions.partialclone'),
  ...names('nothing is deleted', 'extensions.preciousobjects', BOOLEAN),
  ...names('format', 'extensions.relativeworktrees index.sparse', BOOLEAN),
  ...names('nothing', 'extensions.noop', BOOLEAN),
  ...names('format', 'lfs.repositoryformatversion', /^\d+$/),
  ...names('how a server was reached', 'lfs.*.access', /^(basic|none|negotiate)$/),
  ...names('what git lfs push does', 'lfs.*.locksverify', BOOLEAN),
  ...names('how git pull works', 'pull.rebase', /^(true|false|merges|interactive|m|i)$/),
  ...names('how git pull works', 'pull.ff', /^(true|false|only)$/),
  ...names('what git push pushes', 'push.default', /^(nothing|current|upstream|tracking|simple|matching)$/),
  ...names('what git push does', 'push.autosetupremote', BOOLEAN),
  ...names('what git push pushes', 'push.followtags push.useforceifincludes', BOOLEAN),
  ...names('what git push pushes', 'push.recursesubmodules', /^(check|on-demand|only|no)$/),
  ...names('what the server is told', 'push.pushoption'),
  ...names('what git fetch does', 'fetch.prune fetch.prunetags fetch.all', BOOLEAN),
  ...names('what is shown', 'fetch.output', /^[a-z]+$/),
  ...names('what is shown', 'fetch.showforcedupdates merge.branchdesc rebase.stat commit.status', BOOLEAN),
  ...names('what git fetch does', 'fetch.recursesubmodules', /^(true|false|on-demand)$/),
  ...names('how git merge works', 'merge.ff', /^(true|false|only)$/),
  ...names('how conflicts are shown', 'merge.conflictstyle', /^(merge|diff3|zdiff3)$/),
  ...names('how git merge works', 'merge.renames'),
  ...names('how git merge works', 'merge.directoryrenames', /^(true|false|conflict)$/),
  ...names('how git merge works', 'merge.renormalize merge.autostash', BOOLEAN),
  ...names('whether what is merged has to be signed', 'merge.verifysignatures', BOOLEAN),
  ...names(
    'what is shown',
    `merge.suppressdest merge.stat merge.log rebase.instructionformat commit.verbose status.** log.**
     format.** color.** column.** advice.** grep.** blame.** stash.**`,
  ),
  ...names(
    'how git rebase works',
    `rebase.autosquash rebase.autostash rebase.updaterefs rebase.abbreviatecommands rebase.forkpoint
     rebase.reschedulefailedexec`,
    BOOLEAN,
  ),
  ...names('how git rebase works', 'rebase.missingcommitscheck', /^[a-z]+$/),
  ...names('how git rebase works', 'rebase.rebasemerges', /^[a-z-]+$/),
  ...names('conflicts are remembered', 'rerere.enabled rerere.autoupdate', BOOLEAN),
  ...names('whether commits are signed', 'commit.gpgsign', BOOLEAN),
  ...names('how messages are read', 'commit.cleanup', /^[a-z]+$/),
  ...names('whether tags are signed', 'tag.gpgsign tag.forcesignannotated', BOOLEAN),
  ...names('whether pushes are signed', 'push.gpgsign', /^(true|false|if-asked)$/),
  ...names('a name', 'init.defaultbranch clone.defaultremotename checkout.defaultremote'),
  ...names('what git clone takes', 'clone.rejectshallow', BOOLEAN),
  ...names('what git does about a command that is not there', 'help.autocorrect', /^(-?\d+|[a-z]+)$/),
  ...names('how git asks', 'interactive.singlekey', BOOLEAN),
  ...names('how patches are applied', 'am.** apply.**'),
  ...names('how git add works', 'add.ignoreerrors', BOOLEAN),
  ...names('how git checkout works', 'checkout.guess', BOOLEAN),
  ...names('how git worktree works', 'worktree.guessremote worktree.userelativepaths', BOOLEAN),
  ...names('format', 'index.version', /^\d$/),
  ...names('speed', 'index.threads'),
  ...names('defaults', 'feature.experimental', BOOLEAN),
  ...names('when git tidies up', 'gc.auto', /^\d+$/),
  ...names('when git tidies up', 'gc.autodetach maintenance.auto', BOOLEAN),
  ...names('when git tidies up', 'gc.pruneexpire gc.reflogexpire'),
  ...names('when git tidies up', 'maintenance.strategy', /^[a-z]+$/),
  ...names('how differences are shown', 'diff.algorithm diff.ignoresubmodules diff.submodule', /^[a-z]+$/),
  ...names(
    'how differences are shown',
    `diff.renames diff.colormoved diff.colormovedws diff.wordregex diff.dirstat diff.wserrorhighlight
     diff.*.xfuncname diff.*.funcname diff.*.wordregex`,
  ),
  ...names(
    'how differences are shown',
    `diff.mnemonicprefix diff.noprefix diff.indentheuristic diff.relative diff.suppressblankempty
     diff.*.binary`,
    BOOLEAN,
  ),
  ...names('names of branches', 'gitflow.branch.** gitflow.prefix.**'),
  ...names('encodings', 'i18n.**'),
];

/** `a.b`, `a.**` (something beneath), `a.*.b` (something between). No expressions: each start of the program would compile them. */
function matcherOf(pattern: string): (key: string) => boolean {
  const star = pattern.indexOf('*');
  if (star === -1) return (key) => key === pattern;
  const before = pattern.slice(0, star);
  const after = pattern.slice(pattern[star + 1] === '*' ? star + 2 : star + 1);
  return (key) => key.length > before.length + after.length && key.startsWith(before) && key.endsWith(after);
}

const MATCHERS = KEYS.map((row) => ({ ...row, matches: matcherOf(row.key) }));

/** What a setting does, why that is so, and what commands get of it where it is the user's own. */
export function effectOfKey({ key, value }: GitSetting): {
  readonly effect: KeyEffect;
  readonly reason: string;
  readonly as?: Handling;
  readonly missed?: string;
} {
  const row = MATCHERS.find(
    ({ matches, values }) => matches(key) && (values === undefined || values.test(value ?? 'true')),
  );
  return row ?? { effect: 'unknown', reason: 'it is unknown what obeys it' };
}
