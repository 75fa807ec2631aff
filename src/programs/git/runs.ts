import type { Word } from '../../model/command-line.ts';
import { prefixOf, withoutPrefix, wordFrom } from '../../model/word.ts';
import type { Call, Grammar, Run, Runs } from '../behaviour.ts';
import { parseOptions, wordOf } from '../options.ts';
import { NOTHING, refused, runText, runWords } from '../runs.ts';

/** Options before the verb. */
export const GIT_OPTIONS: Grammar = {
  source: 'git 2.39.5',
  stopAtOperand: true,
  exact: true,
  flags:
    'p paginate P no-pager no-replace-objects bare literal-pathspecs glob-pathspecs noglob-pathspecs icase-pathspecs no-optional-locks no-lazy-fetch no-advice html-path man-path info-path version help v h',
  values: 'c list-cmds attr-source super-prefix',
  reads: 'C',
  loads: 'git-dir work-tree namespace',
  executing: 'exec-path',
  executes: 'config-env',
};

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
function settingOf(word: Word): Setting {
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

interface Globals {
  readonly runs: Run[];
  readonly aliases: Map<string, Word>;
}

/** `git [global options] verb …`. */
export function runsOfGit({ words }: Call): Runs {
  const globals: Globals = { runs: [], aliases: new Map() };
  const { options, unknown, openEnded, next } = parseOptions(words, 1, GIT_OPTIONS, true);
  const [odd] = unknown;
  if (odd !== undefined) return refused(`git: the option ${odd.source} is not known here.`, odd);
  for (const { name, value, word } of options) {
    if (name === 'config-env' || (name === 'exec-path' && value !== undefined))
      return refused(`git: the option ${word.source} is not known here.`, word);
    const problem = name === 'c' ? note(globals, value === undefined ? undefined : wordOf(value)) : undefined;
    if (problem !== undefined) return refused(`git: ${problem}.`, value?.word ?? word);
  }
  const [open] = openEnded;
  if (open !== undefined)
    return refused(`git: ${open.source} stands where the verb is expected: write it out.`, open);
  const verb = words[next];
  if (verb === undefined) return { runs: globals.runs };
  if (verb.value === undefined)
    return refused(`git: the verb ${verb.source} must be written out.`, verb, 'dynamic_command');
  const own = ofVerb(verb.value, words.slice(next + 1), globals, verb, words[0]);
  return 'refusal' in own ? own : { runs: [...globals.runs, ...own.runs] };
}

function note(globals: Globals, word: Word | undefined): string | undefined {
  if (word === undefined) return '-c has no value';
  const setting = settingOf(word);
  if (setting.kind === 'refused') return setting.why;
  if (setting.kind === 'runs') globals.runs.push(setting.run);
  if (setting.kind === 'alias') globals.aliases.set(setting.name, setting.value);
  return undefined;
}

function ofVerb(
  name: string,
  args: readonly Word[],
  globals: Globals,
  verb: Word,
  program: Word | undefined,
): Runs {
  const alias = globals.aliases.get(name.toLowerCase());
  if (globals.aliases.size > (alias === undefined ? 0 : 1)) {
    return refused(
      'git: an alias is understood only where it is called at once: commands that git runs know it too.',
      verb,
    );
  }
  // git passes over an alias that has the name of a command of its own.
  const own = ofCommand(name, args, verb);
  if (alias === undefined || 'refusal' in own) return own;
  const aliased = ofAlias(alias, args, program ?? verb);
  return 'refusal' in aliased ? aliased : { runs: [...own.runs, ...aliased.runs] };
}

function ofCommand(name: string, args: readonly Word[], verb: Word): Runs {
  const external = args.find((word) => /^[a-z0-9+.-]+::/.test(prefixOf(word)) && TRANSPORTING.has(name));
  if (external !== undefined)
    return refused(`git: ${external.source} names a program as transport.`, external);
  switch (name) {
    case 'bisect':
      return args[0]?.value === 'run' ? runWords(args.slice(1)) : written(args[0]);
    case 'submodule':
      return ofSubmodule(args);
    case 'rebase':
      return texts(args, 'x', /^--e(?:x(?:ec?)?)?$/);
    case 'difftool':
      return texts(args, 'x', /^--ext(?:cmd?|c)?$/);
    case 'filter-branch':
    case 'for-each-repo':
      return refused(
        `git ${name} runs commands for many commits or repositories: it is not understood.`,
        verb,
      );
    case 'grep':
      return texts(args, 'O', /^--op[a-z-]*$/, true);
    case 'clone':
      return ofClone(args);
    case 'fetch':
    case 'pull':
    case 'push':
    case 'ls-remote':
    case 'fetch-pack':
    case 'send-pack':
    case 'archive':
      return texts(args, '', /^--(?:up[a-z-]*|rec?e[a-z-]*|exec?|exe)$/);
    default:
      return NOTHING;
  }
}

const TRANSPORTING = new Set('clone fetch pull push ls-remote archive remote submodule'.split(' '));

function written(word: Word | undefined): Runs {
  return word !== undefined && word.value === undefined
    ? refused(`git: ${word.source} must be written out.`, word)
    : NOTHING;
}

/** An alias that is a git command, or behind `!` a text to which the other words are added. */
function ofAlias(alias: Word, args: readonly Word[], program: Word): Runs {
  const text = alias.value;
  if (text === undefined) return refused('git: an alias must be written out.', alias);
  if (text.startsWith('!')) {
    return runText([wordFrom(`${text.slice(1)} "$@"`, alias)]);
  }
  if (/['"\\]/.test(text)) return refused('git: an alias with quotes is not understood.', alias);
  const words = text.split(/\s+/).filter((part) => part !== '');
  return runWords([program, ...words.map((part) => wordFrom(part, alias)), ...args]);
}

function ofSubmodule(args: readonly Word[]): Runs {
  const first = args.findIndex((word) => !/^(?:-q|--quiet|--cached)$/.test(word.value ?? ''));
  if (args[first]?.value !== 'foreach') return written(args[first]);
  const rest = args.slice(first + 1);
  const start = rest.findIndex((word) => !/^(?:-q|--quiet|--recursive|--)$/.test(word.value ?? ''));
  const command = start === -1 ? [] : rest.slice(start);
  const [only] = command;
  if (only === undefined) return NOTHING;
  if (prefixOf(only).startsWith('-'))
    return refused(`git submodule: the option ${only.source} is not known here.`, only);
  return runText(command, 'posix', 'unknown');
}

function ofClone(args: readonly Word[]): Runs {
  for (const [index, word] of args.entries()) {
    const text = prefixOf(word);
    const isSetting = text === '-c' || /^--conf(?:ig?)?(?:=|$)/.test(text);
    if (/^--te[a-z]*/.test(text)) return refused('git clone: a template can bring hooks.', word);
    if (!isSetting) continue;
    const value =
      text.includes('=') && text !== '-c' ? withoutPrefix(word, text.indexOf('=') + 1) : args[index + 1];
    const setting = value === undefined ? undefined : settingOf(value);
    if (setting?.kind !== 'harmless')
      return refused(`git clone: the setting ${value?.source ?? ''} may run something.`, word);
  }
  return texts(args, 'u', /^--up[a-z-]*$/);
}

/** The values of options that are texts for a shell: `-x text`, `-xtext`, `--exec text`, `--exec=text`. */
function texts(args: readonly Word[], letter: string, long: RegExp, attachedOnly = false): Runs {
  const runs: Run[] = [];
  for (const [index, word] of args.entries()) {
    const text = prefixOf(word);
    if (text === '--') break;
    const equals = text.startsWith('--') ? text.indexOf('=') : -1;
    const name = equals === -1 ? text : text.slice(0, equals);
    let value: Word | undefined;
    if (long.test(name)) value = equals === -1 ? args[index + 1] : withoutPrefix(word, equals + 1);
    else if (letter !== '' && !text.startsWith('--'))
      value = shortValue(word, letter, args[index + 1], attachedOnly);
    const detached = value === args[index + 1];
    if (value === undefined || (attachedOnly && detached)) continue;
    runs.push({ kind: 'text', text: [value], dialect: 'posix' });
  }
  return { runs };
}

function shortValue(
  word: Word,
  letter: string,
  next: Word | undefined,
  attachedOnly: boolean,
): Word | undefined {
  const text = prefixOf(word);
  const at = new RegExp(`^-[a-zA-Z]*?${letter}`).exec(text)?.[0].length;
  if (at === undefined) return undefined;
  if (at === text.length && word.value !== undefined) return attachedOnly ? undefined : next;
  return withoutPrefix(word, at);
}
