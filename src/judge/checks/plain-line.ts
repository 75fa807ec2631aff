import type { SimpleCommand, StepsOrNot, Word } from '../../model/index.ts';
import { describeAs } from '../programs/program-table.ts';
import { applicationCheck, programOf } from './application.ts';
import { type CheckContext, commandsOf } from './check.ts';
import { effectsOf } from './effects.ts';

/** Text that no shell takes for more than text; quoted parts are taken out before. */
const BARE = /^(?!=)[\w@%+=:,./-]*$/;
const QUOTED = /'[^']*'|"(?:[^"\\]|\\[\s\S])*"|\\[\s\S]/g;

/**
 * True for a line that is harmless wherever it runs, with any environment and nothing around it: it would be let through
 * where decisions are all that holds a command (every word, option and path is known, and in the workspace), its risk is
 * low, it writes nothing, and what it reads is there. Rather once too seldom.
 */
export function isPlainLine(context: CheckContext, steps: StepsOrNot): boolean {
  const { parsed, risk, reach, rules } = context;
  if (!parsed.understood || !steps.ok || risk !== 'low' || reach !== 'local') return false;
  const commands = commandsOf(parsed);
  if (!commands.every((command) => isPlainCommand(command, context))) return false;
  // The environment is that of the program that runs the line, not one that a request gives.
  const strict: CheckContext = {
    ...context,
    variables: undefined,
    rules: { ...rules, onlyChecks: true },
    steps,
  };
  const said = applicationCheck.judge(strict);
  if (!Array.isArray(said) || said.length > 0) return false;
  const { reads, writes, executes, parts } = effectsOf(context, [], undefined);
  return (
    writes.length === 0 &&
    executes.length === 0 &&
    parts.every(({ isOpen }) => !isOpen) &&
    reads.every((path) => context.paths.resolve(path).kind !== 'missing')
  );
}

function isPlainCommand(command: SimpleCommand, context: CheckContext): boolean {
  const { words, redirects, assignments } = command;
  if (assignments.length > 0) return false;
  if (![...words, ...redirects.map(({ target }) => target)].every(isBare)) return false;
  const [program, target] = words.map(({ value }) => value ?? '');
  // CDPATH may lead any other name elsewhere.
  if (program === 'cd') return /^(?:\/|\.\.?(?:\/|$))/.test(target ?? '');
  const known = programOf(command, context);
  return known?.application.obeysEnvironment?.(describeAs(command, known)) !== true;
}

/** Whether a word means the same in every shell: the user chooses which one the agent starts. */
const isBare = ({ value, source }: Word) => value !== undefined && BARE.test(source.replace(QUOTED, ''));
