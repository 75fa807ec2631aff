import type { SimpleCommand, Word } from '../model/command-line.ts';
import type { StepsOrNot } from '../model/steps.ts';
import { applicationCheck } from './application.ts';
import { type CheckContext, commandsOf } from './check.ts';
import { effectsOf } from './effects.ts';

/**
 * Harmless where there is no shell and the environment is of our making; here a shell reads it. These say what is in the
 * environment, or evaluate subscripts in their words: `printf -v 'a[$(id)]'`, `test -v 'a[$(id)]'`.
 */
const NOT_BENEATH_A_SHELL: ReadonlySet<string> = new Set(['printenv', 'printf', 'test', '[']);

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
  // The environment is that of the program that runs the line, not one that a request gives.
  const strict: CheckContext = {
    ...context,
    variables: undefined,
    rules: { ...rules, onlyChecks: true },
    steps,
  };
  const said = applicationCheck.judge(strict);
  if (!Array.isArray(said) || said.length > 0) return false;
  const commands = commandsOf(parsed);
  const { reads, writes, executes, parts } = effectsOf(context, [], undefined);
  return (
    commands.every(isPlainCommand) &&
    writes.length === 0 &&
    executes.length === 0 &&
    parts.every(({ isOpen }) => !isOpen) &&
    reads.every((path) => context.paths.resolve(path).kind !== 'missing')
  );
}

function isPlainCommand({ words, redirects, assignments }: SimpleCommand): boolean {
  if (assignments.length > 0) return false;
  if (![...words, ...redirects.map(({ target }) => target)].every(isBare)) return false;
  const [program, target] = words.map(({ value }) => value ?? '');
  const name = program?.slice(program.lastIndexOf('/') + 1) ?? '';
  if (NOT_BENEATH_A_SHELL.has(name)) return false;
  // CDPATH may lead any other name elsewhere.
  if (name === 'cd') return /^(?:\/|\.\.?(?:\/|$))/.test(target ?? '');
  // `env` and `$ENV`, in a program of jq wherever it stands.
  return name !== 'jq' || !words.some(({ value }) => /env/i.test(value ?? 'env'));
}

/** It means the same to every shell: which one the agent starts is the user's choice. */
const isBare = ({ value, source }: Word) => value !== undefined && BARE.test(source.replace(QUOTED, ''));
