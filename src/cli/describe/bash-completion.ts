import { everyCommand } from './collect-programs.ts';
import type { CommandDescription } from './describe-program.ts';
import { singleQuoted } from './single-quoted.ts';
import type { ValueKind } from './values.ts';

/** A kind of value as `_sandbox_run_value` takes it. */
const kindWords = (value: ValueKind) => ('words' in value ? [value.kind, ...value.words] : [value.kind]);

const arrayOf = (words: readonly string[]) => `(${words.map(singleQuoted).join(' ')})`;

/** The parts of `completion.bash` that are made from the commands. */
export function bashParts(root: CommandDescription): Readonly<Record<string, readonly string[]>> {
  const commands = everyCommand(root);
  return { commands: commands.map(commandCase), values: commands.flatMap(valueCases) };
}

/** What can be typed behind a command. */
function commandCase({ path, subcommands, options, arguments: operands }: CommandDescription): string {
  const parts = [
    `subcommands=${arrayOf(subcommands.map((each) => each.path.at(-1) ?? ''))}`,
    `options=${arrayOf(options.flatMap(({ names }) => names))}`,
    // Each as one text: an array cannot be in an array.
    `operands=${arrayOf(operands.map(({ value }) => kindWords(value).join(' ')))}`,
    `variadic=${operands.at(-1)?.variadic === true ? 1 : ''}`,
  ];
  return `${singleQuoted(path.join(' '))}) ${parts.join(' ')} ;;`;
}

/** The options of a command that take a value. */
function valueCases({ path, options }: CommandDescription): readonly string[] {
  return options.flatMap(({ names, value }) => {
    if (value === undefined) return [];
    const patterns = names.map((name) => singleQuoted(`${path.join(' ')}:${name}`));
    return [`${patterns.join(' | ')}) value=${arrayOf(kindWords(value))} ;;`];
  });
}
