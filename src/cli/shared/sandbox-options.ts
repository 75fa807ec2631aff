import type { Command } from 'commander';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { BackendId } from '../../model/backend.ts';
import type { SandboxOptions } from '../../model/options.ts';
import type { OutputLimits } from '../../model/output.ts';
import { putAt } from '../../policy/layers.ts';
import { backendOption, policyOptions } from './policy-options.ts';
import { parseOutputLimit } from './quantities.ts';

/** What {@link addSandboxOptions} reads, beside the options that stand for keys of the policy. */
export interface SandboxArguments extends Pick<SandboxOptions, 'ask' | 'timeout'> {
  workspace?: string;
  policy?: string;
  backend?: BackendId | 'auto';
  session?: string;
  env?: string[];
  maxOutput?: number | OutputLimits;
}

/** Adds the options that say under which policy commands run. */
export function addSandboxOptions(program: Command): Command {
  const collect = (value: string, before: string[] = []) => [...before, value];
  program
    .option('--workspace <dir>', 'the directory to work in (default: the current directory)')
    .option('--policy <file>', 'a policy file (TOML), added to those of the machine and the user')
    .addOption(backendOption())
    .option('--session <id>', 'the session of the agent; its taints are remembered')
    .option('--env <name[=value]>', 'pass a variable to the command, or set it; repeatable', collect);
  for (const { option } of policyOptions()) program.addOption(option);
  return program.option(
    '--max-output <size>',
    'with --json: how much of each stream is kept, half from its beginning and half from its end; or HEAD+TAIL (default: 1M, at most 128M)',
    parseOutputLimit,
  );
}

/** The same as options of `createSandbox`. */
export function sandboxOptionsOf(options: SandboxArguments): SandboxOptions {
  const assignments = (options.env ?? []).filter((entry) => entry.includes('='));
  const said: Record<string, unknown> = {};
  for (const { option, becomes } of policyOptions()) {
    const value: unknown = Reflect.get(options, option.attributeName());
    if (value !== undefined) putAt(said, becomes.split('.'), value);
  }
  return {
    // Each option was read as its key wants it.
    ...(said as SandboxOptions),
    ...(options.workspace === undefined ? {} : { workspace: options.workspace }),
    ...(options.backend === undefined ? {} : { backend: options.backend }),
    ...(options.session === undefined ? {} : { session: options.session }),
    ...(options.policy === undefined ? {} : { policy: options.policy }),
    passEnv: (options.env ?? []).filter((entry) => !entry.includes('=')),
    env: Object.fromEntries(assignments.map(splitAssignment)),
    ...(options.maxOutput === undefined ? {} : { maxOutput: options.maxOutput }),
  };
}

function splitAssignment(entry: string): readonly [string, string] {
  const at = entry.indexOf('=');
  if (at === 0 || entry === '')
    throw new SandboxError('usage.invalid', `--env ${entry}: a name must stand before the =`);
  return [entry.slice(0, at), entry.slice(at + 1)];
}
