import { collectPrograms, parseArguments } from '../../src/cli/index.ts';
import { parseShell } from '../../src/judge/index.ts';

/** Words of a user's, of which the test need not know what they become. */
const SOMETHING = 'something';

/** The argument vectors with which a line of a shell calls `sandbox-run`, at any depth. */
export function callsIn(line: string): readonly (readonly string[])[] {
  const parsed = parseShell(line);
  // What would be refused for something else may be an example all the same.
  const commands = parsed.understood ? parsed.line.commands : parsed.problem.recognized;
  return commands
    .map(({ words }) => words.map(({ value }) => value ?? SOMETHING))
    .filter(([program]) => program === 'sandbox-run')
    .map(([, ...args]) => args);
}

/**
 * Parses arguments with the program of the subcommand that they call, as it would; nothing is run.
 * @throws {SandboxError} what the user would be told.
 */
export async function parseAsCalled(args: readonly string[]): Promise<void> {
  let found = await collectPrograms();
  let rest = args;
  for (;;) {
    const inner = found.subcommands.find(({ path }) => path.at(-1) === rest[0]);
    if (inner === undefined) break;
    found = inner;
    rest = rest.slice(1);
  }
  if (found.subcommands.length > 0 && found.path.length > 0 && rest.some((word) => !word.startsWith('-')))
    throw new Error(`${found.path.join(' ')} has no subcommand ${rest.join(' ')}`);
  // The one that a parent declares for its subcommand knows it by this.
  parseArguments(found.program, rest);
}
