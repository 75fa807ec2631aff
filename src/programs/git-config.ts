/** Settings that only change how git prints or merges. Everything else may name a program, a file or a host. */
const HARMLESS_SECTIONS =
  /^(?:color|column|advice|branch|pretty|log|blame|apply|rerere|grep|status|versionsort|i18n|format|stash|rebase|pull|push|fetch|merge|diff|commit|tag|init|user|feature|index|pack|gc|transfer)\./;

/** Within these sections, or beside them, what runs something or leads elsewhere. */
const PROGRAMS =
  /(?:^|\.)(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|external|textconv|command|program|driver|cmd|tool|guitool|path|template|templatedir|helper|alternaterefscommand|uploadpack|receivepack|packobjectshook|insteadof|pushinsteadof|proxy|excludesfile|attributesfile|signingkey|gpgsign|sequence|smtpserver|recursesubmodules|trustctime|worktree|allow|url|pushurl|fetch|mergeoptions|signaturekey|gpg|defaultbranchfile|headercmd|tocmd|cccmd|backgroundcommand|postbuffer|bundleuri|logfile|noticefile|vcs|variant)$/;

const HARMLESS_KEYS: ReadonlySet<string> = new Set([
  'core.quotepath',
  'core.autocrlf',
  'core.eol',
  'core.safecrlf',
  'core.abbrev',
  'core.ignorecase',
  'core.filemode',
  'core.precomposeunicode',
  'core.longpaths',
  'core.commentchar',
  'core.whitespace',
  'core.symlinks',
  'core.compression',
  'core.preloadindex',
  'protocol.version',
  'safe.directory',
  'http.postbuffer',
  'http.lowspeedlimit',
  'http.lowspeedtime',
  'http.version',
  'diff.external.trustexitcode',
  'commit.gpgsign',
  'tag.gpgsign',
  'push.default',
  'fetch.prune',
]);

/** Values that make a setting do nothing: `core.pager=cat`, `core.editor=true`, `core.fsmonitor=false`. */
const HARMLESS_VALUES: Readonly<Record<string, RegExp>> = {
  'core.pager': /^(?:cat|less(?: -[A-Z]+)?|)$/,
  'core.editor': /^(?:true|:|cat)$/,
  'sequence.editor': /^(?:true|:)$/,
  'core.fsmonitor': /^(?:false|0|)$/,
  'core.hookspath': /^(?:\/dev\/null|)$/,
  'credential.helper': /^$/,
  'core.askpass': /^(?:true|)$/,
};

/** True if `git -c SETTING` can neither run a program nor lead git to other files or hosts. */
export function isHarmlessSetting(setting: string): boolean {
  const equals = setting.indexOf('=');
  const key = (equals < 0 ? setting : setting.slice(0, equals)).toLowerCase();
  const value = equals < 0 ? 'true' : setting.slice(equals + 1);
  if (HARMLESS_VALUES[key]?.test(value) === true) return true;
  if (HARMLESS_KEYS.has(key)) return true;
  return HARMLESS_SECTIONS.test(key) && !PROGRAMS.test(key);
}
