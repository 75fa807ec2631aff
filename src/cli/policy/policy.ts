import { basename, resolve } from 'node:path';
import { Option } from 'commander';
import { z } from 'zod';
import { IMPORT_SOURCES } from '../../agents/index.ts';
import { policyFileSchema, type SandboxOptions } from '../../model/index.ts';
import { resolvePolicy, userPolicyPath, validateFile, WORKSPACE_POLICY } from '../../run/index.ts';
import { homeDirectory } from '../../workspace/index.ts';
import { caller } from '../shared/caller.ts';
import { withSubcommands } from '../shared/parse.ts';
import { jsonText } from '../shared/print.ts';
import type { ImportArguments } from './import.ts';
import { policyTemplate, writeNewPolicy } from './init.ts';
import type { ShowOptions } from './show.ts';

const HELP_AFTER = `
Layers, weakest first:
  built-in profile, /etc/sandbox-run/policy.toml, $XDG_CONFIG_HOME/sandbox-run/policy.toml
  (~/.config without it), --policy FILE, options. Last comes .sandbox-run.toml in the workspace,
  which can only take rights away until a person trusts it (sandbox-run trust).

Examples:
  sandbox-run policy init
  sandbox-run policy show --explain
  sandbox-run policy validate .sandbox-run.toml
  sandbox-run policy diff new-policy.toml
  sandbox-run policy schema > policy.schema.json
  sandbox-run policy explain-program git stash

import makes a policy from the settings of another sandbox. It lists settings that have no exact
equivalent on standard error: narrower, less is allowed here; wider, something is allowed here that was
not; none, the setting is about something else. A wider policy is not written without --allow-wider.
  sandbox-run policy import ~/.srt-settings.json --from srt --output policy.toml
  sandbox-run policy import .claude/settings.json --from claude-code --json | jq .losses
  sandbox-run policy import ~/.codex/config.toml --from codex > policy.toml

Exit status: 0; 125 if a file is wrong or anything else failed. Of import: 0 all is translated, 10 some
is narrower here, 11 some would be wider.`;

/** `sandbox-run policy`: policy files. */
export async function policy(args: readonly string[]): Promise<number> {
  const { command, does, run } = withSubcommands(
    'sandbox-run policy',
    'Shows, checks and makes policy files.',
    HELP_AFTER,
  );
  command(
    'init [file]',
    "writes a policy file with every key as a comment; without FILE, the user's file, if there is none",
  ).action((file: string | undefined) => does(() => initPolicy(file)));
  command('show', 'the effective policy')
    .option('--explain', 'print the source of every value, too')
    .option('-v, --verbose', 'list the paths that are protected everywhere, too')
    .option('--json', 'one JSON object')
    .option('--workspace <dir>', 'the workspace (default: the current directory)')
    .option('--profile <name>', 'built-in profile')
    .option('--policy <file>', 'policy file')
    .action((options: ShowOptions) => does(async () => (await import('./show.ts')).showPolicy(options)));
  command('diff <file>', 'what the policy in FILE would change here')
    .option('--workspace <dir>', 'the workspace (default: the current directory)')
    .option('--json', 'one JSON object per difference')
    .action((file: string, { json, ...where }: SandboxOptions & { readonly json?: boolean }) =>
      does(async () => (await import('./show.ts')).diffPolicy(file, where, json === true)),
    );
  command('validate [file]', 'checks FILE, or every file that is in force here')
    .option('--workspace <dir>', 'the workspace (default: the current directory)')
    .action((file: string | undefined, where: SandboxOptions) => does(() => validatePolicy(file, where)));
  command('import <file>', 'makes a policy of the settings of another sandbox')
    .addOption(
      new Option('--from <product>', 'the product that the settings belong to')
        .choices(IMPORT_SOURCES)
        .makeOptionMandatory(),
    )
    .option('--output <file>', 'a new file for the policy (default: standard output)')
    .option('--workspace <dir>', 'the workspace that the policy is for (default: the current directory)')
    .option('--allow-wider', 'write the policy even if it allows something that the settings do not')
    .option('--json', 'one JSON object')
    .action((file: string, options: ImportArguments) =>
      does(async () => (await import('./import.ts')).printImported(file, options)),
    );
  command('schema', 'the JSON Schema of policy files').action(() =>
    does(() =>
      jsonText({ title: 'Policy of sandbox-run', ...z.toJSONSchema(policyFileSchema, { io: 'input' }) }),
    ),
  );
  command(
    'explain-program [name] [verb...]',
    'what the table of programs says about one: risk, network, options, verbs, what it runs',
  ).action((name: string | undefined, verbs: readonly string[]) =>
    does(async () => (await import('./explain-program.ts')).explainProgramText(name, verbs)),
  );
  return run(args);
}

/** Writes a commented policy file and says where. Never over one that is there. */
function initPolicy(file: string | undefined): string {
  const path =
    file === undefined ? userPolicyPath(homeDirectory(), process.env.XDG_CONFIG_HOME) : resolve(file);
  const instead = 'edit it, or name another file';
  writeNewPolicy(path, policyTemplate(), { instead, directoryMode: 0o700 });
  return `wrote ${path}; everything in it is a comment as yet\n`;
}

/** Checks one file, or all that are in force; says which are fine. */
async function validatePolicy(file: string | undefined, options: SandboxOptions): Promise<string> {
  if (file !== undefined) {
    const narrowing = basename(file) === WORKSPACE_POLICY;
    await validateFile(resolve(file), narrowing);
    return `${file}: valid${narrowing ? ' (as the file of a workspace)' : ''}\n`;
  }
  const { layers } = await resolvePolicy(options, caller());
  const paths = layers.map((layer) => layer.path).filter((path) => path !== undefined);
  if (paths.length === 0) return 'no policy file is in force here; the built-in policy is\n';
  return paths.map((path) => `${path}: valid\n`).join('');
}
