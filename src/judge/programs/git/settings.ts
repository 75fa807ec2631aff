import { prefixOf, type SimpleCommand, type Word, withoutPrefix, wordFrom } from '../../../model/index.ts';
import type { Run } from '../behaviour.ts';

/** Settings that only change how git prints or merges. Everything else may name a program, a file or a host. */
const HARMLESS_SECTIONS =
  /^(?:color|column|advice|branch|pretty|log|blame|apply|rerere|grep|status|versionsort|i18n|format|stash|rebase|pull|push|fetch|merge|diff|commit|tag|init|user|feature|index|pack|gc|transfer)\./;

/** Within these sections, or beside them, what runs something or leads elsewhere. */
const PROGRAMS =
  /(?:^|\.)(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|external|textconv|command|program|driver|cmd|tool|guitool|path|template|templatedir|helper|alternaterefscommand|uploadpack|receivepack|packobjectshook|insteadof|pushinsteadof|proxy|excludesfile|attributesfile|signingkey|gpgsign|sequence|smtpserver|recursesubmodules|trustctime|worktree|allow|url|pushurl|fetch|mergeoptions|signaturekey|gpg|defaultbranchfile|headercmd|tocmd|cccmd|backgroundcommand|postbuffer|bundleuri|logfile|noticefile|vcs|variant)$/;

const HARMLESS_KEYS: ReadonlySet<string> = new Set(
  'core.quotepath core.autocrlf core.eol core.safecrlf core.abbrev core.ignorecase core.filemode core.precomposeunicode core.longpaths core.commentchar core.whitespace core.symlinks core.compression core.preloadindex protocol.version safe.directory http.postbuffer http.lowspeedlimit http.lowspeedtime http.version diff.external.trustexitcode commit.gpgsign tag.gpgsign push.default fetch.prune'.split(
    ' ',
  ),
);

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

/** What a setting given with `git -c` does: it runs a text, it is harmless, or it cannot be told. */
type Setting =
  | { readonly kind: 'harmless' }
  | { readonly kind: 'runs'; readonly run: Run }
  | { readonly kind: 'alias'; readonly name: string; readonly value: Word }
  | { readonly kind: 'refused'; readonly why: string };

/** Settings whose value is a text for a shell. */
const TEXTS =
  /^(?:core\.(?:pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand)|sequence\.editor|pager\..+|diff\.external|diff\..+\.(?:command|textconv)|filter\..+\.(?:clean|smudge|process)|merge\..+\.driver|(?:merge|diff)tool\..+\.cmd|gpg\.program|gpg\..+\.program|uploadpack\.packobjectshook|remote\..+\.(?:uploadpack|receivepack)|interactive\.difffilter|trailer\..+\.(?:command|cmd)|browser\..+\.cmd|man\..+\.cmd|guitool\..+\.cmd|tar\..+\.command|core\.fsmonitor|credential\.helper|credential\..+\.helper|sendemail\..*cmd)$/;
/** Settings that lead to commands which do not stand here. */
const LEADING =
  /^(?:include\.path|includeif\..+|core\.hookspath|init\.templatedir|protocol\..*|url\..+|remote\..+\.vcs|submodule\..+\.update|core\.worktree|imap\..*|sendemail\..*|web\.browser|help\.browser|maintenance\..*|hook\..*)$/;
const SWITCH = /^(?:true|false|yes|no|on|off|0|1|)$/i;

/** The value of `-c`. */
export function settingOf(word: Word): Setting {
  const text = prefixOf(word);
  const equals = text.indexOf('=');
  if (equals === -1 && word.value === undefined)
    return { kind: 'refused', why: `the setting ${word.source} is not written out` };
  const key = (equals === -1 ? text : text.slice(0, equals)).toLowerCase();
  if (LEADING.test(key)) return { kind: 'refused', why: `the setting ${key} can lead to other commands` };
  const value = equals === -1 ? wordFrom('true', word) : withoutPrefix(word, equals + 1);
  if (/^alias\./.test(key))
    return { kind: 'alias', name: key.slice('alias.'.length).replace(/\.command$/, ''), value };
  if (!TEXTS.test(key)) return { kind: 'harmless' };
  return executing(key, value);
}

function executing(key: string, value: Word): Setting {
  const text = value.value;
  if (text === undefined)
    return { kind: 'refused', why: `the setting ${key} is run and must be written out` };
  const isSwitch = SWITCH.test(text) && /^(?:core\.fsmonitor|pager\.|credential|diff\.external)/.test(key);
  if (isSwitch || text === '') return { kind: 'harmless' };
  if (!key.startsWith('credential'))
    return { kind: 'runs', run: { kind: 'text', text: [value], dialect: 'posix' } };
  if (text.startsWith('!')) {
    return { kind: 'runs', run: { kind: 'text', text: [withoutPrefix(value, 1)], dialect: 'posix' } };
  }
  return { kind: 'refused', why: `the setting ${key} runs a helper that is not written out` };
}

/** Files and variables with settings of git's. */
const PLACES = /\.gitconfig|\.config\/git|\bGIT_CONFIG/;

/** A line that changes settings of git's first lets git run, or reach, what it likes. */
export function changesGitSettings(
  commands: readonly SimpleCommand[],
  nameOf: (command: SimpleCommand) => string | undefined,
): boolean {
  return commands.some(
    (command) =>
      (nameOf(command) === 'git' &&
        command.words.some(({ value }) => value === 'config' || value === 'set-url' || value === 'add') &&
        command.words.some(({ value }) => value === 'config' || value === 'remote')) ||
      [...command.words, ...command.redirects.map(({ target }) => target)].some(({ source }) =>
        PLACES.test(source),
      ) ||
      command.assignments.some(({ name }) =>
        /^(?:GIT_(?:CONFIG|DIR|SSH|EXEC|EXTERNAL|PROXY|ASKPASS)\w*|HOME|XDG_CONFIG_HOME)$/.test(name),
      ),
  );
}
