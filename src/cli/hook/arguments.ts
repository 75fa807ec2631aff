import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import {
  AFTER_SCOPES,
  type AfterScope,
  AGENTS,
  type Agent,
  HOOK_MODES,
  type HookMode,
  type HookOptions,
} from '../../agents/index.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { SandboxOptions } from '../../model/index.ts';
import { currentDirectory } from '../shared/caller.ts';
import {
  autonomyOption,
  backendOption,
  POLICY_FILE,
  parseSeconds,
  profileOption,
} from '../shared/options.ts';
import { ownWords } from '../warm/start.ts';

/** What {@link addHookOptions} reads. */
export interface HookArguments
  extends Pick<SandboxOptions, 'profile' | 'backend' | 'autonomy' | 'timeout' | 'audit'> {
  readonly after?: AfterScope;
  readonly ends?: boolean;
  readonly mode: HookMode;
  readonly policy?: string;
}

/** Adds the options that say how a hook decides. */
export function addHookOptions(program: Command): Command {
  return program
    .addOption(
      new Option(
        '--mode <mode>',
        'rewrite: sandbox-run runs the commands; decide (Claude Code only): the agent runs allowed commands itself, unconfined',
      )
        .choices(HOOK_MODES)
        .default('rewrite'),
    )
    .addOption(
      new Option('--after <scope>', 'what the settings tell of afterwards').choices(AFTER_SCOPES).hideHelp(),
    )
    .addOption(new Option('--ends', 'the settings tell how commands ended').hideHelp())
    .option(...POLICY_FILE)
    .addOption(profileOption())
    .addOption(backendOption())
    .addOption(autonomyOption())
    .option(
      '--timeout <seconds>',
      'how long a rewritten command may run (default: 60); 0: no limit',
      parseSeconds,
    );
}

/** Options of a hook from its arguments. Paths are made absolute: the hook and the commands that it rewrites start in other directories. */
export function hookOptionsOf({ mode, policy, after, ends, ...others }: HookArguments): HookOptions {
  return {
    mode,
    sandbox: policy === undefined ? others : { ...others, policy: resolve(currentDirectory(), policy) },
    ...(after === undefined ? {} : { after }),
    ...(ends === undefined ? {} : { ends }),
    ...ownWords(),
  };
}

/**
 * The agent of a name.
 * @throws {SandboxError} `usage.invalid` if there is none, or not in that mode.
 */
export async function agentOf(name: string, mode: HookMode): Promise<Agent> {
  const load = Object.hasOwn(AGENTS, name) ? AGENTS[name] : undefined;
  if (load === undefined)
    throw new SandboxError(
      'usage.invalid',
      `no agent is called ${JSON.stringify(name)}; known are ${Object.keys(AGENTS).join(', ')}`,
    );
  const agent = await load();
  if (agent.hooks.modes.includes(mode)) return agent;
  throw new SandboxError(
    'usage.invalid',
    `${name} takes no --mode ${mode}, only ${agent.hooks.modes.join(' or ')}`,
  );
}
