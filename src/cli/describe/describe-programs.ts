import type { Argument, Command, Option } from 'commander';
import { TAINTS } from '../../base/words.ts';
import { PROFILES } from '../../policy/index.ts';
import { SUBCOMMANDS } from '../dispatch.ts';
import { parseRunArguments } from '../run/options.ts';
import { programOf } from '../shared/parse.ts';

type CliCommand = (args: readonly string[]) => Promise<unknown>;

/** A program with the words that call it, and those of its subcommands. */
export interface CollectedProgram {
  readonly path: readonly string[];
  readonly program: Command;
  readonly subcommands: readonly CollectedProgram[];
}

/**
 * Every command of every level, as its own program says it: THE description for completions and tests.
 * Nothing is run.
 */
export async function collectPrograms(): Promise<CollectedProgram> {
  const subcommands: CollectedProgram[] = [];
  for (const [name, load] of Object.entries(SUBCOMMANDS).sort(([a], [b]) => (a < b ? -1 : 1)))
    subcommands.push(await collect(await load(), [name]));
  const program = await programOf(async (args) => parseRunArguments(args), []);
  return { path: [], program, subcommands };
}

async function collect(command: CliCommand, path: readonly string[]): Promise<CollectedProgram> {
  const program = await programOf(command, []);
  const subcommands: CollectedProgram[] = [];
  for (const declared of program.commands)
    subcommands.push(await collectNested(command, program, declared, [...path, declared.name()]));
  return { path, program, subcommands };
}

/** A subcommand may parse its arguments by a program of its own; the one that its parent declares is for the help then. */
async function collectNested(
  command: CliCommand,
  parent: Command,
  declared: Command,
  path: readonly string[],
): Promise<CollectedProgram> {
  const answers = await programOf(command, [declared.name()]);
  const program = answers.name() === parent.name() ? declared : answers;
  const subcommands = program.commands.map((inner) => ({
    path: [...path, inner.name()],
    program: inner,
    subcommands: [],
  }));
  return { path, program, subcommands };
}

/**
 * What may stand for an argument or the value of an option: one of some words, several with commas between them, a file,
 * a directory, a variable of the environment, a program with its arguments, or any text.
 */
export type ValueKind =
  | { readonly kind: 'words' | 'list'; readonly words: readonly string[] }
  | { readonly kind: 'file' | 'directory' | 'variable' | 'command' | 'text' };

/** Words that are checked later than by the parser, so that commander does not know them. */
export const WORDS_OF_OPTIONS: Readonly<Record<string, ValueKind>> = {
  '--profile': { kind: 'words', words: PROFILES.map(({ name }) => name) },
  '--taint': { kind: 'list', words: TAINTS },
};

/** By what stands between the angle brackets, for options and arguments. */
const KIND_OF_NAME: Readonly<Record<string, ValueKind>> = {
  dir: { kind: 'directory' },
  file: { kind: 'file' },
  path: { kind: 'file' },
  'name[=value]': { kind: 'variable' },
  command: { kind: 'command' },
  taint: { kind: 'words', words: TAINTS },
};

/** What a value may be. `choices` as commander knows them. */
function valueKind(name: string, choices: readonly string[] | undefined, option = ''): ValueKind {
  if (choices !== undefined) return { kind: 'words', words: choices };
  return WORDS_OF_OPTIONS[option] ?? KIND_OF_NAME[name] ?? { kind: 'text' };
}

/** An argument of a command. */
interface ArgumentDescription {
  readonly name: string;
  /** It may stand several times, as the last one. */
  readonly variadic: boolean;
  readonly value: ValueKind;
}

/** An option of a command. */
interface OptionDescription {
  /** `-c`, `--shell`: as they are typed, the long one last. */
  readonly names: readonly string[];
  readonly summary: string;
  /** Its value, if it takes one. */
  readonly value: ValueKind | undefined;
}

/** A command as its own program describes it. */
export interface CommandDescription {
  /** The words behind `sandbox-run`; none for `sandbox-run` itself. */
  readonly path: readonly string[];
  readonly summary: string;
  readonly arguments: readonly ArgumentDescription[];
  readonly options: readonly OptionDescription[];
  readonly subcommands: readonly CommandDescription[];
}

/** What a program and those below it say about themselves. */
export function describeAll({ path, program, subcommands }: CollectedProgram): CommandDescription {
  return {
    path,
    summary: program.description(),
    arguments: program.registeredArguments.map(describeArgument),
    options: program.createHelp().visibleOptions(program).map(describeOption),
    subcommands: subcommands.map(describeAll),
  };
}

function describeArgument(argument: Argument): ArgumentDescription {
  return {
    name: argument.name(),
    variadic: argument.variadic,
    value: valueKind(argument.name(), argument.argChoices),
  };
}

function describeOption({ short, long, flags, argChoices, description }: Option): OptionDescription {
  const [, name] = /[<[](.+?)(?:\.\.\.)?[>\]]$/.exec(flags) ?? [];
  return {
    names: [short, long].filter((text) => text !== undefined),
    summary: description,
    value: name === undefined ? undefined : valueKind(name, argChoices, long),
  };
}

/** A command and all below it, each before its subcommands. */
export function everyCommand(description: CommandDescription): readonly CommandDescription[] {
  return [description, ...description.subcommands.flatMap(everyCommand)];
}
