import { resolve } from 'node:path';
import type { MaybePromise } from '../../../base/promise.ts';
import { shellWord } from '../../../base/shell-quote.ts';
import {
  type CommandLine,
  type GitGuard,
  type GuardAnswer,
  literalWord,
  type Parsed,
  type SimpleCommand,
  type Word,
} from '../../../model/index.ts';
import { type Argument, inherited } from '../behaviour.ts';
import { grammarNamed } from '../grammars.ts';
import { hasOption, parseOptions } from '../options.ts';
import { describeAs, findProgram } from '../program-table.ts';
import {
  BUILT_IN,
  findingOf,
  type GuardFinding,
  merged,
  NOTHING,
  REFUSED,
  SHIPPED,
  TO_A_PERSON,
} from './guard-verbs.ts';

/** What the guard needs from others. */
interface GitGuardPorts {
  /** Reads a text for a shell, as it stands behind the `!` of an alias. */
  readonly parse: (text: string) => Parsed;
  /** The aliases that git would know in a directory. A failure means that nobody knows. */
  readonly aliasesAt: (directory: string) => MaybePromise<Iterable<readonly [name: string, value: string]>>;
}

/** A line that needs more is nothing that anybody wrote. */
const MAX_LOOKUPS = 32;

/**
 * Refuses push, pull and rebase, and what amounts to them. It goes by the text alone: it keeps an agent from doing by
 * habit what is left to a person, and is not what keeps commits from leaving, which is the network being off.
 */
export function createGitGuard({ parse, aliasesAt }: GitGuardPorts): GitGuard {
  return {
    judge(parsed, cwd, text = '') {
      // For one line: the next one may find other aliases.
      const known = new Map<string, Aliases>();
      const missing = new Set<string>();
      const look = (directory: string) => {
        const aliases = known.get(directory);
        if (aliases === undefined) missing.add(directory);
        return aliases;
      };

      function answer(): GuardAnswer | Promise<GuardAnswer> {
        const reason = examine(parsed, text, cwd, { parse, aliasesAt: look });
        // Further aliases could only refuse as well.
        if (reason !== undefined) return { allowed: false, reason };
        if (missing.size === 0) return { allowed: true };
        if (known.size + missing.size > MAX_LOOKUPS)
          return { allowed: false, reason: 'the line uses aliases of git in too many directories' };
        return lookUp([...missing]).then(answer);
      }

      async function lookUp(directories: readonly string[]): Promise<void> {
        await Promise.all(
          directories.map(async (directory) => {
            known.set(directory, await aliasesOrFailure(directory));
            missing.delete(directory);
          }),
        );
      }

      return answer();
    },
  };

  async function aliasesOrFailure(directory: string): Promise<Aliases> {
    try {
      const aliases = new Map<string, string>();
      for (const [name, value] of await aliasesAt(directory)) addAlias(aliases, name, value);
      return aliases;
    } catch {
      return 'unreadable';
    }
  }
}

/** What an examination may ask. */
interface World {
  readonly parse: (text: string) => Parsed;
  /** `undefined`: not looked up yet; the examination is made again when it is. */
  readonly aliasesAt: (directory: string) => Aliases | undefined;
}

/** Aliases that call several others could keep the guard busy for hours. */
const MAX_TEXTS = 100;

/** Why the line is refused, if it is. `text`: as it was given, for a line that was not understood. */
function examine(parsed: Parsed, text: string, cwd: string, world: World): string | undefined {
  let texts = 0;
  const asking: Asking = {
    aliasesAt: world.aliasesAt,
    examineText(inner, place) {
      texts += 1;
      return texts > MAX_TEXTS ? TOO_DEEP : examineLine(world.parse(inner), inner, place, asking);
    },
  };
  const start = { directories: [cwd], unsettled: undefined, depth: 0 };
  const found = examineLine(parsed, text, start, asking);
  const integrates = found.integrates ?? (found.prints ? found.applies : undefined);
  return found.refusal ?? (found.fetches ? integrates : undefined);
}

