import type { RunOptions, SandboxOptions, TreeLimits } from '../../model/options.ts';

/** What the command line calls the options that messages name. */
const FLAGS: Readonly<Record<string, string>> = {
  approved: '--approved',
  ask: '--ask',
  autonomy: '--autonomy',
  workspace: '--workspace DIR',
  backend: '--backend',
  readable: '--ro',
  writable: '--rw',
  idleTimeout: '--idle-timeout',
  'limits.memory': '--memory',
  'limits.processes': '--max-processes',
  'limits.cpuSeconds': '--cpu-time',
  'limits.tmpBytes': '--max-tmp',
} satisfies Partial<Record<keyof SandboxOptions | keyof RunOptions | `limits.${keyof TreeLimits}`, string>>;

/** A message of the library, which names its own options, in the words of the command line. */
export function inFlags(message: string): string {
  const options = /\bthe option ([A-Za-z]+(?:\.[a-z]+)?)(?:: "([a-z]+)")?/g;
  return message.replace(options, (named, option: string, value: string | undefined) =>
    Object.hasOwn(FLAGS, option) ? [FLAGS[option], value].filter(Boolean).join(' ') : named,
  );
}
