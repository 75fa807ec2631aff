import { prefixOf, type Word, withoutPrefix, wordFrom } from '../../../model/index.ts';
import type { Call, Run, Runs } from '../behaviour.ts';
import { NOTHING, parseOptions, refused, runText, runWords, wordOf } from '../options.ts';
import { settingOf } from './settings.ts';

/* What git runs: settings that name programs, aliases, and verbs that take commands. */

interface Globals {
  readonly runs: Run[];
  readonly aliases: Map<string, Word>;
}

/** `git [global options] verb …`. */
export function runsOfGit({ words, grammar }: Call): Runs {
  const globals: Globals = { runs: [], aliases: new Map() };
  const { options, unknown, openEnded, next } = parseOptions(words, 1, grammar, true);
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
