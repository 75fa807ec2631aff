import { AsyncLocalStorage } from 'node:async_hooks';
import { Command, CommanderError } from 'commander';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { printOut } from './print.ts';

/** A commander program that reports through us: one line and exit status 125. */
export function createProgram(name: string): Command {
  return new Command(name)
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({ writeOut: printOut, writeErr: () => {} })
    .helpOption('-h, --help', 'show this help');
}

/** Set while a command is asked for its program. */
const asking = new AsyncLocalStorage<(program: Command) => void>();

/**
 * The program of a command, which is not run: it ends as after `--help`, before it does anything.
 * @throws {SandboxError} `usage.invalid` if the command parses its arguments in another way than by {@link parseArguments}.
 */
export async function programOf(
  command: (args: readonly string[]) => Promise<unknown>,
  args: readonly string[],
): Promise<Command> {
  let found: Command | undefined;
  await asking.run(
    (program) => {
      found ??= program;
    },
    () => command(args),
  );
  if (found === undefined) throw new SandboxError('usage.invalid', `${args.join(' ')}: it has no program`);
  return found;
}

/**
 * Parses; `undefined` if help or the version was asked for and printed.
 * @throws {SandboxError} `usage.invalid`.
 */
export function parseArguments(program: Command, args: readonly string[]): Command | undefined {
  const ask = asking.getStore();
  if (ask !== undefined) {
    ask(program);
    return undefined;
  }
  try {
    return program.parse(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    // Commander wants to show its help then, as an error.
    const message = error.code === 'commander.help' ? 'a subcommand is missing' : error.message;
    const reason = message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
    throw new SandboxError('usage.invalid', `${reason} (see ${program.name()} --help)`);
  }
}
