import { SHELL_SETTINGS } from './settings.ts';

const SETTINGS = Object.entries(SHELL_SETTINGS).map(
  ([name, meaning]) => `  SANDBOX_SH_${name.padEnd(11)} ${meaning}`,
);

/** What `sandbox-sh --help` prints. */
export const SHELL_HELP = `Usage: sandbox-sh [options] -c STRING [NAME [ARG...]]
       sandbox-sh [options] SCRIPT [ARG...]
       sandbox-sh [options] [-s [ARG...]] < SCRIPT
       sandbox-sh [-i]

A shell for programs that start one: bash, each command judged by the policy of sandbox-run and run in its sandbox.
It takes the arguments of bash: -c, -s, -i, -l, -a -b -e -f -n -u -v -x -C -E, -o NAME, --login, --norc, --noprofile.
Start-up files are never read. Inside a sandbox of sandbox-run it is bash itself.

Settings, which only the environment says (arguments may come from a model):
${SETTINGS.join('\n')}

Examples:
  SHELL=$(command -v sandbox-sh) SANDBOX_SH_WORKSPACE=$PWD my-agent
  SANDBOX_SH_WORKSPACE=~/project sandbox-sh -lc 'make -j4'
  SANDBOX_SH_WORKSPACE=$PWD make SHELL=sandbox-sh
  npm config set script-shell sandbox-sh

Exit status: the command's; 128+n if signal n ended it; 2 arguments that are not taken; 123 a limit was exceeded;
124 time-out; 125 sandbox-sh itself failed; 126 refused or not executable; 127 not found.
`;
