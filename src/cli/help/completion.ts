import { readFileSync } from 'node:fs';
import { Argument } from 'commander';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { createProgram, parseArguments } from '../shared/parse.ts';
import { printOut } from '../shared/print.ts';

const SHELLS = ['bash', 'fish', 'zsh'] as const;

const HELP_AFTER = `
The script starts no program: subcommands, options and the words that options take stand in it; files,
directories, variables and programs are completed by the shell itself. The arguments of a program are
completed as files, because its own completion might run something.

Examples:
  source <(sandbox-run completion bash)
  sandbox-run completion bash > ~/.local/share/bash-completion/completions/sandbox-run
  sandbox-run completion zsh > ~/.zfunc/_sandbox-run
  sandbox-run completion fish > ~/.config/fish/completions/sandbox-run.fish

Exit status: 0; 125 wrong usage, or the script is not there.`;

/** `sandbox-run completion SHELL`: prints the script, which was made when sandbox-run was built. */
export async function completion(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run completion',
    'Prints the completion for a shell.',
    HELP_AFTER,
  ).addArgument(new Argument('<shell>', 'which one').choices(SHELLS));
  const shell = parseArguments(program, args)?.args[0];
  if (shell === undefined) return 0;
  printOut(scriptFor(shell));
  return 0;
}

function scriptFor(shell: string): string {
  try {
    return readFileSync(new URL(`./completions/sandbox-run.${shell}`, import.meta.url), 'utf8');
  } catch (error) {
    throw new SandboxError(
      'usage.invalid',
      `the completion for ${shell} is missing in this installation; install sandbox-run again, or run npm run build:ts in a checkout`,
      { cause: error },
    );
  }
}
