import type { SandboxOptions, TreeLimits } from '../../model/options.ts';

/** What the command line calls the options that messages name. */
const FLAGS: Readonly<Record<string, string>> = {
  workspace: '--workspace DIR',
  backend: '--backend',
  readable: '--ro',
  writable: '--rw',
  idleTimeout: '--idle-timeout',
  'limits.memory': '--memory',
  'limits.processes': '--max-processes',
  'limits.cpuSeconds': '--cpu-time',
  'limits.tmpBytes': '--max-tmp',
} satisfies Partial<Record<keyof SandboxOptions | `limits.${keyof TreeLimits}`, string>>;

/** A message of the library, which names its own options, in the words of the command line. */
export function inFlags(message: string): string {
  return message.replace(/\bthe option ([A-Za-z]+(?:\.[a-z]+)?)/g, (named, option: string) =>
    Object.hasOwn(FLAGS, option) ? (FLAGS[option] ?? named) : named,
  );
}
