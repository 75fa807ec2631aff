import { isAbsolute } from 'node:path';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { APPROVERS } from '../../base/words.ts';
import type { SandboxOptions } from '../../model/index.ts';

/** What the environment of `sandbox-sh` says. */
export interface ShellSettings {
  readonly sandbox: SandboxOptions;
  /** Path of the policy file that was named. */
  readonly policy: string | undefined;
  readonly quiet: boolean;
}

const PREFIX = 'SANDBOX_SH_';

/** THE table of variables, with what help says of each. Autonomy and approvals are not among them: see a policy file. */
const SHELL_SETTINGS = {
  WORKSPACE:
    "the directory to work in (default: the policy's security.workspace_dir; one of the two must be set)",
  POLICY: 'absolute path of a policy file outside the workspace, added to those of the machine and the user',
  PROFILE: 'built-in profile (default: workspace-write)',
  ASK: 'who is asked: terminal (default), queue or nobody',
  SESSION: 'the session of the agent; its taints are remembered',
  QUIET: '1: print only refusals on standard error',
} as const;

type Setting = keyof typeof SHELL_SETTINGS;

/** Those that are options of a sandbox, by the same name. */
const OPTIONS = ['WORKSPACE', 'POLICY', 'PROFILE', 'ASK', 'SESSION'] as const satisfies readonly Setting[];

/** The real shell: what a command finds in SHELL is for programs that are in the sandbox already. */
const INNER_SHELL = '/bin/bash';

/**
 * Reads the settings. Arguments say nothing of them: those may come from a model, the environment is the operator's.
 * @throws {SandboxError} `usage.invalid` for an unknown variable or a value that cannot be one.
 */
export function readShellSettings(env: Readonly<Record<string, string | undefined>>): ShellSettings {
  const unknown = Object.keys(env).find(
    (name) => name.startsWith(PREFIX) && !Object.hasOwn(SHELL_SETTINGS, name.slice(PREFIX.length)),
  );
  if (unknown !== undefined) {
    const known = Object.keys(SHELL_SETTINGS).map((name) => PREFIX + name);
    throw new SandboxError(
      'usage.invalid',
      `there is no setting ${unknown}; the settings are ${known.join(', ')}; everything else is set in a policy file`,
    );
  }
  const of = (name: Setting) => env[PREFIX + name] || undefined;
  for (const name of ['WORKSPACE', 'POLICY'] as const) {
    const path = of(name);
    if (path !== undefined && !isAbsolute(path))
      throw new SandboxError('usage.invalid', `${PREFIX}${name} must be an absolute path, not ${path}`);
  }
  const ask = of('ASK');
  if (ask !== undefined && !APPROVERS.some((name) => name === ask))
    throw new SandboxError('usage.invalid', `${PREFIX}ASK must be ${APPROVERS.join(', ')}, not ${ask}`);
  const quiet = of('QUIET');
  if (quiet !== undefined && quiet !== '0' && quiet !== '1')
    throw new SandboxError('usage.invalid', `${PREFIX}QUIET must be 1 or 0, not ${quiet}`);
  const said = OPTIONS.map((name) => [name.toLowerCase(), of(name)] as const);
  const options: SandboxOptions = Object.fromEntries(said.filter(([, value]) => value !== undefined));
  return {
    sandbox: { ...options, env: { SHELL: INNER_SHELL } },
    policy: of('POLICY'),
    quiet: quiet === '1',
  };
}

/** What `sandbox-sh --help` prints. */
export function shellHelp(): string {
  const settings = Object.entries(SHELL_SETTINGS).map(
    ([name, meaning]) => `  ${PREFIX}${name.padEnd(11)} ${meaning}`,
  );
  return `Usage: sandbox-sh [options] -c STRING [NAME [ARG...]]
       sandbox-sh [options] SCRIPT [ARG...]
       sandbox-sh [options] [-s [ARG...]] < SCRIPT
       sandbox-sh [-i]

A shell for programs that start one: bash, each command judged by the policy of sandbox-run and run in its sandbox.
It takes the arguments of bash: -c, -s, -i, -l, -a -b -e -f -n -u -v -x -C -E, -o NAME, --login, --norc, --noprofile.
Start-up files are never read. Inside a sandbox of sandbox-run it is bash itself.

Settings, which only the environment says (arguments may come from a model):
${settings.join('\n')}

Examples:
  SHELL=$(command -v sandbox-sh) SANDBOX_SH_WORKSPACE=$PWD my-agent
  SANDBOX_SH_WORKSPACE=~/project sandbox-sh -lc 'make -j4'
  SANDBOX_SH_WORKSPACE=$PWD make SHELL=sandbox-sh
  npm config set script-shell sandbox-sh

Exit status: the command's; 128+n if signal n ended it; 2 arguments that are not taken; 123 a limit was exceeded;
124 time-out; 125 sandbox-sh itself failed; 126 refused or not executable; 127 not found.
`;
}