function examineLine(parsed: Parsed, text: string, place: Place, asking: Asking): GuardFinding {
  if (isTooDeep(place.depth)) return TOO_DEEP;
  if (!parsed.understood) {
    if (!mentionsGit(text)) return NOTHING;
    return { refusal: `the git guard cannot tell what git would do: ${parsed.problem.message}` };
  }
  const unsettled = place.unsettled ?? unsettledBy(parsed.line);
  return merged(
    parsed.line.commands.flatMap((command) => {
      const directories = directoriesOf(command, place.directories);
      const here = { ...place, unsettled, directories };
      return [examineCommand(command, here, asking), ...examineSettings(command, here, asking)];
    }),
  );
}

/** Whether `git` occurs as a separate word after quotes and backslashes are removed: `.git`, `GIT_DIR`, `g"i"t`, but not `github`. */
function mentionsGit(text: string): boolean {
  return /(?<![a-z0-9])git(?![a-z0-9])/i.test(text.replace(/\\\n|["'\\]/g, ''));
}

/** What else in the line may change which aliases there are before one is used. */
function unsettledBy({ commands, variables }: CommandLine): string | undefined {
  const names = commands.flatMap((command) => assignmentsOf(command).map(({ name }) => name));
  const variable = [...variables, ...names].find((name) => SETTINGS_VARIABLE.test(name));
  if (variable !== undefined) return `${variable} is set`;
  const words = commands.flatMap(({ words, redirects }) => [
    ...words,
    ...redirects.map(({ target }) => target),
  ]);
  const writing = words.find(({ value, source }) =>
    /^(?:alias|include|includeif)\.|gitconfig|(?:^|\/)\.git\//i.test(value ?? source),
  );
  return writing === undefined ? undefined : `${writing.source} stands in the same line`;
}

interface Setting {
  readonly name: string;
  readonly value: string | undefined;
}

/** `NAME=value` before a command, and as a word of one: `export`, `env`. */
function assignmentsOf({ assignments, words }: SimpleCommand): readonly Setting[] {
  const before = assignments.map(({ name, value }) => ({ name, value: value.value }));
  const asWords = words.slice(1).flatMap(({ value, source }) => {
    const [, name, rest] = /^([A-Za-z_]\w*)\+?=(.*)$/s.exec(value ?? source) ?? [];
    return name === undefined ? [] : [{ name, value: value === undefined ? undefined : rest }];
  });
  return [...before, ...asWords];
}

/** Every directory that the command may run in. */
function directoriesOf(
  { directories }: SimpleCommand,
  cwds: readonly string[] | undefined,
): readonly string[] | undefined {
  if (cwds === undefined || directories === undefined) return undefined;
  const found = cwds.flatMap((cwd) =>
    directories.map((steps) =>
      enter(
        cwd,
        steps.map(({ value }) => value),
      ),
    ),
  );
  const known = found.flatMap((directory) => directory ?? []);
  return known.length < found.length ? undefined : [...new Set(known)];
}

/** Editors, pagers and the like, which git runs as text for a shell. */
function examineSettings(command: SimpleCommand, place: Place, asking: Asking): readonly GuardFinding[] {
  return assignmentsOf(command).flatMap(({ name, value }) => {
    if (value === undefined || !COMMAND_VARIABLE.test(name) || !mentionsGit(value)) return [];
    return [asking.examineText(value.replace(/^!/, ''), { ...place, depth: place.depth + 1 })];
  });
}

function examineCommand(command: SimpleCommand, place: Place, asking: Asking): GuardFinding {
  const { words, redirects } = command;
  const [program, ...rest] = words;
  const name = program?.value?.split('/').pop();
  if (name === undefined) return NOTHING;
  // hub hands on to git what it does not know.
  if (name === 'git' || name === 'hub') return examineGit(rest, place, asking);
  if (name.startsWith('git-')) return examineDashed(name.slice('git-'.length), rest);
  const known = findProgram(name);
  if (known === undefined) return NOTHING;
  const use = describeAs(command, known);
  if (inherited(use, 'movesCommits') === true)
    return { refusal: `${[name, ...use.verbs].join(' ')} ${OTHER}` };
  const runs =
    known.code === 'editor' ? RUNS_FROM_EDITOR : known.code === 'language' ? RUNS_PROGRAMS : undefined;
  const code =
    runs && [...rest, ...redirects.map(({ target }) => target)].find((word) => runsGit(word, runs));
  return code === undefined
    ? NOTHING
    : { refusal: `the code for ${name} seems to run git so that it ${OTHER}` };
}

/** Code in a line of its own is not read; what looks like this is refused. */
function runsGit({ value, source }: Word, runs: RegExp): boolean {
  const code = value ?? source;
  return mentionsGit(code) && MOVES_COMMITS.test(code) && runs.test(code);
}

const OTHER = `pushes, pulls or merges: ${TO_A_PERSON}`;

/** What in code runs git to this end. Patterns of awk are none. */
const MOVES_COMMITS = /\b(?:push|pull|rebase|send-pack)\b/;
const RUNS_PROGRAMS = /system|exec|spawn|popen|subprocess|Command|shell|`|\bqx\b|%x/i;

/** What in commands of an editor runs a program. */
const RUNS_FROM_EDITOR = /!|system|shell|\bterm|job|process|\$\(|%sh/i;

/** Variables and options whose value is a command, or names one. */
const COMMAND_VARIABLE =
  /^(?:GIT_EDITOR|GIT_SEQUENCE_EDITOR|GIT_PAGER|GIT_SSH|GIT_SSH_COMMAND|GIT_ASKPASS|GIT_EXTERNAL_DIFF|GIT_PROXY_COMMAND|GIT_CONFIG_VALUE_\d+|EDITOR|VISUAL|PAGER|SSH_ASKPASS)$/;

/** Variables that lead git to other settings, and so to other aliases. */
const SETTINGS_VARIABLE =
  /^(?:GIT_CONFIG\w*|GIT_DIR|GIT_COMMON_DIR|GIT_WORK_TREE|GIT_CEILING_DIRECTORIES|GIT_DISCOVERY_ACROSS_FILESYSTEM|HOME|XDG_CONFIG_HOME)$/;

/** Aliases by name, in lower case; `unreadable`: nobody knows. */
type Aliases = ReadonlyMap<string, string> | 'unreadable';

/** Where a command of git runs, as far as aliases depend on it. */
interface Place {
  /** Every directory in which the command may run; `undefined`: unknown. */
  readonly directories: readonly string[] | undefined;
  /** Why it is unknown which aliases apply. */
  readonly unsettled: string | undefined;
  /** How deeply aliases and shell texts are nested. */
  readonly depth: number;
}

/** What the examination of a command may ask. */
interface Asking {
  /** `undefined`: not looked up yet; the examination is made again when it is. */
  readonly aliasesAt: (directory: string) => Aliases | undefined;
  /** A text for a shell. */
  readonly examineText: (text: string, place: Place) => GuardFinding;
}

/** git itself stops at loops; nobody chains more than two or three. */
const MAX_DEPTH = 8;

/** True where nothing is followed any more. */
const isTooDeep = (depth: number) => depth > MAX_DEPTH;

const TOO_DEEP: GuardFinding = {
  refusal: 'aliases of git that call each other are not followed further: write the command out',
};

/** `git-VERB …`, with or without a path: no options before the verb, and no aliases. */
function examineDashed(verb: string, args: readonly Word[]): GuardFinding {
  return isKnown(verb) ? findingOf(verb, args) : unknown(verb);
}

/** What follows `git`. */
function examineGit(words: readonly Word[], place: Place, asking: Asking): GuardFinding {
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
function enter(cwd: string, steps: readonly (string | undefined)[]): string | undefined {
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
  const { options, unknown, next } = parseOptions(words, 0, grammarNamed('git'), true);
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
function addAlias(aliases: Map<string, string>, name: string, value: string): void {
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
