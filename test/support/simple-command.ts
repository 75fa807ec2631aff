import { parseShell } from '../../src/judge/index.ts';
import type { SimpleCommand } from '../../src/model/index.ts';

/** The commands of a line that is understood. */
export function commandsIn(source: string): readonly SimpleCommand[] {
  const parsed = parseShell(source);
  if (!parsed.understood) throw new Error(`not understood: ${source}: ${parsed.problem.message}`);
  return parsed.line.commands;
}

/** The first command of a line that is understood. */
export function commandIn(source: string): SimpleCommand {
  const [command] = commandsIn(source);
  if (command === undefined) throw new Error(`no command: ${source}`);
  return command;
}
