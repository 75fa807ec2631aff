import type { SandboxOptions } from '../run/sandbox-options.ts';
import { createProgram, parseArguments } from './parse.ts';
import { printOut } from './print.ts';

const HELP_AFTER = `
Layers, weakest first:
  built-in profile, /etc/sandbox-run/policy.toml, $XDG_CONFIG_HOME/sandbox-run/policy.toml
  (~/.config without it), --policy FILE, options; and .sandbox-run.toml in the workspace, which
  can only take away.

Examples:
  sandbox-run policy init
  sandbox-run policy show --explain
  sandbox-run policy validate .sandbox-run.toml
  sandbox-run policy schema > policy.schema.json

Exit status: 0; 125 if a file is wrong or anything else failed.`;

interface Where {
  readonly workspace?: string;
  readonly profile?: string;
  readonly policy?: string;
}

/** `sandbox-run policy`: policy files. */
export async function policy(args: readonly string[]): Promise<number> {
  const program = createProgram('sandbox-run policy')
    .description('Shows, checks and makes policy files.')
    .addHelpText('after', HELP_AFTER);
  let task = async (): Promise<string> => program.helpInformation();
  const command = (usage: string, description: string) =>
    program.command(usage).description(description).allowExcessArguments(false).configureHelp({});
  command('init [file]', "writes a commented file; without FILE, the user's, if there is none").action(
    (file: string | undefined) => {
      task = async () => (await import('./policy-init.ts')).initPolicy(file);
    },
  );
  command('show', 'the effective policy')
    .option('--explain', 'with the source of every value')
    .option('--json', 'one JSON object')
    .option('--workspace <dir>', 'the workspace (default: the current directory)')
    .option('--profile <name>', 'built-in profile')
    .option('--policy <file>', 'policy file')
    .action((options: Where & { readonly explain?: boolean; readonly json?: boolean }) => {
      task = async () => {
        const { showPolicy } = await import('./policy-show.ts');
        return showPolicy(sandboxOptions(options), options);
      };
    });
  command('validate [file]', 'checks FILE, or every file that is in force here')
    .option('--workspace <dir>', 'the workspace (default: the current directory)')
    .action((file: string | undefined, options: Where) => {
      task = async () => (await import('./policy-validate.ts')).validatePolicy(file, sandboxOptions(options));
    });
  command('schema', 'the JSON Schema of policy files').action(() => {
    task = async () => (await import('./policy-schema.ts')).policySchema();
  });
  if (parseArguments(program, args) === undefined) return 0;
  printOut(await task());
  return 0;
}

function sandboxOptions({ workspace, profile, policy: file }: Where): SandboxOptions {
  return {
    ...(workspace === undefined ? {} : { workspace }),
    ...(profile === undefined ? {} : { profile }),
    ...(file === undefined ? {} : { policy: file }),
  };
}
