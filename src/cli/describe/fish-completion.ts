import { assertNever } from '../../util/assert-never.ts';
import { everyCommand } from './collect-programs.ts';
import type { CommandDescription, OptionDescription } from './describe-program.ts';
import type { ValueKind } from './values.ts';

/** A word of which fish expands nothing. */
const quoted = (text: string) => `'${text.replaceAll(/[\\']/g, '\\$&')}'`;

/** The parts of `completion.fish` that are made from the commands. */
export function fishParts(root: CommandDescription): Readonly<Record<string, readonly string[]>> {
  const commands = everyCommand(root);
  const nameOf = ({ path }: CommandDescription) => path.at(-1) ?? '';
  return {
    subcommands: commands
      .filter(({ subcommands }) => subcommands.length > 0)
      .flatMap(({ path, subcommands }) => [
        `case ${quoted(path.join(' '))}`,
        `    printf '%s\\n' ${subcommands.map(nameOf).join(' ')}`,
      ]),
    values: [`case ${commands.flatMap(optionsWithValue).map(quoted).join(' ')}`],
    programs: commands.flatMap(({ path, arguments: operands }) => {
      const place = operands.findIndex(({ value }) => value.kind === 'command');
      return place < 0 ? [] : [`case ${quoted(path.join(' '))}`, `    echo ${place}`];
    }),
    completions: commands.flatMap(completionsFor),
  };
}

/** As `path:option`; the words of the path are joined as fish joins them there. */
function optionsWithValue({ path, options }: CommandDescription): readonly string[] {
  return options.flatMap(({ names, value }) =>
    value === undefined ? [] : names.map((name) => `${path.join(' ')}:${name}`),
  );
}

function completionsFor({ path, subcommands, options, arguments: operands }: CommandDescription) {
  const at = (place: string) =>
    `complete -c sandbox-run -n ${quoted(`__sandbox_run_at ${quoted(path.join(' '))} ${place}`)}`;
  return [
    ...subcommands.map((each) => `${at('subcommands')} -a ${each.path.at(-1)} -d ${quoted(each.summary)}`),
    ...options.map((option) => `${at('options')} ${optionFlags(option)}`),
    ...operands.map(({ value }, index) => `${at(`${index}`)} ${valueFlags(value)}`),
    ...(operands.some(({ value }) => value.kind === 'command') ? [`${at('arguments')} -F`] : []),
  ];
}

function optionFlags({ names, summary, value }: OptionDescription): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  const takes = value === undefined ? '' : ` -r ${valueFlags(value)}`;
  return `${flags.join(' ')}${takes} -d ${quoted(summary)}`;
}

function valueFlags(value: ValueKind): string {
  switch (value.kind) {
    case 'words':
      return `-f -a ${quoted(value.words.join(' '))}`;
    case 'list':
      return `-f -a ${quoted(`(__fish_append , ${value.words.join(' ')})`)}`;
    case 'file':
      return '-F';
    case 'directory':
      return `-f -a '(__fish_complete_directories (commandline -ct))'`;
    case 'variable':
      return `-f -a '(set -nx)'`;
    case 'command':
      return `-a '(__sandbox_run_programs)' -F`;
    case 'text':
      return '-f';
    default:
      return assertNever(value);
  }
}
