import { assertNever } from '../../util/assert-never.ts';
import { everyCommand } from './collect-programs.ts';
import type { ArgumentDescription, CommandDescription, OptionDescription } from './describe-program.ts';
import { singleQuoted } from './single-quoted.ts';
import type { ValueKind } from './values.ts';

const functionOf = (path: readonly string[]) => ['_sandbox-run', ...path].join('_');

/** In a description of `_arguments` brackets end it, and colons begin what follows. */
const escaped = (text: string) => text.replaceAll(/[\\:[\]]/g, '\\$&');

/** The parts of `completion.zsh` that are made from the commands. */
export function zshParts(root: CommandDescription): Readonly<Record<string, readonly string[]>> {
  return { functions: everyCommand(root).flatMap(functionFor) };
}

function functionFor(command: CommandDescription): readonly string[] {
  const { path, subcommands, options, arguments: operands } = command;
  const specs = [...options.flatMap(optionSpecs), ...operands.map(operandSpec)];
  if (operands[0]?.value.kind === 'command') specs.push(singleQuoted('*:argument:_files'));
  // What stands behind the program is its own.
  const first = operands[0]?.value.kind === 'command' ? " -A '-*'" : '';
  return [
    `${functionOf(path)}() {`,
    '  local found=1',
    ...(subcommands.length === 0 ? [] : subcommandLines(subcommands)),
    `  _arguments -s -S${first} : \\`,
    `    ${specs.join(' \\\n    ')} && found=0`,
    '  return found',
    '}',
    '',
  ];
}

function subcommandLines(subcommands: readonly CommandDescription[]): readonly string[] {
  const named = subcommands.map(({ path, summary }) => ({ path, summary, name: path.at(-1) ?? '' }));
  return [
    '  if (( CURRENT == 2 )); then',
    '    local -a subcommands=(',
    ...named.map(({ name, summary }) => `      ${singleQuoted(`${name}:${summary}`)}`),
    '    )',
    '    _describe -t subcommands subcommand subcommands && found=0',
    '  else',
    '    case $words[2] in',
    ...named.map(
      ({ name, path }) => `      ${name}) shift words; (( CURRENT -= 1 )); ${functionOf(path)}; return ;;`,
    ),
    '    esac',
    '  fi',
  ];
}

function optionSpecs({ names, summary, value, repeatable }: OptionDescription): readonly string[] {
  const once = repeatable ? '*' : `(${names.join(' ')})`;
  return names.map((name) => {
    const takes = name.startsWith('--') && value !== undefined ? `${name}=` : name;
    return singleQuoted(
      `${once}${takes}[${escaped(summary)}]${value === undefined ? '' : messageAndAction(value.name, value)}`,
    );
  });
}

function operandSpec({ name, required, variadic, value }: ArgumentDescription, index: number): string {
  const isProgram = value.kind === 'command';
  const place = variadic && !isProgram ? '*' : `${index + 1}`;
  return singleQuoted(`${place}${required || variadic ? '' : ':'}${messageAndAction(name, value)}`);
}

function messageAndAction(name: string, value: ValueKind): string {
  return `:${escaped(name)}:${actionFor(value)}`;
}

function actionFor(value: ValueKind): string {
  switch (value.kind) {
    case 'words':
      return `(${value.words.join(' ')})`;
    case 'list':
      return `_sequence compadd - ${value.words.join(' ')}`;
    case 'file':
      return '_files';
    case 'directory':
      return '_files -/';
    case 'variable':
      return '_parameters -g "*export*"';
    case 'command':
      return '_sandbox-run_program';
    case 'text':
      return ' ';
    default:
      return assertNever(value);
  }
}
