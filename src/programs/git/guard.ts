import type { CommandLine, Parsed, SimpleCommand, Word } from '../../model/command-line.ts';
import type { GitGuard, GuardAnswer } from '../../model/gate-ports.ts';
import type { MaybePromise } from '../../util/promise.ts';
import { inherited } from '../behaviour.ts';
import { describeAs, findProgram } from '../program-table.ts';
import {
  type Aliases,
  type Asking,
  addAlias,
  enter,
  examineDashed,
  examineGit,
  isTooDeep,
  type Place,
  TOO_DEEP,
} from './guard-command.ts';
import { type GuardFinding, merged, NOTHING, TO_A_PERSON } from './guard-verbs.ts';

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

/** As a word of its own, with quotes and backslashes taken away: `.git`, `GIT_DIR`, `g"i"t`, but not `github`. */
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
