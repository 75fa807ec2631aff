import type { Command } from 'commander';
import { SUBCOMMANDS } from '../dispatch.ts';
import { parseRunArguments } from '../run/options.ts';
import { programOf } from '../shared/parse.ts';
import { type CommandDescription, describeProgram } from './describe-program.ts';

type CliCommand = (args: readonly string[]) => Promise<unknown>;

/** A program with the words that call it, and those of its subcommands. */
export interface CollectedProgram {
  readonly path: readonly string[];
  readonly program: Command;
  readonly subcommands: readonly CollectedProgram[];
}

/**
 * Every command of every level, as its own program says it: THE description for completions, the man page and tests.
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

/** The same as values. */
export function describeAll({ path, program, subcommands }: CollectedProgram): CommandDescription {
  return describeProgram(program, path, subcommands.map(describeAll));
}

/** A command and all below it, each before its subcommands. */
export function everyCommand(description: CommandDescription): readonly CommandDescription[] {
  return [description, ...description.subcommands.flatMap(everyCommand)];
}
