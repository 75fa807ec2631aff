import { Argument } from 'commander';
import { wrap } from '../doctor/table.ts';
import { exitStatuses } from '../shared/exit-statuses.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { printOut } from '../shared/print.ts';
import { ENVIRONMENT, FILES } from '../shared/surroundings.ts';

const WIDTH = 100;

const HELP_AFTER = `
What a subcommand does says --help behind its name.

Examples:
  sandbox-run help exit-status
  sandbox-run help environment
  sandbox-run help files

Exit status: 0; 125 if there is no such topic.`;

/** What can be asked about, each with the text of its page. */
const TOPICS: Readonly<Record<string, () => string>> = {
  'exit-status': exitStatusPage,
  environment: () => rows(ENVIRONMENT),
  files: () => rows(FILES),
};

/** `sandbox-run help [TOPIC]`: what holds for every subcommand. */
export async function help(args: readonly string[]): Promise<number> {
  const program = createProgram('sandbox-run help')
    .description('Shows what holds for every subcommand.')
    .addArgument(new Argument('[topic]', 'what about').choices(Object.keys(TOPICS)))
    .allowExcessArguments(false)
    .addHelpText('after', HELP_AFTER);
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const [topic] = parsed.args;
  const page = topic === undefined ? undefined : TOPICS[topic];
  if (page === undefined) {
    const { parseRunArguments } = await import('../run/options.ts');
    parseRunArguments(['--help']);
  } else {
    printOut(page());
  }
  return 0;
}

function exitStatusPage(): string {
  const table = exitStatuses().map(({ status, meaning, codes }): readonly [string, string] => [
    status,
    codes.length === 0 ? meaning : `${meaning} Error codes: ${codes.join(', ')}.`,
  ]);
  return `The exit status is that of the command that was run. Otherwise it is:\n\n${rows(table)}`;
}

function rows(table: readonly (readonly [string, string])[]): string {
  const indent = Math.max(...table.map(([name]) => name.length)) + 4;
  return table
    .flatMap(([name, meaning]) =>
      wrap(meaning, WIDTH - indent).map(
        (line, index) => `  ${(index === 0 ? name : '').padEnd(indent - 2)}${line}\n`,
      ),
    )
    .join('');
}
