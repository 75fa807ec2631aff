import { type Command, Option } from 'commander';
import { HOOK_MODES, type HookMode } from '../../integrations/hooks/hook-options.ts';
import type { BackendId } from '../../model/backend.ts';
import type { Autonomy } from '../../model/decision.ts';
import { autonomyOption, backendOption } from '../shared/policy-options.ts';
import { parseSeconds } from '../shared/quantities.ts';

/** What {@link addHookOptions} reads. */
export interface HookArguments {
  readonly mode: HookMode;
  readonly profile?: string;
  readonly policy?: string;
  readonly backend?: BackendId | 'auto';
  readonly autonomy?: Autonomy;
  readonly timeout?: number;
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
