import type { CommandLine, Parsed, SimpleCommand } from '../../model/command-line.ts';
import {
  COMMAND_VARIABLE,
  EDITOR,
  INTERPRETER,
  MOVES_COMMITS,
  OTHER,
  OTHER_PROGRAMS,
  RUNS_FROM_EDITOR,
  RUNS_PROGRAMS,
  SETTINGS_VARIABLE,
} from './commands.ts';
import { type Finding, merged, NOTHING } from './finding.ts';
import {
  type Aliases,
  type Asking,
  enter,
  examineDashed,
  examineGit,
  isTooDeep,
  type Place,
  TOO_DEEP,
} from './git-command.ts';
import type { Argument } from './invocation.ts';

/** What an examination may ask. */
interface World {
  readonly parse: (text: string) => Parsed;
  /** `undefined`: not looked up yet; the examination is made again when it is. */
  readonly aliasesAt: (directory: string) => Aliases | undefined;
}

/** Aliases that call several others could keep the guard busy for hours. */
const MAX_TEXTS = 100;

/** Why the line is refused, if it is. `text`: as it was given, for a line that was not understood. */
export function examine(parsed: Parsed, text: string, cwd: string, world: World): string | undefined {
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

function examineLine(parsed: Parsed, text: string, place: Place, asking: Asking): Finding {
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
  const found = cwds.flatMap((cwd) => directories.map((steps) => enter(cwd, steps)));
  const known = found.flatMap((directory) => directory ?? []);
  return known.length < found.length ? undefined : [...new Set(known)];
}

/** Editors, pagers and the like, which git runs as text for a shell. */
function examineSettings(command: SimpleCommand, place: Place, asking: Asking): readonly Finding[] {
  return assignmentsOf(command).flatMap(({ name, value }) => {
    if (value === undefined || !COMMAND_VARIABLE.test(name) || !mentionsGit(value)) return [];
    return [asking.examineText(value.replace(/^!/, ''), { ...place, depth: place.depth + 1 })];
  });
}

function examineCommand({ words, redirects }: SimpleCommand, place: Place, asking: Asking): Finding {
  const [program, ...rest] = words;
  const name = program?.value?.split('/').pop();
  if (name === undefined) return NOTHING;
  // hub hands on to git what it does not know.
  if (name === 'git' || name === 'hub') return examineGit(rest, place, asking);
  if (name.startsWith('git-')) return examineDashed(name.slice('git-'.length), rest);
  const operands = rest.filter(({ value }) => value === undefined || !value.startsWith('-'));
  const other = OTHER_PROGRAMS.find(
    ([known, ...verbs]) => known === name && verbs.every((verb, at) => operands[at]?.value === verb),
  );
  if (other !== undefined) return { refusal: `${other.join(' ')} ${OTHER}` };
  const runs = EDITOR.test(name) ? RUNS_FROM_EDITOR : INTERPRETER.test(name) ? RUNS_PROGRAMS : undefined;
  const code =
    runs && [...rest, ...redirects.map(({ target }) => target)].find((word) => runsGit(word, runs));
  return code === undefined
    ? NOTHING
    : { refusal: `the code for ${name} seems to run git so that it ${OTHER}` };
}

/** Code in a line of its own is not read; what looks like this is refused. */
function runsGit({ value, source }: Argument, runs: RegExp): boolean {
  const code = value ?? source;
  return mentionsGit(code) && MOVES_COMMITS.test(code) && runs.test(code);
}
