import { resolve } from 'node:path';
import type { Word } from '../../model/command-line.ts';
import { literalWord } from '../../model/word.ts';
import { shellWord } from '../../util/shell-quote.ts';
import type { Argument } from '../behaviour.ts';
import { hasOption, parseOptions } from '../options.ts';
import { GIT_OPTIONS } from './git.ts';
import { BUILT_IN, findingOf, type GuardFinding, merged, NOTHING, REFUSED, SHIPPED } from './guard-verbs.ts';

/** Aliases by name, in lower case; `unreadable`: nobody knows. */
export type Aliases = ReadonlyMap<string, string> | 'unreadable';

/** Where a command of git runs, as far as aliases depend on it. */
export interface Place {
  /** Every directory that it may be; `undefined`: it cannot be told. */
  readonly directories: readonly string[] | undefined;
  /** Why the aliases that apply cannot be told. */
  readonly unsettled: string | undefined;
  /** Of aliases and texts within each other. */
  readonly depth: number;
}

/** What the examination of a command may ask. */
export interface Asking {
  /** `undefined`: not looked up yet; the examination is made again when it is. */
  readonly aliasesAt: (directory: string) => Aliases | undefined;
  /** A text for a shell. */
  readonly examineText: (text: string, place: Place) => GuardFinding;
}

/** git itself stops at loops; nobody chains more than two or three. */
const MAX_DEPTH = 8;

/** True where nothing is followed any more. */
export const isTooDeep = (depth: number) => depth > MAX_DEPTH;

export const TOO_DEEP: GuardFinding = {
  refusal: 'aliases of git that call each other are not followed further: write the command out',
};

/** `git-VERB …`, with or without a path: no options before the verb, and no aliases. */
export function examineDashed(verb: string, args: readonly Word[]): GuardFinding {
  return isKnown(verb) ? findingOf(verb, args) : unknown(verb);
}

/** What follows `git`. */
export function examineGit(words: readonly Word[], place: Place, asking: Asking): GuardFinding {
  const invocation = invocationOf(words);
  const { verb, args } = invocation;
  if (verb === undefined) return NOTHING;
  const name = verb.value;
  if (name === undefined) return { refusal: `git ${verb.source}: the command must be written out` };
  if (BUILT_IN.has(name)) return findingOf(name, args);
  const aliased = examineAlias(name, invocation, place, asking);
  if (isKnown(name)) return merged([findingOf(name, args), aliased ?? NOTHING]);
  return aliased ?? unknown(name);
}

function isKnown(verb: string): boolean {
  return (
    BUILT_IN.has(verb) ||
    SHIPPED.has(verb) ||
    Object.hasOwn(REFUSED, verb) ||
    /^(?:remote-|(?:legacy-)?rebase-)/.test(verb)
  );
}

function unknown(verb: string): GuardFinding {
  return {
    refusal: `git ${verb} is neither a command of git nor an alias that can be read: what it does is not known, and it may push`,
  };
}

/** `undefined`: there is no such alias. */
function examineAlias(
  name: string,
  invocation: Invocation,
  place: Place,
  asking: Asking,
): GuardFinding | undefined {
  const given = invocation.aliases.get(name.toLowerCase());
  if (given !== undefined) return follow(given, invocation, place, asking);
  const { otherSettings } = invocation;
  const unsettled =
    place.unsettled ?? (otherSettings === undefined ? undefined : `${otherSettings} is given`);
  const directories = directoriesWith(invocation, place);
  // One of git's own commands is judged as that: hardly anybody has an alias in its place.
  if (unsettled !== undefined || directories === undefined)
    return isKnown(name) ? undefined : untold(name, unsettled ?? 'the directory is not known');
  const found = directories.flatMap((directory) => {
    const aliases = asking.aliasesAt(directory);
    // Whatever is answered now counts for nothing.
    if (aliases === undefined) return [NOTHING];
    if (aliases === 'unreadable') return isKnown(name) ? [] : [untold(name, 'they cannot be read')];
    const text = aliases.get(name.toLowerCase());
    return text === undefined
      ? []
      : [follow(text, invocation, { ...place, directories: [directory] }, asking)];
  });
  // In one of the directories it is none, and whatever is called so may run there.
  if (found.length < directories.length && !isKnown(name)) return undefined;
  return found.length === 0 ? undefined : merged(found);
}

function untold(name: string, why: string): GuardFinding {
  return {
    refusal: `git ${name} looks like an alias, and which ones apply cannot be told (${why}): write the command out`,
  };
}

