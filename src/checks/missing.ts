import { describeCommand } from '../programs/describe.ts';
import type { CheckContext } from './check.ts';

/**
 * The line is one command whose program is not there, and nothing in it could put it there: the shell says "not found",
 * so nothing is asked. `false` also where this is not known.
 */
export function isMissing({ parsed, shell, findExecutable, cwd }: CheckContext): boolean {
  if (!parsed.understood || shell !== undefined) return false;
  const [command, ...others] = parsed.line.commands;
  if (command === undefined || others.length > 0) return false;
  const name = command.words[0]?.value;
  if (name === undefined || name === '' || name.includes('/') || command.callsFunction === true) return false;
  if (command.assignments.length > 0 || command.redirects.length > 0) return false;
  // Builtins are listed, but for those that only tell something.
  return describeCommand(command)?.program.unlisted === true && findExecutable(name, cwd) === undefined;
}
