import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { currentDirectory } from '../../host/exact-text.ts';
import { HOOK_MODES, type HookMode, type HookOptions } from '../../integrations/hooks/hook-adapter.ts';
import type { SandboxOptions } from '../../model/options.ts';
import { autonomyOption, backendOption, parseSeconds } from '../shared/options.ts';
import { ownWords } from '../warm/start.ts';

/** What {@link addHookOptions} reads. */
export interface HookArguments extends Pick<SandboxOptions, 'profile' | 'backend' | 'autonomy' | 'timeout'> {
  readonly mode: HookMode;
  readonly policy?: string;
}

/** Adds the options that say how a hook decides. */
export function addHookOptions(program: Command): Command {
  return program
    .addOption(
      new Option(
        '--mode <mode>',
        'decide: the agent runs allowed commands itself, unconfined; rewrite: sandbox-run runs them',
      )
        .choices(HOOK_MODES)
        .default('decide'),
    )
    .option('--policy <file>', 'a policy file (TOML), added to those of the machine and the user')
    .option('--profile <name>', 'built-in profile (default: workspace-write)')
    .addOption(backendOption())
    .addOption(autonomyOption())
    .option(
      '--timeout <seconds>',
      'how long a rewritten command may run (default: 60); 0: no limit',
      parseSeconds,
    );
}

/** What they say of a hook, which starts in another directory, as do the commands that it rewrites. */
export function hookOptionsOf({ mode, policy, ...others }: HookArguments): HookOptions {
  return {
    mode,
    sandbox: policy === undefined ? others : { ...others, policy: resolve(currentDirectory(), policy) },
    program: ownWords(),
  };
}

/** What a table has for an agent. */
export async function agentIn<T>(
  table: Readonly<Record<string, () => Promise<T>>>,
  agent: string,
): Promise<T> {
  const load = Object.hasOwn(table, agent) ? table[agent] : undefined;
  if (load !== undefined) return load();
  throw new SandboxError(
    'usage.invalid',
    `no agent is called ${JSON.stringify(agent)}; known are ${Object.keys(table).join(', ')}`,
  );
}