function directoriesWith({ directories }: Invocation, place: Place): readonly string[] | undefined {
  const steps = directories.map(({ text, complete }) => (complete ? text : undefined));
  const found = (place.directories ?? []).flatMap((cwd) => enter(cwd, steps) ?? []);
  return place.directories === undefined || found.length < place.directories.length ? undefined : found;
}

/** Where one gets to by these steps, if they are known. */
export function enter(cwd: string, steps: readonly (string | undefined)[]): string | undefined {
  let at = cwd;
  for (const step of steps) {
    if (step === undefined) return undefined;
    at = resolve(at, step);
  }
  return at;
}

/** An alias that is a command of git, or behind `!` a text for sh to which the other words are added. */
function follow(text: string, invocation: Invocation, before: Place, asking: Asking): GuardFinding {
  const place = { ...before, depth: before.depth + 1 };
  if (isTooDeep(place.depth)) return TOO_DEEP;
  const { args, verb } = invocation;
  if (text.startsWith('!')) {
    const added = args.map(({ value }) => (value === undefined ? '"$@"' : shellWord(value)));
    return asking.examineText([text.slice(1), ...added].join(' '), place);
  }
  const words = splitAlias(text) ?? [];
  if (words.length === 0) return { refusal: `git ${verb?.source} is an alias that cannot be read` };
  const span = verb?.span ?? { start: 0, end: 0 };
  return examineGit([...words.map((word) => literalWord(word, span)), ...args], place, asking);
}

/** `git [options] verb …`, taken apart. */
interface Invocation {
  /** `undefined`: only options, or a question for help. */
  readonly verb: Word | undefined;
  readonly args: readonly Word[];
  /** `-C`, in order. */
  readonly directories: readonly Argument[];
  /** `-c alias.NAME=…`, by name. */
  readonly aliases: ReadonlyMap<string, string>;
  /** An option, besides `-C` and such aliases, by which the aliases of the repository may be others. */
  readonly otherSettings: string | undefined;
}

const LEADS_ELSEWHERE = 'git-dir work-tree config-env exec-path bare'.split(' ');

/** Reads the global options. */
function invocationOf(words: readonly Word[]): Invocation {
  const { options, unknown, next } = parseOptions(words, 0, GIT_OPTIONS, true);
  const directories: Argument[] = [];
  const aliases = new Map<string, string>();
  let otherSettings = unknown[0]?.source;
  for (const { name, value, word } of options) {
    if (name === 'C' && value !== undefined) directories.push(value);
    else if (LEADS_ELSEWHERE.includes(name)) otherSettings ??= word.source;
    else if (name === 'c') {
      const alias = aliasOf(value);
      if (alias === undefined) otherSettings ??= '-c';
      else if (alias !== 'other') addAlias(aliases, alias.name, alias.value);
    }
  }
  // `git --help push` explains push, `git --version` says one.
  const verb = hasOption({ options }, 'h help v version') ? undefined : words[next];
  return { verb, args: words.slice(next + 1), directories, aliases, otherSettings };
}

/** Two that differ in capitals only may be two: what cannot be told is no alias that can be read. */
export function addAlias(aliases: Map<string, string>, name: string, value: string): void {
  const key = name.toLowerCase();
  const known = aliases.get(key);
  aliases.set(key, known === undefined || known === value ? value : '');
}

/** `undefined`: the setting may define any alias. */
function aliasOf(
  setting: Argument | undefined,
): { readonly name: string; readonly value: string } | 'other' | undefined {
  const text = setting?.text;
  if (text === undefined || setting?.complete !== true || /^include/i.test(text)) return undefined;
  const [, name, value] = /^alias\.([^=]*?)(?:\.command)?=(.*)$/is.exec(text) ?? [];
  return name === undefined || value === undefined ? 'other' : { name, value };
}

/**
 * The words of an alias, as git splits it: quotes of both kinds, and a backslash before any character, also in double
 * quotes. Blanks at the ends, of which git makes an empty word, are nothing. Undefined: git refuses it, too.
 */
export function splitAlias(text: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (quote === undefined && /[ \t\n\v\f\r]/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (quote === undefined && (character === '"' || character === "'")) {
      quote = character;
      word ??= '';
    } else if (character === quote) {
      quote = undefined;
    } else if (character === '\\' && quote !== "'") {
      at += 1;
      if (at >= text.length) return undefined;
      word = (word ?? '') + text[at];
    } else {
      word = (word ?? '') + character;
    }
  }
  if (quote !== undefined) return undefined;
  return word === undefined ? words : [...words, word];
}
