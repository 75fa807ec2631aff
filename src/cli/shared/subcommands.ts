import type { Command } from 'commander';
import { createProgram, parseArguments } from './parse.ts';
import { printOut } from './print.ts';

/** What a subcommand does; what it returns is the exit status, or a text to print. */
type Task = () => string | number | Promise<string | number>;

/** A program whose first word says what it does. */
interface ProgramWithSubcommands {
  /** Adds one. Its action says by `does` what is to be done. `help`: what its help ends with. */
  readonly command: (usage: string, description: string, help?: string) => Command;
  /** To be done once all of the command line is understood. */
  readonly does: (task: Task) => void;
  /** Parses, does it, and returns the exit status. Without a subcommand the parser refuses. */
  readonly run: (args: readonly string[]) => Promise<number>;
}

/** Makes one. */
export function withSubcommands(name: string, description: string, help: string): ProgramWithSubcommands {
  const program = createProgram(name).description(description).addHelpText('after', help);
  let wanted: Task = () => 0;
  return {
    command: (usage, does, innerHelp) => {
      const inner = program.command(usage).description(does).allowExcessArguments(false);
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
