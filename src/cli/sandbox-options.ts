import type { Command } from 'commander';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { BackendId } from '../model/backend.ts';
import type { Autonomy } from '../model/decision.ts';
import type { ApproverName } from '../model/policy.ts';
import type { OutputLimits } from '../run/output/gap.ts';
import type { SandboxOptions } from '../run/sandbox-options.ts';
import { askOption, autonomyOption, backendOption } from './policy-options.ts';
import { parseOutputLimit, parseSeconds, parseSize, parseWhole } from './quantities.ts';

/** What {@link addSandboxOptions} reads. */
export interface SandboxArguments {
  workspace?: string;
  profile?: string;
  policy?: string;
  backend?: BackendId | 'auto';
  autonomy?: Autonomy;
  session?: string;
  ask?: ApproverName;
  ro?: string[];
  rw?: string[];
  env?: string[];
  timeout?: number;
  idleTimeout?: number;
  memory?: number;
  maxProcesses?: number;
  cpuTime?: number;
  maxTmp?: number;
  maxOutput?: number | OutputLimits;
}

/** Adds the options that say under which policy commands run. */
export function addSandboxOptions(program: Command): Command {
  const collect = (value: string, before: string[] = []) => [...before, value];
  return program
    .option('--workspace <dir>', 'the directory to work in (default: the current directory)')
    .option('--profile <name>', 'built-in profile (default: workspace-write)')
    .option('--policy <file>', 'policy file (TOML), on top of those of the machine and the user')
    .addOption(backendOption())
    .addOption(autonomyOption())
    .option('--session <id>', 'the session of the agent: what it is exposed to is remembered')
    .addOption(askOption())
    .option('--ro <path>', 'a further path to read and execute from; repeatable', collect)
    .option('--rw <path>', 'a further path to write; repeatable', collect)
    .option('--env <name[=value]>', 'pass a variable, or set it; repeatable', collect)
    .option('--timeout <seconds>', 'end the command after this time; 0: never (default: 60)', parseSeconds)
    .option(
      '--idle-timeout <seconds>',
      'end it when it writes no output for this time, for which its output passes through pipes; 0: never',
      parseSeconds,
    )
    .option('--memory <size>', 'of the command and all that it starts, such as 512M or 4G', parseSize)
    .option('--max-processes <count>', 'the same of processes and threads (default: 4096)', parseWhole)
    .option('--cpu-time <seconds>', 'the same of processor time', parseWhole)
    .option('--max-tmp <size>', 'the same of private temporary files', parseSize)
    .option(
      '--max-output <size>',
      'kept of each stream with --json, half from its beginning and half from its end; or HEAD+TAIL (default: 1M, at most 128M)',
      parseOutputLimit,
    );
}

/** The same as options of `createSandbox`. */
export function sandboxOptionsOf(options: SandboxArguments): SandboxOptions {
  const assignments = (options.env ?? []).filter((entry) => entry.includes('='));
  return {
    ...(options.workspace === undefined ? {} : { workspace: options.workspace }),
    ...(options.autonomy === undefined ? {} : { autonomy: options.autonomy }),
    ...(options.backend === undefined ? {} : { backend: options.backend }),
    ...(options.profile === undefined ? {} : { profile: options.profile }),
    ...(options.session === undefined ? {} : { session: options.session }),
    ...(options.ask === undefined ? {} : { ask: options.ask }),
    ...(options.policy === undefined ? {} : { policy: options.policy }),
    readable: options.ro ?? [],
    writable: options.rw ?? [],
    passEnv: (options.env ?? []).filter((entry) => !entry.includes('=')),
    env: Object.fromEntries(assignments.map(splitAssignment)),
    ...(options.timeout === undefined ? {} : { timeout: options.timeout }),
    ...(options.idleTimeout === undefined ? {} : { idleTimeout: options.idleTimeout }),
    limits: {
      ...(options.memory === undefined ? {} : { memory: options.memory }),
      ...(options.maxProcesses === undefined ? {} : { processes: options.maxProcesses }),
      ...(options.cpuTime === undefined ? {} : { cpuSeconds: options.cpuTime }),
      ...(options.maxTmp === undefined ? {} : { tmpBytes: options.maxTmp }),
    },
    ...(options.maxOutput === undefined ? {} : { maxOutput: options.maxOutput }),
  };
}

function splitAssignment(entry: string): readonly [string, string] {
  const at = entry.indexOf('=');
  if (at === 0 || entry === '')
    throw new SandboxError('usage.invalid', `--env ${entry}: a name must stand before the =`);
  return [entry.slice(0, at), entry.slice(at + 1)];
}
