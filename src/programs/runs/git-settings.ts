import type { Word } from '../../model/command-line.ts';
import { prefixOf, withoutPrefix, wordFrom } from '../../model/word.ts';
import type { Run } from './runner.ts';

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
