import type { Argument, Command, Option } from 'commander';
import { type ValueKind, valueKind } from './values.ts';

/** An argument of a command. */
export interface ArgumentDescription {
  readonly name: string;
  readonly required: boolean;
  /** It may stand several times, as the last one. */
  readonly variadic: boolean;
  readonly value: ValueKind;
}

/** An option of a command. */
export interface OptionDescription {
  /** `-c`, `--shell`: as they are typed, the long one last. */
  readonly names: readonly string[];
  readonly summary: string;
  /** The same with the choices and the default. */
  readonly details: string;
  /** Its value, if it takes one. */
  readonly value: (ValueKind & { readonly name: string }) | undefined;
  readonly repeatable: boolean;
}

/** A command as its own program describes it. */
export interface CommandDescription {
  /** The words behind `sandbox-run`; none for `sandbox-run` itself. */
  readonly path: readonly string[];
  readonly summary: string;
  /** Lines of the synopsis, without `Usage:`. */
  readonly usage: readonly string[];
  readonly arguments: readonly ArgumentDescription[];
  readonly options: readonly OptionDescription[];
  /** What stands below the options: notes, examples, exit statuses. */
  readonly notes: string;
  readonly subcommands: readonly CommandDescription[];
}

/** What a commander program says about itself. `subcommands` have to be described before. */
export function describeProgram(
  program: Command,
  path: readonly string[],
  subcommands: readonly CommandDescription[],
): CommandDescription {
  const help = program.createHelp();
  return {
    path,
    summary: program.description(),
    usage: help
      .commandUsage(program)
      .split('\n')
      .map((line) => line.trim()),
    arguments: program.registeredArguments.map(describeArgument),
    options: help
      .visibleOptions(program)
      .map((option) => ({ ...describeOption(option), details: help.optionDescription(option) })),
    notes: notesOf(program),
    subcommands,
  };
}

function describeArgument(argument: Argument): ArgumentDescription {
  return {
    name: argument.name(),
    required: argument.required,
    variadic: argument.variadic,
    value: valueKind(argument.name(), argument.argChoices),
  };
}

function describeOption(option: Option): Omit<OptionDescription, 'details'> {
  const { short, long, flags, argChoices, variadic, description } = option;
  const [, name] = /[<[](.+?)(?:\.\.\.)?[>\]]$/.exec(flags) ?? [];
  return {
    names: [short, long].filter((text) => text !== undefined),
    summary: description,
    value: name === undefined ? undefined : { ...valueKind(name, argChoices, long), name },
    repeatable: variadic || /\brepeatable\b/.test(description),
  };
}

/** Commander tells what was added to a help only by printing it. */
function notesOf(program: Command): string {
  let printed = '';
  program.configureOutput({
    writeOut: (text) => {
      printed += text;
    },
  });
  program.outputHelp();
  return printed.slice(program.helpInformation().length).trim();
}
