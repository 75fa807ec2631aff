import { EXAMPLE_LINES } from '../help/example-lines.ts';
import { exitStatuses } from '../shared/exit-statuses.ts';
import { ENVIRONMENT, FILES } from '../shared/surroundings.ts';
import { everyCommand } from './collect-programs.ts';
import type { CommandDescription, OptionDescription } from './describe-program.ts';
import { roffMacro, roffNotes, roffText } from './roff.ts';

/** When and of which version the page is. */
export interface PageOrigin {
  /** `2025-01-31`. */
  readonly date: string;
  readonly version: string;
}

/** `sandbox-run(1)`, in roff with the macros of man(7). */
export function manPage(root: CommandDescription, { date, version }: PageOrigin): string {
  const commands = everyCommand(root).filter(({ path }) => path.length > 0);
  const lines = [
    '.\\" Made from the commands by the build; do not edit.',
    // Its hyphens stay: escaped, they make it no date.
    `.TH SANDBOX\\-RUN 1 ${date} "sandbox\\-run ${roffText(version)}" "User Commands"`,
    '.SH NAME',
    'sandbox\\-run \\- runs the shell commands of agents confined to a workspace',
    '.SH SYNOPSIS',
    ...synopsis([...root.usage, 'sandbox-run SUBCOMMAND [options]']),
    '.SH DESCRIPTION',
    roffText(root.summary),
    ...roffNotes(withoutLists(root.notes)),
    '.SH OPTIONS',
    ...optionLines(root.options),
    '.SH SUBCOMMANDS',
    ...commands.flatMap(commandLines),
    '.SH EXAMPLES',
    ...Object.values(EXAMPLE_LINES)
      .flat()
      .flatMap(({ does, line }, index) => [
        ...(index === 0 ? [] : ['.PP']),
        `${roffText(does)}:`,
        '.RS 4',
        '.EX',
        roffText(line),
        '.EE',
        '.RE',
      ]),
    '.SH EXIT STATUS',
    'That of the command that was run. Otherwise:',
    ...exitStatuses().flatMap(({ status, meaning, codes }) => [
      ...definition(status, meaning),
      ...(codes.length === 0 ? [] : ['.br', `Error codes: ${roffText(codes.join(', '))}.`]),
    ]),
    '.SH ENVIRONMENT',
    ...ENVIRONMENT.flatMap(([name, meaning]) => definition(name, meaning)),
    '.SH FILES',
    ...FILES.flatMap(([name, meaning]) => definition(name, meaning)),
    '.SH SEE ALSO',
    '.BR bash (1),',
    '.BR bwrap (1),',
    '.BR firejail (1),',
    '.BR seccomp (2),',
    '.BR landlock (7),',
    '.BR namespaces (7)',
  ];
  return `${lines.join('\n')}\n`;
}

/** The help of sandbox-run ends with what has sections of its own here. */
function withoutLists(notes: string): string {
  return notes
    .split(/\n{2,}/)
    .filter((block) => !/^(Commands|Examples|Exit status):/.test(block))
    .join('\n\n');
}

function commandLines({ path, summary, usage, options, notes }: CommandDescription): readonly string[] {
  const [first = '', ...rest] = summary;
  return [
    roffMacro('SS', `sandbox-run ${path.join(' ')}`),
    ...synopsis(usage),
    '.PP',
    roffText(`${first.toUpperCase()}${rest.join('')}${summary.endsWith('.') ? '' : '.'}`),
    // Every command has it.
    ...optionLines(options.filter(({ names }) => !names.includes('--help'))),
    ...roffNotes(notes),
  ];
}

function synopsis(usage: readonly string[]): readonly string[] {
  return ['.EX', ...usage.map(roffText), '.EE'];
}

function optionLines(options: readonly OptionDescription[]): readonly string[] {
  return options.flatMap(({ names, value, details }) => {
    const shown = names.map((name) => `\\fB${roffText(name)}\\fR`).join(', ');
    return [
      '.TP',
      value === undefined ? shown : `${shown} \\fI${roffText(value.name)}\\fR`,
      roffText(details),
    ];
  });
}

function definition(name: string, meaning: string): readonly string[] {
  return ['.TP', `\\fB${roffText(name)}\\fR`, roffText(meaning)];
}
