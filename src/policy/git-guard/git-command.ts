import { resolve } from 'node:path';
import { shellWord } from '../../util/shell-quote.ts';
import { BUILT_IN, REFUSED, SHIPPED } from './commands.ts';
import { type Finding, merged, NOTHING } from './finding.ts';
import { type Argument, type Invocation, invocationOf } from './invocation.ts';
import { splitAlias } from './split-alias.ts';
import { findingOf } from './verbs.ts';

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
  readonly examineText: (text: string, place: Place) => Finding;
}

/** git itself stops at loops; nobody chains more than two or three. */
const MAX_DEPTH = 8;

/** True where nothing is followed any more. */
export const isTooDeep = (depth: number) => depth > MAX_DEPTH;

export const TOO_DEEP: Finding = {
  refusal: 'aliases of git that call each other are not followed further: write the command out',
};

/** `git-VERB …`, with or without a path: no options before the verb, and no aliases. */
export function examineDashed(verb: string, args: readonly Argument[]): Finding {
  return isKnown(verb) ? findingOf(verb, args) : unknown(verb);
}

/** What follows `git`. */
export function examineGit(words: readonly Argument[], place: Place, asking: Asking): Finding {
  const invocation = invocationOf(words);
  const { verb, args } = invocation;
  if (verb === undefined) return NOTHING;
  const name = verb.value;
  if (name === undefined) return { refusal: `git ${verb.source}: the command must be written out` };
  // `git --help push` explains push, `git --version` says one.
  if (name.startsWith('-')) return NOTHING;
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

function unknown(verb: string): Finding {
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
): Finding | undefined {
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

function untold(name: string, why: string): Finding {
  return {
    refusal: `git ${name} looks like an alias, and which ones apply cannot be told (${why}): write the command out`,
  };
}

function directoriesWith({ directories }: Invocation, place: Place): readonly string[] | undefined {
  const found = (place.directories ?? []).flatMap((cwd) => enter(cwd, directories) ?? []);
  return place.directories === undefined || found.length < place.directories.length ? undefined : found;
}

/** Where one gets to by these steps, if they are known. */
export function enter(cwd: string, steps: readonly Argument[]): string | undefined {
  let at = cwd;
  for (const { value } of steps) {
    if (value === undefined) return undefined;
    at = resolve(at, value);
  }
  return at;
}

/** An alias that is a command of git, or behind `!` a text for sh to which the other words are added. */
function follow(text: string, invocation: Invocation, before: Place, asking: Asking): Finding {
  const place = { ...before, depth: before.depth + 1 };
  if (isTooDeep(place.depth)) return TOO_DEEP;
  const { args, verb } = invocation;
  if (text.startsWith('!')) {
    const added = args.map(({ value }) => (value === undefined ? '"$@"' : shellWord(value)));
    return asking.examineText([text.slice(1), ...added].join(' '), place);
  }
  const words = splitAlias(text) ?? [];
  if (words.length === 0) return { refusal: `git ${verb?.source} is an alias that cannot be read` };
  return examineGit([...words.map((value) => ({ value, source: value })), ...args], place, asking);
}
