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

const runs = (key: string, reason: string, missed?: string): KeyRow => ({
  key,
  effect: 'runs',
  reason,
  ...(missed === undefined ? {} : { missed }),
});
const redirects = (key: string, reason: string, as: Handling = 'nothing'): KeyRow => ({
  key,
  effect: 'redirects',
  reason,
  as,
});
/** With and without an address in between. */
const http = (as: Handling, reason: string, keys: string): readonly KeyRow[] =>
  keys
    .split(' ')
    .flatMap((key) => [redirects(`http.${key}`, reason, as), redirects(`http.*.${key}`, reason, as)]);
const names = (key: string, reason: string, values?: RegExp): KeyRow => ({
  key,
  effect: 'names',
  reason,
  ...(values === undefined ? {} : { values }),
});

/**
 * The keys of git-config(1) and of the programs that keep theirs beside them; the first row that fits counts. What no row
 * fits is unknown, and a command may not set it for others: a list of what is dangerous would be one release behind.
 */
const KEYS: readonly KeyRow[] = [
  { key: 'include.path', effect: 'includes', reason: 'the file can hold every other key' },
  { key: 'includeif.*.path', effect: 'includes', reason: 'the file can hold every other key' },

  names('core.fsmonitor', "git's own watcher", BOOLEAN),
  runs('core.fsmonitor', 'git status runs it'),
  runs('core.hookspath', 'git runs the hooks in it', 'hooks in it do not run for commits of commands'),
  runs('core.sshcommand', 'git fetch and git push run it'),
  runs('core.pager', 'git log and git diff run it'),
  runs('core.editor', 'git commit runs it'),
  runs('core.askpass', 'git runs it for a password'),
  runs('core.gitproxy', 'git fetch runs it for git:// addresses'),
  runs('core.alternaterefscommand', 'git fetch runs it'),
  runs('sequence.editor', 'git rebase -i runs it'),
  runs('diff.external', 'git diff runs it'),
  runs('diff.*.command', 'git diff runs it'),
  runs('diff.*.textconv', 'git diff, git log -p and git blame run it'),
  // `git lfs install` writes exactly this; git-lfs itself is outside of the workspace.
  names('filter.lfs.process', 'git-lfs', /^git-lfs filter-process( --skip)?$/),
  names('filter.lfs.clean', 'git-lfs', /^git-lfs clean -- %f$/),
  names('filter.lfs.smudge', 'git-lfs', /^git-lfs smudge (--skip )?-- %f$/),
  names('filter.lfs.required', 'git-lfs', BOOLEAN),
  runs('filter.*.process', 'git add, git checkout and git status run it', UNFILTERED),
  runs('merge.*.driver', 'git merge runs it'),
  runs('merge.tool', 'git mergetool runs it'),
  runs('merge.guitool', 'git mergetool runs it'),
  runs('diff.tool', 'git difftool runs it'),
  runs('diff.guitool', 'git difftool runs it'),
  runs('mergetool.**', 'git mergetool runs it'),
  runs('difftool.**', 'git difftool runs it'),
  runs('gpg.**', 'git commit -S and git log --show-signature run it'),
  runs('credential.**', 'git runs it, and hands it passwords'),
  { key: 'alias.**', effect: 'runs', as: 'value', values: PLAIN_ALIAS, reason: 'a command of git' },
  runs('alias.**', 'a command of the shell'),
  runs('pager.**', 'git runs it to show output'),
  runs('interactive.difffilter', 'git add -p runs it'),
  runs('browser.**', 'git help -w runs it'),
  runs('man.**', 'git help runs it'),
  runs('help.browser', 'git help -w runs it'),
  runs('web.browser', 'git instaweb runs it'),
  runs('instaweb.**', 'git instaweb runs it'),
  runs('guitool.**', 'git gui runs it'),
  runs('gui.**', 'git gui runs some of it'),
  runs('gitk.**', 'gitk runs some of it'),
  runs('trailer.**', 'git interpret-trailers runs it'),
  runs('sendemail.**', 'git send-email runs some of it, and sends mail there'),
  runs('imap.**', 'git imap-send runs some of it'),
  runs('uploadpack.**', 'git runs uploadpack.packObjectsHook at a fetch'),
  runs('receive.**', 'decides what git accepts at a push'),
  runs('tar.**', 'git archive runs it'),
  runs('remote.*.uploadpack', 'git fetch runs it'),
  runs('remote.*.receivepack', 'git push runs it'),
  runs('remote.*.vcs', 'git fetch runs git-remote-NAME'),
  runs('submodule.*.update', 'git submodule update runs what begins with "!"'),
  runs('ssh.variant', 'with which options ssh is run'),
  runs('svn-remote.**', 'git svn runs some of it'),
  runs('lfs.customtransfer.**', 'git lfs runs it'),
  runs('lfs.extension.**', 'git lfs runs it'),
  runs('maintenance.repo', 'git runs maintenance there by a timer'),
  runs('hook.**', 'git runs it as a hook'),

  runs('filter.*.clean', 'git add and git status run it', UNFILTERED),
  runs('filter.*.smudge', 'git checkout runs it', UNFILTERED),
  names('filter.*.required', 'whether a filter may be missing', BOOLEAN),

  redirects('core.worktree', 'git writes files there'),
  redirects('core.attributesfile', 'chooses filters and diff programs', 'file'),
  redirects('core.excludesfile', 'hides files from git status and git add', 'file'),
  redirects('url.**', 'sends what is meant for one server to another', 'value'),
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
  redirects('http.**', 'proxies, certificates and credentials'),
  redirects('https.**', 'proxies, certificates and credentials'),
  redirects('remote.*.proxy', 'sends traffic through a server', 'proxy'),
  redirects('remote.*.pushurl', 'git push sends somewhere else than git fetch reads', 'value'),
  redirects('remote.pushdefault', 'git push sends somewhere else than git fetch reads', 'value'),
  redirects('protocol.**', 'allows transports that run programs', 'value'),
  redirects('safe.**', 'whose repositories are trusted', 'value'),
  redirects('transfer.**', 'what git checks of what it receives', 'value'),
  redirects('fsck.skiplist', 'what git checks'),
  redirects('fsck.**', 'what git checks', 'value'),
  redirects('fetch.fsck.skiplist', 'what git checks'),
  redirects('fetch.fsck.**', 'what git checks', 'value'),
  redirects('fetch.bundleuri', 'git fetch reads from there'),
  redirects('gc.recentobjectshook', 'git gc runs it'),
  {
    key: 'init.templatedir',
    effect: 'redirects',
    as: 'nothing',
    reason: 'hooks of new repositories come from there',
    missed: 'repositories that commands make have no hooks from it',
  },
  redirects('commit.template', 'the text of a commit comes from there', 'file'),
  redirects('mailmap.file', 'names of authors come from there', 'file'),
  redirects('mailmap.**', 'names of authors come from there'),

  names('branch.*.remote', 'which remote a branch belongs to'),
  names('branch.*.pushremote', 'which remote a branch is pushed to'),
  names('branch.*.merge', 'which branch it follows'),
  names('branch.*.rebase', 'how git pull works', /^(true|false|merges|interactive|m|i|preserve)$/),
  names('branch.*.description', 'a text'),
  names('branch.*.vscode-merge-base', 'a note of an editor'),
  names('branch.*.github-pr-owner-number', 'a note of an editor'),
  names('branch.autosetupmerge', 'how branches are made'),
  names('branch.autosetuprebase', 'how branches are made'),
  names('branch.sort', 'order'),
  names('remote.*.url', 'where a remote is'),
  names('remote.*.fetch', 'which branches of a remote are fetched'),
  names('remote.*.push', 'which branches are pushed'),
  names('remote.*.mirror', 'what is pushed', BOOLEAN),
  names('remote.*.tagopt', 'which tags are fetched', /^--(no-)?tags$/),
  names('remote.*.prune', 'whether branches go with those of the remote', BOOLEAN),
  names('remote.*.prunetags', 'whether tags go with those of the remote', BOOLEAN),
  names('remote.*.promisor', 'objects that are missing are fetched', BOOLEAN),
  names('remote.*.partialclonefilter', 'which objects are missing'),
  names('remote.*.skipfetchall', 'what git fetch --all does', BOOLEAN),
  names('remote.*.skipdefaultupdate', 'what git fetch --all does', BOOLEAN),
  names('remote.*.followremotehead', 'what git fetch does'),
  names('remote.*.gh-resolved', 'a note of gh'),
  names('user.name', 'who commits'),
  names('user.email', 'who commits'),
  { key: 'user.signingkey', effect: 'names', as: 'nothing', reason: 'which key commits are signed with' },
  names('user.useconfigonly', 'whether git guesses it', BOOLEAN),
  names('author.**', 'who commits'),
  names('committer.**', 'who commits'),
  names('submodule.*.url', 'where a submodule comes from'),
  names('submodule.*.active', 'which submodules are used', BOOLEAN),
  names('submodule.*.branch', 'which branch it follows'),
  names('submodule.*.ignore', 'what git status shows', /^(none|all|dirty|untracked)$/),
  names('submodule.*.fetchrecursesubmodules', 'what git fetch does'),
  names('submodule.active', 'which submodules are used'),
  names('submodule.recurse', 'what git checkout does', BOOLEAN),
  names('submodule.fetchjobs', 'a number', /^\d+$/),
  names('core.sparsecheckout', 'which files are there', BOOLEAN),
  names('core.sparsecheckoutcone', 'which files are there', BOOLEAN),
  names('core.filemode', 'how the file system is', BOOLEAN),
  names('core.symlinks', 'how the file system is', BOOLEAN),
  names('core.ignorecase', 'how the file system is', BOOLEAN),
  names('core.precomposeunicode', 'how the file system is', BOOLEAN),
  names('core.trustctime', 'how the file system is', BOOLEAN),
  names('core.checkstat', 'how the file system is', /^(default|minimal)$/),
  names('core.bare', 'whether it has files', BOOLEAN),
  names('core.logallrefupdates', 'which reflogs are kept', /^(true|false|always)$/),
  names('core.repositoryformatversion', 'format', /^[01]$/),
  names('core.autocrlf', 'line ends', /^(true|false|input)$/),
  names('core.eol', 'line ends', /^(lf|crlf|native)$/),
  names('core.safecrlf', 'line ends', /^(true|false|warn)$/),
  names('core.whitespace', 'what git diff marks'),
  names('core.quotepath', 'how names are shown', BOOLEAN),
  names('core.abbrev', 'how names are shown', /^(auto|no|\d+)$/),
  names('core.commentchar', 'how messages are read'),
  names('core.commentstring', 'how messages are read'),
  names('core.untrackedcache', 'speed', /^(true|false|keep)$/),
  names('core.preloadindex', 'speed', BOOLEAN),
  names('core.commitgraph', 'speed', BOOLEAN),
  names('core.multipackindex', 'speed', BOOLEAN),
  names('core.compression', 'size', /^-?\d$/),
  names('core.loosecompression', 'size', /^-?\d$/),
  names('core.bigfilethreshold', 'size', /^\d+[kmg]?$/i),
  names('core.longpaths', 'how the file system is', BOOLEAN),
  names('core.protecthfs', 'only on is safe', /^(true|yes|on|1)$/i),
  names('core.protectntfs', 'only on is safe', /^(true|yes|on|1)$/i),
  names('extensions.worktreeconfig', 'git reads config.worktree as well, which is looked at too', BOOLEAN),
  names('extensions.objectformat', 'format', /^sha(1|256)$/),
  names('extensions.compatobjectformat', 'format', /^sha(1|256)$/),
  names('extensions.refstorage', 'format', /^(files|reftable)$/),
  names('extensions.partialclone', 'the remote that missing objects come from'),
  names('extensions.preciousobjects', 'nothing is deleted', BOOLEAN),
  names('extensions.relativeworktrees', 'format', BOOLEAN),
  names('extensions.noop', 'nothing', BOOLEAN),
  names('lfs.repositoryformatversion', 'format', /^\d+$/),
  names('lfs.*.access', 'how a server was reached', /^(basic|none|negotiate)$/),
  names('lfs.*.locksverify', 'what git lfs push does', BOOLEAN),
  names('pull.rebase', 'how git pull works', /^(true|false|merges|interactive|m|i)$/),
  names('pull.ff', 'how git pull works', /^(true|false|only)$/),
  names('push.default', 'what git push pushes', /^(nothing|current|upstream|tracking|simple|matching)$/),
  names('push.autosetupremote', 'what git push does', BOOLEAN),
  names('push.followtags', 'what git push pushes', BOOLEAN),
  names('push.useforceifincludes', 'what git push pushes', BOOLEAN),
  names('push.recursesubmodules', 'what git push pushes', /^(check|on-demand|only|no)$/),
  names('push.pushoption', 'what the server is told'),
  names('fetch.prune', 'what git fetch does', BOOLEAN),
  names('fetch.prunetags', 'what git fetch does', BOOLEAN),
  names('fetch.all', 'what git fetch does', BOOLEAN),
  names('fetch.output', 'what is shown', /^[a-z]+$/),
  names('fetch.showforcedupdates', 'what is shown', BOOLEAN),
  names('fetch.parallel', 'a number', /^\d+$/),
  names('fetch.recursesubmodules', 'what git fetch does', /^(true|false|on-demand)$/),
  names('fetch.writecommitgraph', 'speed', BOOLEAN),
  names('merge.ff', 'how git merge works', /^(true|false|only)$/),
  names('merge.conflictstyle', 'how conflicts are shown', /^(merge|diff3|zdiff3)$/),
  names('merge.renames', 'how git merge works'),
  names('merge.renamelimit', 'a number', /^\d+$/),
  names('merge.directoryrenames', 'how git merge works', /^(true|false|conflict)$/),
  names('merge.renormalize', 'how git merge works', BOOLEAN),
  names('merge.autostash', 'how git merge works', BOOLEAN),
  names('merge.verifysignatures', 'whether what is merged has to be signed', BOOLEAN),
  names('merge.branchdesc', 'what is shown', BOOLEAN),
  names('merge.suppressdest', 'what is shown'),
  names('merge.*.name', 'a text'),
  names('merge.stat', 'what is shown'),
  names('merge.log', 'what is shown'),
  names('rebase.autosquash', 'how git rebase works', BOOLEAN),
  names('rebase.autostash', 'how git rebase works', BOOLEAN),
  names('rebase.updaterefs', 'how git rebase works', BOOLEAN),
  names('rebase.stat', 'what is shown', BOOLEAN),
  names('rebase.abbreviatecommands', 'how git rebase works', BOOLEAN),
  names('rebase.missingcommitscheck', 'how git rebase works', /^[a-z]+$/),
  names('rebase.instructionformat', 'what is shown'),
  names('rebase.rebasemerges', 'how git rebase works', /^[a-z-]+$/),
  names('rebase.forkpoint', 'how git rebase works', BOOLEAN),
  names('rebase.reschedulefailedexec', 'how git rebase works', BOOLEAN),
  names('rerere.enabled', 'conflicts are remembered', BOOLEAN),
  names('rerere.autoupdate', 'conflicts are remembered', BOOLEAN),
  names('commit.gpgsign', 'whether commits are signed', BOOLEAN),
  names('commit.verbose', 'what is shown'),
  names('commit.status', 'what is shown', BOOLEAN),
  names('commit.cleanup', 'how messages are read', /^[a-z]+$/),
  names('tag.gpgsign', 'whether tags are signed', BOOLEAN),
  names('tag.forcesignannotated', 'whether tags are signed', BOOLEAN),
  names('push.gpgsign', 'whether pushes are signed', /^(true|false|if-asked)$/),
  names('tag.sort', 'order'),
  names('init.defaultbranch', 'a name'),
  names('init.defaultobjectformat', 'format', /^sha(1|256)$/),
  names('init.defaultrefformat', 'format', /^(files|reftable)$/),
  names('clone.defaultremotename', 'a name'),
  names('clone.rejectshallow', 'what git clone takes', BOOLEAN),
  names('help.autocorrect', 'what git does about a command that is not there', /^(-?\d+|[a-z]+)$/),
  names('interactive.singlekey', 'how git asks', BOOLEAN),
  names('am.**', 'how patches are applied'),
  names('add.ignoreerrors', 'how git add works', BOOLEAN),
  names('checkout.defaultremote', 'a name'),
  names('checkout.guess', 'how git checkout works', BOOLEAN),
  names('checkout.workers', 'a number', /^\d+$/),
  names('worktree.guessremote', 'how git worktree works', BOOLEAN),
  names('worktree.userelativepaths', 'how git worktree works', BOOLEAN),
  names('index.version', 'format', /^\d$/),
  names('index.sparse', 'format', BOOLEAN),
  names('index.threads', 'speed'),
  names('index.skiphash', 'speed', BOOLEAN),
  names('feature.manyfiles', 'speed', BOOLEAN),
  names('feature.experimental', 'defaults', BOOLEAN),
  names('pack.window', 'a number', /^\d+$/),
  names('pack.depth', 'a number', /^\d+$/),
  names('pack.threads', 'a number', /^\d+$/),
  names('gc.auto', 'when git tidies up', /^\d+$/),
  names('gc.autodetach', 'when git tidies up', BOOLEAN),
  names('gc.pruneexpire', 'when git tidies up'),
  names('gc.reflogexpire', 'when git tidies up'),
  names('maintenance.auto', 'when git tidies up', BOOLEAN),
  names('maintenance.strategy', 'when git tidies up', /^[a-z]+$/),
  names('diff.algorithm', 'how differences are shown', /^[a-z]+$/),
  names('diff.renames', 'how differences are shown'),
  names('diff.renamelimit', 'a number', /^\d+$/),
  names('diff.colormoved', 'how differences are shown'),
  names('diff.mnemonicprefix', 'how differences are shown', BOOLEAN),
  names('diff.noprefix', 'how differences are shown', BOOLEAN),
  names('diff.context', 'a number', /^\d+$/),
  names('diff.indentheuristic', 'how differences are shown', BOOLEAN),
  names('diff.colormovedws', 'how differences are shown'),
  names('diff.interhunkcontext', 'a number', /^\d+$/),
  names('diff.ignoresubmodules', 'how differences are shown', /^[a-z]+$/),
  names('diff.wordregex', 'how differences are shown'),
  names('diff.relative', 'how differences are shown', BOOLEAN),
  names('diff.dirstat', 'how differences are shown'),
  names('diff.statgraphwidth', 'a number', /^\d+$/),
  names('diff.statnamewidth', 'a number', /^\d+$/),
  names('diff.suppressblankempty', 'how differences are shown', BOOLEAN),
  names('diff.submodule', 'how differences are shown', /^[a-z]+$/),
  names('diff.wserrorhighlight', 'how differences are shown'),
  names('diff.*.xfuncname', 'how differences are shown'),
  names('diff.*.funcname', 'how differences are shown'),
  names('diff.*.wordregex', 'how differences are shown'),
  names('diff.*.binary', 'how differences are shown', BOOLEAN),
  names('diff.*.cachetextconv', 'speed', BOOLEAN),
  names('status.**', 'what is shown'),
  // The user's keys are not there.
  { key: 'log.showsignature', effect: 'names', as: 'nothing', reason: 'what is shown' },
  names('log.**', 'what is shown'),
  { key: 'format.signaturefile', effect: 'names', as: 'file', reason: 'a text' },
  names('format.**', 'what is shown'),
  names('color.**', 'what is shown'),
  names('column.**', 'what is shown'),
  names('advice.**', 'what is shown'),
  names('grep.**', 'what is shown'),
  { key: 'blame.ignorerevsfile', effect: 'names', as: 'file', reason: 'what is shown' },
  names('blame.**', 'what is shown'),
  names('apply.**', 'how patches are applied'),
  names('stash.**', 'what is shown'),
  names('versionsort.**', 'order'),
  names('gitflow.branch.**', 'names of branches'),
  names('gitflow.prefix.**', 'names of branches'),
  names('i18n.**', 'encodings'),
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
