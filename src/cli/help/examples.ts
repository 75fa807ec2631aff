import { Argument } from 'commander';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { printOut } from '../shared/print.ts';
import { paintFor } from '../shared/style.ts';
import { EXAMPLE_LINES } from './example-lines.ts';

const HELP_AFTER = `
Examples:
  sandbox-run examples
  sandbox-run examples session

Exit status: 0; 125 if there is no such topic.`;

/** `sandbox-run examples [TOPIC]`: command lines to copy. */
export async function examples(args: readonly string[]): Promise<number> {
  const program = createProgram('sandbox-run examples')
    .description('Shows command lines to copy, by topic. Nothing is run.')
    .addArgument(new Argument('[topic]', 'only those of one topic').choices(Object.keys(EXAMPLE_LINES)))
    .allowExcessArguments(false)
    .addHelpText('after', HELP_AFTER);
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const [wanted] = parsed.args;
  const paint = paintFor(1);
  const topics = Object.entries(EXAMPLE_LINES)
    .filter(([topic]) => wanted === undefined || topic === wanted)
    .map(([topic, lines]) => {
      const shown = lines.map(({ does, line }) => `  ${paint('faint', `# ${does}`)}\n  ${line}\n`);
      return `${paint('strong', topic)}\n${shown.join('')}`;
    });
  printOut(topics.join('\n'));
  return 0;
}
