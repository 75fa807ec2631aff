import { AsyncLocalStorage } from 'node:async_hooks';
import { Command, CommanderError, Help, type Option } from 'commander';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { printOut } from './print.ts';

/** A commander program that reports through us: one line and exit status 125. `help`: what its help ends with, if anything. */
export function createProgram(name: string, description: string, help: string | undefined): Command {
  const program = new Command(name);
  if (help !== undefined) program.addHelpText('after', help);
  return program
    .description(description)
    .exitOverride()
    .showSuggestionAfterError(true)
    .configureOutput({
      writeOut: printOut,
      writeErr: (text) => {
        shownAsError += text;
      },
    })
    .configureHelp({ optionDescription: describeOption })
    .helpOption('-h, --help', 'show this help');
}

/** What Commander wants to show as an error: of a word alone, the help of the group that it names. */
let shownAsError = '';

/** A text that says its default says it in the unit that is typed; Commander would add what that is read as. */
function describeOption(option: Option): string {
  const isSaid = option.description.includes('(default: ');
  return new Help().optionDescription(isSaid ? Object.create(option, { defaultValue: {} }) : option);
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
  shownAsError = '';
  try {
    return program.parse(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    // A word alone asks what there is behind it. Commander would show that as an error.
    if (error.code === 'commander.help') {
      printOut(shownAsError);
      return undefined;
    }
    const reason = error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
    throw new SandboxError('usage.invalid', `${reason} (see ${program.name()} --help)`);
  }
}

/** What a subcommand does; what it returns is the exit status, or a text to print. */
type Task = () => string | number | Promise<string | number>;

/** A program whose first word says what it does. */
interface ProgramWithSubcommands {
  /** Adds one. Its action says by `does` what is to be done. `help`: what its help ends with. */
  readonly command: (usage: string, description: string, help?: string) => Command;
  /** To be done once all of the command line is understood. */
  readonly does: (task: Task) => void;
  /** Parses, does it, and returns the exit status. Without a subcommand it shows which there are. */
  readonly run: (args: readonly string[]) => Promise<number>;
}

/** Makes one. */
export function withSubcommands(name: string, description: string, help: string): ProgramWithSubcommands {
  const program = createProgram(name, description, help);
  let wanted: Task = () => 0;
  return {
    command: (usage, does, innerHelp) => {
      const inner = program.command(usage).description(does);
      return innerHelp === undefined ? inner : inner.addHelpText('after', innerHelp);
    },
    does: (task) => {
      wanted = task;
    },
    run: async (args) => {
      if (parseArguments(program, args) === undefined) return 0;
      const done = await wanted();
      if (typeof done === 'number') return done;
      printOut(done);
      return 0;
    },
  };
}
